"""Groups of real clients: members join, leave, are killed, frozen, restarted and replaced while records are written.

Each scenario ends with the oracle (oracle.py). A test is a scenario with a protocol and an assignor:
`three_members.consumer-uniform`. What a client's members are: members/README.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO

from clients import COOPERATIVE, RANGE, ROUND_ROBIN, SERVER_RANGE, STICKY, UNIFORM, Client, Flavour, prepared
from load import Load
from running import LONG_SESSION_S, SESSION_S, Group
from scenario import expect, unique
from stalls import Overloaded
from suite import Suite, each, main, tell

WORKERS = 2
AFTER_A_CRASH_S = SESSION_S + 40.0


@dataclass(frozen=True, slots=True)
class Run:
    """What a scenario is given."""

    client: Client
    flavour: Flavour
    address: str
    errors: IO[str]

    def group(self, partitions: int, session_s: float = SESSION_S) -> Group:
        """A group without members; the session is that of the classic protocol, the new one's is the broker's."""
        return Group(Load(self.address, partitions), unique("group"), self.errors, session_s)


Scenario = Callable[[Run], None]
ALL = (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE, UNIFORM, SERVER_RANGE)
registered: dict[str, tuple[Scenario, tuple[Flavour, ...], tuple[str, ...]]] = {}


def scenario(*flavours: Flavour, clients: tuple[str, ...] = ()) -> Callable[[Scenario], Scenario]:
    """Register a scenario for these protocols and assignors, where a client has them; for all clients, or these."""

    def register(function: Scenario) -> Scenario:
        registered[function.__name__] = function, flavours, clients
        return function

    return register


def add(group: Group, run: Run, name: str, *, static: bool = False) -> None:
    """A process with one member, both of that name."""
    group.start(name, run.client, run.flavour)
    group.join(name, name, static=static)


@scenario(*ALL)
def one_member(run: Run) -> None:
    with run.group(3) as group:
        add(group, run, "a")
        group.wait_shared("a")
        group.wait_handled()
        group.kill("a")
        add(group, run, "b")
        group.wait_shared("b", timeout_s=AFTER_A_CRASH_S)
        group.wait_handled()
        group.stop("b")
        add(group, run, "c")
        group.wait_shared("c")
        group.check()


@scenario(*ALL)
def three_members(run: Run) -> None:
    with run.group(6) as group:
        add(group, run, "a")
        group.wait_shared("a")
        add(group, run, "b")
        group.wait_shared("a", "b")
        add(group, run, "c")
        group.wait_shared("a", "b", "c")
        group.wait_handled()
        group.leave("b")
        group.wait_shared("a", "c")
        group.kill("c")
        group.wait_shared("a", timeout_s=AFTER_A_CRASH_S)
        add(group, run, "d")
        add(group, run, "e")
        group.wait_shared("a", "d", "e")
        group.check()


@scenario(RANGE, COOPERATIVE, UNIFORM)
def twenty_members(run: Run) -> None:
    with run.group(40) as group:
        names = {process: [f"{process}{number}" for number in range(5)] for process in "pqrst"}
        for process in "pqrs":
            group.start(process, run.client, run.flavour)
        for number in range(1, 6):
            group.join("p", names["p"][number - 1])
            group.wait_shared(*names["p"][:number])
        for process in "qrs":
            group.join(process, *names[process])
        group.wait_shared(*all_of(names, "pqrs"))
        group.wait_handled()
        group.kill("q")
        group.wait_shared(*all_of(names, "prs"), timeout_s=AFTER_A_CRASH_S)
        group.start("t", run.client, run.flavour)
        group.join("t", *names["t"])
        group.wait_shared(*all_of(names, "prst"))
        group.stop("s")
        for number in range(4):
            # One that leaves while the group changes may find that it can no longer commit: no clean hand-over.
            group.wait_shared(*names["p"][number:], *all_of(names, "rt"))
            if number < 3:
                group.leave(names["p"][number])
        group.check()


def all_of(names: dict[str, list[str]], processes: Iterable[str]) -> list[str]:
    return [name for process in processes for name in names[process]]


@scenario(RANGE, COOPERATIVE, UNIFORM, SERVER_RANGE)
def static_members_restart_in_turn(run: Run) -> None:
    """Each closes and comes back within its session: nothing moves, nobody but it hears of it."""
    restart_static_members(run, Group.stop, ["revoked"])


@scenario(RANGE, COOPERATIVE)
def static_members_are_killed_in_turn(run: Run) -> None:
    """Each is killed and comes back within its session: nothing moves either."""
    restart_static_members(run, Group.kill, [])


def restart_static_members(run: Run, end: Callable[[Group, str], object], last_moves: list[str]) -> None:
    """The new one has what the old one had; the others' moves are none; the epoch is what it was."""
    with run.group(6, LONG_SESSION_S) as group:
        for name in "abc":
            add(group, run, f"{name}.0", static=True)
        group.wait_shared("a.0", "b.0", "c.0")
        group.wait_handled()
        old = group.first_epochs(["a.0", "b.0", "c.0"])
        epoch, since = epoch_of(group, run), time.monotonic()
        members = {name: f"{name}.0" for name in "abc"}
        for name in "abc":
            members[name] = f"{name}.1"
            group.start(members[name], run.client, run.flavour)
            end(group, f"{name}.0")
            group.join(members[name], members[name], static=True)
            group.wait_shared(*members.values())
            had = group.last_assignment(f"{name}.0")
            expect(group.owned[members[name]], had, f"what {name} has after its restart")
            group.check_epochs({member: old[f"{other}.0"] for other, member in members.items() if knows(run, member)})
        expect(epoch_of(group, run), epoch, "the epoch of the group, as described")
        for name in "abc":
            expect(moves_of(group, f"{name}.0", since), last_moves, f"moves of {name} before its restart")
            expect(moves_of(group, f"{name}.1", since), ["assigned"], f"moves of {name} after its restart")
        group.check()


