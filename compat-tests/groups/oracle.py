"""What members said, held against what a group promises.

- A partition has one owner at any time: from the moment its listener is told to the moment it has committed and given
  up; of a member that was killed or frozen, at least until its session can have ended.
- Only the owner handles a partition's records.
- Each record is handled; once, unless a member that was killed, or frozen and lost what it had, is one of the handlers.
- No member loses what it has without a cause.

By the new protocol a member has a partition only once a heartbeat of it has named it: what it was told of and has not
named yet may go to another at once (FINDINGS.md). So there one that was told just now, and gives up what it has not
handled anything of, was no owner.

Times are the machine's monotonic clock, in seconds, as the members' own.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

ASSIGNED, REVOKED, LOST, HANDLED, LEFT, FAULT = "assigned", "revoked", "lost", "handled", "left", "fault"
SHOWN = 5
UNNAMED_S = 1.5
"""Within it a heartbeat has named what a member was told of: two are sent a second, and one as soon as it was taken"""
UNCOMMITTED_S = 3.0
"""Members commit twice a second; this is what a busy machine makes of it"""


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a member. `partitions` of assigned, revoked, lost; `handled`: a partition, first and last offset."""

    at: float
    member: str
    kind: str
    partitions: tuple[int, ...] = ()
    handled: tuple[int, int, int] = (-1, 0, -1)
    words: str = ""


@dataclass(slots=True)
class Fate:
    """What the driver did to a member. `free_at`: before it nobody may have its partitions; `instance`: static;
    `is_consumer`: it speaks the new protocol."""

    instance: str | None = None
    is_consumer: bool = False
    crashed_at: float | None = None
    frozen_at: float | None = None
    free_at: float | None = None


def faults(events: Iterable[Event], fates: dict[str, Fate], ends: dict[int, int], stalled_s: float = 0.0) -> list[str]:
    """What was broken, as sentences; `ends` has the end offset of each partition.

    `stalled_s`: for how long somebody got no turn, by which a commit or a heartbeat may have been late.
    """
    ordered = sorted(events, key=lambda event: event.at)
    excused = excuses(ordered, fates, UNCOMMITTED_S + stalled_s)
    return [*owner_faults(ordered, fates, excused, stalled_s), *handling_faults(ordered, excused, ends)]


# --- one owner ---------------------------------------------------------------------------------------


def owner_faults(
    ordered: list[Event], fates: dict[str, Fate], excused: dict[str, tuple[float, float]], stalled_s: float
) -> list[str]:
    """Where a partition had two owners, or was handled by another than its owner, or lost without a cause."""
    owners: dict[int, str] = {}
    found: list[str] = []
    for event in ordered:
        if event.kind == FAULT:
            found.append(f"{event.member} failed: {event.words}")
        elif event.kind == ASSIGNED:
            for partition in event.partitions:
                owner = owners.get(partition)
                if (
                    owner is None
                    or not fates[owner].is_consumer
                    or not is_unnamed(ordered, event, partition, owner, stalled_s)
                ):
                    found += taken_too_early(event, partition, owner, fates, stalled_s)
                owners[partition] = event.member
        elif event.kind in (REVOKED, LOST):
            if event.kind == LOST and event.partitions and fates[event.member].frozen_at is None:
                why = f": {event.words}" if event.words else ""
                found.append(f"{event.member} lost {event.partitions} at {event.at:.3f} without a cause{why}")
            for partition in event.partitions:
                if owners.get(partition) == event.member:
                    del owners[partition]
        elif event.kind == HANDLED and not is_excused(event, excused):
            partition, first, last = event.handled
            if owners.get(partition) != event.member:
                owner = owners.get(partition, "nobody")
                found.append(f"{event.member} handled {partition}@{first}-{last} at {event.at:.3f}, and {owner} has it")
    return found


