"""Clients of the transaction simulation: they speak the protocol as real producers and consumers do.

A client retries where a real one does, with the same sequence or the same request, and gives up where
a real one does. Codes that no honest client may ever see fail the run here (see `NEVER`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.transaction_history import History, Outcome, Partition, Transaction
from tests.simulation.transport import Client, Disconnected, Transport
from wire.errors import ErrorCode
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from wire.messages.end_txn import EndTxnRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from wire.records import NewRecord, batches, build_batch, read_end_transaction_marker

RETRIABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
NEVER = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
BACKOFF_S = 0.05
PATIENCE_S = 180.0


class Fenced(Exception):
    """Another instance has taken over, or the coordinator has aborted: this one is at its end."""


class GaveUp(Exception):
    """The client does not wait for the answer; the request may still be on its way."""


@dataclass(slots=True)
class World:
    """What all clients share."""

    transport: Transport
    random: Random
    history: History = field(default_factory=History)
    trace: list[str] = field(default_factory=list)
    loss: float = 0.02
    """How often a request, or an answer, is lost."""
    pace: float = 1.0
    """How many seconds of the transport a second of the clients takes."""
    late: list[asyncio.Task[None]] = field(default_factory=list)
    """Batches that their producer has given up, and that may still arrive."""
    numbers: Any = field(default_factory=itertools.count)

    def note(self, text: str) -> None:
        """A line of the trace, with the moment."""
        self.trace.append(f"{self.transport.time():10.3f} {text}")

    async def sleep(self, seconds: float) -> None:
        """Wait, in seconds of the clients."""
        await asyncio.sleep(seconds * self.pace)

    def paced_ms(self, timeout_ms: int) -> int:
        """A timeout of the clients as the node is told of it."""
        return round(timeout_ms * self.pace)

    async def insist(
        self,
        client: Client,
        ask: Callable[[], Awaitable[Any]],
        code_of: Callable[[Any], int],
        *,
        attempts: int | None = None,
    ) -> tuple[Any, ErrorCode, bool]:
        """Ask until an answer says something for good: the answer, its code, and whether an answer was
        lost on the way (the request may then have been carried out before). Raises GaveUp after `attempts`
        without an answer."""
        was_lost = False
        answer: Any = None
        began = self.transport.time()
        for attempt in itertools.count(1):
            try:
                answer = await ask()
            except Disconnected:
                was_lost = True
                if attempts is not None and attempt >= attempts:
                    raise GaveUp from None
                await self.transport.is_up.wait()
            else:
                code = ErrorCode(code_of(answer))
                assert code not in NEVER, f"an honest client gets {code.name}: {answer}"
                if code not in RETRIABLE:
                    return answer, code, was_lost
            waited_s = self.transport.time() - began
            assert waited_s < PATIENCE_S, f"NoStuckOffset: for {waited_s:.0f} s nothing better than {answer}"
            await asyncio.sleep(BACKOFF_S * self.random.choice([1, 1, 2, 4]))
        raise AssertionError("unreachable")

    def call(self, client: Client, request: Any, version: int) -> Awaitable[Any]:
        """One attempt, which the network may lose."""
        return client.call(
            request,
            version,
            lose_request=self.random.random() < self.loss,
            lose_answer=self.random.random() < self.loss,
        )


def produce_request(partition: Partition, batch: bytes, transactional_id: str | None) -> ProduceRequest:
    """Produce of one batch with acks=all."""
    data = PartitionProduceData(index=partition[1], records=batch)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=partition[0], partition_data=[data])],
    )


def produce_code(answer: Any) -> int:
    """The one partition's error."""
    return int(answer.responses[0].partition_responses[0].error_code)


