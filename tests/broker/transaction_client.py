"""A transactional producer by hand against a node in this process, request by request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.broker.message_client import MessageClient
from tests.broker.node_fixture import RunningNode
from wire.errors import ErrorCode
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.describe_transactions import DescribeTransactionsRequest
from wire.messages.end_txn import EndTxnRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from wire.records import NewRecord, batches, build_batch

ATTEMPTS_MAX = 20_000
"""Against hanging only."""
BUSY = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)


async def until_done(ask: Callable[[], Awaitable[Any]], code_of: Callable[[Any], int]) -> Any:
    """Ask until the answer is not one that passes by itself."""
    return await until(ask, lambda answer: code_of(answer) not in BUSY)


async def until(ask: Callable[[], Awaitable[Any]], done: Callable[[Any], bool]) -> Any:
    """Ask until the answer will do."""
    answer = None
    for _ in range(ATTEMPTS_MAX):
        answer = await ask()
        if done(answer):
            return answer
        await asyncio.sleep(0.001)
    raise AssertionError(f"still {answer}")


class TransactionClient:
    """One producer and, for looking, a reader."""

    def __init__(self, node: RunningNode, transactional_id: str | None = "x") -> None:
        self.client = MessageClient(node.server.node.dispatcher)
        self.clock = node.clock
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    async def call(self, request: Any, version: int | None = None) -> Any:
        """One request, as it is."""
        return await self.client.call(request, version)

    async def create_topic(self, name: str = "t", partitions: int = 1) -> None:
        """Make a topic."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer = await self.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert answer.topics[0].error_code == 0, answer

    # --- producing ----------------------------------------------------------------------------

    async def init(self, version: int = 5, *, raw: bool = False, **fields: Any) -> Any:
        """InitProducerId, again until the id is free (once, if `raw`); takes the identity over."""
        if self.transactional_id is not None:
            await self.call(FindCoordinatorRequest(coordinator_keys=[self.transactional_id], key_type=1), 4)
        request = InitProducerIdRequest(
            **{"transactional_id": self.transactional_id, "transaction_timeout_ms": 60_000, **fields}
        )
        answer = (
            await self.call(request, version)
            if raw
            else await until_done(lambda: self.call(request, version), lambda answer: answer.error_code)
        )
        if answer.error_code == 0:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer

    @property
    def identity(self) -> dict[str, Any]:
        """Fields of most requests."""
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }

    async def add(self, topic: str = "t", *partitions: int, version: int = 3) -> ErrorCode:
        """AddPartitionsToTxn, again while the last transaction still ends; the first partition's code."""
        request = AddPartitionsToTxnRequest(
            **{f"v3_and_below_{name}": value for name, value in self.identity.items()},
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or (0,)))],
        )

        def code_of(answer: Any) -> int:
            return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

        return ErrorCode(code_of(await until_done(lambda: self.call(request, version), code_of)))

    async def send(
        self, *values: bytes, topic: str = "t", partition: int = 0, version: int = 11, **fields: Any
    ) -> ErrorCode:
        """Produce of one batch; its code."""
        key = (topic, partition)
        batch = build_batch(
            # Of today: a marker, which is, would otherwise begin a segment, and a Fetch reads only one.
            [NewRecord(key=None, value=value, timestamp=self.clock.now_ms()) for value in values],
            **{
                "producer_id": self.producer_id,
                "producer_epoch": self.producer_epoch,
                "base_sequence": self.sequences.get(key, 0) if self.producer_id >= 0 else -1,
                "is_transactional": self.transactional_id is not None,
                **fields,
            },
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        request = ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=5_000, topic_data=[data])

        def code_of(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        code = ErrorCode(code_of(await until_done(lambda: self.call(request, version), code_of)))
        if code is ErrorCode.NONE:
            self.sequences[key] = self.sequences.get(key, 0) + len(values)
        return code

    async def end(self, *, commit: bool = True, version: int = 4, **fields: Any) -> Any:
        """EndTxn, again until it is answered; v5 gives the identity to go on with."""
        request = EndTxnRequest(**{**self.identity, "committed": commit, **fields})
        answer = await until_done(lambda: self.call(request, version), lambda answer: answer.error_code)
        if version >= 5 and answer.error_code == 0:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer

    async def transact(self, *values: bytes, commit: bool = True, version: int = 5, **where: Any) -> None:
        """A whole transaction of either protocol (by the version of EndTxn)."""
        if version < 5:
            assert await self.add(where.get("topic", "t"), where.get("partition", 0)) == 0
        assert await self.send(*values, version=12 if version >= 5 else 11, **where) == 0
        assert (await self.end(commit=commit, version=version)).error_code == 0

    async def add_offsets(self, group: str = "g", version: int = 3) -> ErrorCode:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(**self.identity, group_id=group)
        answer = await until_done(lambda: self.call(request, version), lambda answer: answer.error_code)
        return ErrorCode(answer.error_code)

    async def commit_offset(self, offset: int, group: str = "g", topic: str = "t", version: int = 3) -> ErrorCode:
        """TxnOffsetCommit of partition 0, once the group has a coordinator."""
        await self.call(FindCoordinatorRequest(coordinator_keys=[group], key_type=0), 4)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            **self.identity,
            group_id=group,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )

        def code_of(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        return ErrorCode(code_of(await until_done(lambda: self.call(request, version), code_of)))

    # --- looking ------------------------------------------------------------------------------

    async def fetch(self, topic: str = "t", partition: int = 0, *, offset: int = 0, isolation: int = 1) -> Any:
        """The one partition of a Fetch v12's answer."""
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1_000_000)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        return (await self.call(request, 12)).responses[0].partitions[0]

    async def values(self, topic: str = "t", partition: int = 0, *, isolation: int = 1) -> list[bytes]:
        """What a consumer sees: without markers, and without what was aborted."""
        found = await self.fetch(topic, partition, isolation=isolation)
        aborted = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
        skipped: set[int] = set()
        values: list[bytes] = []
        for batch in batches(found.records or b""):
            while aborted and aborted[0][0] <= batch.last_offset:
                skipped.add(aborted.pop(0)[1])
            if batch.is_control:
                skipped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in skipped):
                values += [record.value or b"" for record in batch.records()]
        return values

    async def end_offset(self, topic: str = "t", partition: int = 0, *, isolation: int = 1) -> int:
        """ListOffsets latest: the last stable offset, or the high watermark."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=-1, current_leader_epoch=-1)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        )
        return int((await self.call(request, 7)).topics[0].partitions[0].offset)

    async def stable(self, end: int, topic: str = "t", partition: int = 0) -> None:
        """Wait until the last stable offset has come to `end`."""
        await until(lambda: self.end_offset(topic, partition), lambda offset: offset >= end)

    async def describe(self) -> Any:
        """DescribeTransactions of the id."""
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id or ""])
        return (await self.call(request, 0)).transaction_states[0]

    async def committed(self, group: str = "g", topic: str = "t", *, stable: bool) -> tuple[int, ErrorCode]:
        """OffsetFetch v9 of partition 0: offset and code."""
        wanted = OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
        )
        answer = await self.call(OffsetFetchRequest(groups=[wanted], require_stable=stable), 9)
        (group_answer,) = answer.groups
        assert group_answer.error_code == 0, group_answer
        found = group_answer.topics[0].partitions[0]
        return found.committed_offset, ErrorCode(found.error_code)
