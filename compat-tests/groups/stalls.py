"""Who got no turn on a busy machine, and when: the driver, a member's process, the broker.

A member that gets no turn for as long as its session is rightly taken for dead, so what a group does then says nothing
of the broker. A broker that is late while everybody else gets their turns is not excused.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

TURN_S = 0.25
LATE_S = 1.0
"""A turn that comes so much later than asked for is a stall; members say the same of themselves (members/README.md)"""
WAIT_S = 60.0
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
DRIVER, BROKER = "the driver", "the broker"


class Overloaded(Exception):
    """A scenario failed on a machine that was too busy to tell whose fault it is; the text says who had no turn."""


@dataclass(frozen=True, slots=True)
class Stall:
    """From when to when somebody had no turn, in seconds of the machine's monotonic clock."""

    who: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    def meets(self, begin: float, end: float) -> bool:
        """Whether it was in some part of that time."""
        return self.begin <= end and begin <= self.end


def longest(stalls: Iterable[Stall]) -> Stall | None:
    return max(stalls, key=lambda stall: stall.seconds, default=None)


def excused(stalls: Iterable[Stall]) -> list[Stall]:
    """Those that a busy machine explains: of the broker's, where another had no turn either."""
    stalls = list(stalls)
    others = [stall for stall in stalls if stall.who != BROKER]
    late_together = (s for s in stalls if s.who == BROKER and any(each.meets(s.begin, s.end) for each in others))
    return [*others, *late_together]


def overload(stalls: Iterable[Stall], limit_s: float) -> str | None:
    """Who had no turn, in a sentence, where that together with the broker's silence lasted for the limit."""
    known = excused(stalls)
    worst = [
        stall
        for stall in (
            longest(each for each in known if each.who != BROKER),
            longest(each for each in known if each.who == BROKER),
        )
        if stall is not None
    ]
    if sum(stall.seconds for stall in worst) < limit_s:
        return None
    return " and ".join(f"{stall.who} had no turn for {stall.seconds:.1f} s" for stall in worst)


class Watch:
    """Looks at the driver's own turns and asks the broker something small all the time, until it is left."""

    def __init__(self, address: str, *, late_s: float = LATE_S) -> None:
        self._late_s = late_s
        self._looking: list[threading.Thread] = []
        host, _, port = address.rpartition(":")
        self._connection = socket.create_connection((host, int(port)), WAIT_S)
        self._ending = threading.Event()
        self._stalls: list[Stall] = []

    def __enter__(self) -> Self:
        self._looking = [
            threading.Thread(target=look, daemon=True) for look in (self._look_at_turns, self._look_at_broker)
        ]
        for thread in self._looking:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._looking:
            thread.join(TURN_S + LATE_S)

    @property
    def stalls(self) -> list[Stall]:
        return list(self._stalls)

    def _note(self, who: str, begin: float) -> None:
        end = time.monotonic()
        if end - begin > self._late_s:
            self._stalls.append(Stall(who, begin, end))

    def _look_at_turns(self) -> None:
        begin = time.monotonic()
        while not self._ending.wait(TURN_S):
            self._note(DRIVER, begin + TURN_S)
            begin = time.monotonic()

    def _look_at_broker(self) -> None:
        with self._connection, self._connection.makefile("rb") as answers:
            while not self._ending.wait(TURN_S):
                begin = time.monotonic()
                try:
                    self._connection.sendall(API_VERSIONS)
                    answers.read(struct.unpack(">i", answers.read(4))[0])
                except (OSError, struct.error):
                    return  # a broker that is gone is told by whatever else needs it
                self._note(BROKER, begin)
