"""What the members in Python share: the lines (README.md), what was handled and not yet committed, the commands."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

COMMIT_INTERVAL_S = 0.5
TURN_S = 0.25
LATE_S = 1.0
PROCESS = "-"
_writing = threading.Lock()


def say(member: str, what: str, *words: object) -> None:
    """Print one line, whole and at once."""
    line = " ".join(map(str, (member, what, f"{time.monotonic():.6f}", *words)))
    with _writing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def watch_turns() -> None:
    """Say from now on when this process got no turn for long: whoever judges the members has to know."""

    def look() -> None:
        while True:
            before = time.monotonic()
            time.sleep(TURN_S)
            late = time.monotonic() - before - TURN_S
            if late > LATE_S:
                say(PROCESS, "stalled", f"{late:.3f}")

    threading.Thread(target=look, daemon=True).start()


def listed(partitions: Iterable[int]) -> str:
    """Partitions as a word."""
    return ",".join(map(str, sorted(partitions))) or "-"


def one_line(fault: BaseException) -> str:
    """A fault and its cause in a line."""
    because = f", because {one_line(fault.__cause__)}" if fault.__cause__ is not None else ""
    return " ".join(f"{type(fault).__name__}: {fault}{because}".split())


@dataclass
class Arguments:
    """What the process was started with."""

    address: str
    topic: str
    group: str
    options: dict[str, str]

    @classmethod
    def read(cls, words: list[str]) -> Arguments:
        address, topic, group, *options = words
        return cls(address, topic, group, dict(option.split("=", 1) for option in options))

    @property
    def is_consumer(self) -> bool:
        return self.options["protocol"] == "consumer"

    def milliseconds(self, name: str) -> int:
        return int(self.options[name])


@dataclass
class Handled:
    """Records done with: said in ranges, and committed up to the next."""

    member: str
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    """The offset to commit, by partition"""
    committed_at: float = 0.0

    def add(self, partition: int, offset: int) -> None:
        first, last = self.ranges.get(partition, (offset, offset - 1))
        if offset != last + 1:
            self.tell()
            first = offset
        self.ranges[partition] = first, offset
        self.positions[partition] = offset + 1

    def tell(self) -> None:
        """Say what is not said yet."""
        for partition, (first, last) in self.ranges.items():
            say(self.member, "handled", partition, first, last)
        self.ranges.clear()

    def due(self) -> dict[int, int]:
        """What to commit now, twice a second."""
        now = time.monotonic()
        if not self.positions or now - self.committed_at < COMMIT_INTERVAL_S:
            return {}
        self.committed_at = now
        return self.taken(list(self.positions))

    def taken(self, partitions: Iterable[int]) -> dict[int, int]:
        """Take out what is to be committed for these partitions; all of it was said before."""
        self.tell()
        return {each: self.positions.pop(each) for each in partitions if each in self.positions}

    def keep(self, positions: dict[int, int]) -> None:
        """Have what could not be committed be committed later, by the listener at the latest."""
        for partition, offset in positions.items():
            self.positions.setdefault(partition, offset)


class ThreadedMember(threading.Thread):
    """A member with a thread of its own; what it does is the client's."""

    def __init__(self, arguments: Arguments, name: str, instance: str | None) -> None:
        super().__init__(name=name, daemon=True)
        self.arguments = arguments
        self.instance = instance
        self.handled = Handled(name)
        self.ending = threading.Event()

    def run(self) -> None:
        try:
            self.consume()
            say(self.name, "left")
        except Exception as fault:
            say(self.name, "fault", one_line(fault))

    def consume(self) -> None:
        """Join, handle until `ending`, close."""
        raise AssertionError("a client's member has its own")

    def epoch(self) -> object:
        """The generation, or what moves with it."""
        raise AssertionError("a client's member has its own")


def follow_commands(arguments: Arguments, member: Callable[[Arguments, str, str | None], ThreadedMember]) -> None:
    """Do what standard input says, until it ends."""
    watch_turns()
    members: dict[str, ThreadedMember] = {}
    for line in sys.stdin:
        command, *words = line.split()
        if command == "join":
            members[words[0]] = member(arguments, words[0], words[1] if len(words) > 1 else None)
            members[words[0]].start()
        elif command == "leave":
            members[words[0]].ending.set()
        elif command == "epoch":
            say(words[0], "epoch", members[words[0]].epoch())
        elif command == "stop":
            break
    for each in members.values():
        each.ending.set()
    for each in members.values():
        each.join()
