"""One partition's log: what it holds, and every way to change it.

Reading is in log_reading.py, loading in recovery.py, the checks of a produced batch in validation.py and
producer_state.py. Source: UnifiedLog, LocalLog.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from broker.config_log import LogConfig
from broker.storage import log_reading
from broker.storage.files import Files
from broker.storage.flush_task import FlushTask, start_flush
from broker.storage.leader_epochs import LeaderEpochs
from broker.storage.log_appending import (
    NO_TRANSACTION_VERSION,
    AppendInfo,
    append_as_follower,
    append_as_leader,
)
from broker.storage.log_reading import LogRead, TimestampOffset
from broker.storage.log_segments import LogSegments
from broker.storage.partition_metadata import FILE_NAME as PARTITION_METADATA
from broker.storage.producer_snapshots import ProducerSnapshots
from broker.storage.producer_state import AppendOrigin, ProducerState, VerificationGuard
from broker.storage.replay import rebuild_producer_state
from broker.storage.segment import CorruptSegment, Segment
from wire.errors import ErrorCode, KafkaError
from wire.log_files import SWAP_SUFFIX, AbortedTransactionEntry
from wire.primitives import TopicPartition

__all__ = ["AppendInfo", "AppendOrigin", "FlushTask", "Log", "LogRead", "TimestampOffset"]


class Log:
    """A partition's replica in one log directory. The loop owns it; nothing here waits or reads a clock.

    Every call may raise KafkaError KAFKA_STORAGE_ERROR: the log is offline after an I/O error, save one
    that means "no room", which refuses the append and leaves the log as it was.
    """

    def __init__(
        self,
        files: Files,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        topic_id: bytes | None,
        segments: LogSegments,
        leader_epochs: LeaderEpochs,
        producer_state: ProducerState,
        snapshots: ProducerSnapshots,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        now_ms: int,
        on_failure: Callable[[Log, OSError], None] | None = None,
        on_truncation: Callable[[Log], None] | None = None,
        chance: Random | None = None,
    ) -> None:
        """Put together what ``recovery.load_log`` found; use that."""
        self.files = files
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.segments = segments
        self.leader_epochs = leader_epochs
        self.producer_state = producer_state
        self.snapshots = snapshots
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self.last_flushed_ms = now_ms
        self.topic_id_is_durable = True
        """False until partition.metadata is on the device: that happens before the first data."""
        self.offline: str | None = None
        """Why the log cannot be used, None while it can."""
        self.first_dirty_offset: int | None = None
        """Where compaction goes on; None if it never ran (cleaner-offset-checkpoint)."""
        self.uncleanable: str | None = None
        """Why the cleaner leaves the log alone from now on (J19)."""
        self._high_watermark = log_start_offset
        self._on_failure = on_failure
        self._on_truncation = on_truncation
        self._chance = chance

    # --- failing --------------------------------------------------------------------------------

    def require_online(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if the log is offline."""
        if self.offline is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log of {self.topic_partition} is offline: {self.offline}")

    def fail(self, error: OSError | CorruptSegment) -> KafkaError:
        """Take the log offline for an I/O error; the error to raise."""
        if self.offline is None:
            self.offline = str(error)
            if self._on_failure is not None and isinstance(error, OSError):
                self._on_failure(self, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log of {self.topic_partition} in {self.directory}: {error}")

    # --- offsets --------------------------------------------------------------------------------

    @property
    def high_watermark(self) -> int:
        """All below it is committed."""
        return self._high_watermark

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark up to ``offset``, at most to the log end; never back. True if it moved."""
        offset = min(offset, self.log_end_offset)
        if offset <= self._high_watermark:
            return False
        self._high_watermark = offset
        self.producer_state.passed(offset)
        return True

    def set_high_watermark(self, offset: int) -> None:
        """Set it to a checkpoint's or after a truncation: held within log start and log end."""
        self._high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))
        self.producer_state.passed(self._high_watermark)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of a transaction that is open, or whose end is not replicated yet (D23)."""
        offset = self.producer_state.first_unstable_offset
        return None if offset is None else max(offset, self.log_start_offset)

    @property
    def last_stable_offset(self) -> int:
        """How far readers of committed data may go."""
        unstable = self.producer_state.first_unstable_offset
        if unstable is None or unstable >= self._high_watermark:
            return self._high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self.segments.size_bytes

    # --- appending ------------------------------------------------------------------------------

    def append_as_leader(
        self,
        batch: bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = NO_TRANSACTION_VERSION,
    ) -> AppendInfo:
        """Check one batch (B.2 steps 4 to 11), give it offsets, write it.

        ``transaction_version`` matters to transaction markers only (D11). Raises KafkaError, and then
        nothing was appended; RejectedRecords, which has ``record_errors``, for B.2 step 7.
        """
        self.require_online()
        return append_as_leader(self, batch, leader_epoch, now_ms, origin, verification_guard, transaction_version)

    def append_as_follower(self, records: bytes, *, leader_epoch: int, now_ms: int) -> AppendInfo | None:
        """Append fetched batches as they are (K3); None if nothing is left to append.

        They go on at or above the log end, else OFFSET_OUT_OF_RANGE. An incomplete last batch, and batches
        of an epoch above ``leader_epoch``, are cut off. A wrong CRC raises CORRUPT_MESSAGE; the batches
        before it stay out as well.
        """
        self.require_online()
        return append_as_follower(self, records, leader_epoch, now_ms)

    def start_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """A guard to hold while the transaction coordinator is asked, and to append with; None if the
        transaction is open here already. Raises INVALID_PRODUCER_EPOCH for a stale epoch (D.8)."""
        self.require_online()
        return self.producer_state.start_verification(
            producer_id, sequence, producer_epoch, supports_epoch_bump=supports_epoch_bump, now_ms=now_ms
        )

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has data of an undecided transaction here, in this epoch."""
        return self.producer_state.has_ongoing_transaction(producer_id, producer_epoch)

    # --- reading --------------------------------------------------------------------------------

    def read(
        self, offset: int, *, max_bytes: int, upper_offset: int | None = None, min_one_batch: bool = True
    ) -> LogRead:
        """Bytes from the batch holding ``offset`` on, below ``upper_offset`` (the log end) at batch granularity.

        OFFSET_OUT_OF_RANGE below the log start and above the log end; empty at the end, and at or above
        ``upper_offset``. With ``min_one_batch`` the first batch comes whole, whatever its size.
        """
        self.require_online()
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.topic_partition} is not within {self.log_start_offset} and {end}",
            )
        try:
            return log_reading.read(
                self.segments,
                offset,
                max_bytes=max_bytes,
                upper_offset=end if upper_offset is None else min(upper_offset, end),
                log_end_offset=end,
                min_one_batch=min_one_batch,
            )
        except (OSError, CorruptSegment) as error:
            raise self.fail(error) from error

    def aborted_transactions(self, first_offset: int, upper_offset: int) -> list[AbortedTransactionEntry]:
        """Aborted transactions that overlap [first_offset, upper_offset), for the fetch answer."""
        self.require_online()
        try:
            return log_reading.aborted_transactions(self.segments, first_offset, upper_offset)
        except OSError as error:
            raise self.fail(error) from error

    def bytes_between(self, from_offset: int, to_offset: int) -> int:
        """Bytes between two offsets at batch granularity, for a waiting fetch's min bytes."""
        self.require_online()
        try:
            return log_reading.bytes_between(self.segments, from_offset, to_offset)
        except (OSError, CorruptSegment) as error:
            raise self.fail(error) from error

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """First record, in the order of offsets and at or above the log start, of ``timestamp_ms`` or later."""
        self.require_online()
        try:
            return log_reading.offset_for_timestamp(self.segments, timestamp_ms, self.log_start_offset)
        except (OSError, CorruptSegment) as error:
            raise self.fail(error) from error

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """First record with the greatest timestamp; None if no record has one."""
        self.require_online()
        try:
            return log_reading.offset_of_max_timestamp(self.segments)
        except (OSError, CorruptSegment) as error:
            raise self.fail(error) from error

    def earliest_leader_epoch(self) -> int:
        """Epoch for ListOffsets -2: the earliest entry's if it starts at or below the log start, else -1."""
        entry = self.leader_epochs.earliest_entry
        return entry[0] if entry is not None and entry[1] <= self.log_start_offset else -1

    # --- changing -------------------------------------------------------------------------------

    def assign_epoch_start_offset(self, leader_epoch: int, start_offset: int) -> None:
        """A new leader notes where its epoch begins (K6)."""
        self.require_online()
        try:
            self.leader_epochs.assign(leader_epoch, start_offset)
        except OSError as error:
            raise self.fail(error) from error

    def roll(self, *, now_ms: int, base_offset: int | None = None) -> Segment:
        """Close the active segment and go on in a new one at the log end (or at ``base_offset`` above it).

        Nothing to do for an empty active segment that starts there already.
        """
        self.require_online()
        active = self.segments.active
        base_offset = self.log_end_offset if base_offset is None else max(base_offset, self.log_end_offset)
        if active.base_offset == base_offset and active.size_bytes == 0:
            return active
        try:
            active.seal()
            self.producer_state.end_offset = base_offset
            self.snapshots.take(self.producer_state)
            segment = Segment(
                self.files,
                self.directory,
                base_offset,
                self.config,
                now_ms=now_ms,
                roll_jitter_ms=self._roll_jitter_ms(),
            )
        except OSError as error:
            raise self.fail(error) from error
        self.segments.add(segment)
        return segment

    def _roll_jitter_ms(self) -> int:
        jitter = self.config.segment_jitter_ms
        return self._chance.randrange(jitter) if jitter > 0 and self._chance is not None else 0

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Drop everything at and above ``offset``; False if there is nothing.

        The batch that holds ``offset`` goes whole, so the log may end below it. The caller sees to the
        high watermark's meaning; it is lowered to the new end here.
        """
        self.require_online()
        if offset >= self.log_end_offset:
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return True
        try:
            self._lower_recovery_point(offset)
            later = self.segments.from_offset(offset)[1:]
            # From the end on, so that a crash in between leaves no hole.
            self.segments.retire(later[::-1], delete_at_ms=now_ms + self.config.file_delete_delay_ms)
            self.segments.active.truncate_to(offset, now_ms=now_ms)
            self.segments.recount()
            self.log_end_offset = min(offset, self.segments.active.next_offset())
            self._after_truncation(now_ms)
        except OSError as error:
            raise self.fail(error) from error
        return True

    def _after_truncation(self, now_ms: int) -> None:
        end = self.log_end_offset
        self.log_start_offset = min(self.log_start_offset, end)
        self.leader_epochs.truncate_from_end(end)
        if self.first_dirty_offset is not None:
            self.first_dirty_offset = min(self.first_dirty_offset, end)
        rebuild_producer_state(
            self.producer_state,
            self.snapshots,
            self.segments,
            log_start_offset=self.log_start_offset,
            log_end_offset=end,
            now_ms=now_ms,
        )
        self.set_high_watermark(min(self._high_watermark, end))
        self._lower_recovery_point(end)

    def _lower_recovery_point(self, offset: int) -> None:
        """Before anything is cut, and durably: what is appended in its place is not on the device yet, and
        a recovery that trusted the old point would not look at it. Raises OSError."""
        if offset < self.recovery_point:
            self.recovery_point = offset
            if self._on_truncation is not None:
                self._on_truncation(self)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Drop everything and go on at ``offset``: log start, log end and high watermark."""
        self.require_online()
        try:
            self._lower_recovery_point(offset)
            self.segments.retire(list(self.segments)[::-1], delete_at_ms=now_ms + self.config.file_delete_delay_ms)
            self.segments.add(Segment(self.files, self.directory, offset, self.config, now_ms=now_ms))
            self.leader_epochs.clear()
            self.snapshots.delete_all()
            self.producer_state.clear(offset)
            self.log_start_offset = self.log_end_offset = self._high_watermark = offset
            self._after_truncation(now_ms)
        except OSError as error:
            raise self.fail(error) from error

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up to ``offset``; returns the log start.

        A smaller offset changes nothing (F10); one above the high watermark is OFFSET_OUT_OF_RANGE. Also how
        a follower takes over its leader's log start (F12). The space is freed by the next retention pass.
        """
        self.require_online()
        if offset > self._high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"cannot move the log start of {self.topic_partition} to {offset}, "
                f"above its high watermark {self._high_watermark}",
            )
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            try:
                self.leader_epochs.truncate_from_start(offset)
            except OSError as error:
                raise self.fail(error) from error
            self.producer_state.passed(offset)
        return self.log_start_offset

    def retire_segments(self, count: int, *, now_ms: int) -> None:
        """Remove the ``count`` oldest segments (retention); the log start moves to the first that stays.

        The active segment stays: roll before it is to go.
        """
        self.require_online()
        if not 0 <= count < len(self.segments):
            raise ValueError(f"{count} of {len(self.segments)} segments")
        oldest = [self.segments[place] for place in range(count)]
        try:
            for segment in oldest:
                self.snapshots.delete(segment.base_offset)
            self.segments.retire(oldest, delete_at_ms=now_ms + self.config.file_delete_delay_ms)
            if self.segments[0].base_offset > self.log_start_offset:
                self.log_start_offset = self.segments[0].base_offset
                self.leader_epochs.truncate_from_start(self.log_start_offset)
                self.producer_state.passed(self.log_start_offset)
        except OSError as error:
            raise self.fail(error) from error

    def replace_segments(self, cleaned: Segment, old: list[Segment], *, now_ms: int) -> None:
        """Put a finished ``.cleaned`` segment in the place of its neighbouring sources (J18).

        Renames in the order from which a start after a crash goes on: the new one first, to `.swap`.
        """
        self.require_online()
        try:
            self.files.set_modified_ms(cleaned.log.path, old[-1].modified_ms)
            cleaned.rename(SWAP_SUFFIX)
            for segment in old[1:]:
                self.snapshots.delete(segment.base_offset)
            self.segments.retire(old, delete_at_ms=now_ms + self.config.file_delete_delay_ms)
            cleaned.rename("")
            self.files.sync_directory(self.directory)
        except OSError as error:
            raise self.fail(error) from error
        self.segments.add(cleaned)

    # --- durability -----------------------------------------------------------------------------

    def maybe_flush(self, now_ms: int) -> None:
        """Flush if flush.messages or flush.ms say so."""
        unflushed = self.log_end_offset - self.recovery_point
        if unflushed >= self.config.flush_messages or (
            unflushed > 0 and now_ms - self.last_flushed_ms >= self.config.flush_ms
        ):
            self.flush(now_ms=now_ms)

    def flush(self, *, now_ms: int) -> None:
        """Bring everything to the device and move the recovery point to the log end."""
        self.require_online()
        try:
            for segment in self.segments.from_offset(self.recovery_point):
                segment.flush()
            self.leader_epochs.sync()
            self.snapshots.sync()
            self.files.sync_directory(self.directory)
        except OSError as error:
            raise self.fail(error) from error
        self.recovery_point = self.log_end_offset
        self.last_flushed_ms = now_ms

    def start_flush(self) -> FlushTask | None:
        """The sealed segments that are not on the device yet, to be synced off the loop; None if all are."""
        return start_flush(self)

    def finish_flush(self, task: FlushTask) -> None:
        """``task.run`` came back: its segments need no recovery any more."""
        task.release()
        self.recovery_point = max(self.recovery_point, min(task.recovery_point, self.log_end_offset))

    def update_config(self, config: LogConfig) -> None:
        """Other settings from now on."""
        self.config = config

    def make_topic_id_durable(self) -> None:
        """Bring partition.metadata to the device. Raises KafkaError."""
        try:
            file = self.files.open(f"{self.directory}/{PARTITION_METADATA}")
            try:
                file.sync()
            finally:
                file.release()
            self.files.sync_directory(self.directory)
        except OSError as error:
            raise self.fail(error) from error
        self.topic_id_is_durable = True

    def moved(self, directory: str) -> None:
        """The directory has another name now."""
        self.directory = self.leader_epochs.directory = self.snapshots.directory = directory
        self.segments.moved(directory)

    def close(self, *, sync: bool = True) -> None:
        """A clean end: producer snapshot, complete indexes, files closed.

        Without ``sync`` the caller brings all of it to the device, batches included.
        """
        if self.offline is not None:
            self.segments.close_files()
            return
        try:
            self.producer_state.end_offset = self.log_end_offset
            self.snapshots.take(self.producer_state)
            if self.recovery_point < self.log_end_offset:
                self.leader_epochs.sync() if sync else self.leader_epochs.write()
            if sync:
                self.snapshots.sync()
            for segment in self.segments:
                segment.close()
        except OSError as error:
            raise self.fail(error) from error
