"""DescribeProducers and DescribeLogDirs: what partitions and directories hold."""

from __future__ import annotations

from typing import Any

import pytest
from records_node import NOW_MS, RecordsNode, batch_of

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode as E
from wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from wire.messages.describe_producers import DescribeProducersRequest, TopicRequest


async def producers(node: RecordsNode, topic: str = "t", partition: int = 0) -> Any:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])
    return (await node.call(request, 0)).topics[0].partitions[0]


async def test_producers_of_a_partition(node: RecordsNode) -> None:
    node.create_topic("t", partitions=2)
    await node.produce(batch_of(3, producer_id=7, producer_epoch=2, base_sequence=0))
    answer = await producers(node)
    assert answer.error_code == 0
    (producer,) = answer.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 2, 2)
    assert (producer.last_timestamp, producer.coordinator_epoch, producer.current_txn_start_offset) == (NOW_MS, -1, -1)
    assert (await producers(node, partition=1)).active_producers == []


async def test_any_replica_tells_its_producers_and_the_errors_come_in_order(node: RecordsNode) -> None:
    node.create_topic("followed", replicas=(2, 1))
    node.create_topic("strange", replicas=(3,))
    node.authorizer.denied.add((Operation.READ, ResourceType.TOPIC, "secret"))
    for topic, error in (
        ("followed", 0),
        ("strange", E.NOT_LEADER_OR_FOLLOWER),
        ("gone", E.UNKNOWN_TOPIC_OR_PARTITION),
        ("secret", E.TOPIC_AUTHORIZATION_FAILED),
        ("bad name", E.INVALID_TOPIC_EXCEPTION),
    ):
        assert (await producers(node, topic)).error_code == error, topic


@pytest.mark.parametrize("version", range(1, 6))
async def test_a13_directories_and_sizes(node: RecordsNode, version: int) -> None:
    node.create_topic("t", partitions=2)
    node.create_topic("u")
    for partition in (0, 1):
        await node.produce(batch_of(3), partition=partition)
    everything = await node.call(DescribeLogDirsRequest(topics=None), version)
    assert everything.error_code == 0
    (directory,) = everything.results
    assert (directory.error_code, directory.log_dir) == (0, "/logs")
    sizes = {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in directory.topics
        for partition in topic.partitions
    }
    assert sizes == {("t", 0): len(batch_of(3)), ("t", 1): len(batch_of(3)), ("u", 0): 0}
    asked = [DescribableLogDirTopic(topic="t", partitions=[1, 9]), DescribableLogDirTopic(topic="gone", partitions=[0])]
    (chosen,) = (await node.call(DescribeLogDirsRequest(topics=asked), version)).results
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in chosen.topics] == [("t", [1])]
    (nothing,) = (await node.call(DescribeLogDirsRequest(topics=[]), version)).results
    assert nothing.topics == []


async def test_directories_need_permission(node: RecordsNode) -> None:
    node.authorizer.denied.add((Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"))
    response = await node.call(DescribeLogDirsRequest(topics=None), 4)
    assert (response.error_code, response.results) == (E.CLUSTER_AUTHORIZATION_FAILED, [])
