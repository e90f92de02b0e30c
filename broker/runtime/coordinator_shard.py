"""One machine over one led partition: load, append, replay, release of replies, unload.

See coordinator_runtime for the whole. Everything here runs on the event loop; between a decision
and its replay nothing else happens.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from broker.runtime.refusal import refuse, resolve
from broker.storage.log import AppendOrigin
from coordinator.machine import NO_PRODUCER_ID, CoordinatorRecord, Decision, Event, Ids, ReplayAt, Ticket
from wire.errors import ErrorCode, KafkaError, WireError
from wire.records import NewRecord, batches, build_batch, end_transaction_marker, read_end_transaction_marker

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.replication.replica_manager import ReplicaManager
    from broker.storage.producer_state import VerificationGuard
    from coordinator.record_codec import RecordCodec
    from wire.compression import Compression
    from wire.primitives import TopicPartition

logger = logging.getLogger(__name__)

LOAD_SLICE_BYTES = 1_048_576
"""Read and replayed at once while loading; the loop serves others between slices."""
EXPIRIES_PER_TURN = 64
"""Decisions of `expire` made before the loop serves others."""

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def log_events(events: Sequence[Event]) -> None:
    """Write them to the log of the process, for those who debug."""
    for event in events:
        logger.info("%s", event.text)


def coordinator_error(error: KafkaError) -> KafkaError:
    """What a client of a coordinator is told when the coordinator's own log refuses a write (G5, D6)."""
    code = _APPEND_ERRORS.get(error.code)
    return error if code is None else KafkaError(code, error.message)


class RunningMachine(Protocol):
    """A machine as the runtime drives it: `coordinator.machine.TransactionalMachine`, and two more.

    A machine whose log takes no transactions of producers never gets the two transactional calls.
    """

    replay_at: ReplayAt

    def decide(self, request: Any, context: Any, now_ms: int, ids: Ids, ticket: Ticket) -> Decision[CoordinatorRecord]:
        """See Machine."""

    def settle(self, decision: Decision[CoordinatorRecord]) -> None:
        """See Machine."""

    def unsettle(self, decision: Decision[CoordinatorRecord], error: KafkaError) -> Decision[CoordinatorRecord]:
        """See Machine."""

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """See Machine."""

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, producer_id: int, producer_epoch: int
    ) -> None:
        """See TransactionalMachine."""

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """See TransactionalMachine."""

    def next_deadline_ms(self) -> int | None:
        """See Machine."""

    def expire(self, context: Any, now_ms: int, ids: Ids) -> Decision[CoordinatorRecord]:
        """See Machine."""

    def committed(self, high_watermark: int) -> None:
        """Everything below the offset is replicated; called whenever that has grown, before replies
        that waited for it are released."""

    def loaded(self, context: Any, now_ms: int, ids: Ids) -> Decision[CoordinatorRecord]:
        """The whole log has been replayed: what is to be done first (start sessions, resume work)."""


