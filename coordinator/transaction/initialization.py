"""InitProducerId with a transactional id: who may write under this id from now on.

Order of checks as in D.3. Source: Kafka's TransactionCoordinator (handleInitProducerId,
prepareInitProducerIdTransit); KIP-98, KIP-360, KIP-588, KIP-890.
"""

from __future__ import annotations

from coordinator.machine import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from coordinator.transaction.context import TransactionContext, TransactionSettings
from coordinator.transaction.ending import fence
from coordinator.transaction.metadata import (
    NO_TIMEOUT_MS,
    ProducerIdentity,
    TransactionMetadata,
    increment_epoch,
    is_epoch_exhausted,
    rotate_producer_id,
)
from coordinator.transaction.outcome import Known, Outcome
from coordinator.transaction.requests import InitTransactionalId, ProducerIdNeeded
from coordinator.transaction.states import ENDING, TransactionState
from wire.errors import ErrorCode, KafkaError


def check_request(request: InitTransactionalId, settings: TransactionSettings) -> None:
    """What is refused before the coordinator's state is looked at (D.3.2 to D.3.5). Raises KafkaError."""
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id may not be empty")
    if request.enable_two_phase_commit and not settings.two_phase_commit_enable:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "two-phase commit is off: transaction.two.phase.commit.enable is false",
        )
    if request.keep_prepared:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "prepared transactions cannot be kept")
    if not request.enable_two_phase_commit and not 0 < request.timeout_ms <= settings.max_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"the transaction timeout of '{request.transactional_id}' is {request.timeout_ms} ms, "
            f"but must be 1 to {settings.max_timeout_ms} ms (transaction.max.timeout.ms)",
        )


def initialize(known: Known | None, request: InitTransactionalId, context: TransactionContext, now_ms: int) -> Outcome:
    """Decide. Raises KafkaError, or ProducerIdNeeded where a fresh id is to be given out."""
    timeout_ms = NO_TIMEOUT_MS if request.enable_two_phase_commit else request.timeout_ms
    created = None
    if known is None:
        created = _create(request, timeout_ms, now_ms)
        known = Known(created)
    metadata, held = known.metadata, request.held
    if known.is_pending:
        raise _concurrent(metadata, "is still changing")
    if held is not None and not _may_hold(metadata, held):
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED,
            f"'{metadata.transactional_id}' belongs to producer id {metadata.producer_id}, not to {held.producer_id}",
        )
    if metadata.state in ENDING:
        raise _concurrent(metadata, "is still ending its transaction")
    if metadata.state is TransactionState.ONGOING:
        outcome = fence(known, context, now_ms, request.fresh_producer_id)
        reply = _concurrent(metadata, "had an open transaction, which is being aborted")
        return Outcome(reply, outcome.target, if_refused=outcome.if_refused, text=outcome.text)
    target = _next(metadata, request, timeout_ms, now_ms)
    return Outcome(
        target.identity,
        target,
        created,
        text=f"'{metadata.transactional_id}' is initialised: producer id {target.producer_id}, "
        f"epoch {target.producer_epoch}.",
    )


def _create(request: InitTransactionalId, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    return TransactionMetadata(request.transactional_id, _fresh(request), timeout_ms, now_ms)


def _fresh(request: InitTransactionalId) -> int:
    if request.fresh_producer_id == NO_PRODUCER_ID:
        raise ProducerIdNeeded
    return request.fresh_producer_id


def _may_hold(metadata: TransactionMetadata, held: ProducerIdentity) -> bool:
    """Whether the producer is the one the id belongs to (its epoch is looked at later), or was so until
    its epochs were used up and did not get the answer that said so."""
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or held.producer_id == metadata.producer_id
        or (held.producer_id == metadata.previous_producer_id and is_epoch_exhausted(held.producer_epoch))
    )


def _next(
    metadata: TransactionMetadata, request: InitTransactionalId, timeout_ms: int, now_ms: int
) -> TransactionMetadata:
    held = request.held
    if metadata.is_epoch_exhausted and (held is None or held.producer_epoch == metadata.producer_epoch):
        return rotate_producer_id(metadata, _fresh(request), timeout_ms, now_ms, keeps_last_epoch=held is not None)
    return increment_epoch(metadata, timeout_ms, None if held is None else held.producer_epoch, now_ms)


def _concurrent(metadata: TransactionMetadata, why: str) -> KafkaError:
    return KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, f"'{metadata.transactional_id}' {why}")
