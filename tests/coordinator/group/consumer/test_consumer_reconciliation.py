"""One member's step towards the target: a table of the cases, and a dumb twin that thinks in sets of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.consumer_member import ConsumerMember, MemberState
from coordinator.group.consumer_reconciliation import Circumstances, reconcile
from wire.errors import ErrorCode, KafkaError

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
Held = dict[bytes, dict[int, int]]


def step(
    member: ConsumerMember,
    *,
    epoch: int = 6,
    target: dict[bytes, set[int]] | None = None,
    owned: dict[bytes, set[int]] | None = None,
    busy: tuple[tuple[bytes, int], ...] = (),
    changed: bool = False,
    subscribed: tuple[bytes, ...] = (T, U),
) -> tuple[MemberState, int, int, Held, Held]:
    """The member after its step, as (state, epoch, epoch before, assigned, to be given up)."""
    stepped = reconcile(
        member,
        Circumstances(
            target_epoch=epoch,
            target={topic: frozenset(each) for topic, each in (target or {}).items()},
            subscription_changed=changed,
            is_subscribed=lambda topic: topic in subscribed,
            is_free=lambda topic, partition: (topic, partition) not in busy,
            owned=None if owned is None else {topic: frozenset(each) for topic, each in owned.items()},
        ),
    )
    held = [
        {topic: dict(each) for topic, each in side.items()} for side in (stepped.assigned, stepped.pending_revocation)
    ]
    return stepped.state, stepped.member_epoch, stepped.previous_member_epoch, held[0], held[1]


def member(
    state: MemberState = STABLE, epoch: int = 5, assigned: Held | None = None, pending: Held | None = None
) -> Any:
    return ConsumerMember("m", epoch, 4, state, assigned=assigned or {}, pending_revocation=pending or {})


# --- H4 to H7, one by one ------------------------------------------------------------------------


def test_h4_a_member_at_the_target_stays_the_same_object() -> None:
    there = member(epoch=6, assigned={T: {0: 3}})
    circumstances = Circumstances(6, {T: frozenset({0})}, False, lambda topic: True, lambda topic, index: True, None)
    assert reconcile(there, circumstances) is there


def test_h6_free_partitions_come_at_once_with_the_targets_epoch() -> None:
    there = member(assigned={T: {0: 3}})
    assert step(there, target={T: {0, 1}, U: {2}}) == (STABLE, 6, 5, {T: {0: 3, 1: 6}, U: {2: 6}}, {})


def test_h5_what_is_to_be_given_up_keeps_the_epoch_until_the_member_says_so() -> None:
    there = member(assigned={T: {0: 3, 1: 4}})
    giving = (UNREVOKED, 5, 5, {T: {0: 3}}, {T: {1: 4}})
    assert step(there, target={T: {0, 2}}) == giving, "nothing said"
    assert step(there, target={T: {0, 2}}, owned={T: {0, 1}}) == giving, "still owned"
    assert step(there, target={T: {0, 2}}, owned={T: {0}}) == (STABLE, 6, 5, {T: {0: 3, 2: 6}}, {}), "not owned at all"


@pytest.mark.parametrize("owned", [None, {T: {0, 1}}, {T: {1}}, {U: {0}, T: {1}}])
def test_h5_a_member_that_has_not_given_up_stays_where_it_is(owned: dict[bytes, set[int]] | None) -> None:
    there = member(UNREVOKED, assigned={T: {0: 3}}, pending={T: {1: 4}})
    assert step(there, target={T: {0, 1, 2}}, owned=owned) == (UNREVOKED, 5, 4, {T: {0: 3}}, {T: {1: 4}})


@pytest.mark.parametrize("owned", [{}, {T: {0}}, {T: set()}, {U: {1}}])
def test_h5_a_member_that_has_given_up_goes_on(owned: dict[bytes, set[int]]) -> None:
    there = member(UNREVOKED, assigned={T: {0: 3}}, pending={T: {1: 4}})
    assert step(there, target={T: {0, 2}}, owned=owned) == (STABLE, 6, 5, {T: {0: 3, 2: 6}}, {})


def test_h5_a_newer_target_may_want_more_back_before_the_first_is_done() -> None:
    there = member(UNREVOKED, assigned={T: {0: 3, 2: 3}}, pending={T: {1: 4}})
    assert step(there, epoch=7, target={T: {0}}, owned={T: {0, 2}}) == (UNREVOKED, 5, 5, {T: {0: 3}}, {T: {2: 3}})


def test_h5_a_partition_may_come_back_while_it_is_being_given_up() -> None:
    there = member(UNREVOKED, assigned={T: {0: 3}}, pending={T: {1: 4}})
    assert step(there, target={T: {0, 1}}, owned={T: {0}}) == (STABLE, 6, 5, {T: {0: 3, 1: 6}}, {}), "as a new one"


def test_h6_partitions_of_others_are_waited_for() -> None:
    there = member(assigned={T: {0: 3}})
    waiting = (UNRELEASED, 6, 5, {T: {0: 3, 2: 6}}, {})
    assert step(there, target={T: {0, 1, 2}}, busy=((T, 1),)) == waiting
    assert step(there, target={T: {0, 1}}, busy=((T, 1),)) == (UNRELEASED, 6, 5, {T: {0: 3}}, {})
    later = member(UNRELEASED, epoch=6, assigned={T: {0: 3, 2: 6}})
    assert step(later, target={T: {0, 1, 2}}) == (STABLE, 6, 6, {T: {0: 3, 1: 6, 2: 6}}, {})


def test_h7_partitions_of_unwanted_topics_go_whatever_the_target_says() -> None:
    there = member(assigned={T: {0: 3}, U: {0: 4}})
    unwanted: dict[str, Any] = {"changed": True, "subscribed": (T,), "target": {T: {0}, U: {0}}}
    assert step(there, epoch=5, **unwanted) == (UNREVOKED, 5, 5, {T: {0: 3}}, {U: {0: 4}})
    assert step(there, epoch=5, owned={T: {0}}, **unwanted) == (STABLE, 5, 5, {T: {0: 3}}, {})
    assert step(there, **unwanted) == (UNREVOKED, 5, 5, {T: {0: 3}}, {U: {0: 4}}), "with a newer target too"
    assert step(there, epoch=5, **{**unwanted, "changed": False})[3] == {T: {0: 3}, U: {0: 4}}, "only when it changes"


def test_h7_more_may_be_unwanted_while_something_is_given_up() -> None:
    there = member(UNREVOKED, assigned={T: {0: 3}, U: {0: 4}}, pending={U: {1: 2}})
    stepped = step(there, changed=True, subscribed=(T,), target={T: {0}}, owned={T: {0}, U: {0, 1}})
    assert stepped == (UNREVOKED, 5, 5, {T: {0: 3}}, {U: {0: 4, 1: 2}})


def test_a_state_of_a_newer_release_has_to_begin_anew() -> None:
    there = member(MemberState.UNKNOWN, assigned={T: {0: 3}})
    for owned in (None, {T: {0}}):
        with pytest.raises(KafkaError) as refused:
            step(there, target={T: {0}}, owned=owned)
        assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(there, target={T: {0}}, owned={}) == (STABLE, 6, 5, {T: {0: 3}}, {})


# --- the dumb twin ---------------------------------------------------------------------------------

Pair = tuple[bytes, int]


@dataclass(frozen=True)
class Case:
    """Everything a step depends on, in pairs."""

    state: MemberState
    epoch: int
    assigned: dict[Pair, int]
    pending: dict[Pair, int]
    target_epoch: int
    target: frozenset[Pair]
    owned: frozenset[Pair] | None
    busy: frozenset[Pair]
    subscribed: frozenset[bytes]
    changed: bool


pairs = st.tuples(st.sampled_from([T, U]), st.integers(0, 2))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    held = draw(st.dictionaries(pairs, st.integers(1, 4)))
    state = draw(st.sampled_from([STABLE, UNREVOKED, UNRELEASED]))
    pending: dict[Pair, int] = {}
    if state is UNREVOKED:
        taken = draw(st.sets(st.sampled_from(sorted(held)) if held else st.nothing()))
        pending = {pair: epoch for pair, epoch in held.items() if pair in taken}
    assigned = {pair: epoch for pair, epoch in held.items() if pair not in pending}
    busy = frozenset(pair for pair in draw(st.sets(pairs)) if pair not in held)
    epoch = draw(st.integers(4, 6))
    return Case(
        state,
        epoch,
        assigned,
        pending,
        target_epoch=draw(st.integers(epoch, 7)),
        target=frozenset(draw(st.sets(pairs))),
        owned=draw(st.none() | st.frozensets(pairs)),
        busy=busy,
        subscribed=frozenset(draw(st.sets(st.sampled_from([T, U])))),
        changed=draw(st.booleans()),
    )


def dumb(case: Case) -> tuple[MemberState, int, dict[Pair, int], dict[Pair, int]]:
    """The rules as they are written: H4 to H7."""
    wanted = {pair for pair in case.target if pair[0] in case.subscribed}
    same = case.state, case.epoch, case.assigned, case.pending

    def still_owns(taken: dict[Pair, int]) -> bool:
        return case.owned is None or bool(case.owned & set(taken))

    if case.state is UNREVOKED and still_owns(case.pending):
        moves, drops = False, case.changed
    else:
        moves = case.state is not STABLE or case.epoch != case.target_epoch
        drops = case.changed
    if moves:
        kept = {pair: epoch for pair, epoch in case.assigned.items() if pair in wanted}
        taken = {pair: epoch for pair, epoch in case.assigned.items() if pair not in wanted}
        if taken and still_owns(taken):
            return UNREVOKED, case.epoch, kept, taken
        missing = {pair for pair in wanted if pair not in kept}
        free = {pair: case.target_epoch for pair in missing if pair not in case.busy}
        return (UNRELEASED if missing - set(free) else STABLE), case.target_epoch, {**kept, **free}, {}
    if drops:
        unwanted = {pair: epoch for pair, epoch in case.assigned.items() if pair[0] not in case.subscribed}
        if unwanted:
            kept = {pair: epoch for pair, epoch in case.assigned.items() if pair not in unwanted}
            taken = {**case.pending, **unwanted}
            if still_owns(taken):
                return UNREVOKED, case.epoch, kept, taken
            return case.state, case.epoch, kept, case.pending
    return same


def by_topic(held: dict[Pair, int]) -> Held:
    topics: Held = {}
    for (topic, partition), epoch in held.items():
        topics.setdefault(topic, {})[partition] = epoch
    return topics


@given(cases())
def test_steps_are_those_of_the_dumb_twin(case: Case) -> None:
    owned: dict[bytes, set[int]] | None = None
    if case.owned is not None:
        owned = {topic: {index for each, index in case.owned if each == topic} for topic, _ in case.owned}
    target = {topic: {index for each, index in case.target if each == topic} for topic, _ in case.target}
    state, epoch, _, assigned, pending = step(
        member(case.state, case.epoch, by_topic(case.assigned), by_topic(case.pending)),
        epoch=case.target_epoch,
        target=target,
        owned=owned,
        busy=tuple(case.busy),
        changed=case.changed,
        subscribed=tuple(case.subscribed),
    )
    expected = dumb(case)
    assert (state, epoch) == expected[:2]
    assert (assigned, pending) == (by_topic(expected[2]), by_topic(expected[3]))
