"""Tells whoever reads the node's log why groups rebalance: a line for each cause, few lines for many at once.

The sentences are the machines' own (`odradek groups describe` shows them too). What a group goes through on the way,
such as the generation that begins, is a sentence for those who debug.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coordinator.group.settlement import GroupEvent

if TYPE_CHECKING:
    from broker.clock import Clock, Timer
    from coordinator.machine import Event

logger = logging.getLogger(__name__)

GATHER_MS = 1000
"""After a group's line, what else happens to it is gathered for so long."""
GATHERED_LINES = 3
"""So many of those are said one by one; more are counted."""


class _Gathered:
    """What happened to a group within the second: the first few sentences, the last one, and how many."""

    __slots__ = ("count", "first", "last")

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []
        self.last = ""

    def add(self, text: str) -> None:
        self.count += 1
        self.last = text
        if len(self.first) < GATHERED_LINES:
            self.first.append(text)


class RebalanceLog:
    """Says the first cause of a group's rebalance at once, and what follows within a second together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._gathered: dict[str, _Gathered] = {}
        self._timers: dict[str, Timer] = {}

    def note(self, events: Sequence[Event]) -> None:
        """Events of one decision, in their order."""
        for event in events:
            if not isinstance(event, GroupEvent) or event.is_progress:
                logger.debug("%s", event.text)
            elif event.group_id in self._gathered:
                self._gathered[event.group_id].add(event.text)
            else:
                logger.info("%s", printable(event.text))
                self._gather(event.group_id)

    def close(self) -> None:
        """Say what is still gathered."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for group_id in list(self._gathered):
            self._say(self._gathered.pop(group_id))

    def _gather(self, group_id: str) -> None:
        self._gathered[group_id] = _Gathered()
        self._timers[group_id] = self._clock.call_later(GATHER_MS, self._end_gathering, group_id)

    def _end_gathering(self, group_id: str) -> None:
        del self._timers[group_id]
        gathered = self._gathered.pop(group_id)
        if gathered.count:
            self._say(gathered)
            self._gather(group_id)

    def _say(self, gathered: _Gathered) -> None:
        if gathered.count <= GATHERED_LINES:
            for text in gathered.first:
                logger.info("%s", printable(text))
            return
        group, _, last = gathered.last.partition(": ")
        line = f"{group}: {gathered.count} more changes within {GATHER_MS // 1000} s, the last: {last}"
        logger.info("%s", printable(line))


def printable(text: str) -> str:
    """Names come from clients: what would break a line, or write on a terminal, is escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
