"""ListOffsets: the specials, timestamps inside batches, isolation, errors."""

from __future__ import annotations

from typing import Any

import pytest
from records_node import NOW_MS, RecordsNode, batch_of

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode as E
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.primitives import TopicPartition
from wire.records import Compression, NewRecord, build_batch, end_transaction_marker

ALL_VERSIONS = range(1, 12)
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


async def ask(
    node: RecordsNode,
    timestamp: int,
    *,
    topic: str = "t",
    partition: int = 0,
    version: int = 11,
    isolation: int = 0,
    replica_id: int = -1,
    epoch: int = -1,
) -> Any:
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp)
                ],
            )
        ],
    )
    return (await node.call(request, version)).topics[0].partitions[0]


async def found(node: RecordsNode, timestamp: int, **options: Any) -> tuple[int, int, int]:
    answer = await ask(node, timestamp, **options)
    return answer.error_code, answer.offset, answer.timestamp


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_every_version_finds_ends_and_times(node: RecordsNode, version: int) -> None:
    node.create_topic("t", leader_epoch=4)
    await node.produce(batch_of(3))
    for timestamp, offset, at_ms in ((LATEST, 3, -1), (EARLIEST, 0, -1), (NOW_MS, 0, NOW_MS)):
        answer = await ask(node, timestamp, version=version)
        assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, at_ms)
        assert answer.leader_epoch == (4 if version >= 4 else -1)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize(("special", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)])
async def test_specials_by_version(node: RecordsNode, version: int, special: int, since: int) -> None:
    node.create_topic("t")
    await node.produce(batch_of(3))
    expected = {-3: (0, 0, NOW_MS), -4: (0, 0, -1), -5: (0, -1, -1), -6: (0, -1, -1)}
    refused = (E.UNSUPPORTED_VERSION, -1, -1)
    assert await found(node, special, version=version) == (expected[special] if version >= since else refused)


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_f09_nothing_found_is_minus_one_without_an_error(node: RecordsNode, version: int) -> None:
    node.create_topic("t")
    for count in (0, 3):
        if count:
            await node.produce(batch_of(count))
        assert await found(node, NOW_MS + 3_600_000, version=version) == (0, -1, -1)
    node.create_topic("empty")
    assert await found(node, 0, topic="empty", version=version) == (0, -1, -1)
    assert await found(node, MAX_TIMESTAMP, topic="empty") == (0, -1, -1)


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP, Compression.ZSTD])
@pytest.mark.parametrize("one_batch", [True, False])
async def test_f10_a_time_finds_the_first_record_that_is_not_older(
    node: RecordsNode, compression: Compression, one_batch: bool
) -> None:
    async def write(topic: str, timestamps: list[int]) -> None:
        node.create_topic(topic)
        records = [NewRecord(b"k", b"v", (), timestamp) for timestamp in timestamps]
        for group in [records] if one_batch else [[record] for record in records]:
            answer = await node.produce(build_batch(group, compression=compression), topic)
            assert answer.error_code == 0

    await write("rising", [2, 4, 6, 8])
    rising = [await found(node, timestamp, topic="rising") for timestamp in range(1, 10)]
    assert rising == [(0, 0, 2)] * 2 + [(0, 1, 4)] * 2 + [(0, 2, 6)] * 2 + [(0, 3, 8)] * 2 + [(0, -1, -1)]
    await write("mixed", [5, 1, 9, 3])
    mixed = [await found(node, timestamp, topic="mixed") for timestamp in range(1, 11)]
    assert mixed == [(0, 0, 5)] * 5 + [(0, 2, 9)] * 4 + [(0, -1, -1)]
    assert await found(node, MAX_TIMESTAMP, topic="mixed") == (0, 2, 9)


async def test_f10_records_before_the_log_start_are_not_found(node: RecordsNode) -> None:
    node.create_topic("t")
    await node.produce(build_batch([NewRecord(b"k", b"v", (), timestamp) for timestamp in (2, 4, 6, 8)]))
    node.replicas.partitions[TopicPartition("t", 0)].delete_records_before(2)
    assert await found(node, 1) == (0, 2, 6)
    assert await found(node, EARLIEST) == (0, 2, -1)


async def test_log_append_time_is_the_time_of_all_records_of_a_batch(node: RecordsNode) -> None:
    node.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})
    await node.produce(batch_of(3, timestamp=5))
    assert await found(node, 6) == (0, 0, NOW_MS)
    assert await found(node, NOW_MS + 1) == (0, -1, -1)