def knows(run: Run, member: str) -> bool:
    """Whether a member can tell the epoch; confluent-kafka counts its rebalances, from its start."""
    return run.client.name != "confluent-kafka" or member.endswith(".0")


@scenario(UNIFORM)
def a_killed_static_member_is_kept_out_until_its_session_ends(run: Run) -> None:
    """By the new protocol nobody takes over from one that has not said that it goes."""
    with run.group(4) as group:
        add(group, run, "a.0", static=True)
        add(group, run, "b.0", static=True)
        group.wait_shared("a.0", "b.0")
        group.wait_handled()
        at = group.kill("a.0")
        group.wait_all_at("b.0", timeout_s=AFTER_A_CRASH_S)
        add(group, run, "a.1", static=True)
        group.wait_shared("a.1", "b.0")
        expect(time.monotonic() - at > SESSION_S - 1, True, "the session was waited for")
        group.check()


def epoch_of(group: Group, run: Run) -> int:
    return group.load.group_epoch(group.group) if run.flavour.protocol == "consumer" else -1


def moves_of(group: Group, member: str, since: float) -> list[str]:
    return [event.kind for event in group.moved(member, since)]


@scenario(*ALL)
def a_frozen_member_is_out_and_comes_back(run: Run) -> None:
    with run.group(6) as group:
        add(group, run, "a")
        add(group, run, "b")
        group.wait_shared("a", "b")
        group.wait_handled()
        group.freeze("b")
        group.wait_all_at("a", timeout_s=AFTER_A_CRASH_S)
        group.thaw("b")
        group.wait_lost("b")
        group.wait_shared("a", "b")
        group.check()


@scenario(*ALL)
def partitions_are_added(run: Run) -> None:
    with run.group(2) as group:
        add(group, run, "a")
        add(group, run, "b")
        group.wait_shared("a", "b")
        group.wait_handled()
        group.load.grow(7)
        group.wait_shared("a", "b")
        group.wait_handled()
        group.check()


@scenario(RANGE, COOPERATIVE, clients=("confluent-kafka", "java", "franz-go"))
def an_upgrade_and_back(run: Run) -> None:
    """A group changes from the classic protocol to the new one and back, a member at a time, under load."""
    new = Run(run.client, UNIFORM, run.address, run.errors)
    with run.group(6) as group:
        members = {name: f"{name}.0" for name in "abc"}
        for member in members.values():
            add(group, run, member)
        group.wait_shared(*members.values())
        group.wait_handled()
        for number, kind in ((1, new), (2, run)):
            for name in "abc":
                group.stop(members[name])
                members[name] = f"{name}.{number}"
                add(group, kind, members[name])
                group.wait_shared(*members.values())
                is_classic = (number, name) == (2, "c")
                expect(group.load.group_kind(group.group), "CLASSIC" if is_classic else "CONSUMER", "the group's kind")
        group.wait_handled()
        group.check()


# --- tests -------------------------------------------------------------------------------------------


def tests(client: Client) -> dict[str, tuple[Scenario, Flavour]]:
    """The tests of a client, by name."""
    return {
        f"{name}.{flavour}": (function, flavour)
        for name, (function, flavours, clients) in registered.items()
        if not clients or client.name in clients
        for flavour in client.flavours
        if flavour in flavours
    }


def test(suite: Suite) -> None:
    client = prepared(suite)
    found = tests(client)
    again: list[str] = []
    against = os.environ.get("COMPAT_AGAINST", "").replace(":", "-")
    with (suite.directory / f"{against}.members.log").open("w", encoding="utf-8") as errors:

        def run_one(name: str) -> None:
            if not run_and_tell(name):
                again.append(name)

        def run_and_tell(name: str, is_last: bool = False) -> bool:
            """Run one and tell it; one that was not judged is told at its last try only. Whether it was told."""
            function, flavour = found[name]
            began = time.monotonic()
            try:
                function(Run(client, flavour, suite.address, errors))
            except Overloaded as why:
                if is_last:
                    tell("skipped", name, detail=f"not judged, the machine was too busy: {why}")
                return is_last
            except Exception as fault:
                tell("FAILED", name, time.monotonic() - began, f"{type(fault).__name__}: {fault}")
            else:
                tell("ok", name, time.monotonic() - began)
            return True

        each([name for name in found if suite.wants(name)], run_one, WORKERS)
        for name in again:
            run_and_tell(name, is_last=True)


if __name__ == "__main__":
    main(lambda suite: None, test)
