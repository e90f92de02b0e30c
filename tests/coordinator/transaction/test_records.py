"""Records of `__transaction_state`: the bytes that Apache Kafka writes, and what is read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coordinator.transaction.metadata import TransactionMetadata
from coordinator.transaction.records import transaction_metadata, transaction_record, transaction_tombstone
from coordinator.transaction.requests import InitTransactionalId
from coordinator.transaction.states import TransactionState as S
from tests.coordinator.transaction.transaction_world import CODEC, World
from wire.primitives import TopicPartition

GOLDEN = Path(__file__).parents[2] / "golden" / "transaction_state.json"
"""What Apache Kafka 4.4.0 wrote about one id, by the finalized transaction.version: see `story`."""

ONGOING = TransactionMetadata(
    "x",
    65,
    60_000,
    1_795_965_313_907,
    producer_epoch=0,
    previous_producer_id=65,
    state=S.ONGOING,
    partitions=frozenset({TopicPartition("t", 0)}),
    start_ms=1_795_965_313_907,
    client_version=2,
)


def kafkas(version: int) -> list[tuple[bytes, bytes]]:
    recorded = json.loads(GOLDEN.read_text())["records"][str(version)]
    return [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in recorded]


def read(key: bytes, value: bytes | None) -> TransactionMetadata:
    record = CODEC.decode(key, value)
    assert record is not None
    return transaction_metadata(record.key.transactional_id, record.value)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_kafkas_records_are_written_byte_for_byte(version: int) -> None:
    """Kafka writes several partitions in the order of a hash; they are compared in order."""
    for key, value in kafkas(version):
        metadata = read(key, value)
        again = CODEC.encode(transaction_record(metadata, version))
        assert len(again[1] or b"") == len(value)
        assert read(*again) == metadata
        if len(metadata.partitions) < 2:
            assert again == (key, value)


def story(version: int) -> World:
    """The requests behind the golden records: an explicit commit, an explicit abort, a new epoch, both
    ends with bumps (where the cluster has them), and a fence."""
    world = World(version=version)
    topic = f"golden-{version}"
    t0, t1, t2 = (TopicPartition(topic, index) for index in range(3))
    held = world.init()
    world.add(held, t0, t1, version=0)
    world.end(held, version=0)
    world.add(held, t2, version=0)
    world.add(held, t0, version=0)
    world.end(held, commit=False, version=0)
    held = world.init(held=held)
    if version:
        world.add(held, t0, version=2)
        held = world.end(held, version=2)
        held = world.end(held, commit=False, version=2)
    world.add(held, t1, version=0)
    world.error(InitTransactionalId("x", 60_000))
    world.init()
    return world


def seen(metadata: TransactionMetadata) -> tuple[object, ...]:
    """All of a record but its times and which producer id it was."""
    return (
        metadata.state,
        metadata.producer_epoch,
        metadata.timeout_ms,
        metadata.partitions,
        metadata.client_version,
        metadata.previous_producer_id in (-1, metadata.producer_id),
        metadata.next_producer_id,
        metadata.start_ms == -1,
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_same_requests_make_the_same_records_as_in_kafka(version: int) -> None:
    ours = [seen(read(key, value)) for key, value in story(version).log]
    assert ours == [seen(read(key, value)) for key, value in kafkas(version)]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_log_of_kafkas_is_taken_over(version: int) -> None:
    world = World(version=version)
    world.log = list(kafkas(version))
    world.reload()
    key = f"golden-tx-{version}"
    held = world.known(key).identity
    assert held.producer_epoch == (5 if version else 3)
    world.add(held, key=key, version=0)
    assert world.end(held, key=key, version=0) == held


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_what_kafka_had_decided_is_ended_here(version: int, state: S) -> None:
    log = kafkas(version)
    last = next(place for place, each in enumerate(log) if read(*each).state is state)
    world = World(version=version)
    world.log = list(log[: last + 1])
    world.reload()
    (ending,) = world.markers
    assert ending == read(*log[last])
    assert seen(read(*world.log[-1])) == seen(read(*log[last + 1]))


@pytest.mark.parametrize(("version", "value_version"), [(0, 0), (1, 1), (2, 1)])
def test_the_value_is_flexible_from_transaction_version_1(version: int, value_version: int) -> None:
    assert transaction_record(ONGOING, version).value_version == value_version


def test_version_0_leaves_out_what_it_has_no_room_for() -> None:
    again = read(*CODEC.encode(transaction_record(ONGOING, 0)))
    assert (again.previous_producer_id, again.next_producer_id, again.client_version) == (-1, -1, 0)
    assert (again.identity, again.partitions, again.state) == (ONGOING.identity, ONGOING.partitions, S.ONGOING)


@pytest.mark.parametrize(("state", "partitions"), [(S.EMPTY, None), (S.COMPLETE_COMMIT, []), (S.PREPARE_ABORT, [])])
def test_no_partitions_are_null_while_empty_and_a_list_afterwards(state: S, partitions: list[int] | None) -> None:
    metadata = TransactionMetadata("x", 1, 1, 1, state=state)
    assert transaction_record(metadata, 2).value.transaction_partitions == partitions


@pytest.mark.parametrize("state", [state for state in S if state not in (S.DEAD, S.PREPARE_EPOCH_FENCE)])
def test_what_is_written_is_read_back(state: S) -> None:
    metadata = TransactionMetadata(
        "x",
        7,
        1000,
        5,
        producer_epoch=32767,
        state=state,
        partitions=frozenset() if state is S.EMPTY else frozenset(TopicPartition("ab"[n % 2], n) for n in range(5)),
        start_ms=3,
        previous_producer_id=7,
        next_producer_id=9,
        client_version=2,
    )
    assert read(*CODEC.encode(transaction_record(metadata, 2))) == metadata


def test_a_tombstone_has_no_value() -> None:
    assert CODEC.encode(transaction_tombstone("x")) == (b"\0\0\0\1x", None)
