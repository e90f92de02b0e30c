"""How far a partition is committed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.replication.high_watermark import effective_min_isr, low_watermark, next_high_watermark
from broker.replication.isr import ReplicaState

LAG_MS = 30_000
NOW_MS = 1_000_000

replica_states = st.builds(
    ReplicaState,
    log_end_offset=st.integers(-1, 12),
    log_start_offset=st.integers(-1, 12),
    last_caught_up_time_ms=st.sampled_from([0, NOW_MS - LAG_MS - 1, NOW_MS - LAG_MS, NOW_MS]),
    broker_epoch=st.sampled_from([None, -1, 1, 2]),
)


@given(
    current=st.integers(0, 12),
    leader_log_end_offset=st.integers(0, 12),
    followers=st.dictionaries(st.integers(2, 5), replica_states, max_size=4),
    maximal_isr=st.sets(st.integers(1, 5)),
    isr_size=st.integers(0, 5),
    min_isr=st.integers(1, 3),
    registered=st.dictionaries(st.integers(2, 5), st.integers(1, 2)),
)
def test_high_watermark_equals_the_rule_written_out(
    current: int,
    leader_log_end_offset: int,
    followers: dict[int, ReplicaState],
    maximal_isr: set[int],
    isr_size: int,
    min_isr: int,
    registered: dict[int, int],
) -> None:
    """Twin: collects everyone who counts, takes the smallest end, then the larger of that and what was."""
    found = next_high_watermark(
        current,
        leader_log_end_offset=leader_log_end_offset,
        followers=followers,
        maximal_isr=maximal_isr,
        isr_size=isr_size,
        min_isr=min_isr,
        registered_epochs=registered,
        replica_lag_time_max_ms=LAG_MS,
        now_ms=NOW_MS,
    )

    def about_to_join(replica_id: int, state: ReplicaState) -> bool:
        caught_up = state.log_end_offset == leader_log_end_offset or NOW_MS - state.last_caught_up_time_ms <= LAG_MS
        alive = replica_id in registered and state.broker_epoch in (-1, registered[replica_id])
        return caught_up and alive

    ends = [leader_log_end_offset] + [
        state.log_end_offset
        for replica_id, state in followers.items()
        if replica_id in maximal_isr or about_to_join(replica_id, state)
    ]
    assert found == (current if isr_size < min_isr else max(current, min(ends)))


def test_an_unknown_follower_in_the_isr_holds_the_high_watermark() -> None:
    held = next_high_watermark(
        3,
        leader_log_end_offset=9,
        followers={2: ReplicaState()},
        maximal_isr={1, 2},
        isr_size=2,
        min_isr=1,
        registered_epochs={2: 1},
        replica_lag_time_max_ms=LAG_MS,
        now_ms=NOW_MS,
    )
    assert held == 3


def test_min_isr_is_never_more_than_the_replicas() -> None:
    assert effective_min_isr(2, 1) == 1
    assert effective_min_isr(2, 3) == 2


def test_low_watermark_looks_at_the_alive() -> None:
    followers = {2: ReplicaState(log_start_offset=4), 3: ReplicaState(log_start_offset=1)}
    assert low_watermark(9, followers, {1, 2}) == 4
    assert low_watermark(9, followers, {1, 2, 3}) == 1
    assert low_watermark(9, {}, {1}) == 9
