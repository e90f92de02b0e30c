"""A group under test: its members' processes, what is done to them, the load, and what the oracle says at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Self

from clients import Client, Flavour, environment
from load import Load
from oracle import ASSIGNED, HANDLED, LEFT, LOST, REVOKED, Event, Fate, faults
from scenario import expect, until
from stalls import Overloaded, Stall, Watch, excused, longest, overload

SESSION_S = 9.0
LONG_SESSION_S = 45.0
"""The clients' default, for members that shall not be missed"""
HEARTBEAT_S = 0.5
LATE_S = 1.0
"""How much later than its interval a heartbeat may be; more is a stall, of which members tell"""
ITSELF = "-"
"""In the place of a member's name where a process speaks of itself"""
END_S = 30.0
SETTLED_S = 1.2
EPOCH_S = 5.0
PARTITION_EVENTS = (ASSIGNED, REVOKED, LOST)


@dataclass
class Process:
    """A program with members of one client; it was stopped from `frozen_at` to `thawed_at`."""

    name: str
    flavour: Flavour
    popen: subprocess.Popen[str]
    members: list[str] = field(default_factory=list)
    frozen_at: float = float("inf")
    thawed_at: float = float("inf")


class Group:
    """The members of one group, whose processes end when this is left."""

    def __init__(self, load: Load, group: str, errors: IO[str], session_s: float = SESSION_S) -> None:
        self.session_s = session_s
        self.load = load
        self.group = group
        self.events: list[Event] = []
        self.fates: dict[str, Fate] = {}
        self.owned: dict[str, set[int]] = {}
        self.epochs: dict[str, int] = {}
        self._errors = errors
        self._stalls: list[Stall] = []
        self._watch = Watch(load.address)
        self._processes: dict[str, Process] = {}
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(self, _: object, fault: BaseException | None, __: object) -> None:
        """Raises Overloaded where a scenario failed that the machine left no chance."""
        self._watch.__exit__()
        self.load.end()
        for process in self._processes.values():
            process.popen.kill()
            process.popen.wait()
        if fault is not None and (why := overload(self.stalls(), SESSION_S - HEARTBEAT_S - LATE_S)):
            self._errors.write(f"{self.group} was not judged: {why}; {fault}\n")
            raise Overloaded(why) from fault

    # --- what is done ------------------------------------------------------------------------------

    def start(self, process: str, client: Client, flavour: Flavour) -> None:
        """Start a process that has no member yet."""
        command = [
            *client.command, self.load.address, self.load.topic, self.group,
            f"protocol={flavour.protocol}", f"assignor={flavour.assignor}",
            f"session_ms={self.session_s * 1000:.0f}", f"heartbeat_ms={HEARTBEAT_S * 1000:.0f}",
        ]  # fmt: skip
        popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment()
        )
        self._processes[process] = started = Process(process, flavour, popen)
        threading.Thread(target=self._read, args=(started,), daemon=True).start()

    def join(self, process: str, *members: str, static: bool = False) -> None:
        """Members join in a process. A static one's instance is its name up to the dot: a.1, a.2."""
        is_consumer = self._processes[process].flavour.protocol == "consumer"
        for member in members:
            instance = member.partition(".")[0] if static else None
            with self._changed:
                self.fates[member] = Fate(instance, is_consumer)
                self.owned[member] = set()
            self._processes[process].members.append(member)
            self._tell(process, f"join {member} {instance or ''}")

    def leave(self, member: str) -> None:
        """A member closes; waits until it has. A static one's partitions stay its instance's."""
        process = self._process_of(member)
        self._tell(process, f"leave {member}")
        self._wait(lambda: self._has_left(member), END_S, lambda: f"{member} has left")
        self._processes[process].members.remove(member)

    def stop(self, process: str) -> None:
        """All members of a process close, and it ends."""
        self._tell(process, "stop")
        popen = self._processes[process].popen
        popen.wait(END_S)
        expect(popen.returncode, 0, f"the exit code of {process}")
        members = self._processes.pop(process).members
        self._wait(lambda: all(map(self._has_left, members)), END_S, lambda: f"{members} have left")

    def kill(self, process: str) -> float:
        """End a process without a word; returns when."""
        gone = self._processes.pop(process)
        at = time.monotonic()
        gone.popen.kill()
        gone.popen.wait()
        with self._changed:
            for member in gone.members:
                fate = self.fates[member]
                fate.crashed_at, fate.free_at = at, at + self.session_s - HEARTBEAT_S - LATE_S
                self.owned[member] = set()
        return at

    def freeze(self, process: str) -> None:
        """A process does nothing, until it is thawed; its members are silent for the group."""
        at = self._processes[process].frozen_at = time.monotonic()
        for member in self._processes[process].members:
            fate = self.fates[member]
            fate.frozen_at, fate.free_at = at, at + self.session_s - HEARTBEAT_S - LATE_S
        os.kill(self._processes[process].popen.pid, signal.SIGSTOP)

    def thaw(self, process: str) -> None:
        self._processes[process].thawed_at = time.monotonic()
        os.kill(self._processes[process].popen.pid, signal.SIGCONT)

    # --- what is seen ------------------------------------------------------------------------------

    def wait_shared(self, *members: str, timeout_s: float = 90.0) -> None:
        """Wait until these members have all partitions, each about as many."""

        def is_shared() -> bool:
            loads = [len(self.owned[member]) for member in members]
            every = set().union(*(self.owned[member] for member in members))
            return sum(loads) == len(every) == self.load.partitions and max(loads) - min(loads) <= 1

        self._wait(
            is_shared, timeout_s, lambda: f"{self.load.partitions} partitions are shared; they have {self._loads()}"
        )
        until(self._is_stable, f"group {self.group} is stable", timeout_s, pause_s=0.1)

    def wait_all_at(self, member: str, timeout_s: float) -> None:
        """Wait until one has all, whatever others that cannot speak believe."""
        everything = set(range(self.load.partitions))
        self._wait(lambda: self.owned[member] == everything, timeout_s, lambda: f"{member} has all; {self._loads()}")

    def wait_lost(self, member: str) -> None:
        """Wait until one has learned that it has nothing more."""
        fate = self.fates[member]

        def has_learned() -> bool:
            told = (each for each in self.events if each.member == member and each.kind in (REVOKED, LOST))
            return any(each.at > (fate.frozen_at or 0) for each in told)

        self._wait(has_learned, END_S, lambda: f"{member} learns what it lost")

    def wait_handled(self, timeout_s: float = 60.0) -> None:
        """Wait until what was written up to now is handled."""
        ends = self.load.ends()

        def is_handled() -> bool:
            last: dict[int, int] = {}
            for event in self.events:
                if event.kind == HANDLED:
                    last[event.handled[0]] = max(last.get(event.handled[0], -1), event.handled[2])
            return all(last.get(partition, -1) >= end - 1 for partition, end in ends.items())

        self._wait(is_handled, timeout_s, lambda: f"all is handled up to {ends}")

    def ask_epochs(self, members: Iterable[str]) -> dict[str, int]:
        """The members' own view of the group's generation or epoch."""
        members = list(members)
        for member in members:
            with self._changed:
                self.epochs.pop(member, None)
            self._tell(self._process_of(member), f"epoch {member}")
        self._wait(lambda: all(each in self.epochs for each in members), END_S, lambda: f"{members} say their epochs")
        return {member: self.epochs[member] for member in members}

    def first_epochs(self, members: Sequence[str]) -> dict[str, int]:
        """The members' own view, once each has one that stays: what a client counts may come late."""
        found: dict[str, int] = {}

        def stays() -> bool:
            nonlocal found
            before, found = found, self.ask_epochs(members)
            return before == found and min(found.values()) >= 0

        until(stays, "each member knows the epoch", END_S, pause_s=SETTLED_S)
        return found

    def check_epochs(self, expected: dict[str, int]) -> None:
        """Raise where a member's view of the epoch is not, or does not come to be, this."""
        deadline = time.monotonic() + EPOCH_S
        while (told := self.ask_epochs(expected)) != expected and time.monotonic() < deadline:
            time.sleep(0.1)
        expect(told, expected, "the members' view of the epoch")

    def last_assignment(self, member: str) -> set[int]:
        """What a member had before it gave it up, or was killed."""
        with self._changed:
            owned, found = set[int](), set[int]()
            for event in (each for each in self.events if each.member == member):
                if event.kind == ASSIGNED:
                    owned |= set(event.partitions)
                elif event.kind in (REVOKED, LOST):
                    owned -= set(event.partitions)
                if owned:
                    found = set(owned)
            return found

    def moved(self, member: str, since: float) -> list[Event]:
        """What a member was given, gave up or lost since a time."""
        with self._changed:
            return [each for each in self.events if each.member == member and each.at >= since and each.partitions]

    def stalls(self) -> list[Stall]:
        """When members, the driver and the broker got no turn."""
        with self._changed:
            return [*self._watch.stalls, *self._stalls]

    def check(self) -> None:
        """Raise with what the oracle finds, once all that was written is handled and all members have left."""
        self.load.stop()
        self.wait_handled()
        for process in list(self._processes):
            self.stop(process)
        worst = longest(excused(self.stalls()))
        with self._changed:
            found = faults(self.events, self.fates, self.load.ends(), worst.seconds if worst else 0.0)
        more = f"\nand {len(found) - 5} more" if len(found) > 5 else ""
        if found:
            self._errors.write("".join(f"{self.group} {event}\n" for event in sorted(self.events, key=lambda e: e.at)))
            raise AssertionError("\n".join(found[:5]) + more)
        expect(self.load.committed(self.group), self.load.ends(), "what the group has committed")

    # --- the lines ---------------------------------------------------------------------------------

    def _tell(self, process: str, line: str) -> None:
        stdin = self._processes[process].popen.stdin
        assert stdin is not None
        stdin.write(line + "\n")
        stdin.flush()

    def _read(self, process: Process) -> None:
        assert process.popen.stdout is not None
        for line in process.popen.stdout:
            # A process that was killed may have said half a line.
            if line.endswith("\n"):
                with self._changed:
                    self._note(line.split(), process)
                    self._changed.notify_all()

    def _note(self, words: Sequence[str], process: Process) -> None:
        member, kind, at, *rest = words
        if member == ITSELF:
            stall = Stall(process.name, float(at) - float(rest[0]), float(at))
            if not stall.meets(process.frozen_at, process.thawed_at):
                self._stalls.append(stall)
        elif kind == "epoch":
            self.epochs[member] = int(rest[0])
        elif kind in PARTITION_EVENTS:
            partitions = tuple(map(int, rest[0].split(","))) if rest[0] != "-" else ()
            self.events.append(Event(float(at), member, kind, partitions, words=" ".join(rest[1:])))
            owned = self.owned[member]
            self.owned[member] = owned | set(partitions) if kind == ASSIGNED else owned - set(partitions)
        elif kind == HANDLED:
            partition, first, last = map(int, rest)
            self.events.append(Event(float(at), member, kind, handled=(partition, first, last)))
        else:
            self.events.append(Event(float(at), member, kind, words=" ".join(rest)))

    def _wait(self, done: Callable[[], bool], timeout_s: float, what: Callable[[], str]) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: done() or self._failed(), timeout_s):
                raise AssertionError(f"not within {timeout_s:g} s: {what()}")
            if self._failed() and not done():
                raise AssertionError(f"{self._failed()[0]}; waited until {what()}")

    def _failed(self) -> list[str]:
        return [f"{each.member} failed: {each.words}" for each in self.events if each.kind == "fault"]

    def _is_stable(self) -> bool:
        return self.load.group_state(self.group) == "STABLE"

    def _has_left(self, member: str) -> bool:
        return any(event.member == member and event.kind == LEFT for event in self.events)

    def _loads(self) -> dict[str, int]:
        return {member: len(owned) for member, owned in self.owned.items() if not self._has_left(member)}

    def _process_of(self, member: str) -> str:
        return next(name for name, process in self._processes.items() if member in process.members)
