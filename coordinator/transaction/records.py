"""Records of `__transaction_state`: built here, read back here.

The value is written at version 0 below transaction.version 1, which has no room for what is tagged in
version 1. Source: Kafka's TransactionLog.
"""

from __future__ import annotations

from coordinator.machine import CoordinatorRecord
from coordinator.transaction.metadata import TransactionMetadata
from coordinator.transaction.states import TransactionState
from wire.messages.records.transaction_state import PartitionsSchema, TransactionLogKey, TransactionLogValue
from wire.primitives import TopicPartition

FLEXIBLE_VALUES_FROM = 1
"""transaction.version from which values are written at version 1."""


def transaction_record(metadata: TransactionMetadata, transaction_version: int) -> CoordinatorRecord:
    """The record that stores a transactional id."""
    partitions: list[PartitionsSchema] | None = None
    if metadata.state is not TransactionState.EMPTY:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(metadata.partitions):
            by_topic.setdefault(topic, []).append(partition)
        partitions = [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()]
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    key = TransactionLogKey(transactional_id=metadata.transactional_id)
    if transaction_version < FLEXIBLE_VALUES_FROM:
        return CoordinatorRecord(key, value, 0)
    value.previous_producer_id = metadata.previous_producer_id
    value.next_producer_id = metadata.next_producer_id
    value.client_transaction_version = metadata.client_version
    return CoordinatorRecord(key, value, 1)


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    """The record that removes a transactional id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def transaction_metadata(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    """What a record stores; what is kept in memory only is at its default."""
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            TopicPartition(each.topic, index)
            for each in value.transaction_partitions or ()
            for index in each.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
