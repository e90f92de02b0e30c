"""Timeouts of open transactions (D28, D29) and the expiry of ids (D30)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.transaction.context import TransactionSettings
from coordinator.transaction.deadlines import Deadlines
from coordinator.transaction.records import transaction_record
from coordinator.transaction.requests import AbortTimedOut, AddPartitions
from coordinator.transaction.states import TransactionState as S
from tests.coordinator.transaction.transaction_world import START_MS, T0, World
from wire.errors import ErrorCode

INTERVAL_MS = 10_000
WEEK_MS = 7 * 24 * 3_600_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(("version", "epoch_after"), [(0, 1), (1, 1), (2, 1)])
def test_t04_a_transaction_that_takes_too_long_is_aborted(version: int, epoch_after: int) -> None:
    world = World(version=version)
    held = world.init(timeout_ms=2_000)
    world.add(held, version=version)
    world.advance(INTERVAL_MS - 1)
    assert world.known().state is S.ONGOING
    world.advance(1)
    assert (world.known().state, world.known().producer_epoch) == (S.COMPLETE_ABORT, epoch_after)
    assert world.texts[-1].startswith("The open transaction of 'x' is aborted; producer id 1001 goes from epoch 0")
    assert len(world.markers) == 1


@pytest.mark.parametrize("given_out", [True, False])
def test_at_the_last_epoch_it_is_aborted_once_there_is_a_fresh_producer_id(given_out: bool) -> None:
    """Ids are allocated by the controller: the machine hands out who needs one, again at each look."""
    world = World(version=2)
    first = world.init(timeout_ms=5_000)
    last = replace(world.known(), producer_epoch=32766)
    world.shard.replay(transaction_record(last, 2), len(world.log))
    world.add(last.identity, version=2)
    world.gives_ids = given_out
    world.advance(20_000)
    if not given_out:
        assert (world.known().state, world.needed) == (S.ONGOING, ["x", "x"])
        world.gives_ids = True
        world.advance(10_000)
    assert (world.known().state, world.known().identity) == (S.COMPLETE_ABORT, (first.producer_id + 1, 0))
    assert [each.producer_epoch for each in world.markers] == [32767]
    assert world.init() == (first.producer_id + 1, 1)


def test_what_ended_before_its_fresh_producer_id_came_is_left_alone() -> None:
    world = World(version=2)
    identity = world.init(timeout_ms=5_000)
    world.add(identity)
    after = world.end(identity)
    assert world.call(AbortTimedOut("x", 77)) is None
    assert (world.known().state, world.known().identity) == (S.COMPLETE_COMMIT, after)
    assert world.call(AbortTimedOut("nobody", 77)) is None


def test_it_is_aborted_at_the_first_look_after_its_time() -> None:
    world = World()
    held = world.init(timeout_ms=INTERVAL_MS)
    world.add(held)
    world.advance(INTERVAL_MS)
    assert world.known().state is S.ONGOING, "at the very moment it is not yet late"
    world.advance(INTERVAL_MS)
    assert world.known().state is S.COMPLETE_ABORT


def test_what_ended_in_time_is_left_alone_and_the_next_transaction_has_its_own_time() -> None:
    world = World()
    held = world.init(timeout_ms=15_000)
    world.add(held)
    world.advance(9_000)
    held = world.end(held)
    world.add(held)
    world.advance(12_000)
    assert world.known().state is S.ONGOING
    world.advance(9_000)
    assert world.known().state is S.COMPLETE_ABORT


def test_a_shorter_timeout_counts_at_once() -> None:
    world = World()
    held = world.init(timeout_ms=600_000)
    world.add(held)
    world.end(held)
    held = world.init(timeout_ms=1_000)
    world.add(held)
    world.advance(INTERVAL_MS)
    assert world.known().state is S.COMPLETE_ABORT


def test_without_open_transactions_there_is_nothing_to_look_at_for_days() -> None:
    world = World()
    held = world.init()
    deadline_ms = world.shard.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms >= world.now_ms + WEEK_MS
    assert World().shard.next_deadline_ms() is None
    world.add(held)
    world.end(held)
    world.advance(100_000)
    deadline_ms = world.shard.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms > world.now_ms + WEEK_MS - HOUR_MS


def test_many_transactions_time_out_together() -> None:
    world = World()
    keys = [f"x{number}" for number in range(250)]
    for key in keys:
        world.add(world.init(key, timeout_ms=1_000), key=key)
    world.advance(INTERVAL_MS)
    assert {world.known(key).state for key in keys} == {S.COMPLETE_ABORT}
    assert {world.known(key).producer_epoch for key in keys} == {1}


@pytest.mark.parametrize("version", [0, 2])
def test_d29_a_fence_that_cannot_be_stored_raises_the_epoch_once(version: int) -> None:
    world = World(version=version)
    held = world.init(timeout_ms=1_000)
    world.add(held, version=version)
    for _ in range(3):
        world.refuse_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.advance(INTERVAL_MS)
        assert world.known().state is S.ONGOING
    world.advance(INTERVAL_MS)
    assert (world.known().state, world.known().producer_epoch) == (S.COMPLETE_ABORT, 1)


def test_d29_a_later_fence_raises_it_again() -> None:
    world = World(version=0)
    held = world.init(timeout_ms=1_000)
    world.add(held, version=0)
    world.refuse_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.advance(2 * INTERVAL_MS)
    assert world.known().producer_epoch == 1
    held = world.init(timeout_ms=1_000)
    assert held == (1001, 2)
    world.add(held, version=0)
    world.advance(INTERVAL_MS)
    assert world.known().producer_epoch == 3


def test_a_fence_whose_replication_fails_is_tried_again() -> None:
    world = World()
    world.add(world.init(timeout_ms=1_000))
    world.replicated = False
    world.advance(INTERVAL_MS)
    world.lose_replication(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert world.known().state is S.ONGOING
    world.replicated = True
    world.advance(INTERVAL_MS)
    assert world.known().state is S.COMPLETE_ABORT


def test_d30_an_id_that_is_not_used_for_a_week_is_forgotten() -> None:
    world = World()
    world.init("old")
    world.advance(HOUR_MS)
    world.init("young")
    world.advance(WEEK_MS - HOUR_MS - 1)
    assert world.shard.metadata("old") is not None
    world.advance(1)
    assert world.shard.metadata("old") is None
    assert world.log[-1][1] is None
    assert world.texts[-1] == "'old' has expired: it was not used for long."
    assert world.shard.metadata("young") is not None
    world.reload()
    assert [metadata.transactional_id for metadata in world.shard.transactions()] == ["young"]


def test_d30_use_keeps_an_id_and_an_open_transaction_does_too() -> None:
    settings = TransactionSettings(id_expiration_ms=HOUR_MS, expiry_interval_ms=60_000, max_timeout_ms=10 * HOUR_MS)
    world = World(settings=settings)
    held = world.init(timeout_ms=10 * HOUR_MS)
    world.advance(HOUR_MS - 1)
    world.add(held)
    world.advance(5 * HOUR_MS)
    assert world.known().state is S.ONGOING
    held = world.end(held)
    world.advance(HOUR_MS - 60_000)
    assert world.known().state is S.COMPLETE_COMMIT
    world.advance(120_000)
    assert world.shard.metadata("x") is None
    assert world.error(AddPartitions("x", *held, frozenset({T0}), 2)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_d30_a_tombstone_that_is_refused_leaves_the_id_as_it_was() -> None:
    world = World()
    held = world.init()
    world.refuse_with = ErrorCode.NOT_COORDINATOR
    world.advance(WEEK_MS)
    assert world.known().identity == held
    world.add(held)
    world.end(held)
    world.refuse_with = ErrorCode.NOT_COORDINATOR
    world.advance(WEEK_MS + HOUR_MS)
    world.advance(HOUR_MS)
    assert world.shard.metadata("x") is None


def test_many_ids_expire_together() -> None:
    world = World()
    for number in range(250):
        world.init(f"x{number}")
    world.advance(WEEK_MS)
    assert list(world.shard.transactions()) == []


# --- the schedule -------------------------------------------------------------------------------------


@given(
    interval_ms=st.integers(1, 50),
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 200), st.integers(0, 60)), max_size=30),
)
def test_every_deadline_is_met_at_a_tick_not_early_and_not_a_tick_late(
    interval_ms: int, steps: list[tuple[str, int, int]]
) -> None:
    """Against a plain dictionary of wishes: each is looked at by the first tick at or after its moment."""
    deadlines = Deadlines(interval_ms)
    now_ms = START_MS
    deadlines.begin(now_ms)
    wishes: dict[str, int] = {}
    for key, delay_ms, passes_ms in steps:
        at_ms = now_ms + delay_ms
        deadlines.set(key, at_ms)
        wishes[key] = min(wishes.get(key, at_ms), at_ms)
        now_ms += passes_ms
        due = deadlines.due(now_ms, 100)
        deadlines.take(len(due), now_ms)
        for other in due:
            wishes.pop(other, None)
        for other, wished_ms in wishes.items():
            last_tick_ms = now_ms - (now_ms - START_MS) % interval_ms
            assert wished_ms > last_tick_ms or wished_ms + interval_ms > now_ms, other
        next_ms = deadlines.next_ms()
        assert next_ms is None or (next_ms > now_ms and (next_ms - START_MS) % interval_ms == 0)
