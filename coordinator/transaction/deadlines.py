"""When transactional ids are to be looked at: for a timeout, or to be forgotten.

Kafka looks at all of them every so often. Here nothing is looked at while nothing can be due; the
moments are still those of such a schedule, counted from when the machine was loaded, so that the
settings of both intervals mean what they say.
"""

from __future__ import annotations

import heapq


class Deadlines:
    """Deadlines of transactional ids, rounded up to the next tick of a schedule.

    An entry may come early: whoever takes it looks whether anything is due, and sets it again if not.
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._begin_ms = 0
        self._looked_ms = 0
        self._heap: list[tuple[int, str]] = []
        self._armed: dict[str, int] = {}

    def begin(self, now_ms: int) -> None:
        """The schedule's ticks are counted from here. Nothing may be set before."""
        self._begin_ms = self._looked_ms = now_ms

    def set(self, transactional_id: str, at_ms: int) -> None:
        """Look at the id at the first tick at or after `at_ms` that is still to come; or earlier, if
        that was asked for before."""
        since_ms = max(at_ms, self._looked_ms + 1) - self._begin_ms
        tick_ms = self._begin_ms + -(-since_ms // self._interval_ms) * self._interval_ms
        armed_ms = self._armed.get(transactional_id)
        if armed_ms is None or tick_ms < armed_ms:
            self._armed[transactional_id] = tick_ms
            heapq.heappush(self._heap, (tick_ms, transactional_id))

    def next_ms(self) -> int | None:
        """The earliest deadline; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int, limit: int) -> list[str]:
        """At most `limit` ids whose deadlines have come, earliest first. They stay until taken."""
        if not self._heap or self._heap[0][0] > now_ms:
            return []
        return [key for at_ms, key in heapq.nsmallest(limit, self._heap) if at_ms <= now_ms]

    def take(self, count: int, now_ms: int) -> None:
        """The first `count` entries have been looked at, at `now_ms`."""
        for _ in range(count):
            at_ms, key = heapq.heappop(self._heap)
            if self._armed.get(key) == at_ms:
                del self._armed[key]
        self._looked_ms = max(self._looked_ms, now_ms)
