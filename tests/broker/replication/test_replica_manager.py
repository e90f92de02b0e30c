"""Partitions follow metadata: opened, led, followed, moved, deleted; and what waits on them hears of it."""

from __future__ import annotations

import asyncio

import pytest
from records_node import NOW_MS, RecordsNode, batch_of, fetch_request

from broker.replication.replica_manager import LeadershipChange
from broker.storage.faulty_files import FaultyFiles
from wire.errors import ErrorCode as E
from wire.errors import KafkaError
from wire.messages.describe_log_dirs import DescribeLogDirsRequest
from wire.messages.records.cluster_metadata import PartitionChangeRecord
from wire.primitives import TopicPartition

T0 = TopicPartition("t", 0)


def code_of(node: RecordsNode, topic_partition: TopicPartition = T0) -> E:
    try:
        node.replicas.partition(topic_partition)
    except KafkaError as error:
        return error.code
    return E.NONE


async def test_partitions_are_opened_led_followed_and_deleted_and_listeners_hear_it(node: RecordsNode) -> None:
    assert code_of(node) == E.UNKNOWN_TOPIC_OR_PARTITION
    topic_id = node.create_topic("t", replicas=(1, 2), leader_epoch=4)
    assert node.leadership == [LeadershipChange(T0, topic_id, 4, True)]
    node.change_partition(topic_id, isr=[1])
    assert len(node.leadership) == 1, "the same leader in the same epoch is no news"
    node.change_partition(topic_id, leader=2, isr=[1, 2])
    node.change_partition(topic_id, leader=1)
    assert node.leadership[1:] == [LeadershipChange(T0, topic_id, 5, False), LeadershipChange(T0, topic_id, 6, True)]
    node.delete_topic(topic_id)
    assert node.leadership[-1] == LeadershipChange(T0, topic_id, -1, False)
    assert code_of(node) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert node.log_manager.log(T0) is None


async def test_a_replica_that_moves_away_is_deleted_here(node: RecordsNode) -> None:
    topic_id = node.create_topic("t", replicas=(1, 2))
    node.publish(PartitionChangeRecord(partition_id=0, topic_id=topic_id, replicas=[2, 3], isr=[2], leader=2))
    assert code_of(node) == E.NOT_LEADER_OR_FOLLOWER
    assert node.log_manager.log(T0) is None


async def test_listeners_hear_of_a_change_when_all_of_it_is_applied(node: RecordsNode) -> None:
    seen: list[int] = []
    node.replicas.on_leadership_change.append(lambda change: seen.append(len(node.replicas.partitions)))
    node.create_topic("t", partitions=3)
    assert seen == [3, 3, 3]


async def test_an_older_partition_epoch_changes_nothing(node: RecordsNode) -> None:
    topic_id = node.create_topic("t", replicas=(1, 2))
    partition = node.replicas.partition(T0)
    partition.isr_confirmed(frozenset({1}), partition.partition_epoch + 2, NOW_MS)
    node.change_partition(topic_id, isr=[1, 2])  # partition epoch 1, the answer of the controller said 2
    assert partition.isr_state.isr == {1}
    node.change_partition(topic_id, isr=[1, 2])
    assert partition.isr_state.isr == {1, 2}


async def test_settings_reach_the_log_and_what_they_hold_back(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2), isr=(1,), configs={"min.insync.replicas": "2"})
    await node.produce(batch_of(3), acks=1)
    assert node.log().high_watermark == 0
    node.set_config("t", "min.insync.replicas", "1")
    assert node.log().high_watermark == 3
    node.set_config("t", "max.message.bytes", "10")
    assert (await node.produce(batch_of())).error_code == E.MESSAGE_TOO_LARGE
    node.set_config("t", "max.message.bytes", None)
    assert (await node.produce(batch_of(), acks=1)).error_code == 0


async def test_the_isr_down_to_the_leader_moves_the_high_watermark(node: RecordsNode) -> None:
    topic_id = node.create_topic("t", replicas=(1, 2))
    waiting = asyncio.create_task(node.produce(batch_of(3)))
    await asyncio.sleep(0)
    node.change_partition(topic_id, isr=[1])
    assert (await waiting).error_code == 0
    assert node.log().high_watermark == 3


