"""EndTxn of both protocols: every state, every epoch (D.6), and what becomes of the producer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.transaction.ending import end
from coordinator.transaction.metadata import InvalidTransition, ProducerIdentity, TransactionMetadata
from coordinator.transaction.outcome import Known, Outcome
from coordinator.transaction.requests import CompleteTransaction, EndTransaction, ProducerIdNeeded
from coordinator.transaction.states import VALID_PREVIOUS_STATES
from coordinator.transaction.states import TransactionState as S
from tests.coordinator.transaction.transaction_world import START_MS, T0, World
from wire.errors import ErrorCode, KafkaError

OK, INVALID, CONCURRENT = ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS
FENCED, MAPPING = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
PREPARES = "prepares"


def known(state: S, epoch: int = 5, *, version: int = 2, pending: bool = False) -> Known:
    metadata = TransactionMetadata(
        "x", 7, 60_000, START_MS, producer_epoch=epoch, state=state, client_version=version, previous_producer_id=7
    )
    return Known(metadata, pending)


def outcome(
    known: Known | None, commit: bool, *, version: int, epoch: int = 5, producer_id: int = 7, fresh: int = -1
) -> Outcome:
    request = EndTransaction("x", producer_id, epoch, commit, version, fresh)
    return end(known, request, START_MS + 1)


def result(known: Known | None, commit: bool, **request: int) -> object:
    try:
        decided = outcome(known, commit, **request)  # type: ignore[arg-type]
    except KafkaError as error:
        return error.code
    return OK if decided.target is None else PREPARES


@pytest.mark.parametrize("version", [0, 2])
def test_an_unknown_id_has_no_producer(version: int) -> None:
    assert result(None, True, version=version) is MAPPING


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        (S.EMPTY, True, INVALID),
        (S.EMPTY, False, INVALID),
        (S.ONGOING, True, PREPARES),
        (S.ONGOING, False, PREPARES),
        (S.PREPARE_COMMIT, True, CONCURRENT),
        (S.PREPARE_COMMIT, False, INVALID),
        (S.PREPARE_ABORT, True, INVALID),
        (S.PREPARE_ABORT, False, CONCURRENT),
        (S.COMPLETE_COMMIT, True, OK),
        (S.COMPLETE_COMMIT, False, INVALID),
        (S.COMPLETE_ABORT, True, INVALID),
        (S.COMPLETE_ABORT, False, OK),
    ],
)
def test_t10_states_without_bumps(state: S, commit: bool, expected: object) -> None:
    assert result(known(state, version=0), commit, version=0) == expected


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        (S.EMPTY, True, INVALID),
        (S.EMPTY, False, PREPARES),
        (S.ONGOING, True, PREPARES),
        (S.ONGOING, False, PREPARES),
        (S.COMPLETE_COMMIT, True, INVALID),
        (S.COMPLETE_COMMIT, False, PREPARES),
        (S.COMPLETE_ABORT, True, INVALID),
        (S.COMPLETE_ABORT, False, PREPARES),
    ],
)
def test_states_with_bumps_and_the_current_epoch(state: S, commit: bool, expected: object) -> None:
    assert result(known(state), commit, version=2) == expected


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        (S.PREPARE_COMMIT, True, CONCURRENT),
        (S.PREPARE_COMMIT, False, INVALID),
        (S.PREPARE_ABORT, True, INVALID),
        (S.PREPARE_ABORT, False, CONCURRENT),
        (S.COMPLETE_COMMIT, True, OK),
        (S.COMPLETE_COMMIT, False, INVALID),
        (S.COMPLETE_ABORT, True, INVALID),
        (S.COMPLETE_ABORT, False, OK),
        (S.EMPTY, False, FENCED),
        (S.ONGOING, True, FENCED),
    ],
)
def test_states_with_bumps_and_the_epoch_before(state: S, commit: bool, expected: object) -> None:
    """The request was carried out already, and its answer lost."""
    assert result(known(state, epoch=6), commit, version=2, epoch=5) == expected


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_while_ending_with_bumps_the_current_epoch_is_nobodys_yet(state: S) -> None:
    assert result(known(state), True, version=2) is FENCED


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
@pytest.mark.parametrize("epoch", [-1, 3, 4, 6, 7])
def test_t08_another_epoch_is_fenced_without_bumps(state: S, epoch: int) -> None:
    assert result(known(state, version=0), True, version=0, epoch=epoch) is FENCED


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
@pytest.mark.parametrize("epoch", [-1, 3, 6, 7])
def test_t08_another_epoch_is_fenced_with_bumps(state: S, epoch: int) -> None:
    assert result(known(state), True, version=2, epoch=epoch) is FENCED


@pytest.mark.parametrize("version", [0, 2])
def test_another_producer_is_refused_before_its_epoch_is_looked_at(version: int) -> None:
    assert result(known(S.ONGOING), True, version=version, producer_id=8, epoch=99) is MAPPING


@pytest.mark.parametrize(
    ("version", "producer_id", "epoch", "expected"),
    [
        (0, 8, 5, MAPPING),
        (0, 7, 6, FENCED),
        (0, 7, 5, CONCURRENT),
        (2, 8, 5, CONCURRENT),
        (2, 7, 6, CONCURRENT),
        (2, 7, 5, CONCURRENT),
    ],
)
def test_what_is_pending_comes_last_without_bumps_and_first_with_them(
    version: int, producer_id: int, epoch: int, expected: ErrorCode
) -> None:
    pending = known(S.ONGOING, pending=True)
    assert result(pending, True, version=version, producer_id=producer_id, epoch=epoch) is expected


def test_an_epoch_one_behind_is_a_retry_only_after_an_end_with_bumps() -> None:
    assert result(known(S.COMPLETE_COMMIT, epoch=6, version=0), True, version=2, epoch=5) is FENCED


# --- epochs -------------------------------------------------------------------------------------------


def test_without_bumps_the_epoch_stays() -> None:
    world = World()
    held = world.init()
    for commit in (True, False):
        world.add(held, version=0)
        assert world.end(held, commit=commit, version=0) == held
        assert world.end(held, commit=commit, version=0) == held, "the same once more"
    assert [marker.producer_epoch for marker in world.markers] == [0, 0]


def test_with_bumps_each_end_raises_the_epoch_and_markers_carry_it() -> None:
    world = World()
    held = world.init()
    for epoch in (1, 2, 3):
        world.add(held)
        before, held = held, world.end(held)
        assert held == (1001, epoch)
        assert world.end(before) == held, "a retry gets the current identity"
    assert [marker.producer_epoch for marker in world.markers] == [1, 2, 3]


def test_an_abort_of_nothing_raises_the_epoch_and_needs_no_markers() -> None:
    world = World()
    held = world.init()
    held = world.end(held, commit=False)
    assert held == (1001, 1)
    assert [marker.partitions for marker in world.markers] == [frozenset()]
    assert world.known().state is S.COMPLETE_ABORT
    assert world.known().start_ms == world.now_ms
    assert world.end(held, commit=False) == (1001, 2)


def test_a_client_without_bumps_may_end_what_one_with_bumps_began() -> None:
    world = World()
    held = world.init()
    world.add(held, version=2)
    assert world.end(held, version=0) == held
    assert world.known().client_version == 0


def test_exhausted_epochs_give_a_fresh_producer_id_with_the_answer() -> None:
    exhausted = known(S.ONGOING, epoch=32766)
    with pytest.raises(ProducerIdNeeded):
        outcome(exhausted, True, version=2, epoch=32766)
    decided = outcome(exhausted, True, version=2, epoch=32766, fresh=9)
    assert decided.reply == (9, 0)
    assert decided.target is not None
    assert (decided.target.identity, decided.target.next_producer_id) == ((7, 32767), 9)
    assert outcome(exhausted, True, version=0, epoch=32766).reply == (7, 32766), "no bump, no need"


def test_a_retry_is_recognised_across_the_fresh_producer_id() -> None:
    world = World()
    world.init()
    exhausted = replace(world.known(), producer_epoch=32766, state=S.ONGOING, partitions=frozenset({T0}))
    world.shard._transactions["x"] = exhausted
    assert world.end(exhausted.identity) == (1002, 0)
    completed = world.known()
    assert (completed.identity, completed.previous_producer_id) == ((1002, 0), 1001)
    assert completed.next_producer_id == -1
    assert world.end(exhausted.identity) == (1002, 0)
    with pytest.raises(KafkaError) as refusal:
        world.end(exhausted.identity, commit=False)
    assert refusal.value.code is INVALID
    with pytest.raises(KafkaError) as refusal:
        world.end(ProducerIdentity(1001, 32765))
    assert refusal.value.code is MAPPING


# --- completion ---------------------------------------------------------------------------------------


def test_the_answer_comes_before_the_markers_and_the_id_is_busy_until_they_are_written() -> None:
    world = World(writes_markers=False)
    held = world.init()
    world.add(held)
    bumped = world.end(held)
    assert bumped == (1001, 1)
    assert world.known().state is S.PREPARE_COMMIT
    assert world.error(EndTransaction("x", *held, True, 2)) is CONCURRENT
    assert world.error(EndTransaction("x", *held, False, 2)) is CONCURRENT
    world.write_marker(world.markers[0])
    assert world.known().state is S.COMPLETE_COMMIT
    assert world.known().partitions == frozenset()


def test_a_completion_that_comes_late_changes_nothing() -> None:
    world = World()
    held = world.init()
    world.add(held)
    held = world.end(held)
    records = len(world.log)
    world.write_marker(world.markers[0])
    world.call(CompleteTransaction("nobody", 1, 1))
    world.add(held)
    world.write_marker(world.markers[0])
    assert world.known().state is S.ONGOING
    assert len(world.log) == records + 1


# --- the table of states --------------------------------------------------------------------------


@pytest.mark.parametrize("before", list(S))
@pytest.mark.parametrize("after", list(S))
def test_transitions_that_are_not_in_the_table_are_refused(before: S, after: S) -> None:
    metadata = TransactionMetadata("x", 7, 1, 1, state=before)
    if before in VALID_PREVIOUS_STATES[after]:
        assert metadata.to(after).state is after
    else:
        with pytest.raises(InvalidTransition):
            metadata.to(after)
