"""The cases of storage, retention and compaction on a whole node, over real sockets (S01 to S11)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from odradek import Broker
from odradek.failure import Failure
from odradek.launcher import post
from tests.broker.disk_node import EARLIEST, TopicClient, on_disk, topic_client
from tests.broker.handlers.wire_client import WireClient
from tests.broker.node_fixture import RunningNode, running_node
from wire.errors import ErrorCode
from wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from wire.records import NewRecord, batches, build_batch

WITH_CONTROL = {"odradek.control.enable": "true"}
MIB = str(1024 * 1024)


@asynccontextmanager
async def node_with_topic(
    directory: Path | None = None, partitions: int = 1, **settings: str
) -> AsyncIterator[tuple[RunningNode, TopicClient]]:
    """A node in memory, or in a directory, with a topic of these settings."""
    where = {} if directory is None else on_disk(directory)
    async with running_node(where | WITH_CONTROL) as node, topic_client(node) as topic:
        await topic.create(partitions, **settings)
        yield node, topic


async def act(node: RunningNode, action: str, topic: str) -> dict[str, object]:
    """Compaction or retention of a topic at once, as a person asks for it."""
    control_url = str(node.server.ready_line()["control_url"])
    return await asyncio.to_thread(post, control_url, action, 20.0, topic=topic)


async def put(topic: TopicClient, key: bytes, value: bytes | None) -> int:
    answer = await topic.produce(build_batch([NewRecord(key, value, (), topic.now_ms)]))
    assert ErrorCode(answer.error_code) is ErrorCode.NONE
    return int(answer.base_offset)


async def kept(topic: TopicClient) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of everything in the log."""
    found: list[tuple[int, bytes | None, bytes | None]] = []
    position = await topic.offset(EARLIEST)
    while views := list(batches(bytes((await topic.fetch(position)).records or b""))):
        found += [(record.offset, record.key, record.value) for batch in views for record in batch.records()]
        position = views[-1].next_offset
    return found


# --- compaction -----------------------------------------------------------------------------------


def test_s01_a_consumer_crosses_the_holes_that_compaction_left() -> None:
    """10,000 updates of 10 keys; the newest of each stays at its offset, and the end is where it was."""
    with Broker() as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        producer = Producer(servers | {"batch.num.messages": 100})
        for number in range(10_000):
            producer.produce("updates", b"%d" % number, b"%d" % (number % 10))
        assert producer.flush(30) == 0
        alter(broker, "updates", "cleanup.policy=compact")
        broker.compact("updates")
        consumer = Consumer(servers | {"group.id": "g", "auto.offset.reset": "earliest", "enable.partition.eof": True})
        for start in (0, 4321, 9_985):
            consumer.assign([TopicPartition("updates", 0, start)])
            found = until_the_end(consumer)
            assert found == [
                (offset, b"%d" % (offset % 10), b"%d" % offset) for offset in range(max(start, 9_990), 10_000)
            ]
            assert consumer.position([TopicPartition("updates", 0)])[0].offset == 10_000
        assert consumer.get_watermark_offsets(TopicPartition("updates", 0)) == (0, 10_000)
        consumer.close()


def alter(broker: Broker, topic: str, setting: str) -> None:
    from odradek.__main__ import main

    assert main(["configs", "alter", "topic", topic, "--set", setting, "-b", broker.bootstrap_servers]) == 0


def until_the_end(consumer: Consumer) -> list[tuple[int, bytes, bytes]]:
    found = []
    while True:
        message = consumer.poll(20)
        assert message is not None
        if message.error() is None:
            found.append((message.offset(), message.key(), message.value()))
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            return found


async def test_s01_the_last_record_of_all_may_be_gone_but_not_its_offset() -> None:
    async with node_with_topic(cleanup_policy="compact", delete_retention_ms="0") as (node, topic):
        for number in range(5):
            await put(topic, b"k", b"%d" % number)
        await put(topic, b"k", None)
        for _ in range(3):
            await act(node, "compact", topic.topic)
            node.clock.move(1000)
        assert await kept(topic) == []
        assert await topic.offset() == 6
        data = await topic.fetch(2)
        assert (ErrorCode(data.error_code), data.high_watermark) == (ErrorCode.NONE, 6)
        # What is left of the log carries a reader to its end, which a producer goes on from.
        views = list(batches(bytes(data.records or b"")))
        assert views[-1].next_offset == 6
        assert await put(topic, b"k", b"new") == 6