def taken_too_early(
    event: Event, partition: int, owner: str | None, fates: dict[str, Fate], stalled_s: float
) -> list[str]:
    """Why a member may not yet be told that it has a partition; nothing where it may."""
    if owner is None:
        return []
    if owner == event.member:
        return [f"{owner} was told at {event.at:.3f} that it has {partition}, which it had"]
    fate, successor = fates[owner], fates[event.member]
    replaced = fate.instance is not None and fate.instance == successor.instance and fate.crashed_at is not None
    if replaced or (fate.free_at is not None and event.at >= fate.free_at - stalled_s):
        return []
    why = "" if fate.free_at is None else f", whose session ran until {fate.free_at:.3f} at least"
    return [f"{event.member} was given {partition} at {event.at:.3f}, and {owner} has it{why}"]


def is_unnamed(ordered: list[Event], event: Event, partition: int, owner: str, stalled_s: float) -> bool:
    """Whether the owner was told of the partition just before another was, handled none of it, and gave it up."""
    its = [each for each in ordered if each.member == owner and concerns(each, partition)]
    before = [each for each in its if each.at <= event.at]
    after = [each for each in its if each.at > event.at]
    if before[-1].kind != ASSIGNED or before[-1].at < event.at - UNNAMED_S - stalled_s:
        return False
    return bool(after) and after[0].kind in (REVOKED, LOST)


def concerns(event: Event, partition: int) -> bool:
    """Whether a member speaks of the partition."""
    return partition in event.partitions or (event.kind == HANDLED and event.handled[0] == partition)


def excuses(ordered: list[Event], fates: dict[str, Fate], uncommitted_s: float) -> dict[str, tuple[float, float]]:
    """From when to when a member's handling may be repeated by another: what it had not yet committed when it was
    killed or frozen, and, of one that was frozen, what it had in its hands until it learned what it lost."""
    found: dict[str, tuple[float, float]] = {}
    for member, fate in fates.items():
        if fate.crashed_at is not None:
            found[member] = fate.crashed_at - uncommitted_s, fate.crashed_at
        elif fate.frozen_at is not None:
            told = [e.at for e in ordered if e.member == member and e.kind in (REVOKED, LOST) and e.at > fate.frozen_at]
            found[member] = fate.frozen_at - uncommitted_s, told[0] if told else fate.frozen_at
    return found


def is_excused(event: Event, excused: dict[str, tuple[float, float]]) -> bool:
    begin, end = excused.get(event.member, (1.0, 0.0))
    return begin <= event.at <= end


# --- every record ------------------------------------------------------------------------------------


def handling_faults(ordered: list[Event], excused: dict[str, tuple[float, float]], ends: dict[int, int]) -> list[str]:
    """Which records were not handled, or twice."""
    handlers: dict[int, dict[int, list[str]]] = {partition: defaultdict(list) for partition in ends}
    for event in ordered:
        if event.kind == HANDLED:
            partition, first, last = event.handled
            for offset in range(first, last + 1):
                handlers[partition][offset] += [] if is_excused(event, excused) else [event.member]
    found: list[str] = []
    for partition, end in sorted(ends.items()):
        missing = [offset for offset in range(end) if offset not in handlers[partition]]
        if missing:
            found.append(f"{len(missing)} records of {partition} were handled by nobody: {spans(missing)} of {end}")
        twice = {offset: tuple(names) for offset, names in handlers[partition].items() if len(names) > 1}
        for names in sorted(set(twice.values())):
            offsets = [offset for offset, each in twice.items() if each == names]
            found.append(
                f"{len(offsets)} records of {partition} were handled by {' and '.join(names)}: {spans(offsets)}"
            )
    return found


def spans(offsets: list[int]) -> str:
    """Offsets as ranges, the first few."""
    runs = []
    for _, run in itertools.groupby(enumerate(sorted(offsets)), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        runs.append(f"{numbers[0]}-{numbers[-1]}")
    return ", ".join(runs[:SHOWN]) + (", …" if len(runs) > SHOWN else "")