class ShardState(Enum):
    """Where a shard stands between gaining and losing its partition."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ShardEnvironment:
    """What all shards of a runtime share."""

    replica_manager: ReplicaManager
    clock: Clock
    codec: RecordCodec
    ids: Ids
    make_context: Callable[[], Any]
    """The context for `loaded` and `expire`, which no request comes with."""
    write_timeout_ms: Callable[[], int]
    compression: Callable[[], Compression]
    base_sequence: int
    """Of every batch that is written, with and without a producer id."""
    changed: Callable[[CoordinatorShard], None]
    """Told when the machine has settled or replayed something."""
    tell: Callable[[Sequence[Event]], None]
    """Gets the events of a decision once it holds."""


@dataclass(slots=True)
class _Deferred:
    """A decision whose replies wait until everything below `required_offset` is replicated."""

    required_offset: int
    first_offset: int
    deadline_ms: int
    decision: Decision[CoordinatorRecord]


class CoordinatorShard:
    """A machine, the partition it stands on, and the requests that wait for it."""

    def __init__(self, topic_partition: TopicPartition, machine: RunningMachine, environment: ShardEnvironment) -> None:
        self.topic_partition = topic_partition
        self.machine = machine
        self.state = ShardState.LOADING
        self._environment = environment
        self._waiting: dict[Ticket, asyncio.Future[Any]] = {}
        self._last_ticket = 0
        self._deferred: deque[_Deferred] = deque()
        self._end_offset = 0
        self._committed_offset = 0
        self._releasing: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None

    # --- load and unload -----------------------------------------------------------------------

    def load(self) -> None:
        """Read the log and replay it: at once if it is empty, else in a task of its own."""
        log = self._log()
        self._end_offset = log.log_start_offset
        if log.log_start_offset == log.log_end_offset:
            self._activate()
        else:
            self._loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        """Slice by slice to the log end, which stands still as only this machine writes here."""
        replica_manager = self._environment.replica_manager
        try:
            while self._end_offset < self._log().log_end_offset:
                read = replica_manager.read_from(self.topic_partition, self._end_offset, max_bytes=LOAD_SLICE_BYTES)
                before = self._end_offset
                self._replay_batches(read.records)
                if self._end_offset == before:
                    # Nothing readable up to the end: compaction leaves such a tail.
                    self._end_offset = self._log().log_end_offset
                self._committed(self._log().high_watermark)
                await asyncio.sleep(0)
        except (KafkaError, WireError) as error:
            self.state = ShardState.FAILED
            logger.error("the coordinator of %s could not be loaded: %s", self.topic_partition, error)
            return
        self._loading = None
        self._activate()

    def _replay_batches(self, records: bytes) -> None:
        machine, decode = self.machine, self._environment.codec.decode
        for batch in batches(records):
            if batch.is_control:
                marker = read_end_transaction_marker(batch)
                if marker is not None:
                    machine.replay_marker(batch.base_offset, batch.producer_id, batch.producer_epoch, marker.is_commit)
            else:
                for record in batch.records():
                    decoded = decode(record.key, record.value)
                    if decoded is None:
                        continue
                    if batch.is_transactional:
                        machine.replay_transactional(decoded, record.offset, batch.producer_id, batch.producer_epoch)
                    else:
                        machine.replay(decoded, record.offset)
            self._end_offset = batch.last_offset + 1

    def _activate(self) -> None:
        environment = self._environment
        self.state = ShardState.ACTIVE
        self._end_offset = self._log().log_end_offset
        self._committed(self._log().high_watermark)
        now_ms = environment.clock.now_ms()
        self._apply(self.machine.loaded(environment.make_context(), now_ms, environment.ids))

    def close(self, code: ErrorCode) -> None:
        """The partition is led elsewhere, or the node stops: every waiting request gets `code`."""
        self.state = ShardState.CLOSED
        for task in (self._releasing, self._loading):
            if task is not None:
                task.cancel()
        self._deferred.clear()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            refuse(future, KafkaError(code, f"this broker no longer coordinates {self.topic_partition}"))

    # --- requests ------------------------------------------------------------------------------

    def require_active(self) -> None:
        """Raises COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR."""
        if self.state is ShardState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic_partition} is being read")
        if self.state is not ShardState.ACTIVE:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"this broker does not coordinate {self.topic_partition}")

    async def write(self, request: Any, context: Any, verification_guard: VerificationGuard | None = None) -> Any:
        """Have the machine decide a request; returns its reply once that may be told. Raises KafkaError."""
        self.require_active()
        self._last_ticket += 1
        ticket = self._last_ticket
        environment = self._environment
        now_ms = environment.clock.now_ms()
        decision = self.machine.decide(request, context, now_ms, environment.ids, ticket)
        future = self._waiting[ticket] = environment.clock.loop.create_future()
        try:
            self._apply(decision, verification_guard)
            return await future
        finally:
            # A client that is gone leaves its ticket behind: replies to it are dropped.
            self._waiting.pop(ticket, None)

    async def write_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int = -1,
    ) -> None:
        """End a producer's transaction on this partition: append the marker, replay it, wait until it is
        replicated. Raises KafkaError, as a coordinator's client would get it."""
        self.require_active()
        now_ms = self._environment.clock.now_ms()
        batch = end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_commit=is_commit,
            coordinator_epoch=coordinator_epoch,
            timestamp=now_ms,
        )
        offset = self._append(batch, transaction_version=transaction_version)
        self._end_offset = offset + 1
        self.machine.replay_marker(offset, producer_id, producer_epoch, is_commit)
        self._last_ticket += 1
        ticket = self._last_ticket
        future = self._waiting[ticket] = self._environment.clock.loop.create_future()
        try:
            self._defer(Decision(replies=((ticket, None),)), offset)
            await future
        finally:
            self._waiting.pop(ticket, None)

    def expire(self, now_ms: int) -> None:
        """Let the machine do what is due; leaves the rest of much work for the next turn of the loop."""
        environment = self._environment
        for _ in range(EXPIRIES_PER_TURN):
            deadline_ms = self.machine.next_deadline_ms()
            if self.state is not ShardState.ACTIVE or deadline_ms is None or deadline_ms > now_ms:
                return
            self._apply(self.machine.expire(environment.make_context(), now_ms, environment.ids))

    # --- parts ---------------------------------------------------------------------------------

    def _log(self) -> Any:
        return self._environment.replica_manager.partition(self.topic_partition).log

    def _apply(
        self, decision: Decision[CoordinatorRecord], verification_guard: VerificationGuard | None = None
    ) -> None:
        """Append, settle, replay, and see to the replies. A refused append is told to the machine."""
        machine = self.machine
        first_offset = -1
        if decision.records:
            try:
                first_offset = self._append(self._encode(decision), verification_guard=verification_guard)
            except KafkaError as error:
                logger.warning("a write to %s was refused: %s", self.topic_partition, error)
                decision = machine.unsettle(decision, coordinator_error(error))
        machine.settle(decision)
        if decision.records:
            self._end_offset = first_offset + len(decision.records)
            if machine.replay_at is ReplayAt.APPEND:
                self._replay(decision, first_offset)
        if decision.events:
            self._environment.tell(decision.events)
        self._defer(decision, first_offset)
        self._environment.changed(self)

    def _encode(self, decision: Decision[CoordinatorRecord]) -> bytes:
        environment = self._environment
        now_ms = environment.clock.now_ms()
        encoded = [environment.codec.encode(record) for record in decision.records]
        return build_batch(
            [NewRecord(key=key, value=value, timestamp=now_ms) for key, value in encoded],
            compression=environment.compression(),
            producer_id=decision.producer_id,
            producer_epoch=decision.producer_epoch,
            base_sequence=environment.base_sequence,
            is_transactional=decision.producer_id != NO_PRODUCER_ID,
        )

    def _append(
        self, batch: bytes, *, transaction_version: int = -1, verification_guard: VerificationGuard | None = None
    ) -> int:
        return self._environment.replica_manager.append_records(
            self.topic_partition,
            batch,
            origin=AppendOrigin.COORDINATOR,
            verification_guard=verification_guard,
            transaction_version=transaction_version,
        )

    def _replay(self, decision: Decision[CoordinatorRecord], first_offset: int) -> None:
        machine = self.machine
        if decision.producer_id == NO_PRODUCER_ID:
            for index, record in enumerate(decision.records):
                machine.replay(record, first_offset + index)
            return
        for index, record in enumerate(decision.records):
            machine.replay_transactional(record, first_offset + index, decision.producer_id, decision.producer_epoch)

    # --- replies -------------------------------------------------------------------------------

    def _defer(self, decision: Decision[CoordinatorRecord], first_offset: int) -> None:
        """Release the replies now if all that was decided on is replicated, else when it is."""
        if not decision.records and not self._deferred and self._end_offset <= self._committed_offset:
            # Nearly all heartbeats: nothing was written, and nothing of what was decided on can be lost.
            self._reply(decision)
            return
        if not decision.replies and not decision.records:
            return
        environment = self._environment
        deadline_ms = environment.clock.now_ms() + environment.write_timeout_ms()
        self._deferred.append(_Deferred(self._end_offset, first_offset, deadline_ms, decision))
        if self._releasing is None and not self._release(self._log().high_watermark):
            self._releasing = asyncio.get_running_loop().create_task(self._release_in_time())

    def _release(self, high_watermark: int) -> bool:
        """Release what the high watermark has passed; True if nothing is left waiting for it."""
        machine = self.machine
        self._committed(high_watermark)
        deferred = self._deferred
        while deferred and deferred[0].required_offset <= high_watermark:
            entry = deferred.popleft()
            if machine.replay_at is ReplayAt.COMMIT and entry.decision.records:
                self._replay(entry.decision, entry.first_offset)
                self._environment.changed(self)
            self._reply(entry.decision)
        return not deferred

    def _committed(self, high_watermark: int) -> None:
        self._committed_offset = high_watermark
        self.machine.committed(high_watermark)

    async def _release_in_time(self) -> None:
        environment = self._environment
        try:
            while self._deferred:
                head = self._deferred[0]
                left_ms = max(head.deadline_ms - environment.clock.now_ms(), 0)
                try:
                    await environment.replica_manager.wait_for_high_watermark(
                        self.topic_partition, head.required_offset, left_ms
                    )
                except KafkaError as error:
                    self._deferred.popleft()
                    self._fail(head.decision, coordinator_error(error))
                else:
                    self._release(self._log().high_watermark)
        finally:
            self._releasing = None

    def _fail(self, decision: Decision[CoordinatorRecord], error: KafkaError) -> None:
        """Records were appended and not replicated in time (or the partition is lost). They stay in
        the log and may still be replicated; whoever waits is told to try again."""
        logger.warning("a write to %s was not replicated: %s", self.topic_partition, error)
        if self.machine.replay_at is ReplayAt.COMMIT and decision.records:
            decision = self.machine.unsettle(decision, error)
            self.machine.settle(decision)
            self._reply(decision)
            return
        self._reply(Decision(replies=[(ticket, error) for ticket, _ in decision.replies]))

    def _reply(self, decision: Decision[CoordinatorRecord]) -> None:
        """A reply that is a KafkaError is raised to whoever waits."""
        for ticket, response in decision.replies:
            future = self._waiting.get(ticket)
            if future is not None:
                resolve(future, response)