async def test_s02_a_tombstone_stays_for_slow_readers_and_then_goes(tmp_path: Path) -> None:
    async with node_with_topic(tmp_path, cleanup_policy="compact", delete_retention_ms="2000") as (node, topic):
        await put(topic, b"k", b"value")
        await put(topic, b"other", b"stays")
        await put(topic, b"k", None)
        await act(node, "compact", topic.topic)
        assert await kept(topic) == [(1, b"other", b"stays"), (2, b"k", None)]
        node.clock.move(1_000)
        await act(node, "compact", topic.topic)
        assert await kept(topic) == [(1, b"other", b"stays"), (2, b"k", None)]
        node.clock.move(3_000)
        await act(node, "compact", topic.topic)
        assert await kept(topic) == [(1, b"other", b"stays")]
        assert await topic.offset() == 3
    async with running_node(on_disk(tmp_path)) as node, topic_client(node) as topic:
        assert await kept(topic) == [(1, b"other", b"stays")]
        assert await topic.offset() == 3


async def test_s01_a_compacted_log_is_the_same_after_a_restart(tmp_path: Path) -> None:
    async with node_with_topic(tmp_path, cleanup_policy="compact") as (node, topic):
        for number in range(50):
            await put(topic, b"%d" % (number % 3), b"%d" % number)
        await act(node, "compact", topic.topic)
        before = await kept(topic)
        assert [offset for offset, _, _ in before] == [47, 48, 49]
    async with running_node(on_disk(tmp_path)) as node, topic_client(node) as topic:
        assert await kept(topic) == before
        assert await put(topic, b"0", b"new") == 50


async def test_compaction_that_cannot_be_is_refused_in_words() -> None:
    async with node_with_topic() as (node, topic):
        with pytest.raises(Failure, match=r"topic 'kept' has no compact in its cleanup\.policy"):
            await act(node, "compact", topic.topic)
        for action in ("compact", "retention"):
            with pytest.raises(Failure, match="there is no topic 'nowhere' on this node"):
                await act(node, action, "nowhere")


# --- after a restart ------------------------------------------------------------------------------


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_s05_a_retried_batch_is_recognised_after_a_restart(tmp_path: Path, kill: bool) -> None:
    """The answer was lost and the node went down; the same batch comes again."""

    now_ms = int(time.time() * 1000)

    def batch(sequence: int, *values: bytes) -> bytes:
        records = [NewRecord(None, value, (), now_ms) for value in values]
        return build_batch(records, producer_id=77, producer_epoch=0, base_sequence=sequence)

    async def send(broker: Broker, *sent: bytes) -> list[tuple[ErrorCode, int]]:
        wire = await WireClient.connect(int(broker.bootstrap_servers.rpartition(":")[2]))
        topic = TopicClient(wire, "kept", 0)
        try:
            if not tmp_path.joinpath("kept-0").exists():
                await topic.create(retention_ms="-1", message_timestamp_type="CreateTime")
            answers = [await topic.produce(each) for each in sent]
            assert await topic.offset() == 5
            return [(ErrorCode(answer.error_code), answer.base_offset) for answer in answers]
        finally:
            await wire.close()

    first, second = batch(0, b"a", b"b"), batch(2, b"c", b"d", b"e")
    with Broker(data=tmp_path) as broker:
        assert asyncio.run(send(broker, first, second)) == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 2)]
        if kill:
            os.kill(broker.pid, signal.SIGKILL)
    with Broker(data=tmp_path) as broker:
        assert asyncio.run(send(broker, second)) == [(ErrorCode.NONE, 2)]
        if kill:  # a snapshot, which a clean stop leaves, holds a producer's last batch alone (as Kafka's does)
            assert asyncio.run(send(broker, first)) == [(ErrorCode.NONE, 0)]
        assert asyncio.run(send(broker, batch(9, b"x"))) == [(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_s06_a_hundred_groups_are_there_after_a_restart(tmp_path: Path, kill: bool) -> None:
    """Offsets, metadata and names; and nothing is said of it on standard error."""

    def group(broker: Broker, number: int) -> Consumer:
        return Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"group-{number}"})

    with Broker(data=tmp_path) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for _ in range(100):
            producer.produce("read", b"x")
        assert producer.flush(30) == 0
        for number in range(100):
            consumer = group(broker, number)
            offset = TopicPartition("read", 0, number, metadata=f"of {number}")
            consumer.commit(offsets=[offset], asynchronous=False)
            consumer.close()
        if kill:
            os.kill(broker.pid, signal.SIGKILL)
    with Broker(data=tmp_path) as broker:
        for number in range(100):
            consumer = group(broker, number)
            (found,) = consumer.committed([TopicPartition("read", 0)], 20)
            assert (found.offset, found.metadata) == (number, f"of {number}")
            if number == 0:
                listed = consumer.list_topics(timeout=20).topics
                assert "read" in listed
            consumer.close()
        assert broker.log() == ""


# --- deletion -------------------------------------------------------------------------------------


