"""AssignReplicasToDirs: refusals first, then where a replica lies and what follows when that is offline (KIP-858)."""

from __future__ import annotations

import pytest

from tests.coordinator.controller.controller_world import ControllerWorld
from tests.coordinator.controller.test_brokers import create
from wire.errors import ErrorCode, KafkaError
from wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)

FIRST, SECOND, GONE = b"\xb1" * 16, b"\xb2" * 16, b"\xb3" * 16


def world_of_two() -> ControllerWorld:
    """Broker 1 has one directory, broker 2 two; the partition of topic t has a replica on each."""
    world = ControllerWorld(brokers=1)
    world.epochs[2] = world.submit(world.registration(2, log_dirs=[FIRST, SECOND])).broker_epoch
    world.heartbeat(2)
    create(world, "t", 1, 2)
    return world


def assign(
    world: ControllerWorld, directory: bytes, topic_id: bytes, *partitions: int, epoch: int | None = None
) -> list[ErrorCode]:
    """The codes of the partitions that broker 2 says are in a directory."""
    wanted = [AssignReplicasToDirsRequestPartitionData(partition_index=index) for index in partitions]
    topic = AssignReplicasToDirsRequestTopicData(topic_id=topic_id, partitions=wanted)
    response = world.submit(
        AssignReplicasToDirsRequest(
            broker_id=2,
            broker_epoch=world.epochs[2] if epoch is None else epoch,
            directories=[AssignReplicasToDirsRequestDirectoryData(id=directory, topics=[topic])],
        )
    )
    assert response.error_code == 0
    assert [data.id for data in response.directories] == [directory]
    return [ErrorCode(data.error_code) for data in response.directories[0].topics[0].partitions]


def topic_id(world: ControllerWorld) -> bytes:
    topic = world.image.topics.by_name("t")
    assert topic is not None
    return topic.topic_id


def test_a_broker_of_an_old_epoch_is_refused() -> None:
    world = world_of_two()
    with pytest.raises(KafkaError) as refusal:
        assign(world, FIRST, topic_id(world), 0, epoch=1)
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_refusals_of_partitions_write_nothing() -> None:
    world = world_of_two()
    create(world, "alone", 1)
    alone = world.image.topics.by_name("alone")
    assert alone is not None
    before = len(world.records)
    assert assign(world, FIRST, b"\x07" * 16, 0) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert assign(world, FIRST, topic_id(world), 9) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert assign(world, FIRST, alone.topic_id, 0) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert len(world.records) == before


def test_a_replica_is_where_its_broker_says_and_a_second_telling_changes_nothing() -> None:
    world = world_of_two()
    assert assign(world, SECOND, topic_id(world), 0) == [ErrorCode.NONE]
    partition = world.partition("t")
    assert (partition.directory_of(2), partition.leader, partition.isr) == (SECOND, 1, (1, 2))
    before, epoch = len(world.records), partition.leader_epoch
    assert assign(world, SECOND, topic_id(world), 0) == [ErrorCode.NONE]
    assert (len(world.records), world.partition("t").leader_epoch) == (before, epoch)


def test_a_replica_in_a_directory_that_is_offline_is_offline() -> None:
    world = world_of_two()
    assert assign(world, GONE, topic_id(world), 0) == [ErrorCode.NONE]
    assert (world.partition("t").leader, world.partition("t").isr) == (1, (1,))
