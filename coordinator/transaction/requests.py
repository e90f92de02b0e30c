"""What the transaction machine is asked: requests of the protocol without their versions and frames."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.machine import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from coordinator.transaction.metadata import ProducerIdentity
from wire.primitives import TopicPartition


class ProducerIdNeeded(Exception):
    """The request cannot be decided without a fresh producer id: ask again with one.

    Ids are allocated by the controller, so a machine, which never waits, cannot draw one itself.
    """


class InitTransactionalId(NamedTuple):
    """InitProducerId with a transactional id. Answered by a ProducerIdentity."""

    transactional_id: str
    timeout_ms: int
    held: ProducerIdentity | None = None
    """What the producer says it has; None if it says nothing (below v3, or -1)."""
    enable_two_phase_commit: bool = False
    keep_prepared: bool = False
    fresh_producer_id: int = NO_PRODUCER_ID


class AddPartitions(NamedTuple):
    """AddPartitionsToTxn, AddOffsetsToTxn, or the implicit add of Produce v12 and TxnOffsetCommit v5.

    Answered by None. `client_version` is the transaction.version that the client speaks.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_version: int = 0


class EndTransaction(NamedTuple):
    """EndTxn. Answered by the ProducerIdentity to go on with."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int = 0
    fresh_producer_id: int = NO_PRODUCER_ID


class CompleteTransaction(NamedTuple):
    """All markers of an ending transaction are written. Answered by None.

    `producer_epoch` is the one the markers carry: a transaction that has moved on is left alone.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int


class AbortTimedOut(NamedTuple):
    """A transaction has timed out at the last epoch: abort it, over to a fresh producer id. Answered by None."""

    transactional_id: str
    fresh_producer_id: int = NO_PRODUCER_ID


TransactionRequest = InitTransactionalId | AddPartitions | EndTransaction | CompleteTransaction | AbortTimedOut

NO_IDENTITY = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
"""What is answered where a request fails."""
