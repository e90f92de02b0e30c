"""AlterPartition and AllocateProducerIds: checks in Kafka's order, and what is written (K11, C.1)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.metadata.image import PartitionImage
from tests.coordinator.controller.controller_world import ControllerWorld
from wire.errors import ErrorCode, KafkaError
from wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest


@pytest.fixture(name="world")
def three_brokers() -> ControllerWorld:
    """Brokers 1 to 3 and the topic `t` on 1 and 2; the leader 1 is alone in sync."""
    world = ControllerWorld(brokers=3)
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment])
    world.submit(CreateTopicsRequest(topics=[topic]))
    alter(world, isr=[1])
    return world


def alter(
    world: ControllerWorld, isr: list[int], *, sender: int = 1, epochs: dict[int, int] | None = None, **fields: Any
) -> AlterPartitionResponsePartitionData:
    topic = world.image.topics.by_name("t")
    assert topic is not None
    partition = topic.partitions[0]
    data = AlterPartitionRequestPartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr_with_epochs=[
            BrokerState(broker_id=broker_id, broker_epoch=(epochs or {}).get(broker_id, -1)) for broker_id in isr
        ],
    )
    topic_id = fields.pop("topic_id", topic.topic_id)
    for name, value in fields.items():
        setattr(data, name, value)
    request = AlterPartitionRequest(
        broker_id=sender,
        broker_epoch=world.epochs[sender],
        topics=[AlterPartitionRequestTopicData(topic_id=topic_id, partitions=[data])],
    )
    result: AlterPartitionResponsePartitionData = world.submit(request, 3).topics[0].partitions[0]
    return result


def test_an_isr_grows_and_only_the_partition_epoch_with_it(world: ControllerWorld) -> None:
    before = world.partition("t")
    result = alter(world, isr=[1, 2])
    assert (result.error_code, result.isr, result.leader_id) == (ErrorCode.NONE, [1, 2], 1)
    after: PartitionImage = world.partition("t")
    assert (after.isr, after.leader_epoch) == ((1, 2), before.leader_epoch)
    assert result.partition_epoch == after.partition_epoch == before.partition_epoch + 1


REFUSED: list[tuple[dict[str, Any], ErrorCode]] = [
    ({"topic_id": b"\x09" * 16}, ErrorCode.UNKNOWN_TOPIC_ID),
    ({"partition_index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ({"leader_epoch": 7}, ErrorCode.NOT_CONTROLLER),
    ({"partition_epoch": 7}, ErrorCode.NOT_CONTROLLER),
    ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
    ({"sender": 2, "partition_epoch": 0}, ErrorCode.INVALID_REQUEST),
    ({"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
    ({"isr": [1, 3]}, ErrorCode.INVALID_REQUEST),
    ({"isr": [1, 1]}, ErrorCode.INVALID_REQUEST),
    ({"isr": []}, ErrorCode.INVALID_REQUEST),
    ({"isr": [2]}, ErrorCode.INVALID_REQUEST),
    ({"leader_recovery_state": 2}, ErrorCode.INVALID_REQUEST),
    ({"isr": [1], "leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
    ({"epochs": {2: 1}}, ErrorCode.INELIGIBLE_REPLICA),
]


@pytest.mark.parametrize(("fields", "code"), REFUSED)
def test_refusals_in_kafkas_order(world: ControllerWorld, fields: dict[str, Any], code: ErrorCode) -> None:
    before = list(world.records)
    result = alter(world, **{"isr": [1, 2], **fields})
    assert ErrorCode(result.error_code) is code
    assert world.records == before


@pytest.mark.parametrize("state", [{"want_fence": True}, {"want_shut_down": True}])
def test_a_replica_that_is_fenced_or_stopping_cannot_join(world: ControllerWorld, state: dict[str, Any]) -> None:
    world.heartbeat(2, **state)
    assert ErrorCode(alter(world, isr=[1, 2]).error_code) is ErrorCode.INELIGIBLE_REPLICA


def test_a_sender_of_an_old_incarnation_is_stale(world: ControllerWorld) -> None:
    world.epochs[1] -= 1
    with pytest.raises(KafkaError) as raised:
        alter(world, isr=[1, 2])
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_blocks_of_producer_ids_follow_each_other_and_end(world: ControllerWorld) -> None:
    request = AllocateProducerIdsRequest(broker_id=2, broker_epoch=world.epochs[2])
    blocks = [world.submit(request) for _ in range(2)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [(0, 1000), (1000, 1000)]
    with pytest.raises(KafkaError) as raised:
        world.submit(AllocateProducerIdsRequest(broker_id=2, broker_epoch=0))
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH
