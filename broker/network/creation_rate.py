"""How fast new connections are let in: `max.connection.creation.rate`, for the broker and for a listener.

Kafka measures the rate over a window of `quota.window.num` samples of a second (eleven, the newest
one unfinished) and delays what goes beyond. A bucket that holds ten seconds' worth gives the same:
the average over the window never exceeds the rate, a burst after quiet passes. Source:
`ConnectionQuotas.recordConnectionAndGetThrottleTimeMs`; KIP-612.
"""

from __future__ import annotations

WINDOW_SECONDS = 10


class CreationRate:
    """`per_second` connections on average; time is the clock's monotonic one, in milliseconds."""

    def __init__(self, per_second: int, now_ms: float) -> None:
        self.per_second = per_second
        self._left = float(per_second * WINDOW_SECONDS)
        self._counted_ms = now_ms

    def wait_ms(self, now_ms: float) -> float:
        """How long the next connection has to wait, 0 if it may come in now; infinite at a rate of 0."""
        gained = (now_ms - self._counted_ms) * self.per_second / 1000.0
        self._left = min(self._left + gained, float(self.per_second * WINDOW_SECONDS))
        self._counted_ms = now_ms
        if self._left >= 1.0:
            return 0.0
        return (1.0 - self._left) * 1000.0 / self.per_second if self.per_second else float("inf")

    def count(self) -> None:
        """A connection was let in."""
        self._left -= 1.0
