"""What is asked, answered and remembered when records are refused, late or lost (D6)."""

from __future__ import annotations

import pytest

from coordinator.transaction.requests import AddPartitions, EndTransaction, InitTransactionalId
from coordinator.transaction.states import TransactionState as S
from tests.coordinator.transaction.transaction_world import T0, World
from wire.errors import ErrorCode, KafkaError

ERRORS = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR]


@pytest.mark.parametrize("code", ERRORS)
def test_a_new_id_is_known_though_nothing_of_it_is_stored(code: ErrorCode) -> None:
    world = World()
    world.refuse_with = code
    assert world.error(InitTransactionalId("x", 60_000)) is code
    assert (world.known().producer_epoch, world.log) == (-1, [])
    assert world.init() == (1001, 0), "the same producer id, which nobody was given"


@pytest.mark.parametrize("code", ERRORS)
def test_a_refused_request_changes_nothing_and_may_be_made_again(code: ErrorCode) -> None:
    world = World()
    held = world.init()
    add = AddPartitions("x", *held, frozenset({T0}), 2)
    world.refuse_with = code
    assert world.error(add) is code
    assert world.known().state is S.EMPTY
    assert world.error(add) is ErrorCode.NONE
    end = EndTransaction("x", *held, True, 2)
    world.refuse_with = code
    assert world.error(end) is code
    assert (world.known().state, world.markers) == (S.ONGOING, [])
    assert world.call(end) == (1001, 1)


def test_while_a_record_is_not_replicated_nothing_else_is_decided_about_the_id() -> None:
    world = World()
    held, other = world.init(), world.init("y")
    world.replicated = False
    ticket = world.ask(AddPartitions("x", *held, frozenset({T0}), 2))
    assert world.known().state is S.EMPTY, "not before it is replicated"
    for request in (
        InitTransactionalId("x", 1000),
        AddPartitions("x", *held, frozenset({T0}), 2),
        EndTransaction("x", *held, True, 2),
        EndTransaction("x", *held, True, 0),
    ):
        assert world.error(request) is ErrorCode.CONCURRENT_TRANSACTIONS
    others = world.ask(AddPartitions("y", *other, frozenset({T0}), 2))
    assert ticket not in world.replies
    world.replicate()
    assert world.replies[ticket] is None
    assert world.replies[others] is None, "other ids are not held up"
    assert world.known().state is S.ONGOING


@pytest.mark.parametrize("code", ERRORS)
def test_what_is_never_replicated_is_taken_back(code: ErrorCode) -> None:
    world = World()
    held = world.init()
    world.replicated = False
    ticket = world.ask(AddPartitions("x", *held, frozenset({T0}), 2))
    world.lose_replication(code)
    reply = world.replies[ticket]
    assert isinstance(reply, KafkaError)
    assert reply.code is code
    world.replicated = True
    assert world.known().state is S.EMPTY
    world.add(held)
    assert world.known().state is S.ONGOING


def test_a_completion_that_is_refused_may_be_made_again() -> None:
    world = World(writes_markers=False)
    held = world.init()
    world.add(held)
    world.end(held)
    (ending,) = world.markers
    world.refuse_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.write_marker(ending)
    assert world.known().state is S.PREPARE_COMMIT
    world.write_marker(ending)
    assert world.known().state is S.COMPLETE_COMMIT


# --- load ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_d7_what_was_decided_is_ended_after_a_failover(version: int, commit: bool) -> None:
    world = World(version=version, writes_markers=False)
    held = world.init()
    world.add(held, version=version)
    world.end(held, commit=commit, version=version)
    before = world.markers.pop()
    world.writes_markers = True
    world.reload()
    (again,) = world.markers
    assert (again.identity, again.partitions, again.state) == (before.identity, before.partitions, before.state)
    assert world.known().state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)


def test_d7_a_transaction_that_was_open_stays_open_and_times_out() -> None:
    world = World()
    held = world.init(timeout_ms=20_000)
    world.add(held)
    world.advance(15_000)
    world.reload()
    assert world.known().partitions == {T0}
    world.advance(10_000)
    assert world.known().state is S.COMPLETE_ABORT


def test_nothing_is_handed_out_before_the_whole_log_is_read() -> None:
    world = World(writes_markers=False)
    held = world.init()
    world.add(held)
    world.end(held)
    shard = type(world.shard)(world.settings)
    for offset in range(len(world.log)):
        shard.replay(world._read(offset), offset)
    assert shard.take_ending() == []
