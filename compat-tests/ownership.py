"""Members of a group as processes, and the one question about them: had every partition one owner at any time?

A member prints a JSON object a line, `{"event": "assigned", "at": SECONDS, "partitions": [[topic, index], …]}` or
"revoked", at the moment when it takes up or gives up partitions; Apache Kafka's VerifiableConsumer says the same in
its own words.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from scenario import until

Partition = tuple[str, int]
ASSIGNED, REVOKED, GONE = "assigned", "revoked", "gone"
END_TIMEOUT_S = 30


@dataclass(frozen=True, order=True)
class Event:
    """At a time, a member took up or gave up partitions, or its process was gone."""

    at: float
    member: str
    kind: str
    partitions: tuple[Partition, ...] = ()


@dataclass
class Members:
    """The processes, by name, and all that they said."""

    events: list[Event] = field(default_factory=list)
    owned: dict[str, set[Partition]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Records that each has read"""
    _processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._processes):
            self.kill(name)

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a member; its lines are read from then on."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._processes[name] = process
        self.owned[name] = set()
        threading.Thread(target=self._read, args=(name, process), daemon=True).start()

    def stop(self, name: str) -> None:
        """Ask a member to leave in good order, and wait until it has."""
        self._end(name, signal.SIGTERM)

    def kill(self, name: str) -> None:
        """End a member without a word."""
        self._end(name, signal.SIGKILL)

    def wait_for(self, *loads: int, timeout_s: float = 60.0) -> None:
        """Wait until the members that run own so many partitions each, in any order."""

        def is_so() -> bool:
            time.sleep(0.1)
            return self.loads() == sorted(loads)

        try:
            until(is_so, "", timeout_s)
        except AssertionError:
            raise AssertionError(
                f"not within {timeout_s:g} s: members own {self.loads()}, not {sorted(loads)}"
            ) from None

    def loads(self) -> list[int]:
        """How many partitions each running member owns."""
        with self._lock:
            return sorted(len(self.owned[name]) for name in self._processes)

    def revocations(self, name: str, since: float) -> list[Event]:
        """What a member gave up since a time."""
        return [each for each in self.events if each.member == name and each.kind == REVOKED and each.at >= since]

    def check_one_owner(self) -> None:
        """Raise where a member took a partition up that another had not given up."""
        owners: dict[Partition, str] = {}
        for event in sorted(self.events):
            if event.kind == GONE:
                owners = {partition: member for partition, member in owners.items() if member != event.member}
            for partition in event.partitions:
                if event.kind == REVOKED:
                    if owners.get(partition) == event.member:
                        del owners[partition]
                elif owners.setdefault(partition, event.member) != event.member:
                    raise AssertionError(f"{partition} is taken by {event.member} while {owners[partition]} has it")

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue
            with self._lock:
                self._note(name, said)

    def _note(self, name: str, said: dict[str, Any]) -> None:
        if said.get("event") == "read" or said.get("name") == "records_consumed":
            self.counts[name] = self.counts.get(name, 0) + int(said["count"])
            return
        event = _event(name, said)
        if event is None:
            return
        self.events.append(event)
        owned = self.owned[name]
        self.owned[name] = owned | set(event.partitions) if event.kind == ASSIGNED else owned - set(event.partitions)

    def _end(self, name: str, how: int) -> None:
        process = self._processes.pop(name)
        os.kill(process.pid, how)
        process.wait(END_TIMEOUT_S)
        with self._lock:
            self.owned[name] = set()
            self.events.append(Event(time.time(), name, GONE))


def _event(name: str, said: dict[str, Any]) -> Event | None:
    """An event from a line of ours, or of VerifiableConsumer (whose times are milliseconds)."""
    if said.get("event") in (ASSIGNED, REVOKED):
        return Event(said["at"], name, said["event"], tuple((topic, index) for topic, index in said["partitions"]))
    kinds = {"partitions_assigned": ASSIGNED, "partitions_revoked": REVOKED}
    if said.get("name") not in kinds:
        return None
    partitions = tuple((each["topic"], each["partition"]) for each in said["partitions"])
    return Event(said["timestamp"] / 1000, name, kinds[said["name"]], partitions)
