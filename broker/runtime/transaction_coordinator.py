"""The transaction coordinator of a node: transaction shards over `__transaction_state`, addressed by
transactional id, and the sender of their markers. Source: Kafka's TransactionCoordinator.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from broker.runtime.coordinator_runtime import CoordinatorRuntime
from broker.runtime.marker_sender import MarkerSender, MarkerWriter
from coordinator.record_codec import RecordCodec
from coordinator.transaction.context import TransactionContext, TransactionSettings
from coordinator.transaction.initialization import check_request
from coordinator.transaction.partitions import require_transactional_id, verify
from coordinator.transaction.requests import (
    AbortTimedOut,
    AddPartitions,
    EndTransaction,
    InitTransactionalId,
    ProducerIdNeeded,
    TransactionRequest,
)
from coordinator.transaction.shard import TransactionShard
from wire.errors import ErrorCode, KafkaError
from wire.messages.records import transaction_state
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.clock import Clock
    from broker.replication.replica_manager import LeadershipChange, ReplicaManager
    from coordinator.machine import Ids
    from coordinator.transaction.descriptions import TransactionFilter
    from coordinator.transaction.metadata import ProducerIdentity
    from wire.messages.describe_transactions import TransactionState as DescribedTransaction
    from wire.messages.list_transactions import TransactionState as ListedTransaction

logger = logging.getLogger(__name__)

TRANSACTION_STATE_TOPIC = "__transaction_state"
NO_SEQUENCE = -1
"""Kafka writes the batches of this topic without a sequence."""
WRITE_TIMEOUT_MS = 60_000
"""How long a record may take to be replicated: a producer's default transaction timeout."""


class TransactionCoordinator:
    """Transactional ids whose partitions of `__transaction_state` this node leads.

    To be connected by whoever makes it: `leadership_changed` to the replica manager's listeners.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        *,
        replica_manager: ReplicaManager,
        clock: Clock,
        ids: Ids,
        next_producer_id: Callable[[], Awaitable[int]],
        transaction_version: Callable[[], int],
        marker_writers: Mapping[int, MarkerWriter],
    ) -> None:
        """`transaction_version` is the finalized level of that feature at present; `marker_writers` are
        the ways to brokers, by their ids."""
        self._settings = settings
        self._replica_manager = replica_manager
        self._clock = clock
        self._next_producer_id = next_producer_id
        self._transaction_version = transaction_version
        self._aborting: set[asyncio.Task[None]] = set()
        self._runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            TRANSACTION_STATE_TOPIC,
            replica_manager=replica_manager,
            clock=clock,
            codec=RecordCodec(transaction_state),
            ids=ids,
            make_machine=lambda: TransactionShard(settings),
            make_context=self._context,
            write_timeout_ms=lambda: WRITE_TIMEOUT_MS,
            base_sequence=NO_SEQUENCE,
            changed=self._see_to,
        )
        self._markers = MarkerSender(
            clock=clock,
            image=lambda: replica_manager.image,
            writers=marker_writers,
            coordinator_epoch=self._coordinator_epoch,
            complete=self._write_to,
        )

    def leadership_changed(self, change: LeadershipChange) -> None:
        """See CoordinatorRuntime.leadership_changed."""
        topic, partition = change.topic_partition
        if topic == TRANSACTION_STATE_TOPIC and not change.is_leader:
            self._markers.forget(partition)
        self._runtime.leadership_changed(change)

    async def close(self) -> None:
        """The node stops: waiting requests get COORDINATOR_NOT_AVAILABLE, markers are written later."""
        for task in self._aborting:
            task.cancel()
        self._runtime.close()
        await self._markers.close()

    # --- requests ------------------------------------------------------------------------------

    async def init_producer_id(self, request: InitTransactionalId) -> ProducerIdentity:
        """InitProducerId with a transactional id. Raises KafkaError."""
        check_request(request, self._settings)
        identity: ProducerIdentity = await self._write(request)
        return identity

    async def add_partitions(self, request: AddPartitions) -> None:
        """Add partitions to the transaction of a producer. Raises KafkaError."""
        require_transactional_id(request.transactional_id)
        await self._write(request)

    async def end_transaction(self, request: EndTransaction) -> ProducerIdentity:
        """EndTxn; returns with what the producer goes on. Raises KafkaError."""
        require_transactional_id(request.transactional_id)
        identity: ProducerIdentity = await self._write(request)
        return identity

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether each partition belongs to the producer's open transaction. Raises KafkaError for all."""
        require_transactional_id(transactional_id)
        metadata = self._runtime.read(
            self._runtime.partition_for(transactional_id), lambda shard: shard.metadata(transactional_id)
        )
        return verify(metadata, transactional_id, producer_id, producer_epoch, partitions)

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """All that is told of an id. Raises INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, and what every
        request to a coordinator may get."""
        require_transactional_id(transactional_id)
        metadata = self._runtime.read(
            self._runtime.partition_for(transactional_id), lambda shard: shard.metadata(transactional_id)
        )
        from coordinator.transaction.descriptions import describe_transaction

        if metadata is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"transactional id '{transactional_id}' is not known here"
            )
        return describe_transaction(metadata)

    def list(self, wanted: TransactionFilter) -> list[ListedTransaction]:
        """The ids coordinated here that pass the filter. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        from coordinator.transaction.descriptions import list_transactions

        now_ms = self._clock.now_ms()
        return [
            listed
            for _, shard in self._runtime.machines()
            for listed in list_transactions(shard.transactions(), wanted, now_ms)
        ]

    async def _write(self, request: TransactionRequest) -> Any:
        """Have the id's machine decide, with a fresh producer id if it needs one."""
        partition = self._runtime.partition_for(request.transactional_id)
        while True:
            try:
                return await self._write_to(partition, request)
            except ProducerIdNeeded:
                # Nothing has happened yet; the id is for the repeated request, and lost if that fails.
                producer_id = await self._next_producer_id()
                assert isinstance(request, InitTransactionalId | EndTransaction | AbortTimedOut)
                request = request._replace(fresh_producer_id=producer_id)

    async def _write_to(self, partition: int, request: TransactionRequest) -> Any:
        return await self._runtime.write(partition, request, self._context())

    def _context(self) -> TransactionContext:
        return TransactionContext(self._settings, self._transaction_version())

    # --- markers -------------------------------------------------------------------------------

    def _see_to(self, partition: int, shard: TransactionShard) -> None:
        """What a shard hands out."""
        for metadata in shard.take_ending():
            self._markers.send(partition, metadata)
        for transactional_id in shard.take_exhausted():
            task = self._clock.loop.create_task(self._abort_timed_out(transactional_id))
            self._aborting.add(task)
            task.add_done_callback(self._aborting.discard)

    async def _abort_timed_out(self, transactional_id: str) -> None:
        try:
            await self._write(AbortTimedOut(transactional_id))
        except KafkaError as error:
            logger.warning("the transaction of '%s' has timed out and stays open for now: %s", transactional_id, error)

    def _coordinator_epoch(self, partition: int) -> int:
        return self._replica_manager.partition(TopicPartition(TRANSACTION_STATE_TOPIC, partition)).leader_epoch
