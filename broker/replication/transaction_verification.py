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
    """Have the coordinator confirm every batch whose transaction is not open here, asking once for all.

    While the last transaction stands in the way of adding, as its markers are still being written, it is
    asked again for a moment (D19). Each time a verification begins anew: a marker ends those before it.
    """
    verified = Verified()
    adds = support >= TransactionSupport.IMPLICIT_ADD
    clock, settings = replicas.clock, replicas.transaction_verification
    deadline_ms = clock.monotonic_ms() + min(settings.retry_max_ms, timeout_ms)
    pending: Sequence[TopicPartition] = list(batches)
    while True:
        to_ask = _start_verification(replicas, batches, pending, verified, adds=adds)
        if not to_ask or not (adds or settings.is_enabled):
            return verified
        answers = await _ask(replicas, transactional_id, batches[to_ask[0]], to_ask, adds=adds)
        pending = [each for each in to_ask if answers[each] == ErrorCode.CONCURRENT_TRANSACTIONS]
        if not adds or not pending or clock.monotonic_ms() + settings.retry_backoff_ms > deadline_ms:
            break
        _refuse(verified, answers, transactional_id, support, but=pending)
        await clock.sleep(settings.retry_backoff_ms)
    _refuse(verified, answers, transactional_id, support)
    return verified


def _start_verification(
    replicas: ReplicaManager,
    batches: Mapping[TopicPartition, TransactionalBatch],
    partitions: Sequence[TopicPartition],
    verified: Verified,
    *,
    adds: bool,
) -> list[TopicPartition]:
    """Guards for the partitions; returns those about which the coordinator is to be asked."""
    to_ask: list[TopicPartition] = []
    for topic_partition in partitions:
        batch = batches[topic_partition]
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
            verified.guards.pop(topic_partition, None)
            continue
        verified.guards[topic_partition] = guard
        if guard is not None:
            to_ask.append(topic_partition)
    return to_ask


async def _ask(
    replicas: ReplicaManager,
    transactional_id: str,
    batch: TransactionalBatch,
    partitions: list[TopicPartition],
    *,
    adds: bool,
) -> dict[TopicPartition, ErrorCode]:
    """The coordinator's word on each partition; that it is not available where it says nothing."""
    verifier = replicas.transaction_verifier
    answers: Mapping[TopicPartition, ErrorCode] = {}
    if verifier is not None:
        answers = await verifier.verify(
            transactional_id, batch.producer_id, batch.producer_epoch, partitions, adds=adds
        )
    return {each: answers.get(each, ErrorCode.COORDINATOR_NOT_AVAILABLE) for each in partitions}


def _refuse(
    verified: Verified,
    answers: Mapping[TopicPartition, ErrorCode],
    transactional_id: str,
    support: TransactionSupport,
    but: Sequence[TopicPartition] = (),
) -> None:
    for topic_partition, answer in answers.items():
        code = producer_error(answer, support)
        if code and topic_partition not in but:
            verified.refused[topic_partition] = KafkaError(
                code, f"the coordinator of transactional id '{transactional_id}' did not confirm {topic_partition}"
            )
