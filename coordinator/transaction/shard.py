"""The machine behind one partition of `__transaction_state`.

Records take effect when they are replicated; until then the id is pending, and whoever asks for it is
told to try again. A decided transaction is pending until its markers are written: the machine hands
such transactions out (`take_ending`), on load as well as when they are decided, and waits for
CompleteTransaction. Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.machine import CoordinatorRecord, Decision, Event, Ids, ReplayAt, Ticket
from coordinator.transaction.context import TransactionContext, TransactionSettings
from coordinator.transaction.deadlines import Deadlines
from coordinator.transaction.ending import abort_timed_out, end, fence, fence_needs_producer_id, finish
from coordinator.transaction.initialization import initialize
from coordinator.transaction.metadata import TransactionMetadata
from coordinator.transaction.outcome import Known, Outcome
from coordinator.transaction.partitions import add
from coordinator.transaction.records import (
    FLEXIBLE_VALUES_FROM,
    transaction_metadata,
    transaction_record,
    transaction_tombstone,
)
from coordinator.transaction.requests import (
    AddPartitions,
    CompleteTransaction,
    EndTransaction,
    InitTransactionalId,
    TransactionRequest,
)
from coordinator.transaction.states import BETWEEN_TRANSACTIONS, ENDING
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    TransactionDecision = Decision[CoordinatorRecord]
else:
    TransactionDecision = Decision

DUE_AT_ONCE = 100
"""Transactional ids that are fenced, or forgotten, by one batch of records."""


@dataclass(frozen=True, slots=True)
class TransactionEvent(Event):
    """A sentence about one transactional id."""

    transactional_id: str


# --- what decisions carry for `settle` and `unsettle` -------------------------------------------------


class Created(NamedTuple):
    """A new id is known, though nothing of it is stored yet."""

    metadata: TransactionMetadata


class Begun(NamedTuple):
    """A transition has begun: to `target`, or to nothing where the id expires."""

    transactional_id: str
    target: TransactionMetadata | None
    if_refused: TransactionMetadata | None = None


class Asked(NamedTuple):
    """The request behind a decision with records."""

    ticket: Ticket


class Reverted(NamedTuple):
    """The record of a transition was refused; for a fence, what the id is in memory from now on."""

    transactional_id: str
    fenced: TransactionMetadata | None = None


class Looked(NamedTuple):
    """So many entries of both kinds of deadlines have been looked at."""

    timeouts: int
    expiries: int
    now_ms: int
    exhausted: tuple[str, ...]
    """Timed out, and to be aborted with a fresh producer id."""


class Loaded(NamedTuple):
    """The whole log has been read."""

    now_ms: int


def _require_room(client_version: int, context: TransactionContext) -> None:
    """Raises UNSUPPORTED_VERSION for a client that speaks of epoch bumps where records cannot say so."""
    if client_version and context.transaction_version < FLEXIBLE_VALUES_FROM:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the request needs transaction.version {FLEXIBLE_VALUES_FROM} or more, "
            f"which is finalized at {context.transaction_version}",
        )


class TransactionShard:
    """The transactional ids of one partition of `__transaction_state`."""

    replay_at = ReplayAt.COMMIT

    def __init__(self, settings: TransactionSettings) -> None:
        self._settings = settings
        self._transactions: dict[str, TransactionMetadata] = {}
        self._pending: dict[str, Begun] = {}
        self._failed_fences: set[str] = set()
        self._timeouts = Deadlines(settings.abort_interval_ms)
        self._expiries = Deadlines(settings.expiry_interval_ms)
        self._is_loaded = False
        # Decided and not yet handed out.
        self._ending: dict[str, TransactionMetadata] = {}
        # Timed out, and their epochs are used up.
        self._exhausted: list[str] = []

    # --- decide ----------------------------------------------------------------------------

    def decide(
        self, request: TransactionRequest, context: TransactionContext, now_ms: int, ids: Ids, ticket: Ticket
    ) -> TransactionDecision:
        """See Machine. Raises ProducerIdNeeded, besides, where the request needs a fresh producer id."""
        known = self._known(request.transactional_id)
        if isinstance(request, InitTransactionalId):
            outcome = initialize(known, request, context, now_ms)
        elif isinstance(request, AddPartitions):
            outcome = add(known, request, now_ms)
        elif isinstance(request, EndTransaction):
            outcome = end(known, request, now_ms)
        elif isinstance(request, CompleteTransaction):
            outcome = finish(known, request, now_ms)
        else:
            outcome = abort_timed_out(known, request, context, now_ms)
        if outcome.target is not None and isinstance(request, AddPartitions | EndTransaction):
            _require_room(request.client_version, context)
        decision = self._decision([outcome], context)
        return replace(decision, replies=((ticket, outcome.reply),), volatile=(*decision.volatile, Asked(ticket)))

    def _known(self, transactional_id: str) -> Known | None:
        metadata = self._transactions.get(transactional_id)
        if metadata is None:
            return None
        is_pending = transactional_id in self._pending or metadata.state in ENDING
        return Known(metadata, is_pending, transactional_id in self._failed_fences)

    def _decision(self, outcomes: Sequence[Outcome], context: TransactionContext) -> TransactionDecision:
        records: list[CoordinatorRecord] = []
        events: list[Event] = []
        volatile: list[Any] = []
        for outcome in outcomes:
            if outcome.created is not None:
                volatile.append(Created(outcome.created))
            target = outcome.target
            if target is not None:
                records.append(transaction_record(target, context.transaction_version))
                volatile.append(Begun(target.transactional_id, target, outcome.if_refused))
                if outcome.text:
                    events.append(TransactionEvent(outcome.text, target.transactional_id))
        return TransactionDecision(records=records, events=events, volatile=volatile)

    # --- settle ----------------------------------------------------------------------------

    def settle(self, decision: TransactionDecision) -> None:
        """See Machine."""
        for change in decision.volatile:
            if isinstance(change, Begun):
                self._pending[change.transactional_id] = change
            elif isinstance(change, Created):
                self._put(change.metadata)
            elif isinstance(change, Reverted):
                self._revert(change)
            elif isinstance(change, Looked):
                self._looked(change)
            elif isinstance(change, Loaded):
                self._begin_schedules(change.now_ms)

    def unsettle(self, decision: TransactionDecision, error: KafkaError) -> TransactionDecision:
        """See Machine. The id stays as it was; a fence holds in memory (D29)."""
        replies: tuple[tuple[Ticket, object], ...] = ()
        volatile: list[Any] = []
        for change in decision.volatile:
            if isinstance(change, Begun):
                volatile.append(Reverted(change.transactional_id, change.if_refused))
            elif isinstance(change, Asked):
                replies = ((change.ticket, error),)
            else:
                volatile.append(change)
        return TransactionDecision(replies=replies, volatile=volatile)

    def _revert(self, change: Reverted) -> None:
        transactional_id = change.transactional_id
        self._pending.pop(transactional_id, None)
        if change.fenced is not None:
            self._failed_fences.add(transactional_id)
            self._transactions[transactional_id] = change.fenced
        self._arm(transactional_id)

    def _looked(self, change: Looked) -> None:
        self._exhausted += change.exhausted
        for deadlines, count in ((self._timeouts, change.timeouts), (self._expiries, change.expiries)):
            # Nothing is due any more when this is settled once more, after a commit that failed.
            looked_at = deadlines.due(change.now_ms, count)
            deadlines.take(len(looked_at), change.now_ms)
            for transactional_id in looked_at:
                # What has begun a transition is looked at again when that is over.
                if transactional_id not in self._pending:
                    self._arm(transactional_id)

    def _begin_schedules(self, now_ms: int) -> None:
        self._is_loaded = True
        self._timeouts.begin(now_ms)
        self._expiries.begin(now_ms)
        for transactional_id in self._transactions:
            self._arm(transactional_id)

    # --- replay ----------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """See Machine."""
        transactional_id: str = record.key.transactional_id
        begun = self._pending.pop(transactional_id, None)
        if record.value is None:
            self._transactions.pop(transactional_id, None)
            self._ending.pop(transactional_id, None)
            self._failed_fences.discard(transactional_id)
            return
        if begun is not None and begun.target is not None:
            # The same, with what records have no room for.
            self._put(begun.target)
        else:
            self._put(transaction_metadata(transactional_id, record.value))

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, producer_id: int, producer_epoch: int
    ) -> None:
        """No producer's transaction writes here: such a record is taken as any other."""
        self.replay(record, offset)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """No producer's transaction ends here."""

    def committed(self, high_watermark: int) -> None:
        """Nothing to do: records are replayed when they are replicated."""

    def loaded(self, context: TransactionContext, now_ms: int, ids: Ids) -> TransactionDecision:
        """The log has been read: both schedules begin. Decided transactions are waiting to be taken."""
        return TransactionDecision(volatile=(Loaded(now_ms),))

    def _put(self, metadata: TransactionMetadata) -> None:
        transactional_id = metadata.transactional_id
        self._transactions[transactional_id] = metadata
        if metadata.state in ENDING:
            self._ending[transactional_id] = metadata
        else:
            self._ending.pop(transactional_id, None)
            if metadata.state in BETWEEN_TRANSACTIONS:
                self._failed_fences.discard(transactional_id)
        self._arm(transactional_id)

    # --- markers ---------------------------------------------------------------------------

    def take_ending(self) -> list[TransactionMetadata]:
        """Transactions that have been decided since the last call, each handed out once: their markers
        are to be written, and CompleteTransaction is to be asked then."""
        if not self._ending or not self._is_loaded:
            return []
        ending = list(self._ending.values())
        self._ending.clear()
        return ending

    def take_exhausted(self) -> list[str]:
        """Ids that have timed out since the last call and need a fresh producer id: AbortTimedOut is to be asked.
        They are handed out again at the next look, until it was."""
        exhausted, self._exhausted = self._exhausted, []
        return exhausted

    # --- deadlines -------------------------------------------------------------------------

    def _arm(self, transactional_id: str) -> None:
        metadata = self._transactions.get(transactional_id)
        if metadata is None or not self._is_loaded:
            return
        times_out_at_ms = metadata.times_out_at_ms
        if times_out_at_ms is not None:
            self._timeouts.set(transactional_id, times_out_at_ms + 1)
        elif metadata.state in BETWEEN_TRANSACTIONS:
            self._expiries.set(transactional_id, metadata.last_update_ms + self._settings.id_expiration_ms)

    def next_deadline_ms(self) -> int | None:
        """See Machine."""
        timeout_ms, expiry_ms = self._timeouts.next_ms(), self._expiries.next_ms()
        if timeout_ms is None or expiry_ms is None:
            return expiry_ms if timeout_ms is None else timeout_ms
        return min(timeout_ms, expiry_ms)

    def expire(self, context: TransactionContext, now_ms: int, ids: Ids) -> TransactionDecision:
        """See Machine. Transactions that took too long are fenced and aborted (D28), unused ids are
        forgotten (D30)."""
        timeouts = self._timeouts.due(now_ms, DUE_AT_ONCE)
        timed_out = list(self._timed_out(timeouts, now_ms))
        exhausted = [known for known in timed_out if fence_needs_producer_id(known, context)]
        outcomes = [fence(known, context, now_ms) for known in timed_out if known not in exhausted]
        decision = self._decision(outcomes, context)
        expiries = [] if timeouts else self._expiries.due(now_ms, DUE_AT_ONCE)
        expired = list(self._expired(expiries, now_ms))
        return TransactionDecision(
            records=[*decision.records, *(transaction_tombstone(key) for key in expired)],
            events=[
                *decision.events,
                *(TransactionEvent(f"'{key}' has expired: it was not used for long.", key) for key in expired),
            ],
            volatile=[
                *decision.volatile,
                *(Begun(key, None) for key in expired),
                Looked(
                    len(timeouts),
                    len(expiries),
                    now_ms,
                    tuple(known.metadata.transactional_id for known in exhausted),
                ),
            ],
        )

    def _timed_out(self, transactional_ids: Sequence[str], now_ms: int) -> Iterator[Known]:
        for transactional_id in dict.fromkeys(transactional_ids):
            known = self._known(transactional_id)
            if known is not None and not known.is_pending and known.metadata.has_timed_out(now_ms):
                yield known

    def _expired(self, transactional_ids: Sequence[str], now_ms: int) -> Iterator[str]:
        for transactional_id in dict.fromkeys(transactional_ids):
            known = self._known(transactional_id)
            if known is None or known.is_pending or known.metadata.state not in BETWEEN_TRANSACTIONS:
                continue
            if known.metadata.last_update_ms <= now_ms - self._settings.id_expiration_ms:
                yield transactional_id

    # --- reads -----------------------------------------------------------------------------

    def metadata(self, transactional_id: str) -> TransactionMetadata | None:
        """What is known of an id; a transition that is under way does not show."""
        return self._transactions.get(transactional_id)

    def transactions(self) -> Iterator[TransactionMetadata]:
        """All ids."""
        return iter(self._transactions.values())
