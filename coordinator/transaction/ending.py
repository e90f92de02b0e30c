"""The end of a transaction: EndTxn of both protocols, fencing, and completion after the markers.

The tables are D.6: what is answered in each state, and which epochs pass. Up to transaction.version 1
a repeated EndTxn is known by its state alone; from version 2 on, where each end bumps the epoch, by
the epoch being one behind. Source: Kafka's TransactionCoordinator (endTransaction,
endTransactionWithTV1); KIP-98, KIP-890.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto

from coordinator.machine import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from coordinator.transaction.context import TransactionContext
from coordinator.transaction.metadata import (
    EPOCH_BUMPS_FROM,
    EPOCH_MAX,
    TransactionMetadata,
    complete,
    prepare_end,
)
from coordinator.transaction.outcome import Known, Outcome
from coordinator.transaction.partitions import require_producer, unknown_transactional_id
from coordinator.transaction.requests import AbortTimedOut, CompleteTransaction, EndTransaction, ProducerIdNeeded
from coordinator.transaction.states import ENDING, TransactionState
from wire.errors import ErrorCode, KafkaError


class Verdict(Enum):
    """What an EndTxn comes to once its epoch is accepted."""

    PREPARE = auto()
    """The transaction is decided."""
    DONE = auto()
    """It ended this way already."""
    WAIT = auto()
    """It is ending this way at this moment: CONCURRENT_TRANSACTIONS."""
    REFUSE = auto()
    """It is not open, or ended the other way: INVALID_TXN_STATE."""


_S, _V = TransactionState, Verdict

COMMITS: dict[TransactionState, Verdict] = {
    _S.EMPTY: _V.REFUSE,
    _S.ONGOING: _V.PREPARE,
    _S.PREPARE_COMMIT: _V.WAIT,
    _S.PREPARE_ABORT: _V.REFUSE,
    _S.COMPLETE_COMMIT: _V.DONE,
    _S.COMPLETE_ABORT: _V.REFUSE,
}
ABORTS: dict[TransactionState, Verdict] = {
    _S.EMPTY: _V.REFUSE,
    _S.ONGOING: _V.PREPARE,
    _S.PREPARE_COMMIT: _V.REFUSE,
    _S.PREPARE_ABORT: _V.WAIT,
    _S.COMPLETE_COMMIT: _V.REFUSE,
    _S.COMPLETE_ABORT: _V.DONE,
}
"""Up to transaction.version 1, and from version 2 on for a repeated request."""

FIRST_COMMITS = {**COMMITS, _S.COMPLETE_COMMIT: _V.REFUSE}
FIRST_ABORTS = {
    **ABORTS,
    _S.EMPTY: _V.PREPARE,
    _S.COMPLETE_COMMIT: _V.PREPARE,
    _S.COMPLETE_ABORT: _V.PREPARE,
}
"""From version 2 on for a request with the current epoch: a transaction without partitions is aborted
too, as its producer may have sent what never arrived."""


def end(known: Known | None, request: EndTransaction, now_ms: int) -> Outcome:
    """Decide an EndTxn. Raises KafkaError, or ProducerIdNeeded if the epochs are used up."""
    if known is None:
        raise unknown_transactional_id(request.transactional_id)
    metadata = known.metadata
    if request.client_version >= EPOCH_BUMPS_FROM:
        is_retry = _check_with_bumps(known, request)
        first = FIRST_COMMITS if request.is_commit else FIRST_ABORTS
        repeated = COMMITS if request.is_commit else ABORTS
        verdict = (repeated if is_retry else first)[metadata.state]
    else:
        require_producer(metadata, request.producer_id, request.producer_epoch)
        _require_settled(known)
        verdict = (COMMITS if request.is_commit else ABORTS)[metadata.state]
    if verdict is Verdict.PREPARE:
        return _prepare(metadata, request, now_ms)
    if verdict is Verdict.DONE:
        return Outcome(metadata.identity)
    wish = "commit" if request.is_commit else "abort"
    raise KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS if verdict is Verdict.WAIT else ErrorCode.INVALID_TXN_STATE,
        f"the transaction of '{metadata.transactional_id}' is {metadata.state.display_name}: {wish} refused",
    )


def _require_settled(known: Known) -> None:
    if known.is_pending:
        raise KafkaError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"'{known.metadata.transactional_id}' is still changing, try again",
        )


def _check_with_bumps(known: Known, request: EndTransaction) -> bool:
    """Whether the request repeats one that was carried out. Raises KafkaError if it may not be made."""
    _require_settled(known)
    metadata, epoch = known.metadata, request.producer_epoch
    repeats_bump = metadata.bumps_epochs and metadata.producer_epoch == epoch + 1
    # The producer id was exchanged when the epochs were used up.
    repeats_rotation = (
        metadata.previous_producer_id == request.producer_id and epoch == EPOCH_MAX - 1 and metadata.producer_epoch == 0
    )
    if metadata.producer_id != request.producer_id and not repeats_rotation:
        require_producer(metadata, request.producer_id, epoch)
    if metadata.state in ENDING:
        accepted = repeats_bump
    elif metadata.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        accepted = repeats_bump or repeats_rotation or epoch == metadata.producer_epoch
    else:
        accepted = epoch == metadata.producer_epoch
    if not accepted:
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED,
            f"'{metadata.transactional_id}' is at epoch {metadata.producer_epoch}, the request says {epoch}",
        )
    return repeats_bump or repeats_rotation


def _prepare(metadata: TransactionMetadata, request: EndTransaction, now_ms: int) -> Outcome:
    next_producer_id = NO_PRODUCER_ID
    if request.client_version >= EPOCH_BUMPS_FROM and metadata.is_epoch_exhausted:
        next_producer_id = _given(request.fresh_producer_id)
    target = prepare_end(
        metadata,
        is_commit=request.is_commit,
        client_version=request.client_version,
        next_producer_id=next_producer_id,
        now_ms=now_ms,
    )
    # The producer goes on with what it will be when the markers are written.
    return Outcome(complete(target, now_ms).identity, target)


def _given(fresh_producer_id: int) -> int:
    if fresh_producer_id == NO_PRODUCER_ID:
        raise ProducerIdNeeded
    return fresh_producer_id


def fence_needs_producer_id(known: Known, context: TransactionContext) -> bool:
    """Whether `fence` changes the producer id, as its epochs are used up."""
    return context.transaction_version >= EPOCH_BUMPS_FROM and known.metadata.is_epoch_exhausted


def fence(known: Known, context: TransactionContext, now_ms: int, fresh_producer_id: int = NO_PRODUCER_ID) -> Outcome:
    """Abort an open transaction against the will of its producer, whose epoch is no longer valid then.

    Bumps the epoch as the cluster does, as no client asks. The reply is for the caller to give. Raises
    ProducerIdNeeded.
    """
    metadata = known.metadata
    version = context.transaction_version
    next_producer_id = NO_PRODUCER_ID
    if version >= EPOCH_BUMPS_FROM:
        fenced = metadata
        if fence_needs_producer_id(known, context):
            next_producer_id = _given(fresh_producer_id)
    else:
        # No end bumps the epoch here, so it is done by hand, and it holds even if the record is refused.
        version = 0
        raised = metadata.producer_epoch
        if not known.has_failed_fence and raised < EPOCH_MAX:
            raised += 1
        fenced = replace(metadata, producer_epoch=raised, last_producer_epoch=NO_PRODUCER_EPOCH)
    target = prepare_end(
        fenced, is_commit=False, client_version=version, next_producer_id=next_producer_id, now_ms=now_ms
    )
    return Outcome(
        None,
        target,
        if_refused=fenced,
        text=f"The open transaction of '{metadata.transactional_id}' is aborted; producer id "
        f"{metadata.producer_id} goes from epoch {metadata.producer_epoch} to {target.producer_epoch}.",
    )


def abort_timed_out(known: Known | None, request: AbortTimedOut, context: TransactionContext, now_ms: int) -> Outcome:
    """Fence, unless the transaction has ended meanwhile. Raises ProducerIdNeeded."""
    if known is None or known.is_pending or not known.metadata.has_timed_out(now_ms):
        return Outcome(None)
    return fence(known, context, now_ms, request.fresh_producer_id)


def finish(known: Known | None, request: CompleteTransaction, now_ms: int) -> Outcome:
    """The markers are written; nothing to do if the transaction has moved on meanwhile."""
    if known is None:
        return Outcome(None)
    metadata = known.metadata
    if metadata.state not in ENDING or metadata.identity != (request.producer_id, request.producer_epoch):
        return Outcome(None)
    return Outcome(None, complete(metadata, now_ms))
