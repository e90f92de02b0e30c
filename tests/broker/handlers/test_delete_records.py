"""DeleteRecords: what moves, what is refused, what is waited for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from records_node import NOW_MS, RecordsNode, batch_of, fetched

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode as E
from wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic


def request(parts: dict[tuple[str, int], int], timeout_ms: int = 1_000) -> DeleteRecordsRequest:
    topics: dict[str, list[DeleteRecordsPartition]] = {}
    for (topic, partition), offset in parts.items():
        topics.setdefault(topic, []).append(DeleteRecordsPartition(partition_index=partition, offset=offset))
    return DeleteRecordsRequest(
        timeout_ms=timeout_ms,
        topics=[DeleteRecordsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


async def delete(node: RecordsNode, offset: int, topic: str = "t", version: int = 2) -> tuple[int, int]:
    answer = (await node.call(request({(topic, 0): offset}), version)).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_s07_step_by_step(node: RecordsNode, version: int) -> None:
    node.create_topic("t")
    node.create_topic("compacted", configs={"cleanup.policy": "compact"})
    node.create_topic("both", configs={"cleanup.policy": "compact,delete"})
    node.create_topic("__consumer_offsets")
    for topic in ("t", "compacted", "both"):
        await node.produce(batch_of(10), topic)
    assert await delete(node, 3, version=version) == (0, 3)
    answer = await node.fetch(3)
    assert [(batch.base_offset, batch.record_count) for batch in fetched(answer.records)] == [(0, 10)]
    assert answer.log_start_offset == 3
    assert await delete(node, 1, version=version) == (0, 3), "never back"
    assert await delete(node, 11, version=version) == (E.OFFSET_OUT_OF_RANGE, -1)
    assert await delete(node, -2, version=version) == (E.OFFSET_OUT_OF_RANGE, -1)
    assert await delete(node, 0, "__consumer_offsets", version=version) == (E.INVALID_TOPIC_EXCEPTION, -1)
    assert await delete(node, 99, "compacted", version=version) == (E.POLICY_VIOLATION, -1), "before the offset"
    assert await delete(node, 4, "both", version=version) == (0, 4)
    assert await delete(node, 0, "gone", version=version) == (E.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete(node, -1, version=version) == (0, 10), "-1 is the high watermark"
    assert (await node.produce(batch_of())).base_offset == 10
    assert (await node.fetch(9)).error_code == E.OFFSET_OUT_OF_RANGE
    assert len(fetched((await node.fetch(10)).records)) == 1


async def test_s07_the_start_survives_a_restart(node: RecordsNode) -> None:
    topic_id = node.create_topic("t")
    await node.produce(batch_of(10))
    await delete(node, 3)
    node.replicas.close()
    node.log_manager.close(now_ms=NOW_MS)
    again = RecordsNode(node.files)
    again.create_topic("t", topic_id=topic_id)
    assert (again.log().log_start_offset, again.log().log_end_offset, again.log().high_watermark) == (3, 10, 10)
    await again.close()


async def test_permission_comes_first(node: RecordsNode) -> None:
    for topic in ("gone", "__consumer_offsets"):
        node.authorizer.denied.add((Operation.DELETE, ResourceType.TOPIC, topic))
        assert await delete(node, 0, topic) == (E.TOPIC_AUTHORIZATION_FAILED, -1)


async def test_only_the_leader_deletes(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(2, 1))
    assert await delete(node, 0) == (E.NOT_LEADER_OR_FOLLOWER, -1)


async def begin(node: RecordsNode, offset: int) -> asyncio.Task[Any]:
    task = asyncio.create_task(node.call(request({("t", 0): offset}), 2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def replicated(node: RecordsNode) -> None:
    """Ten committed records on brokers 1 and 2."""
    node.create_topic("t", replicas=(1, 2))
    await node.produce(batch_of(10), acks=1)
    await node.fetch(10, replica=(2, -1), log_start_offset=0)
    assert node.log().high_watermark == 10


async def test_it_waits_for_the_followers_that_are_alive(node: RecordsNode) -> None:
    await replicated(node)
    waiting = await begin(node, 4)
    assert not waiting.done()
    await node.fetch(10, replica=(2, -1), log_start_offset=4)
    answer = (await waiting).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (0, 4)


async def test_it_gives_up_after_its_timeout_and_the_start_has_moved(node: RecordsNode) -> None:
    await replicated(node)
    waiting = await begin(node, 4)
    node.clock.move(1_000)
    answer = (await waiting).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (E.REQUEST_TIMED_OUT, -1)
    assert node.log().log_start_offset == 4


async def test_a_dead_follower_is_not_waited_for(node: RecordsNode) -> None:
    await replicated(node)
    node.fence_broker(2)
    assert await delete(node, 4) == (0, 4)