async def test_coordinators_append_and_wait_for_the_commit(node: RecordsNode) -> None:
    topic_id = node.create_topic("t", replicas=(1, 2))
    assert node.replicas.append_records(T0, batch_of(2)) == 0
    waiting = asyncio.create_task(node.replicas.wait_for_high_watermark(T0, 2))
    await asyncio.sleep(0)
    assert not waiting.done()
    await node.fetch(2, replica=(2, -1))
    await waiting
    await node.replicas.wait_for_high_watermark(T0, 1)
    assert len(node.replicas.read_from(T0, 0).records) == len(batch_of(2))
    node.replicas.append_records(T0, batch_of(1))
    late = asyncio.create_task(node.replicas.wait_for_high_watermark(T0, 3, timeout_ms=5_000))
    lost = asyncio.create_task(node.replicas.wait_for_high_watermark(T0, 3))
    await asyncio.sleep(0)
    node.clock.move(5_000)
    with pytest.raises(KafkaError) as timed_out:
        await late
    assert timed_out.value.code == E.REQUEST_TIMED_OUT
    node.change_partition(topic_id, leader=2)
    with pytest.raises(KafkaError) as resigned:
        await lost
    assert resigned.value.code == E.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(KafkaError):
        node.replicas.append_records(T0, batch_of())


async def test_a_follower_takes_what_the_leader_has_and_says(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(2, 1), leader_epoch=3)
    partition = node.replicas.partition(T0)
    waiting = asyncio.create_task(node.call(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 11))
    for _ in range(3):
        await asyncio.sleep(0)
    partition.append_as_follower(
        batch_of(4, partition_leader_epoch=3),
        leader_epoch=3,
        leader_high_watermark=0,
        leader_log_start_offset=0,
        now_ms=NOW_MS,
    )
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (4, 0)
    assert not waiting.done(), "consumers of a follower see what the leader has committed"
    partition.append_as_follower(b"", leader_epoch=3, leader_high_watermark=9, leader_log_start_offset=2, now_ms=NOW_MS)
    assert (partition.log.high_watermark, partition.log.log_start_offset) == (4, 2)
    answer = (await waiting).responses[0].partitions[0]
    assert answer.error_code == E.OFFSET_OUT_OF_RANGE, "read again, the log begins at 2"
    assert (await node.fetch(2)).high_watermark == 4
    assert node.log().leader_epochs.latest_epoch == 3


async def test_s05_a_restart_recognises_what_it_wrote_before(node: RecordsNode) -> None:
    topic_id = node.create_topic("t")
    batch = batch_of(3, producer_id=7, producer_epoch=0, base_sequence=0)
    await node.produce(batch)
    node.replicas.close()
    node.log_manager.close(now_ms=NOW_MS)
    again = RecordsNode(node.files)
    again.create_topic("t", topic_id=topic_id)
    answer = await again.produce(batch)
    assert (answer.error_code, answer.base_offset, again.end()) == (0, 0, 3)
    await again.close()


async def test_strays_are_set_aside_once_metadata_is_whole(node: RecordsNode) -> None:
    node.create_topic("t")
    node.create_topic("kept", topic_id=b"k" * 16)
    await node.produce(batch_of(3))
    node.replicas.close()
    node.log_manager.close(now_ms=NOW_MS)
    again = RecordsNode(node.files)
    again.create_topic("kept", topic_id=b"k" * 16)
    assert again.log_manager.log(T0) is not None
    again.replicas.set_strays_aside()
    assert again.log_manager.log(T0) is None
    assert again.log_manager.log(TopicPartition("kept", 0)) is not None
    assert any(name.endswith("-stray") for name in node.files.list("/logs"))
    await again.close()


async def test_a_failed_directory_answers_storage_errors_and_ends_the_waits() -> None:
    files = FaultyFiles()
    node = RecordsNode(files)
    node.create_topic("t", replicas=(1, 2))
    waiting = asyncio.create_task(node.produce(batch_of()))
    await asyncio.sleep(0)
    files.fail("append", ".log")
    assert (await node.produce(batch_of(), acks=1)).error_code == E.KAFKA_STORAGE_ERROR
    node.replicas.directory_failed()
    assert (await waiting).error_code == E.KAFKA_STORAGE_ERROR
    assert (await node.fetch(0)).error_code == E.KAFKA_STORAGE_ERROR
    assert (await node.fetch(0, version=5)).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (await node.produce(batch_of(), version=3, acks=1)).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert code_of(node) == E.KAFKA_STORAGE_ERROR
    described = await node.call(DescribeLogDirsRequest(topics=None), 4)
    assert [(result.error_code, result.log_dir) for result in described.results] == [(E.KAFKA_STORAGE_ERROR, "/logs")]
    assert node.leadership[-1].is_leader is False
    node.replicas.close()
    node.clock.close()