class Sender:
    """A producer id with a sequence for each partition."""

    def __init__(self, world: World, transactional_id: str | None) -> None:
        self.world = world
        self.client = world.transport.client()
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequences: dict[Partition, int] = {}

    def become(self, answer: Any) -> None:
        """Go on with the identity of an answer; a new epoch begins its sequences anew."""
        if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.producer_epoch):
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()

    async def init(self, *, timeout_ms: int = 60_000, says_who: bool = False) -> None:
        """InitProducerId. Raises Fenced."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.world.paced_ms(timeout_ms),
            producer_id=self.producer_id if says_who else -1,
            producer_epoch=self.producer_epoch if says_who else -1,
        )
        answer, code, _ = await self.world.insist(
            self.client, lambda: self.world.call(self.client, request, 5), lambda answer: answer.error_code
        )
        if code in FENCED:
            raise Fenced
        assert code is ErrorCode.NONE, code.name
        self.become(answer)

    async def send(
        self, partition: Partition, values: list[bytes], version: int, *, attempts: int | None = None
    ) -> None:
        """Produce a batch, again with the same sequence until it is answered. Raises Fenced,
        GaveUp (the batch is then delivered late, or never)."""
        sequence = self.sequences.get(partition, 0)
        batch = build_batch(
            [NewRecord(key=b"k", value=value, timestamp=self.world.transport.now_ms()) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            is_transactional=self.transactional_id is not None,
        )
        request = produce_request(partition, batch, self.transactional_id)
        try:
            _, code, _ = await self.world.insist(
                self.client, lambda: self.world.call(self.client, request, version), produce_code, attempts=attempts
            )
        except GaveUp:
            if self.world.random.random() < 0.7:
                self.world.late.append(self.world.transport.spawn(self._deliver_late(request, version), "late"))
            raise
        if code in FENCED:
            raise Fenced
        assert code is ErrorCode.NONE, code.name
        self.sequences[partition] = sequence + len(values)

    async def _deliver_late(self, request: ProduceRequest, version: int) -> None:
        await self.world.sleep(self.world.random.choice([0.01, 0.1, 1, 15, 40]))
        try:
            answer = await self.client.call(request, version)
        except Disconnected:
            return
        self.world.note(f"{self.transactional_id}: a late batch got {ErrorCode(produce_code(answer)).name}")


class TransactionalProducer(Sender):
    """One instance of a transactional id; `bumps`: it speaks transaction.version 2."""

    def __init__(self, world: World, transactional_id: str, *, bumps: bool, timeout_ms: int) -> None:
        super().__init__(world, transactional_id)
        self.bumps = bumps
        self.timeout_ms = timeout_ms
        self.name = f"{transactional_id}.{next(world.numbers)}"
        self._added: set[Partition] = set()
        self._count = itertools.count()
        self._may_be_open = False

    async def open(self) -> None:
        """Wait until the id has a coordinator, and take it over."""
        request = FindCoordinatorRequest(coordinator_keys=[str(self.transactional_id)], key_type=1)
        await self.world.insist(
            self.client,
            lambda: self.world.call(self.client, request, 4),
            lambda answer: answer.coordinators[0].error_code,
        )
        await self.init(timeout_ms=self.timeout_ms)

    def begin(self) -> Transaction:
        """A transaction of this instance."""
        self._added.clear()
        self._may_be_open = False
        return self.world.history.begin(f"{self.name}/{next(self._count)}")

    async def write(
        self, transaction: Transaction, partition: Partition, about: list[bytes], attempts: int | None = None
    ) -> None:
        """Send values of a transaction to a partition, each about something (or about nothing)."""
        if not self.bumps and partition not in self._added:
            await self._add(partition)
        values = [transaction.value(partition, each) for each in about]
        self._may_be_open = True
        await self.send(partition, values, 12 if self.bumps else 11, attempts=attempts)

    async def _add(self, partition: Partition) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=str(self.transactional_id),
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=partition[0], partitions=[partition[1]])],
        )
        await self._checked(
            request,
            3,
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )
        self._added.add(partition)
        self._may_be_open = True

    async def commit_offset(self, group: str, partition: Partition, offset: int) -> None:
        """TxnOffsetCommit."""
        if not self.bumps:
            add = AddOffsetsToTxnRequest(
                transactional_id=str(self.transactional_id),
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                group_id=group,
            )
            await self._checked(add, 4, lambda answer: answer.error_code)
        self._may_be_open = True
        request = TxnOffsetCommitRequest(
            transactional_id=str(self.transactional_id),
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=partition[0],
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition[1], committed_offset=offset, committed_metadata=""
                        )
                    ],
                )
            ],
        )
        await self._checked(request, 5 if self.bumps else 4, lambda answer: answer.topics[0].partitions[0].error_code)

    async def _checked(self, request: Any, version: int, code_of: Callable[[Any], int]) -> None:
        _, code, _ = await self.world.insist(
            self.client, lambda: self.world.call(self.client, request, version), code_of
        )
        if code in FENCED:
            raise Fenced
        assert code is ErrorCode.NONE, code.name

    async def end(self, transaction: Transaction, *, commit: bool) -> None:
        """EndTxn; notes how the transaction ended. Raises Fenced."""
        if not self.bumps and not self._may_be_open:
            return
        request = EndTxnRequest(
            transactional_id=str(self.transactional_id),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=commit,
        )
        if commit:
            transaction.outcome = Outcome.UNKNOWN
        answer, code, was_lost = await self.world.insist(
            self.client,
            lambda: self.world.call(self.client, request, 5 if self.bumps else 4),
            lambda answer: answer.error_code,
        )
        if code in FENCED or (code is ErrorCode.INVALID_TXN_STATE and self.bumps):
            # The coordinator aborted it, unless the very first request got through and its answer was lost.
            if not commit or not was_lost:
                transaction.outcome = Outcome.ABORTED
            raise Fenced
        assert code is ErrorCode.NONE, f"{'commit' if commit else 'abort'}: {code.name}"
        transaction.outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        self.world.note(f"{transaction.name} {transaction.outcome.value}")
        if self.bumps:
            self.become(answer)

    async def recover(self) -> None:
        """After an abort with batches in doubt a producer without bumps takes a new epoch, as Kafka's do."""
        if not self.bumps:
            await self.init(timeout_ms=self.timeout_ms, says_who=True)


