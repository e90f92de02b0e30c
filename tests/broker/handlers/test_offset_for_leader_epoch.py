"""OffsetForLeaderEpoch: where epochs end, and who may ask."""

from __future__ import annotations

from typing import Any

import pytest
from records_node import RecordsNode, batch_of

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode as E
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


async def ask(
    node: RecordsNode, epoch: int, *, current: int = -1, topic: str = "t", version: int = 4, replica_id: int = -1
) -> tuple[int, int, int]:
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    options: dict[str, Any] = {"replica_id": replica_id} if version >= 3 else {}
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])], **options)
    answer = (await node.call(request, version)).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


async def epochs_0_3_5(node: RecordsNode) -> None:
    """Epoch 0 holds offsets 0-9, epoch 3 holds 10-19, epoch 5 those from 20 on; the leader is in epoch 5."""
    topic_id = node.create_topic("t")
    for elections in (3, 2, 0):
        await node.produce(batch_of(10))
        for _ in range(elections):
            node.change_partition(topic_id, leader=1)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("replica_id", [-1, -2])
async def test_r03_each_epoch_ends_where_the_next_begins(node: RecordsNode, version: int, replica_id: int) -> None:
    await epochs_0_3_5(node)
    answers = [await ask(node, epoch, version=version, replica_id=replica_id) for epoch in (0, 1, 3, 4, 5, 9, -1)]
    # Epochs 1, 2 and 4 wrote nothing and leave no trace.
    assert answers == [
        (0, 0, 10),
        (0, 0, 10),
        (0, 3, 20),
        (0, 3, 20),
        (0, 5, 30),
        (0, -1, -1),
        (0, -1, -1),
    ]


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_r03_fencing(node: RecordsNode, version: int) -> None:
    await epochs_0_3_5(node)
    assert (await ask(node, 0, current=5, version=version))[0] == 0
    assert await ask(node, 0, current=4, version=version) == (E.FENCED_LEADER_EPOCH, -1, -1)
    assert await ask(node, 0, current=6, version=version) == (E.UNKNOWN_LEADER_EPOCH, -1, -1)


async def test_r04_only_the_leader_answers(node: RecordsNode) -> None:
    node.create_topic("followed", replicas=(2, 1))
    node.create_topic("strange", replicas=(3,))
    for topic, error in (
        ("followed", E.NOT_LEADER_OR_FOLLOWER),
        ("strange", E.NOT_LEADER_OR_FOLLOWER),
        ("gone", E.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        assert await ask(node, 0, topic=topic) == (error, -1, -1)


async def test_one_of_two_permissions_is_enough(node: RecordsNode) -> None:
    node.create_topic("t")
    cluster = (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")
    topic = (Operation.DESCRIBE, ResourceType.TOPIC, "t")
    for denied in ({cluster}, {topic}):
        node.authorizer.denied = denied
        assert (await ask(node, 0))[0] == 0
    node.authorizer.denied = {cluster, topic}
    assert await ask(node, 0) == (E.TOPIC_AUTHORIZATION_FAILED, -1, -1)
