"""Log directories that fail under a running node (J25), and disks without room: over files that fail when told to."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.config import BrokerConfig
from broker.server import Server
from broker.storage.faulty_files import Fault, FaultyFiles
from tests.broker.disk_node import TOPIC, TopicClient, topic_client
from tests.broker.network.network_fixture import eventually
from tests.broker.node_fixture import DEFAULT_SETTINGS, RunningNode
from wire.errors import ErrorCode
from wire.messages.describe_log_dirs import DescribeLogDirsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from wire.primitives import TopicPartition
from wire.records import NewRecord, build_batch

META, ONE, TWO = "/meta", "/one", "/two"
PARTITIONS = 4


@asynccontextmanager
async def node_over(files: FaultyFiles, *directories: str, **settings: str) -> AsyncIterator[RunningNode]:
    """A node that keeps its files in `files`; it may fail, and is stopped all the same."""
    config = BrokerConfig(
        {
            **DEFAULT_SETTINGS,
            "odradek.memory": "false",
            "log.dirs": ",".join(directories),
            "metadata.log.dir": META,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    server = Server(config, files=files)
    try:
        await server.start()
        yield RunningNode(server)
    finally:
        await server.stop()


def directory_of(node: RunningNode, partition: int) -> str:
    return str(node.server.node.log_manager.directory_of(TopicPartition(TOPIC, partition)))


async def error_of_write(topic: TopicClient, partition: int, value: bytes = b"x") -> ErrorCode:
    answer = await topic.produce(build_batch([NewRecord(None, value, (), topic.now_ms)]), partition)
    return ErrorCode(answer.error_code)


async def write_everywhere(topic: TopicClient) -> None:
    await topic.create(PARTITIONS)
    for partition in range(PARTITIONS):
        await topic.write(b"before", partition=partition)


# --- one of two directories -----------------------------------------------------------------------


async def test_j25_a_failed_directory_takes_its_partitions_offline_and_no_others() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE, TWO) as node, topic_client(node) as topic:
        await write_everywhere(topic)
        failing = [partition for partition in range(PARTITIONS) if directory_of(node, partition) == ONE]
        assert 0 < len(failing) < PARTITIONS
        files.fail("append", ONE)
        assert await error_of_write(topic, failing[0]) is ErrorCode.KAFKA_STORAGE_ERROR
        files.heal()  # The disk is back, the directory stays offline: nobody knows what it lost.
        for partition in range(PARTITIONS):
            expected = ErrorCode.KAFKA_STORAGE_ERROR if partition in failing else ErrorCode.NONE
            assert await error_of_write(topic, partition) is expected
            assert ErrorCode((await topic.fetch(partition=partition)).error_code) is expected
        assert node.server.failure is None


async def test_j25_the_controller_and_clients_hear_of_a_failed_directory() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE, TWO) as node, topic_client(node) as topic:
        await write_everywhere(topic)
        failing = {partition for partition in range(PARTITIONS) if directory_of(node, partition) == ONE}
        files.fail("append", ONE)
        await error_of_write(topic, min(failing))

        async def offline() -> set[int]:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
            (answer,) = (await topic.wire.call(request, 12)).topics
            return {p.partition_index for p in answer.partitions if p.leader_id == -1 and p.offline_replicas == [1]}

        async with asyncio.timeout(10):
            while await offline() != failing:
                pass  # asking takes a turn of the loop
        results = (await topic.wire.call(DescribeLogDirsRequest(topics=None), 4)).results
        assert {result.log_dir: ErrorCode(result.error_code) for result in results} == {
            ONE: ErrorCode.KAFKA_STORAGE_ERROR,
            TWO: ErrorCode.NONE,
        }


async def test_j25_new_partitions_go_where_there_is_a_directory() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE, TWO) as node, topic_client(node) as topic, topic_client(node, "new") as new:
        await write_everywhere(topic)
        files.fail("append", ONE)
        failing = min(partition for partition in range(PARTITIONS) if directory_of(node, partition) == ONE)
        await error_of_write(topic, failing)
        await new.create(3)
        for partition in range(3):
            assert await error_of_write(new, partition) is ErrorCode.NONE


async def test_only_the_directory_that_works_is_left_cleanly_and_both_come_back() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE, TWO) as node, topic_client(node) as topic:
        await write_everywhere(topic)
        failing = {partition for partition in range(PARTITIONS) if directory_of(node, partition) == ONE}
        files.fail("append", f"{ONE}/{TOPIC}")
        await error_of_write(topic, min(failing))
        files.heal()
    assert not files.content.exists(f"{ONE}/.kafka_cleanshutdown")
    assert files.content.exists(f"{TWO}/.kafka_cleanshutdown")
    async with node_over(files, ONE, TWO) as node, topic_client(node) as topic:
        for partition in range(PARTITIONS):
            assert await topic.read(partition=partition) == [(0, b"before")]
            assert await topic.write(b"after", partition=partition) == 1


async def test_a_directory_that_is_dead_from_the_start_leaves_its_partitions_offline() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE, TWO) as node, topic_client(node) as topic:
        await write_everywhere(topic)
        failing = {partition for partition in range(PARTITIONS) if directory_of(node, partition) == ONE}
    for call in ("list", "read", "append", "open"):
        files.fail(call, ONE)
    async with node_over(files, ONE, TWO) as node, topic_client(node) as topic:
        for partition in range(PARTITIONS):
            if partition not in failing:
                assert await topic.read(partition=partition) == [(0, b"before")]
            else:
                assert await error_of_write(topic, partition) in (
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,
                )
        assert node.server.failure is None


# --- the last one, and that of the metadata -------------------------------------------------------


async def test_j25_the_last_directory_stops_the_node() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE) as node, topic_client(node) as topic:
        await topic.create()
        await topic.write(b"before")
        files.fail("append", ONE)
        assert await error_of_write(topic, 0) is ErrorCode.KAFKA_STORAGE_ERROR
        await asyncio.wait_for(node.server.failed.wait(), 5)
        assert node.server.failure is not None
        said = str(node.server.failure.message)
        for words in (ONE, "no other of log.dirs is left", "Input/output error"):
            assert words in said


async def test_j25_a_metadata_log_that_cannot_be_synced_stops_the_node() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE) as node, topic_client(node) as topic:
        await topic.create()
        files.fail("sync", META)
        async with topic_client(node, "another") as another:
            with pytest.raises((AssertionError, asyncio.IncompleteReadError)):
                await another.create()
        await asyncio.wait_for(node.server.failed.wait(), 5)


@pytest.mark.parametrize("call", ["sync", "sync_directory"])
async def test_a_sync_that_fails_takes_the_directory_offline(call: str) -> None:
    """What the device did not take may be gone from memory too: no retry can bring it back."""
    files = FaultyFiles()
    async with node_over(files, ONE, TWO) as node, topic_client(node) as topic:
        await topic.create(PARTITIONS, flush_messages="2")
        for partition in range(PARTITIONS):
            await topic.write(b"first", partition=partition)
        failing = min(partition for partition in range(PARTITIONS) if directory_of(node, partition) == ONE)
        files.fail(call, f"{ONE}/{TOPIC}")
        assert await error_of_write(topic, failing) is ErrorCode.KAFKA_STORAGE_ERROR
        files.heal()
        assert await error_of_write(topic, failing) is ErrorCode.KAFKA_STORAGE_ERROR
        assert node.server.failure is None


async def test_a_failed_sync_of_sealed_segments_is_noticed_at_its_interval() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE) as node, topic_client(node) as topic:
        await topic.create(segment_bytes=str(1024 * 1024))
        for _ in range(4):
            await topic.write(bytes(400_000))
        files.fail("sync", f"{ONE}/{TOPIC}")
        node.clock.move(60_000)
        await asyncio.wait_for(node.server.failed.wait(), 10)


# --- no room --------------------------------------------------------------------------------------

NO_ROOM = Fault("error", written=7, error_number=errno.ENOSPC)


async def test_a_full_disk_refuses_appends_and_keeps_what_is_there() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE) as node, topic_client(node) as topic:
        await topic.create()
        await topic.write(b"before")
        files.fail("append", f"{TOPIC}-0/", NO_ROOM)
        for _ in range(3):
            assert await error_of_write(topic, 0) is ErrorCode.KAFKA_STORAGE_ERROR
        assert await topic.read() == [(0, b"before")]
        files.heal()
        assert await topic.write(b"after") == 1
        assert await topic.read() == [(0, b"before"), (1, b"after")]
        assert node.server.failure is None
    async with node_over(files, ONE) as node, topic_client(node) as topic:
        assert await topic.read() == [(0, b"before"), (1, b"after")]


async def test_a_full_disk_does_not_let_checkpoints_stop_the_node() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE) as node, topic_client(node) as topic:
        await topic.create()
        await topic.write(b"before")
        files.fail("append", "checkpoint", NO_ROOM)
        for _ in range(3):
            node.clock.move(120_000)
            assert await topic.read() == [(0, b"before")]
        assert node.server.failure is None
        files.heal()
        node.clock.move(120_000)
        await topic.read()
        node.clock.move(120_000)
        await eventually(
            lambda: f"{TOPIC} 0 1" in files.content.read(f"{ONE}/replication-offset-checkpoint").decode(),
            "the high watermark is noted once there is room",
        )


async def test_a_topic_that_cannot_be_recorded_is_refused_and_can_be_made_later() -> None:
    files = FaultyFiles()
    async with node_over(files, ONE) as node, topic_client(node, "another") as another, topic_client(node) as topic:
        await topic.create()
        files.fail("append", f"{META}/__cluster_metadata-0/", NO_ROOM)
        with pytest.raises(AssertionError):
            await another.create()
        files.heal()
        await another.create()
        assert await another.write(b"x") == 0
        assert node.server.failure is None


async def test_a_kept_offset_is_not_acknowledged_without_room() -> None:
    """What a coordinator cannot write it does not confirm."""
    files = FaultyFiles()
    settings = {"offsets.topic.num.partitions": "1"}
    async with node_over(files, ONE, **settings) as node, topic_client(node) as topic:
        await topic.create()
        await topic.wire.call(FindCoordinatorRequest(key="g"), 2)

        async def commit(offset: int) -> ErrorCode:
            partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
            request = OffsetCommitRequest(
                group_id="g", topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
            )
            return ErrorCode((await topic.wire.call(request, 8)).topics[0].partitions[0].error_code)

        async with asyncio.timeout(10):
            while await commit(1):
                pass  # the coordinator loads
        files.fail("append", "__consumer_offsets-0/", NO_ROOM)
        assert await commit(2) is ErrorCode.NOT_COORDINATOR
        files.heal()
        assert await commit(3) is ErrorCode.NONE
