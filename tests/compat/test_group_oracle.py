"""The oracle of compat-tests/groups finds what it is there to find, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "compat-tests" / "groups"))

from oracle import ASSIGNED, FAULT, HANDLED, LOST, REVOKED, Event, Fate, faults, spans


def given(at: float, member: str, *partitions: int) -> Event:
    return Event(at, member, ASSIGNED, partitions)


def gave_up(at: float, member: str, *partitions: int) -> Event:
    return Event(at, member, REVOKED, partitions)


def lost(at: float, member: str, *partitions: int) -> Event:
    return Event(at, member, LOST, partitions)


def handled(at: float, member: str, partition: int, first: int, last: int) -> Event:
    return Event(at, member, HANDLED, handled=(partition, first, last))


FATES = {"a": Fate(), "b": Fate()}


def of_the_new_protocol(*, is_handled: bool = False, told_at: float = 4.0, gave_up_at: float = 5.0) -> list[Event]:
    """`a` was told of 0, which `b` is given at 4.5, and gives it up later."""
    used = [handled(4.2, "a", 0, 0, 1)] if is_handled else []
    return [given(told_at, "a", 0), *used, given(4.5, "b", 0), gave_up(gave_up_at, "a", 0), handled(6, "b", 0, 0, 4)]


CONSUMERS = {"a": Fate(is_consumer=True), "b": Fate(is_consumer=True)}


def test_by_the_new_protocol_what_a_member_has_not_named_yet_is_free() -> None:
    assert faults(of_the_new_protocol(), CONSUMERS, {0: 5}) == []
    (fault,) = faults(of_the_new_protocol(), FATES, {0: 5})
    assert fault == "b was given 0 at 4.500, and a has it"


def test_what_it_handled_or_had_for_long_or_keeps_is_not_free() -> None:
    assert faults(of_the_new_protocol(is_handled=True), CONSUMERS, {0: 5})
    assert faults(of_the_new_protocol(told_at=2.0), CONSUMERS, {0: 5})
    kept = [each for each in of_the_new_protocol() if each.kind != REVOKED]
    assert faults(kept, CONSUMERS, {0: 5})


def test_a_clean_hand_over_has_no_faults() -> None:
    events = [
        given(1, "a", 0),
        handled(2, "a", 0, 0, 4),
        gave_up(3, "a", 0),
        given(4, "b", 0),
        handled(5, "b", 0, 5, 9),
    ]
    assert faults(reversed(events), FATES, {0: 10}) == []


def test_two_owners_are_found() -> None:
    events = [given(1, "a", 0), handled(2, "a", 0, 0, 9), given(3, "b", 0), gave_up(4, "a", 0)]
    assert faults(events, FATES, {0: 10}) == ["b was given 0 at 3.000, and a has it"]


def test_being_given_again_what_one_has_is_found() -> None:
    events = [given(1, "a", 0), given(2, "a", 0), handled(3, "a", 0, 0, 9)]
    assert faults(events, FATES, {0: 10}) == ["a was told at 2.000 that it has 0, which it had"]


def test_a_handler_that_is_not_the_owner_is_found() -> None:
    events = [given(1, "a", 0), gave_up(2, "a", 0), handled(3, "a", 0, 0, 9)]
    assert faults(events, FATES, {0: 10}) == ["a handled 0@0-9 at 3.000, and nobody has it"]


def test_records_nobody_handled_are_found() -> None:
    events = [given(1, "a", 0, 1), handled(2, "a", 0, 0, 3), handled(3, "a", 0, 6, 9)]
    assert faults(events, FATES, {0: 10, 1: 2}) == [
        "2 records of 0 were handled by nobody: 4-5 of 10",
        "2 records of 1 were handled by nobody: 0-1 of 2",
    ]


def test_records_handled_twice_after_a_clean_hand_over_are_found() -> None:
    events = [
        given(1, "a", 0),
        handled(2, "a", 0, 0, 5),
        gave_up(3, "a", 0),
        given(4, "b", 0),
        handled(5, "b", 0, 4, 9),
    ]
    assert faults(events, FATES, {0: 10}) == ["2 records of 0 were handled by a and b: 4-5"]


def test_what_was_not_committed_at_a_crash_is_handled_again() -> None:
    fates = {"a": Fate(crashed_at=20, free_at=25), "b": Fate()}
    early = [given(1, "a", 0), handled(2, "a", 0, 0, 5), handled(19.8, "a", 0, 6, 7)]
    again = [given(26, "b", 0), handled(27, "b", 0, 6, 9)]
    assert faults([*early, *again], fates, {0: 10}) == []
    long_committed = [given(26, "b", 0), handled(27, "b", 0, 5, 9)]
    assert faults([*early, *long_committed], fates, {0: 10}) == ["1 records of 0 were handled by a and b: 5-5"]


def test_partitions_of_a_killed_member_are_taken_when_its_session_can_have_ended() -> None:
    fates = {"a": Fate(crashed_at=20, free_at=25), "b": Fate()}
    found = faults([given(1, "a", 0), given(24, "b", 0)], fates, {0: 0})
    assert found == ["b was given 0 at 24.000, and a has it, whose session ran until 25.000 at least"]


def test_a_static_member_takes_over_from_its_killed_self_only() -> None:
    fates = {"a.0": Fate("a", crashed_at=20, free_at=25), "a.1": Fate("a"), "b.0": Fate("b")}
    assert faults([given(1, "a.0", 0), given(21, "a.1", 0)], fates, {0: 0}) == []
    assert len(faults([given(1, "a.0", 0), given(21, "b.0", 0)], fates, {0: 0})) == 1


def test_a_frozen_member_is_excused_until_it_learns_what_it_lost() -> None:
    fates = {"a": Fate(frozen_at=10, free_at=15), "b": Fate()}
    events = [
        given(1, "a", 0),
        given(16, "b", 0),
        handled(17, "b", 0, 0, 9),
        handled(18, "a", 0, 3, 4),
        lost(19, "a", 0),
    ]
    assert faults(events, fates, {0: 10}) == []
    assert len(faults([*events, handled(20, "a", 0, 3, 4)], fates, {0: 10})) == 2


def test_a_loss_without_a_cause_and_a_failure_are_found() -> None:
    events = [given(1, "a", 0), lost(2, "a", 0), Event(3, "b", FAULT, words="Broken: pipe")]
    assert faults(events, FATES, {0: 0}) == [
        "a lost (0,) at 2.000 without a cause",
        "b failed: Broken: pipe",
    ]


def test_offsets_are_said_in_ranges() -> None:
    assert spans([1, 2, 3, 7]) == "1-3, 7-7"
    assert spans(list(range(0, 20, 2))) == "0-0, 2-2, 4-4, 6-6, 8-8, …"
