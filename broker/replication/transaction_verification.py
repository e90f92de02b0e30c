"""Before a transaction's first batch on a partition is appended, its coordinator says that the transaction is real.

The leader holds a guard per partition while it asks; a newer Produce makes the coordinator add the partition
instead of only looking for it. Source: KIP-890; Kafka's `AddPartitionsToTxnManager`,
`ReplicaManager.maybeSendPartitionsToTransactionCoordinator`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.replication.replica_manager import ReplicaManager
    from broker.storage.producer_state import VerificationGuard

CONCURRENT_RETRY_MS = 20
CONCURRENT_RETRY_TOTAL_MS = 100

_RETRIABLE_FOR_EVERY_CLIENT = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class TransactionSupport(IntEnum):
    """What the version of a producer's request lets it understand (`TransactionSupportedOperation`)."""

    DEFAULT = 0
    """Produce below v11, TxnOffsetCommit below v4."""
    ABORTABLE_ERROR = 1
    """Knows TRANSACTION_ABORTABLE: Produce v11, TxnOffsetCommit v4."""
    IMPLICIT_ADD = 2
    """Adds the partition to the transaction: Produce from v12, TxnOffsetCommit from v5 (transaction.version 2)."""


class TransactionVerifier(Protocol):
    """Asks the coordinator of a transactional id (AddPartitionsToTxn v4+)."""

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """The coordinator's word on each partition: `adds` puts them into the transaction, else it only looks.
        A coordinator that cannot be asked is an error code for each, never raised."""


class TransactionalBatch(NamedTuple):
    """What verification needs to know of a batch."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


@dataclass(slots=True)
class Verified:
    """Guards to append with (None: the transaction is open already), and what was refused."""

    guards: dict[TopicPartition, VerificationGuard | None] = field(default_factory=dict)
    refused: dict[TopicPartition, KafkaError] = field(default_factory=dict)


def producer_error(error: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """What a producer is told about the coordinator's error (D18)."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error in _RETRIABLE_FOR_EVERY_CLIENT:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error == ErrorCode.CONCURRENT_TRANSACTIONS and support < TransactionSupport.IMPLICIT_ADD:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error == ErrorCode.TRANSACTION_ABORTABLE and support < TransactionSupport.ABORTABLE_ERROR:
        return ErrorCode.INVALID_TXN_STATE
    return error


async def verify_transaction(
    replicas: ReplicaManager,
    transactional_id: str,
    batches: Mapping[TopicPartition, TransactionalBatch],
    *,
    support: TransactionSupport,
    timeout_ms: int,
) -> Verified:
    """Start verification of every batch whose transaction is not open here, and ask the coordinator once for all."""
    verified = Verified()
    adds = support >= TransactionSupport.IMPLICIT_ADD
    to_ask: list[TopicPartition] = []
    for topic_partition, batch in batches.items():
        try:
            partition = replicas.partition(topic_partition)
            partition.require_leader()
            guard = partition.log.start_verification(
                batch.producer_id,
                batch.base_sequence,
                batch.producer_epoch,
                supports_epoch_bump=adds,
                now_ms=replicas.clock.now_ms(),
            )
        except KafkaError as error:
            verified.refused[topic_partition] = error
            continue
        verified.guards[topic_partition] = guard
        if guard is not None:
            to_ask.append(topic_partition)
    if to_ask and (adds or replicas.verifies_transactions):
        any_batch = batches[to_ask[0]]
        answers = await _ask(replicas, transactional_id, any_batch, to_ask, adds=adds, timeout_ms=timeout_ms)
        for topic_partition in to_ask:
            code = producer_error(answers.get(topic_partition, ErrorCode.COORDINATOR_NOT_AVAILABLE), support)
            if code:
                verified.refused[topic_partition] = KafkaError(
                    code, f"the coordinator of transactional id '{transactional_id}' did not confirm {topic_partition}"
                )
    return verified


async def _ask(
    replicas: ReplicaManager,
    transactional_id: str,
    batch: TransactionalBatch,
    partitions: list[TopicPartition],
    *,
    adds: bool,
    timeout_ms: int,
) -> dict[TopicPartition, ErrorCode]:
    """Ask; while a transaction that is just ending stands in the way, ask again for a moment (D19)."""
    verifier = replicas.transaction_verifier
    if verifier is None:
        return {}
    deadline_ms = replicas.clock.monotonic_ms() + min(CONCURRENT_RETRY_TOTAL_MS, timeout_ms)
    answers: dict[TopicPartition, ErrorCode] = {}
    pending = partitions
    while True:
        answers.update(
            await verifier.verify(transactional_id, batch.producer_id, batch.producer_epoch, pending, adds=adds)
        )
        pending = [tp for tp in pending if answers.get(tp) == ErrorCode.CONCURRENT_TRANSACTIONS]
        if not adds or not pending or replicas.clock.monotonic_ms() + CONCURRENT_RETRY_MS > deadline_ms:
            return answers
        await replicas.clock.sleep(CONCURRENT_RETRY_MS)
