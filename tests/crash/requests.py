"""The requests that the writers and readers of this folder make, and how they read answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from odradek.cli.consume import readable
from tests.crash.connection import Connection
from wire.errors import ErrorCode
from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.records import Record

GROUP, TRANSACTION = 0, 1
EARLIEST = -2
SETTLE_TIMEOUT_S = 60.0
BUSY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
"""What a node that has just started may answer for a moment."""


class Broken(AssertionError):
    """Something that was promised did not hold."""


async def settled(ask: Callable[[], Awaitable[tuple[int, Any]]], what: str) -> Any:
    """Ask (for a code and a value) until the node is not busy; raises Broken for another error."""
    async with asyncio.timeout(SETTLE_TIMEOUT_S):
        while True:
            code, value = await ask()
            if code == ErrorCode.NONE:
                return value
            if code not in BUSY:
                raise Broken(f"{what}: {ErrorCode(code).name}")
            await asyncio.sleep(0.02)


async def find_coordinator(connection: Connection, key: str, kind: int) -> None:
    """Make the coordinator's topic, and wait until it is there."""

    async def ask() -> tuple[int, Any]:
        response = await connection.call(FindCoordinatorRequest(key=key, key_type=kind), 3)
        return response.error_code, None

    await settled(ask, f"FindCoordinator of {key}")


async def create_topic(connection: Connection, name: str, partitions: int, **settings: str) -> int:
    """The error code of making a topic."""
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    response = await connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    return int(response.topics[0].error_code)


async def init_producer_id(connection: Connection, transactional_id: str | None = None) -> tuple[int, int]:
    """A producer's id and epoch."""

    async def ask() -> tuple[int, Any]:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        response = await connection.call(request, 4)
        return response.error_code, (response.producer_id, response.producer_epoch)

    found: tuple[int, int] = await settled(ask, f"InitProducerId of {transactional_id}")
    return found


def produce_request(topic: str, partition: int, batch: bytes, transactional_id: str | None = None) -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=[data])


PRODUCE_VERSION = 9


async def records_of(connection: Connection, topic: str, partition: int, *, committed: bool = False) -> list[Record]:
    """Every record from the log's start to its end; with `committed`, once no transaction is open, those that hold."""
    position = await offset_at(connection, topic, partition, EARLIEST)
    found: list[Record] = []
    deadline = asyncio.get_running_loop().time() + SETTLE_TIMEOUT_S
    while True:
        data = await fetched(connection, topic, partition, position, committed=committed)
        records, next_offset = readable(data, position)
        found += records
        if next_offset == position and (not committed or data.last_stable_offset == data.high_watermark):
            if position != data.high_watermark:
                raise Broken(f"{topic}-{partition} cannot be read from {position} to {data.high_watermark}")
            return found
        if asyncio.get_running_loop().time() > deadline:
            raise Broken(f"{topic}-{partition} has a transaction that does not end, at {data.last_stable_offset}")
        position = next_offset


async def fetched(connection: Connection, topic: str, partition: int, offset: int, *, committed: bool) -> Any:
    async def ask() -> tuple[int, Any]:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=4 << 20)
        request = FetchRequest(
            max_wait_ms=20,
            min_bytes=1,
            max_bytes=16 << 20,
            isolation_level=int(committed),
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        response = await connection.call(request, 11)
        data = response.responses[0].partitions[0]
        return data.error_code, data

    return await settled(ask, f"Fetch of {topic}-{partition} at {offset}")


async def offset_at(connection: Connection, topic: str, partition: int, timestamp: int) -> int:
    async def ask() -> tuple[int, Any]:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
        response = await connection.call(request, 5)
        answer = response.topics[0].partitions[0]
        return answer.error_code, answer.offset

    return int(await settled(ask, f"ListOffsets of {topic}-{partition}"))


def numbered(records: list[Record]) -> Iterator[tuple[int, int]]:
    """(offset, number) of records whose value begins with a number of ten digits."""
    for record in records:
        assert record.value is not None
        yield record.offset, int(record.value[:10])
