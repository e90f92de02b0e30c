"""Adding partitions to a transaction, and verifying them, in Kafka's order (D.4)."""

from __future__ import annotations

import pytest

from coordinator.transaction.metadata import ProducerIdentity
from coordinator.transaction.partitions import require_transactional_id, verify
from coordinator.transaction.requests import AddPartitions, EndTransaction
from coordinator.transaction.states import TransactionState as S
from tests.coordinator.transaction.transaction_world import T0, T1, World
from wire.errors import ErrorCode, KafkaError

WRONG_ID, WRONG_EPOCH = ProducerIdentity(7, 0), ProducerIdentity(1001, 9)


def add(identity: ProducerIdentity, key: str = "x") -> AddPartitions:
    return AddPartitions(key, *identity, frozenset({T0}), 2)


@pytest.mark.parametrize("transactional_id", ["", None])
def test_an_empty_id_is_refused(transactional_id: str | None) -> None:
    with pytest.raises(KafkaError) as refusal:
        require_transactional_id(transactional_id)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST


def test_an_unknown_id_has_no_producer() -> None:
    assert World().error(add(ProducerIdentity(1, 0))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(
    ("identity", "code"),
    [
        (WRONG_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ProducerIdentity(7, 9), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (WRONG_EPOCH, ErrorCode.PRODUCER_FENCED),
        (ProducerIdentity(1001, -1), ErrorCode.PRODUCER_FENCED),
        (ProducerIdentity(1001, 0), ErrorCode.NONE),
    ],
)
def test_id_then_epoch(identity: ProducerIdentity, code: ErrorCode) -> None:
    world = World()
    world.init()
    assert world.error(add(identity)) is code


@pytest.mark.parametrize("identity", [WRONG_ID, WRONG_EPOCH, ProducerIdentity(1001, 0)])
def test_what_is_pending_comes_first(identity: ProducerIdentity) -> None:
    world = World()
    held = world.init()
    world.replicated = False
    world.ask(add(held))
    assert world.error(add(identity)) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_t06_the_next_transaction_waits_for_the_markers_of_the_last() -> None:
    for version in (0, 2):
        world = World(writes_markers=False)
        held = world.init()
        world.add(held, version=version)
        held = world.end(held, version=version)
        assert world.error(add(held)) is ErrorCode.CONCURRENT_TRANSACTIONS
        world.write_marker(world.markers[0])
        assert world.error(add(held)) is ErrorCode.NONE


def test_the_first_partitions_open_the_transaction_and_further_ones_join() -> None:
    world = World()
    held = world.init()
    began_ms = world.now_ms
    world.add(held, T0, version=0)
    world.advance(10)
    world.add(held, T1, version=2)
    known = world.known()
    assert (known.state, known.partitions, known.start_ms) == (S.ONGOING, {T0, T1}, began_ms)
    assert (known.last_update_ms, known.client_version) == (began_ms + 10, 2)


def test_partitions_that_are_in_already_are_not_written_again() -> None:
    world = World()
    held = world.init()
    world.add(held, T0, T1)
    records = len(world.log)
    world.add(held, T1)
    assert len(world.log) == records
    world.add(held)
    assert len(world.log) == records


@pytest.mark.parametrize("commit", [True, False])
def test_the_next_transaction_starts_without_partitions(commit: bool) -> None:
    world = World()
    held = world.init()
    world.add(held, T0)
    held = world.end(held, commit=commit)
    world.advance(5)
    world.add(held, T1)
    assert world.known().partitions == {T1}
    assert world.known().start_ms == world.now_ms


@pytest.mark.parametrize(("version", "code"), [(0, ErrorCode.UNSUPPORTED_VERSION), (1, ErrorCode.NONE)])
def test_implicit_adding_needs_records_that_can_say_so(version: int, code: ErrorCode) -> None:
    world = World(version=version)
    held = world.init()
    assert world.error(add(held)) is code
    world.add(held, version=0)
    assert world.error(EndTransaction("x", *held, True, 2)) is code
    assert world.error(EndTransaction("x", *held, True, 0)) is (ErrorCode.NONE if code else ErrorCode.PRODUCER_FENCED)


# --- verify_only ----------------------------------------------------------------------------------


def verified(world: World, identity: ProducerIdentity, key: str = "x") -> object:
    try:
        return verify(world.shard.metadata(key), key, *identity, [T0, T1])
    except KafkaError as error:
        return error.code


def test_verification_tells_of_each_partition() -> None:
    world = World()
    held = world.init()
    assert verified(world, held) == {T0: ErrorCode.TRANSACTION_ABORTABLE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    world.add(held, T0)
    assert verified(world, held) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}


def test_verification_refuses_other_producers() -> None:
    world = World()
    world.init()
    assert verified(world, WRONG_ID) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert verified(world, WRONG_EPOCH) is ErrorCode.PRODUCER_FENCED
    assert verified(world, WRONG_ID, "nobody") is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_verification_while_the_transaction_ends() -> None:
    world = World(writes_markers=False)
    held = world.init()
    world.add(held, version=0)
    world.end(held, version=0)
    assert verified(world, held) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert verified(world, WRONG_EPOCH) is ErrorCode.PRODUCER_FENCED


def test_verification_does_not_mind_what_is_pending() -> None:
    world = World()
    held = world.init()
    world.add(held, T0)
    world.replicated = False
    world.ask(AddPartitions("x", *held, frozenset({T1})))
    assert verified(world, held) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
