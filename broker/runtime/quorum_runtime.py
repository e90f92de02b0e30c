"""Runs the metadata quorum of this node: its log, its snapshots, the active controller.

    open()            load the newest snapshot and the log after it, lead
    write(request)    decide, append, flush, commit, publish, then answer

One voter goes the way that more will go: the raft node decides, this does what its `Ready` says.
Requests that arrive in the same turn of the loop share one flush. Source: Kafka's KafkaRaftClient,
KafkaRaftLog and QuorumController.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from broker.clock import Clock, Timer
from broker.runtime.metadata_batches import data_batches, quorum_batch, read_batches
from broker.runtime.metadata_publisher import MetadataCache
from broker.runtime.metadata_snapshots import BOOTSTRAP_ID, Snapshots
from broker.runtime.refusal import refuse, resolve
from broker.runtime.snapshot_schedule import SnapshotSchedule, SnapshotSettings
from broker.storage.files import Files, StorageFault, replace_file
from broker.storage.log import AppendOrigin, Log
from coordinator.controller.bootstrap import Activate, bootstrap_records
from coordinator.controller.controller import Controller
from coordinator.controller.view import ControllerContext, ControllerSettings
from coordinator.machine import Decision, Ids, MetadataRecord
from coordinator.metadata.delta import MetadataDelta
from coordinator.metadata.image import MetadataImage
from coordinator.metadata.replay import MetadataReplay
from coordinator.metadata.replay_errors import MetadataReplayError
from coordinator.quorum.quorum_state import (
    ElectionState,
    QuorumStateError,
    decode_election_state,
    encode_election_state,
)
from coordinator.quorum.raft_node import Flushed, RaftNode, Ready
from coordinator.quorum.voters import Quorum, Voter
from wire.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

QUORUM_STATE = "quorum-state"
DEFAULT_SNAPSHOT_SETTINGS = SnapshotSettings()
_READ_BYTES = 1024 * 1024


class _Change(NamedTuple):
    """An appended change; it is published when everything up to `last_offset` is committed."""

    last_offset: int
    delta: MetadataDelta
    image: MetadataImage


class _Waiting(NamedTuple):
    """A decided request; it is answered when everything up to `last_offset` is committed."""

    last_offset: int
    future: asyncio.Future[Any]
    response: Any


@dataclass(frozen=True, slots=True)
class QuorumPlace:
    """Where the metadata log lives, and whose it is. `log_directory` is metadata.log.dir (or the
    first of log.dirs) and `log` the open log in it; `static_voters` are controller.quorum.voters."""

    files: Files
    log_directory: str
    log: Log
    voter: Voter
    static_voters: tuple[Voter, ...]

    @property
    def directory(self) -> str:
        """The directory of the metadata log."""
        return self.log.directory


class QuorumRuntime:
    """The quorum of one node; everything is called on the loop that owns it."""

    def __init__(
        self,
        place: QuorumPlace,
        settings: ControllerSettings,
        metadata: MetadataCache,
        clock: Clock,
        ids: Ids,
        *,
        snapshot_settings: SnapshotSettings = DEFAULT_SNAPSHOT_SETTINGS,
        on_fault: Callable[[KafkaError], None] = lambda error: None,
        further_bootstrap: Sequence[MetadataRecord] = (),
    ) -> None:
        """`further_bootstrap` are records that a new cluster begins with besides its features.
        `on_fault` is told once when the metadata log fails: a node that cannot write it has to stop."""
        self._place = place
        self._log = place.log
        self._settings = settings
        self._metadata = metadata
        self._clock = clock
        self._ids = ids
        self._on_fault = on_fault
        self._further_bootstrap = further_bootstrap
        self._snapshots = Snapshots(place.files, place.directory)
        self._schedule = SnapshotSchedule(self._snapshots, self._log, clock, snapshot_settings)
        self._quorum = Quorum(place.static_voters)
        self._raft: RaftNode
        self._controller: Controller
        self._changes: deque[_Change] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._flush_scheduled = False
        self._timer: Timer | None = None
        self._fault: KafkaError | None = None
        self._is_open = False

    # --- opening -------------------------------------------------------------------------------

    @property
    def raft(self) -> RaftNode:
        """The quorum's state machine, for DescribeQuorum."""
        return self._raft

    @property
    def log_end_offset(self) -> int:
        """Where the metadata log ends."""
        return self._log.log_end_offset

    @property
    def image(self) -> MetadataImage:
        """The metadata as of the last append."""
        return self._controller.image

    def open(self) -> None:
        """Load what is there, become leader, and fill the log of a new cluster. Everything is
        published as one change. Raises StorageFault, with one sentence that names the directory,
        when the directory cannot be used as it stands."""
        try:
            self._open()
        except (MetadataReplayError, QuorumStateError) as error:
            raise StorageFault(f"the metadata log in {self._place.directory} cannot be opened: {error}") from error

    def _open(self) -> None:
        self._snapshots.remove_unfinished()
        bootstrap = self._bootstrap()
        replay = MetadataReplay()
        self._load(replay)
        loaded = replay.take_change(self._log_epoch(), self._clock.now_ms())
        if replay.in_transaction:
            raise MetadataReplayError("the log ends inside a metadata transaction")
        self._raft = RaftNode(self._place.voter, self._quorum, self._read_election_state(), self._log.log_end_offset)
        self._controller = Controller(
            replay.image,
            self._clock.now_ms(),
            broker_session_timeout_ms=self._settings.broker_session_timeout_ms,
            local_broker_id=self._settings.local_broker_id,
        )
        if loaded is not None:
            self._changes.append(_Change(self._log.log_end_offset - 1, *loaded))
        self._act(self._raft.tick(self._clock.now_ms()))
        _answer(self._append_decision(self._decide(Activate(tuple(bootstrap)), -1)))
        self._flush()
        if self._fault is not None:
            raise self._fault
        self._is_open = True
        self._arm_timer()

    def _bootstrap(self) -> list[MetadataRecord]:
        """What the format of this directory wrote; a directory without a format gets it now."""
        ids = self._snapshots.ids()
        if not ids and self._log.log_end_offset == 0:
            records = self._snapshots.read_legacy_bootstrap(self._place.log_directory)
            records = records or [*bootstrap_records(), *self._further_bootstrap]
            now_ms = self._clock.now_ms()
            self._snapshots.write(BOOTSTRAP_ID, records, self._quorum, last_timestamp_ms=now_ms, now_ms=now_ms)
            self._snapshots.publish(BOOTSTRAP_ID)
            return records
        if BOOTSTRAP_ID not in ids:
            return []
        records = []
        for batch in self._snapshots.read(BOOTSTRAP_ID):
            records += batch.records
            for message in batch.control:
                self._quorum = self._quorum.replay(message, in_log=False)
        trial = MetadataReplay()
        for offset, record in enumerate(records):
            trial.replay(record.message, offset)
        return records

    def _load(self, replay: MetadataReplay) -> None:
        """Replay the newest snapshot and the log after it."""
        log = self._log
        newest = max(self._snapshots.ids(), default=BOOTSTRAP_ID)
        if newest != BOOTSTRAP_ID:
            for batch in self._snapshots.read(newest):
                for message in batch.control:
                    self._quorum = self._quorum.replay(message, in_log=True)
                for record in batch.records:
                    replay.replay(record.message, newest.end_offset - 1)
            if log.log_end_offset < newest.end_offset:
                log.truncate_fully_and_start_at(newest.end_offset, now_ms=self._clock.now_ms())
        self._schedule.loaded(newest)
        offset = max(newest.end_offset, log.log_start_offset)
        if offset > newest.end_offset:
            raise MetadataReplayError(
                f"the log starts at offset {offset}, but the newest snapshot ends at "
                f"{newest.end_offset}: what lies between is missing"
            )
        while offset < log.log_end_offset:
            for batch in read_batches(log.read(offset, max_bytes=_READ_BYTES).records):
                if batch.last_offset < offset:
                    continue
                for message in batch.control:
                    self._quorum = self._quorum.replay(message, in_log=True)
                for index, record in enumerate(batch.records):
                    replay.replay(record.message, batch.base_offset + index)
                self._schedule.appended(batch.size_bytes)
                offset = batch.last_offset + 1

    def _log_epoch(self) -> int:
        return self._log.leader_epochs.latest_epoch

    def _read_election_state(self) -> ElectionState:
        """The stored election state; the log may know a later epoch if the file is gone."""
        path = f"{self._place.directory}/{QUORUM_STATE}"
        files = self._place.files
        state = ElectionState()
        if files.exists(path):
            content = files.read(path)
            if content:
                state = decode_election_state(content)
        return state._replace(epoch=max(state.epoch, self._log_epoch()))

    # --- acting --------------------------------------------------------------------------------

    def _act(self, ready: Ready) -> None:
        """Do what the raft node says, in its order."""
        if ready.persist is not None:
            content = encode_election_state(ready.persist, self._quorum.voter_ids(), self._quorum.kraft_version)
            path = f"{self._place.directory}/{QUORUM_STATE}"
            replace_file(self._place.files, path, content)
        if ready.append:
            now_ms = self._clock.now_ms()
            self._append(
                quorum_batch(
                    ready.append,
                    base_offset=0,
                    epoch=ready.append_epoch,
                    timestamp_ms=now_ms,
                ),
                now_ms,
            )
        for event in ready.events:
            logger.info("%s", event.text)
        if ready.high_watermark is not None:
            self._commit(ready.high_watermark)

    def _append(self, batch: bytes, now_ms: int) -> None:
        self._log.append_as_leader(
            batch,
            leader_epoch=self._raft.epoch,
            origin=AppendOrigin.RAFT_LEADER,
            now_ms=now_ms,
        )
        self._schedule.appended(len(batch))

    def submit(self, request: Any, api_version: int = -1) -> asyncio.Future[Any]:
        """Decide a request now. The future holds the response once the change is committed and
        published on this node, or the KafkaError with which the request is refused as a whole."""
        future: asyncio.Future[Any] = self._clock.loop.create_future()
        try:
            if self._fault is not None:
                raise self._fault
            response = self._append_decision(self._decide(request, api_version))
        except KafkaError as error:
            refuse(future, error)
            return future
        self._arm_timer()
        if self._flush_scheduled or self._has_uncommitted():
            self._waiting.append(_Waiting(self._log.log_end_offset - 1, future, response))
            self._schedule_flush()
        else:
            resolve(future, response)
        return future

    def _decide(self, request: Any, api_version: int) -> Decision[MetadataRecord]:
        context = self._context(api_version)
        return self._controller.decide(request, context, self._clock.now_ms(), self._ids, 0)

    def _context(self, api_version: int) -> ControllerContext:
        return ControllerContext(self._settings, self._log.log_end_offset, api_version)

    def _has_uncommitted(self) -> bool:
        committed = self._raft.high_watermark
        return committed is None or committed < self._log.log_end_offset

    def _append_decision(self, decision: Decision[MetadataRecord]) -> Any:
        """Append, settle and replay a decision; returns its response, or the error in its place."""
        first_offset = self._log.log_end_offset
        now_ms = self._clock.now_ms()
        try:
            self._append_records(decision.records, now_ms)
        except KafkaError as error:
            if self._log.offline is not None:
                self._fail(error)
            return self._controller.unsettle(decision, error).replies[0][1]
        controller = self._controller
        controller.settle(decision)
        for offset, record in enumerate(decision.records, first_offset):
            controller.replay(record, offset)
        change = controller.take_change(self._raft.epoch, now_ms)
        if change is not None:
            self._changes.append(_Change(self._log.log_end_offset - 1, *change))
        for event in decision.events:
            logger.info("%s", event.text)
        return decision.replies[0][1] if decision.replies else None

    def _append_records(self, records: Sequence[MetadataRecord], now_ms: int) -> None:
        """Append all records or none. They fill one batch, unless there are more than it holds."""
        first_offset = self._log.log_end_offset
        try:
            # The log gives the batches their offsets.
            for batch in data_batches(records, base_offset=0, epoch=self._raft.epoch, timestamp_ms=now_ms):
                self._append(batch, now_ms)
        except KafkaError:
            if self._log.offline is None and self._log.log_end_offset > first_offset:
                self._log.truncate_to(first_offset, now_ms=now_ms)
            raise

    def _arm_timer(self) -> None:
        """Wake for the controller's next deadline; without one there is no timer."""
        deadline_ms = self._controller.next_deadline_ms()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline_ms is not None:
            self._timer = self._clock.call_at(deadline_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._fault is not None:
            return
        decision = self._controller.expire(self._context(-1), self._clock.now_ms(), self._ids)
        if decision.records:
            self._append_decision(decision)
            self._schedule_flush()
        self._arm_timer()

    async def close(self) -> None:
        """Stop, also what did not open whole: what is decided is committed, the snapshot is brought up to date
        if that saves the next start work, timers are gone. The log itself belongs to who opened it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._is_open:
            return
        if self._fault is None and self._has_uncommitted():
            self._flush()
        stopped = KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "The node is shutting down.")
        self._fault = self._fault or stopped
        await self._schedule.close(self._metadata.image, self._quorum)

    # --- committing ----------------------------------------------------------------------------

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._clock.loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Make the log durable and commit what a majority has."""
        self._flush_scheduled = False
        try:
            self._log.flush(now_ms=self._clock.now_ms())
        except KafkaError as error:
            self._fail(error)
            return
        self._act(self._raft.step(Flushed(self._log.log_end_offset), self._clock.now_ms()))

    def _commit(self, high_watermark: int) -> None:
        self._log.advance_high_watermark(high_watermark)
        while self._changes and self._changes[0].last_offset < high_watermark:
            change = self._changes.popleft()
            self._metadata.publish(change.delta, change.image)
        self._schedule.committed(self._metadata.image, self._quorum)
        while self._waiting and self._waiting[0].last_offset < high_watermark:
            waiting = self._waiting.popleft()
            resolve(waiting.future, waiting.response)

    def _fail(self, error: KafkaError) -> None:
        """The metadata log is gone: nothing can be decided any more."""
        self._fault = error
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            refuse(request.future, error)
        self._on_fault(error)


def _answer(response: Any) -> Any:
    """The response, or the error that stands in its place, raised."""
    if isinstance(response, KafkaError):
        raise response
    return response
