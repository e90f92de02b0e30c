"""A transaction shard with a log, a clock and a marker writer of its own: tests tell stories with it.

The log keeps encoded records, so that every story also proves that what was written can be read. By
default records are replicated and markers written at once; `replicated` and `writes_markers` stop that.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from coordinator.machine import CoordinatorRecord, ReplayAt
from coordinator.record_codec import RecordCodec
from coordinator.transaction.context import TransactionContext, TransactionSettings
from coordinator.transaction.metadata import ProducerIdentity, TransactionMetadata
from coordinator.transaction.requests import (
    AbortTimedOut,
    AddPartitions,
    CompleteTransaction,
    EndTransaction,
    InitTransactionalId,
    ProducerIdNeeded,
    TransactionRequest,
)
from coordinator.transaction.shard import TransactionShard
from wire.errors import ErrorCode, KafkaError
from wire.messages.records import transaction_state
from wire.primitives import TopicPartition

START_MS = 1_700_000_000_000
CODEC = RecordCodec(transaction_state)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
HALF_AN_HOUR_MS = 1_800_000
STEPS_MAX = 1000


class SeededIds:
    """Ids that are the same in every run."""

    def __init__(self) -> None:
        self._random = random.Random(1)

    def uuid(self) -> bytes:
        return self._random.randbytes(16)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


@dataclass(slots=True)
class World:
    """The shard and everything around it."""

    version: int = 2
    """The finalized transaction.version."""
    settings: TransactionSettings = field(default_factory=TransactionSettings)
    now_ms: int = START_MS
    refuse_with: ErrorCode | None = None
    """The next append is refused with this."""
    replicated: bool = True
    """Records are below the high watermark at once."""
    writes_markers: bool = True
    """Markers are written as soon as a transaction is decided."""
    gives_ids: bool = True
    """Producer ids are allocated for timed out transactions that need one."""
    needed: list[str] = field(default_factory=list)
    """Who needed one, as often as it was handed out."""
    log: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    markers: list[TransactionMetadata] = field(default_factory=list)
    """Every transaction that was handed out to be ended, as it was then."""
    texts: list[str] = field(default_factory=list)
    replies: dict[int, Any] = field(default_factory=dict)
    ids_given: int = 1000
    shard: TransactionShard = field(init=False)
    _ids: SeededIds = field(default_factory=SeededIds)
    _last_ticket: int = 0
    _deferred: deque[tuple[Any, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.shard = TransactionShard(self.settings)
        self._apply(self.shard.loaded(self._context(), self.now_ms, self._ids))

    # --- driving ------------------------------------------------------------------------------

    def ask(self, request: TransactionRequest) -> int:
        """Hand in a request, with a fresh producer id if it needs one; returns its ticket."""
        self._last_ticket += 1
        ticket = self._last_ticket
        try:
            self._apply(self._decide(request, ticket))
        except KafkaError as error:
            self.replies[ticket] = error
        return ticket

    def call(self, request: TransactionRequest) -> Any:
        """The answer to a request that is answered at once; an error is raised."""
        reply = self.replies[self.ask(request)]
        if isinstance(reply, KafkaError):
            raise reply
        return reply

    def error(self, request: TransactionRequest) -> ErrorCode:
        """The code that a request is refused with; NONE if it is not."""
        try:
            self.call(request)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def replicate(self) -> None:
        """Everything that was appended is replicated."""
        while self._deferred:
            decision, offset = self._deferred.popleft()
            for index in range(len(decision.records)):
                self.shard.replay(self._read(offset + index), offset + index)
            self._handed_out()
            self.replies.update(decision.replies)

    def lose_replication(self, code: ErrorCode) -> None:
        """What waits for replication is given up."""
        while self._deferred:
            decision, _ = self._deferred.popleft()
            undone = self.shard.unsettle(decision, KafkaError(code)) if decision.records else decision
            self.shard.settle(undone)
            self.replies.update(undone.replies)

    def advance(self, by_ms: int) -> None:
        """Let time pass; what becomes due happens at its own moment."""
        end_ms = self.now_ms + by_ms
        for _ in range(STEPS_MAX):
            deadline_ms = self.shard.next_deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, deadline_ms)
            self._apply(self.shard.expire(self._context(), self.now_ms, self._ids))
            for transactional_id in self.shard.take_exhausted():
                self.needed.append(transactional_id)
                if self.gives_ids:
                    self.ask(AbortTimedOut(transactional_id))
        raise AssertionError("deadlines without end")

    def reload(self) -> None:
        """Another node takes over: what is in the log is all it knows."""
        self.shard = TransactionShard(self.settings)
        self._deferred.clear()
        for offset in range(len(self.log)):
            self.shard.replay(self._read(offset), offset)
        self._apply(self.shard.loaded(self._context(), self.now_ms, self._ids))

    def write_marker(self, metadata: TransactionMetadata) -> int:
        """All markers of a transaction are written; returns the ticket of the completion."""
        return self.ask(CompleteTransaction(metadata.transactional_id, metadata.producer_id, metadata.producer_epoch))

    # --- shorthands ---------------------------------------------------------------------------

    def init(self, key: str = "x", held: ProducerIdentity | None = None, timeout_ms: int = 60_000) -> Any:
        return self.call(InitTransactionalId(key, timeout_ms, held))

    def add(self, identity: ProducerIdentity, *partitions: TopicPartition, key: str = "x", version: int = 2) -> None:
        self.call(AddPartitions(key, *identity, frozenset(partitions or (T0,)), version))

    def end(self, identity: ProducerIdentity, *, commit: bool = True, key: str = "x", version: int = 2) -> Any:
        return self.call(EndTransaction(key, *identity, is_commit=commit, client_version=version))

    def known(self, key: str = "x") -> TransactionMetadata:
        metadata = self.shard.metadata(key)
        assert metadata is not None
        return metadata

    # --- parts --------------------------------------------------------------------------------

    def _context(self) -> TransactionContext:
        return TransactionContext(self.settings, self.version)

    def _decide(self, request: TransactionRequest, ticket: int) -> Any:
        try:
            return self.shard.decide(request, self._context(), self.now_ms, self._ids, ticket)
        except ProducerIdNeeded:
            self.ids_given += 1
            assert isinstance(request, InitTransactionalId | EndTransaction | AbortTimedOut)
            request = request._replace(fresh_producer_id=self.ids_given)
            return self.shard.decide(request, self._context(), self.now_ms, self._ids, ticket)

    def _apply(self, decision: Any) -> None:
        assert self.shard.replay_at is ReplayAt.COMMIT
        offset = len(self.log)
        if decision.records and self.refuse_with is not None:
            decision = self.shard.unsettle(decision, KafkaError(self.refuse_with))
            self.refuse_with = None
            assert not decision.records
        self.log += [CODEC.encode(record) for record in decision.records]
        self.shard.settle(decision)
        self.texts += [event.text for event in decision.events]
        self._deferred.append((decision, offset))
        if self.replicated:
            self.replicate()

    def _read(self, offset: int) -> CoordinatorRecord:
        record = CODEC.decode(*self.log[offset])
        assert record is not None
        return record

    def _handed_out(self) -> None:
        for metadata in self.shard.take_ending():
            self.markers.append(metadata)
            if self.writes_markers:
                self.write_marker(metadata)