class CommittedReader:
    """Reads one partition as a consumer with isolation.level=read_committed does."""

    def __init__(self, world: World, partition: Partition, offset: int = 0) -> None:
        self.world = world
        self.client = world.transport.client()
        self.partition = partition
        self.position = offset
        self.last_stable_offset = -1
        self.high_watermark = -1

    async def poll(self, max_bytes: int = 4_000) -> list[tuple[int, bytes]]:
        """Committed records from the position on, by one Fetch; moves the position."""
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=1,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=self.partition[0],
                    partitions=[
                        FetchPartition(
                            partition=self.partition[1],
                            fetch_offset=self.position,
                            partition_max_bytes=max_bytes,
                        )
                    ],
                )
            ],
        )
        answer, code, _ = await self.world.insist(
            self.client,
            lambda: self.world.call(self.client, request, 12),
            lambda answer: answer.responses[0].partitions[0].error_code,
        )
        assert code is ErrorCode.NONE, f"StablePast: {self.partition} was read up to {self.position}: {code.name}"
        found = answer.responses[0].partitions[0]
        self.last_stable_offset, self.high_watermark = found.last_stable_offset, found.high_watermark
        return self._records(found)

    def _records(self, found: Any) -> list[tuple[int, bytes]]:
        """Leave out what was aborted: see CompletedFetch of Kafka's consumer."""
        aborted = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
        skipped: set[int] = set()
        records: list[tuple[int, bytes]] = []
        for batch in batches(found.records or b""):
            while aborted and aborted[0][0] <= batch.last_offset:
                skipped.add(aborted.pop(0)[1])
            if batch.is_control:
                marker = read_end_transaction_marker(batch)
                if marker is not None and not marker.is_commit:
                    skipped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in skipped):
                records += [
                    (record.offset, record.value or b"") for record in batch.records() if record.offset >= self.position
                ]
            self.position = max(self.position, batch.last_offset + 1)
        return records

    async def poll_to_end(self) -> list[tuple[int, bytes]]:
        """All that is committed now."""
        records: list[tuple[int, bytes]] = []
        while True:
            before = self.position
            records += await self.poll(1_000_000)
            if self.position == before:
                return records


async def committed_offset(world: World, client: Client, group: str, partition: Partition) -> int:
    """OffsetFetch with require_stable, until it is stable; 0 where nothing was committed."""
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=[OffsetFetchRequestTopics(name=partition[0], partition_indexes=[partition[1]])],
            )
        ],
        require_stable=True,
    )

    def code_of(answer: Any) -> int:
        (found,) = answer.groups
        return int(found.error_code or found.topics[0].partitions[0].error_code)

    answer, code, _ = await world.insist(client, lambda: world.call(client, request, 9), code_of)
    assert code is ErrorCode.NONE, code.name
    return max(0, int(answer.groups[0].topics[0].partitions[0].committed_offset))
