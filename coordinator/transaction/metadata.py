"""What is known of one transactional id, as a value; a transition makes another value.

A transition is one function here, and `to` refuses those that the table of states does not have.
Source: Kafka's TransactionMetadata and TxnTransitMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from coordinator.machine import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from coordinator.transaction.states import BETWEEN_TRANSACTIONS, VALID_PREVIOUS_STATES, TransactionState
from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition

EPOCH_MAX = 32767
"""Never given to a producer, so that the coordinator can always fence once more."""
NO_TIMESTAMP = -1
NO_TIMEOUT_MS = 2**31 - 1
"""Timeout of a two-phase commit: never aborted by time (KIP-939)."""
EPOCH_BUMPS_FROM = 2
"""From this transaction.version on every end of a transaction bumps the epoch (KIP-890)."""

NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


class ProducerIdentity(NamedTuple):
    """What a producer has to go on with."""

    producer_id: int
    producer_epoch: int


class InvalidTransition(AssertionError):
    """The table of states has no such transition: the decider is wrong, not the request."""


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """One transactional id. Times are wall-clock milliseconds, -1 where there is none."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    start_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last transition: recognises a retry across a change of the id."""
    next_producer_id: int = NO_PRODUCER_ID
    """Takes the place of `producer_id` when the transaction completes, as its epochs are used up."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that was given out before; recognises a retry of InitProducerId. In memory only."""
    client_version: int = 0
    """transaction.version that the client spoke at the last transition."""

    @property
    def identity(self) -> ProducerIdentity:
        """Id and epoch at present."""
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def is_epoch_exhausted(self) -> bool:
        """No epoch is left to give to a producer."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def bumps_epochs(self) -> bool:
        """Whether the client spoke transaction.version 2 at the last transition."""
        return self.client_version >= EPOCH_BUMPS_FROM

    @property
    def times_out_at_ms(self) -> int | None:
        """When an open transaction is too old; None if there is none, or it never is."""
        if self.state is not TransactionState.ONGOING or self.timeout_ms == NO_TIMEOUT_MS:
            return None
        return self.start_ms + self.timeout_ms

    def has_timed_out(self, now_ms: int) -> bool:
        """Whether there is an open transaction that is too old."""
        times_out_at_ms = self.times_out_at_ms
        return times_out_at_ms is not None and times_out_at_ms < now_ms

    def to(self, state: TransactionState, **changes: Any) -> TransactionMetadata:
        """The value after a transition. Raises InvalidTransition for one that is not in the table."""
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise InvalidTransition(f"'{self.transactional_id}' cannot go from {self.state.name} to {state.name}")
        return replace(self, state=state, **{"previous_producer_id": self.producer_id, **changes})


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """See TransactionMetadata.is_epoch_exhausted."""
    return producer_epoch >= EPOCH_MAX - 1


# --- transitions -----------------------------------------------------------------------------------


def increment_epoch(
    metadata: TransactionMetadata, timeout_ms: int, expected_epoch: int | None, now_ms: int
) -> TransactionMetadata:
    """InitProducerId: the next epoch; of a retry whose answer was lost, the current one.

    `expected_epoch` is what the producer says it has, None if it says nothing. Raises PRODUCER_FENCED
    if that is neither the current epoch nor the one before.
    """
    current = metadata.producer_epoch
    if metadata.is_epoch_exhausted:
        # Only a producer with the current epoch gets a new id; Kafka fails on all others the same way.
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"all epochs of producer id {metadata.producer_id} are used up, and epoch {expected_epoch} is not the last",
        )
    if expected_epoch is None:
        epoch, last_epoch = current + 1, NO_PRODUCER_EPOCH
    elif current == NO_PRODUCER_EPOCH or expected_epoch == current:
        epoch, last_epoch = current + 1, current
    elif expected_epoch == metadata.last_producer_epoch:
        epoch, last_epoch = current, metadata.last_producer_epoch
    else:
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED,
            f"'{metadata.transactional_id}' is at epoch {current}, the producer says {expected_epoch}",
        )
    return metadata.to(
        TransactionState.EMPTY,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=NO_PARTITIONS,
        start_ms=NO_TIMESTAMP,
        last_update_ms=now_ms,
    )


def rotate_producer_id(
    metadata: TransactionMetadata, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_last_epoch: bool
) -> TransactionMetadata:
    """InitProducerId when the epochs are used up: a new id at epoch 0."""
    return metadata.to(
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=0,
        last_producer_epoch=metadata.producer_epoch if keeps_last_epoch else NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        partitions=NO_PARTITIONS,
        start_ms=NO_TIMESTAMP,
        last_update_ms=now_ms,
    )


def add_partitions(
    metadata: TransactionMetadata, added: Iterable[TopicPartition], now_ms: int, client_version: int
) -> TransactionMetadata:
    """The transaction with further partitions; the first ones open it."""
    opens = metadata.state in BETWEEN_TRANSACTIONS
    return metadata.to(
        TransactionState.ONGOING,
        partitions=metadata.partitions | frozenset(added),
        start_ms=now_ms if opens else metadata.start_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def prepare_end(
    metadata: TransactionMetadata,
    *,
    is_commit: bool,
    client_version: int,
    next_producer_id: int,
    now_ms: int,
) -> TransactionMetadata:
    """The decision to commit or abort. `next_producer_id` is set if the bumped epoch is the last one."""
    epoch, last_epoch = metadata.producer_epoch, metadata.last_producer_epoch
    if client_version >= EPOCH_BUMPS_FROM:
        last_epoch = epoch
        # An abort at the greatest epoch (only after fencing at the last one) leaves it as it is.
        if is_commit or epoch < EPOCH_MAX:
            epoch += 1
    return metadata.to(
        TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        next_producer_id=next_producer_id,
        # An abort of nothing has no start of its own.
        start_ms=now_ms if metadata.state in BETWEEN_TRANSACTIONS else metadata.start_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def complete(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """All markers are written."""
    is_commit = metadata.state is TransactionState.PREPARE_COMMIT
    producer_id, epoch = metadata.producer_id, metadata.producer_epoch
    if metadata.bumps_epochs and metadata.next_producer_id != NO_PRODUCER_ID:
        producer_id, epoch = metadata.next_producer_id, 0
    return metadata.to(
        TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=NO_PARTITIONS,
        last_update_ms=now_ms,
    )
