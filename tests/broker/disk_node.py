"""A node on disk and one partition of it, as tests of what survives see them.

async with running_node(on_disk(tmp_path)) as node, topic_client(node) as topic:
    await topic.write(b"one", b"two")
    assert await topic.read() == [(0, b"one"), (1, b"two")]
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.broker.handlers.wire_client import WireClient
from tests.broker.node_fixture import RunningNode
from wire.errors import ErrorCode
from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from wire.records import NewRecord, batches, build_batch

TOPIC = "kept"
EARLIEST, LATEST = -2, -1


def on_disk(*directories: Path, **settings: str) -> dict[str, str]:
    """Settings of a node over these log directories."""
    return {
        "odradek.memory": "false",
        "log.dirs": ",".join(map(str, directories)),
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


class TopicClient:
    """Writes to and reads from the partitions of one topic."""

    def __init__(self, wire: WireClient, topic: str, now_ms: int) -> None:
        self.wire = wire
        self.topic = topic
        self.now_ms = now_ms

    async def create(self, partitions: int = 1, **settings: str) -> None:
        configs = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in settings.items()]
        wanted = CreatableTopic(name=self.topic, num_partitions=partitions, replication_factor=1, configs=configs)
        (result,) = (await self.wire.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)).topics
        assert result.error_code == 0, result.error_message

    async def produce(self, batch: bytes, partition: int = 0) -> PartitionProduceResponse:
        """The answer to one batch, acks=all."""
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=self.topic, partition_data=[data])]
        )
        response = await self.wire.call(request, 9)
        return response.responses[0].partition_responses[0]

    async def write(self, *values: bytes, partition: int = 0, key: bytes | None = None) -> int:
        """The first offset of a batch of these values."""
        records = [NewRecord(key, value, (), self.now_ms) for value in values]
        answer = await self.produce(build_batch(records), partition)
        assert ErrorCode(answer.error_code) is ErrorCode.NONE, answer.error_message
        return int(answer.base_offset)

    async def fetch(
        self, offset: int = 0, partition: int = 0, *, isolation: int = 0, max_bytes: int = 1 << 20
    ) -> PartitionData:
        """The answer for one partition, at once."""
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 24,
            isolation_level=isolation,
            topics=[FetchTopic(topic=self.topic, partitions=[wanted])],
        )
        return (await self.wire.call(request, 11)).responses[0].partitions[0]

    async def read(self, offset: int | None = None, partition: int = 0) -> list[tuple[int, bytes | None]]:
        """(offset, value) of every record from an offset (the beginning) to the end."""
        found: list[tuple[int, bytes | None]] = []
        position = await self.offset(EARLIEST, partition) if offset is None else offset
        while True:
            data = await self.fetch(position, partition)
            assert ErrorCode(data.error_code) is ErrorCode.NONE
            views = list(batches(bytes(data.records or b"")))
            if not views:
                return found
            for batch in views:
                assert batch.has_valid_crc()
                found += [(record.offset, record.value) for record in batch.records() if record.offset >= position]
                position = batch.next_offset

    async def first(self, offset: int, partition: int = 0) -> tuple[int, bytes | None]:
        """The record at an offset."""
        data = await self.fetch(offset, partition, max_bytes=1)
        assert ErrorCode(data.error_code) is ErrorCode.NONE
        batch = next(iter(batches(bytes(data.records or b""))))
        return next((record.offset, record.value) for record in batch.records() if record.offset >= offset)

    async def offset(self, timestamp: int = LATEST, partition: int = 0) -> int:
        """An offset by time, EARLIEST or LATEST."""
        wanted = ListOffsetsTopic(
            name=self.topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=timestamp)]
        )
        response = await self.wire.call(ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[wanted]), 7)
        answer = response.topics[0].partitions[0]
        assert ErrorCode(answer.error_code) is ErrorCode.NONE
        return int(answer.offset)


@asynccontextmanager
async def topic_client(node: RunningNode, topic: str = TOPIC) -> AsyncIterator[TopicClient]:
    """A client of a topic, which need not exist yet."""
    wire = await WireClient.connect(node.port)
    try:
        yield TopicClient(wire, topic, node.clock.now_ms())
    finally:
        await wire.close()


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, by its path in it."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def as_after_a_kill(*directories: Path) -> None:
    """Take away what only a clean stop leaves."""
    for directory in directories:
        (directory / ".kafka_cleanshutdown").unlink(missing_ok=True)


def flip_bit(path: Path, position: int) -> None:
    """Change one bit of a file; a negative position counts from its end."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


def batch_positions(path: Path) -> list[int]:
    """Where the batches of a segment file begin."""
    content, position, found = path.read_bytes(), 0, []
    while position + 12 <= len(content):
        found.append(position)
        position += 12 + struct.unpack_from(">i", content, position + 8)[0]
    return found
