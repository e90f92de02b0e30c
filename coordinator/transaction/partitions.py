"""Which partitions belong to a transaction: adding them, and being asked whether they do.

Order of checks as in D.4. Source: Kafka's TransactionCoordinator (handleAddPartitionsToTransaction,
handleVerifyPartitionsInTransaction); KIP-98, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.transaction.metadata import TransactionMetadata, add_partitions
from coordinator.transaction.outcome import Known, Outcome
from coordinator.transaction.requests import AddPartitions
from coordinator.transaction.states import ENDING, TransactionState
from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition


def require_transactional_id(transactional_id: str | None) -> None:
    """Raises INVALID_REQUEST for an empty id, before the coordinator's state is looked at."""
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id may not be empty")


def unknown_transactional_id(transactional_id: str) -> KafkaError:
    """The id has never been initialised, or has expired."""
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"no producer id belongs to transactional id '{transactional_id}'"
    )


def require_producer(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> None:
    """Raises INVALID_PRODUCER_ID_MAPPING for another producer id, PRODUCER_FENCED for another epoch,
    older or newer."""
    if producer_id != metadata.producer_id:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"'{metadata.transactional_id}' belongs to producer id {metadata.producer_id}, not to {producer_id}",
        )
    if producer_epoch != metadata.producer_epoch:
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED,
            f"'{metadata.transactional_id}' is at epoch {metadata.producer_epoch}, the request says {producer_epoch}",
        )


def add(known: Known | None, request: AddPartitions, now_ms: int) -> Outcome:
    """Add partitions to the open transaction, or open one. Raises KafkaError."""
    if known is None:
        raise unknown_transactional_id(request.transactional_id)
    metadata = known.metadata
    if known.is_pending:
        # First of all: what is pending may well be the identity that the producer already goes by.
        raise KafkaError(
            ErrorCode.CONCURRENT_TRANSACTIONS, f"'{metadata.transactional_id}' is still changing, try again"
        )
    require_producer(metadata, request.producer_id, request.producer_epoch)
    if metadata.state in ENDING:
        raise _ending(metadata)
    if metadata.state is TransactionState.ONGOING and request.partitions <= metadata.partitions:
        return Outcome(None)
    target = add_partitions(metadata, request.partitions, now_ms, request.client_version)
    return Outcome(None, target)


def verify(
    metadata: TransactionMetadata | None,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Iterable[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """Whether each partition belongs to the open transaction; changes nothing. Raises KafkaError for all.

    What is pending does not matter: the leader that asks checks once more when it appends.
    """
    if metadata is None:
        raise unknown_transactional_id(transactional_id)
    require_producer(metadata, producer_id, producer_epoch)
    if metadata.state in ENDING:
        raise _ending(metadata)
    return {
        partition: ErrorCode.NONE if partition in metadata.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _ending(metadata: TransactionMetadata) -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS, f"'{metadata.transactional_id}' is still ending its transaction"
    )