async def test_f11_isolation_decides_the_end(node: RecordsNode) -> None:
    node.create_topic("t")
    await node.produce(batch_of(3))
    log, topic_partition = node.log(), TopicPartition("t", 0)
    guard = log.start_verification(7, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    batch = batch_of(5, timestamp=NOW_MS + 5, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    appended = node.replicas.append(topic_partition, batch, acks=-1, now_ms=NOW_MS, verification_guard=guard)
    assert appended.error == 0
    assert await found(node, LATEST) == (0, 8, -1)
    assert await found(node, LATEST, isolation=1) == (0, 3, -1)
    assert await found(node, MAX_TIMESTAMP) == (0, 3, NOW_MS + 5)
    assert await found(node, MAX_TIMESTAMP, isolation=1) == (0, -1, -1), "not stable yet: not told"
    marker = end_transaction_marker(
        is_commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
    )
    assert node.replicas.append_records(topic_partition, marker) == 8
    assert await found(node, LATEST) == (0, 9, -1)
    assert await found(node, LATEST, isolation=1) == (0, 9, -1)


async def test_clients_see_the_high_watermark_and_replicas_the_log_end(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2))
    await node.produce(batch_of(3), acks=1)
    assert await found(node, LATEST) == (0, 0, -1)
    assert await found(node, NOW_MS) == (0, -1, -1)
    for replica_id in (2, -2):
        assert await found(node, LATEST, replica_id=replica_id) == (0, 3, -1)
        assert await found(node, NOW_MS, replica_id=replica_id) == (0, 0, NOW_MS)


@pytest.mark.parametrize(("version", "error"), [(4, E.LEADER_NOT_AVAILABLE), (5, E.OFFSET_NOT_AVAILABLE)])
async def test_a_new_leader_that_does_not_know_the_end_says_so(node: RecordsNode, version: int, error: E) -> None:
    topic_id = node.create_topic("t", replicas=(1, 2))
    await node.produce(batch_of(3), acks=1)
    node.change_partition(topic_id, leader=1)  # the new epoch begins at 3, only 0 is known to be committed
    assert await found(node, LATEST, version=version) == (error, -1, -1)
    assert await found(node, NOW_MS, version=version) == (error, -1, -1)
    assert await found(node, EARLIEST, version=version) == (0, 0, -1)
    assert await found(node, LATEST, replica_id=2) == (0, 3, -1)


async def test_a_partition_named_twice_is_an_invalid_request_for_it_alone(node: RecordsNode) -> None:
    node.create_topic("t", partitions=2)
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)]),
            ListOffsetsTopic(
                name="t",
                partitions=[
                    ListOffsetsPartition(partition_index=0, timestamp=EARLIEST),
                    ListOffsetsPartition(partition_index=1, timestamp=LATEST),
                ],
            ),
        ],
    )
    (topic,) = (await node.call(request, 7)).topics
    codes = {answer.partition_index: answer.error_code for answer in topic.partitions}
    assert codes == {0: E.INVALID_REQUEST, 1: 0}


async def test_r04_who_answers(node: RecordsNode) -> None:
    node.create_topic("followed", replicas=(2, 1), leader_epoch=5)
    node.create_topic("strange", replicas=(3,))
    for topic, error in (("followed", 6), ("strange", 6), ("gone", 3)):
        assert await found(node, LATEST, topic=topic) == (error, -1, -1)
    assert await found(node, LATEST, topic="followed", replica_id=-2) == (0, 0, -1), "a debugging client may ask anyone"
    assert (await found(node, LATEST, topic="followed", epoch=4))[0] == E.FENCED_LEADER_EPOCH
    assert (await found(node, LATEST, topic="followed", epoch=6))[0] == E.UNKNOWN_LEADER_EPOCH


async def test_permission_and_isolation_level(node: RecordsNode) -> None:
    node.create_topic("t")
    assert await found(node, LATEST, isolation=5) == (E.UNKNOWN_SERVER_ERROR, -1, -1)
    for replica_id in (-2, 3):
        assert await found(node, LATEST, isolation=5, replica_id=replica_id) == (E.UNKNOWN_SERVER_ERROR, -1, -1)
    node.authorizer.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "t"))
    assert await found(node, LATEST) == (E.TOPIC_AUTHORIZATION_FAILED, -1, -1)