async def delete_before(topic: TopicClient, offset: int, name: str | None = None) -> tuple[ErrorCode, int]:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name or topic.topic, partitions=[partition])], timeout_ms=10_000
    )
    answer = (await topic.wire.call(request, 2)).topics[0].partitions[0]
    return ErrorCode(answer.error_code), answer.low_watermark


async def test_s07_records_deleted_into_the_middle_of_a_batch(tmp_path: Path) -> None:
    values = [b"%d" % number for number in range(10)]
    settings = {"cleanup_policy": "compact,delete"}
    async with node_with_topic(tmp_path, **settings) as (node, topic), topic_client(node, "compacted") as compacted:
        await compacted.create(cleanup_policy="compact")
        answer = await topic.produce(build_batch([NewRecord(value, value, (), topic.now_ms) for value in values]))
        assert answer.base_offset == 0
        assert await delete_before(topic, 3) == (ErrorCode.NONE, 3)
        assert await delete_before(topic, 11) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert await delete_before(topic, 5, "__consumer_offsets") in (
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            (ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
        )
        assert await delete_before(compacted, 0) == (ErrorCode.POLICY_VIOLATION, -1)
        assert await topic.read(3) == [(number, b"%d" % number) for number in range(3, 10)]
        assert ErrorCode((await topic.fetch(2)).error_code) is ErrorCode.OFFSET_OUT_OF_RANGE
        assert await topic.write(b"goes on", key=b"new") == 10
        await act(node, "compact", topic.topic)
        assert await topic.offset(EARLIEST) == 3
    async with running_node(on_disk(tmp_path) | WITH_CONTROL) as node, topic_client(node) as topic:
        assert await topic.offset(EARLIEST) == 3
        assert await topic.read() == [(number, b"%d" % number) for number in range(3, 10)] + [(10, b"goes on")]
        await act(node, "compact", topic.topic)
        assert await delete_before(topic, -1) == (ErrorCode.NONE, 11)
        assert await topic.read() == []
        assert await topic.write(b"and on", key=b"new") == 11
        await act(node, "retention", topic.topic)
        assert await topic.read() == [(11, b"and on")]


async def test_s08_with_a_tiny_retention_the_earliest_record_can_always_be_read() -> None:
    settings = {"retention_ms": "1000", "segment_ms": "1000", "file_delete_delay_ms": "0"}
    node_settings = {"log.retention.check.interval.ms": "500"}
    async with running_node(node_settings) as node, topic_client(node) as topic:
        await topic.create(**settings)
        starts = []
        for number in range(60):
            node.clock.move(500)
            topic.now_ms = node.clock.now_ms()
            assert await topic.write(b"%d" % number) == number
            start = await topic.offset(EARLIEST)
            assert await topic.first(start) == (start, b"%d" % start)
            starts.append(start)
        assert starts == sorted(starts)
        assert 50 < starts[-1] <= 59
        # A reader that was away is told, and goes on as its policy says.
        assert ErrorCode((await topic.fetch(0)).error_code) is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_s11_each_cleanup_policy_does_what_it_says() -> None:
    names = {"delete": "delete", "compact": "compact", "both": "compact,delete", "for-ever": "delete"}
    async with running_node(WITH_CONTROL) as node, topic_client(node) as first:
        topics = {}
        for name, policy in names.items():
            topics[name] = TopicClient(first.wire, name, node.clock.now_ms())
            limits = {} if name == "for-ever" else {"retention_ms": "60000"}
            retention = {"retention_ms": "-1", "retention_bytes": "-1"} | limits
            await topics[name].create(cleanup_policy=policy, delete_retention_ms="0", segment_ms="30000", **retention)
            for number in range(4):
                topics[name].now_ms = node.clock.now_ms() + number * 40_000  # a segment each, by the records' clock
                await put(topics[name], b"k%d" % (number % 2), b"%d" % number)
        node.clock.move(150_000)
        for name in names:
            await act(node, "retention", name)
            if "compact" in names[name]:
                await act(node, "compact", name)
        offsets = {name: [offset for offset, _, _ in await kept(topic)] for name, topic in topics.items()}
        assert offsets == {"delete": [3], "compact": [2, 3], "both": [3], "for-ever": [0, 1, 2, 3]}


async def test_s11_retention_by_size_keeps_at_least_that_and_the_newest_segment() -> None:
    settings = {"retention_bytes": "2500000", "retention_ms": "-1", "segment_bytes": MIB}
    async with node_with_topic(**settings) as (node, topic):
        for _ in range(10):
            await topic.write(bytes(500_000))
        upshot = await act(node, "retention", topic.topic)
        assert 2_500_000 <= int(str(upshot["bytes_after"])) < 2_500_000 + 1_048_576 < int(str(upshot["bytes_before"]))
        start = await topic.offset(EARLIEST)
        assert 0 < start < 6
        assert len(await topic.read()) == 10 - start
