"""Who is in sync: the leader's view of a follower, joining, falling out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.replication.isr import IsrState, Reaction, ReplicaState, is_eligible, may_join, out_of_sync, reaction_to
from wire.errors import ErrorCode

LAG_MS = 30_000


def fetched(state: ReplicaState, fetch_offset: int, leader_log_end_offset: int, now_ms: int) -> ReplicaState:
    return state.fetched(
        fetch_offset=fetch_offset,
        log_start_offset=0,
        leader_log_end_offset=leader_log_end_offset,
        broker_epoch=7,
        now_ms=now_ms,
    )


def in_sync(state: ReplicaState, leader_log_end_offset: int, now_ms: int) -> bool:
    return state.is_caught_up(
        leader_log_end_offset=leader_log_end_offset, replica_lag_time_max_ms=LAG_MS, now_ms=now_ms
    )


def test_a_follower_one_fetch_behind_for_ever_stays_in_sync() -> None:
    state = ReplicaState().reset(leader_log_end_offset=0, is_new_leader=True, is_in_isr=True, now_ms=0)
    leader_log_end_offset = 0
    for now_ms in range(0, 600_000, 500):
        # It asks where the leader ended at its last fetch; the leader has moved on since.
        state = fetched(state, leader_log_end_offset, leader_log_end_offset + 10, now_ms)
        leader_log_end_offset += 10
        assert in_sync(state, leader_log_end_offset, now_ms)


def test_a_follower_that_stands_still_falls_out_after_the_lag_time() -> None:
    state = fetched(ReplicaState(), 10, 10, now_ms=1_000)
    assert in_sync(state, 20, now_ms=1_000 + LAG_MS)
    assert not in_sync(state, 20, now_ms=1_001 + LAG_MS)
    assert in_sync(state, 10, now_ms=10**9), "nothing was written: it has all there is"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(0, 5_000)), min_size=1, max_size=40))
def test_caught_up_time_equals_the_whole_history_looked_through(steps: list[tuple[int, int, int]]) -> None:
    """Twin: keeps every fetch and searches it."""
    state = ReplicaState()
    history: list[tuple[int, int, int]] = []
    now_ms = leader_log_end_offset = 0
    for back, grown, passed_ms in steps:
        leader_log_end_offset += grown
        now_ms += passed_ms
        fetch_offset = max(0, leader_log_end_offset - back)
        state = fetched(state, fetch_offset, leader_log_end_offset, now_ms)
        history.append((fetch_offset, leader_log_end_offset, now_ms))
        caught_up_times = [0]
        for index, (offset, end, at_ms) in enumerate(history):
            earlier = history[:index]
            if offset >= end:
                caught_up_times.append(at_ms)
            elif offset >= max((e for _, e, _ in earlier), default=-1):
                caught_up_times.append(earlier[-1][2] if earlier else 0)
        assert state.last_caught_up_time_ms == max(caught_up_times)


def test_a_new_leader_gives_the_isr_a_lag_time_and_nobody_else() -> None:
    known = fetched(ReplicaState(), 5, 5, now_ms=100)
    member = known.reset(leader_log_end_offset=9, is_new_leader=True, is_in_isr=True, now_ms=50_000)
    other = known.reset(leader_log_end_offset=9, is_new_leader=True, is_in_isr=False, now_ms=50_000)
    assert member == ReplicaState(last_caught_up_time_ms=50_000)
    assert other == ReplicaState()
    again = known.reset(leader_log_end_offset=9, is_new_leader=False, is_in_isr=True, now_ms=50_000)
    assert (again.log_end_offset, again.last_fetch_leader_log_end_offset, again.broker_epoch) == (5, 9, 7)


@pytest.mark.parametrize(
    ("broker_epoch", "registered_epoch", "eligible"),
    [(7, 7, True), (-1, 7, True), (6, 7, False), (None, 7, False), (7, None, False), (-1, None, False)],
)
def test_eligible_is_the_registered_life_of_a_live_broker(
    broker_epoch: int | None, registered_epoch: int | None, eligible: bool
) -> None:
    assert is_eligible(broker_epoch, registered_epoch) is eligible


@pytest.mark.parametrize(
    ("log_end_offset", "isr", "in_flight", "joins"),
    [
        (10, {1}, False, True),
        (9, {1}, False, False),  # below the high watermark
        (10, {1, 2}, False, False),  # is a member
        (10, {1}, True, False),  # another change is on its way
    ],
)
def test_joining(log_end_offset: int, isr: set[int], in_flight: bool, joins: bool) -> None:
    state = IsrState(frozenset(isr), frozenset({1, 3}) if in_flight else None)
    replica = ReplicaState(log_end_offset=log_end_offset, broker_epoch=7)
    found = may_join(state, 2, replica, high_watermark=10, leader_epoch_start_offset=8, registered_epoch=7)
    assert found is joins


def test_joining_needs_the_start_of_the_leader_epoch_even_above_the_high_watermark() -> None:
    replica = ReplicaState(log_end_offset=10, broker_epoch=7)
    assert not may_join(
        IsrState(frozenset({1})), 2, replica, high_watermark=5, leader_epoch_start_offset=11, registered_epoch=7
    )


def test_a_pending_expansion_counts_and_a_pending_shrink_does_not_remove() -> None:
    assert IsrState(frozenset({1, 2}), frozenset({1, 2, 3})).maximal_isr == {1, 2, 3}
    assert IsrState(frozenset({1, 2}), frozenset({1})).maximal_isr == {1, 2}
    assert IsrState(frozenset({1})).maximal_isr == {1}


def test_out_of_sync_never_names_the_leader_and_names_the_unknown() -> None:
    replicas = {2: ReplicaState(log_end_offset=5, last_caught_up_time_ms=100_000), 3: ReplicaState(log_end_offset=4)}
    lost = out_of_sync(
        {1, 2, 3, 4}, 1, replicas, leader_log_end_offset=9, replica_lag_time_max_ms=LAG_MS, now_ms=100_000
    )
    assert lost == {3, 4}


@pytest.mark.parametrize(
    ("error", "reaction"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, Reaction.GO_BACK),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, Reaction.GO_BACK),
        (ErrorCode.FENCED_LEADER_EPOCH, Reaction.WAIT_FOR_METADATA),
        (ErrorCode.INVALID_UPDATE_VERSION, Reaction.WAIT_FOR_METADATA),
        (ErrorCode.NEW_LEADER_ELECTED, Reaction.WAIT_FOR_METADATA),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Reaction.RETRY),
        (ErrorCode.NOT_CONTROLLER, Reaction.RETRY),
    ],
)
def test_reactions_to_a_refused_change(error: ErrorCode, reaction: Reaction) -> None:
    assert reaction_to(error) is reaction
