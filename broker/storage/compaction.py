"""Compacting one log: the newest record of each key stays, at its offset (J12 to J19).

A `Compaction` first maps keys to their last offsets over the dirty part, then rewrites group after group of
segments. ``map_keys`` and ``GroupCleaning.clean`` may run in a thread: they read sealed segments through
pinned files, and write files of their own. All else is the loop's: only ``swap_in`` touches the log.

Source: Cleaner, MemoryRecords.filterTo.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from broker.storage.cleaned_transactions import CleanedTransactions
from broker.storage.cleaner import CleanableRange
from broker.storage.log import Log
from broker.storage.replay import read_batches
from broker.storage.segment import BatchPosition, CorruptSegment, Segment
from wire.errors import KafkaError
from wire.log_files import CLEANED_SUFFIX
from wire.record_batch import Record, RecordBatch
from wire.record_builder import empty_batch, retain_records

BYTES_PER_KEY = 160
"""What a key and its offset take in the map: log.cleaner.dedupe.buffer.size over this is the number of keys."""
_DIGEST_ABOVE = 32


def map_key(key: bytes) -> bytes:
    """A key as the map holds it: long ones as a digest, so that the map stays within its bound."""
    return key if len(key) <= _DIGEST_ABOVE else blake2b(key, digest_size=_DIGEST_ABOVE + 1).digest()


class CompactionStopped(Exception):
    """Somebody asked the thread to stop."""


class Compaction:
    """One pass over one log. Make it on the loop; see the module for what may run where."""

    def __init__(self, log: Log, cleanable: CleanableRange, *, now_ms: int, keys_max: int) -> None:
        self.log = log
        self.now_ms = now_ms
        self.end_offset = cleanable.first_dirty_offset
        """After ``map_keys``: everything below it is clean when the pass is done."""
        self.last_offsets: dict[bytes, int] = {}
        self.transactions = CleanedTransactions()
        self.round_end = cleanable.first_uncleanable_offset
        self._keys_max = max(keys_max, 1)
        self._stopped = False
        self._first_dirty = cleanable.first_dirty_offset
        self._dirty = [
            segment
            for segment in log.segments.from_offset(cleanable.first_dirty_offset)
            if segment.base_offset < self.round_end
        ]
        self._next_bases = [segment.base_offset for segment in self._dirty[1:]]
        if self._dirty:
            self._next_bases.append(self.round_end)
        self._aborted = log.aborted_transactions(cleanable.first_dirty_offset, self.round_end)
        self._groups: list[list[Segment]] | None = None
        for segment in self._dirty:
            segment.log.acquire()

    @property
    def latest_offset(self) -> int:
        """Last offset that the map knows of; records above it stay."""
        return self.end_offset - 1

    def stop(self) -> None:
        """Let the thread end at its next batch, with CompactionStopped."""
        self._stopped = True

    def batches(self, segment: Segment, from_offset: int = 0) -> Iterator[RecordBatch]:
        """The batches of a segment, until stopped. Raises CorruptSegment, CompactionStopped."""
        for batch in whole_batches(segment, from_offset):
            if self._stopped:
                raise CompactionStopped
            yield batch

    # --- the map --------------------------------------------------------------------------------

    def map_keys(self) -> None:
        """Read the dirty part. Raises OSError, KafkaError, CorruptSegment."""
        transactions = CleanedTransactions()
        transactions.expect(self._aborted)
        for segment, next_base in zip(self._dirty, self._next_bases, strict=True):
            for batch in self.batches(segment, self._first_dirty):
                if batch.is_control:
                    transactions.is_needless_marker(batch)
                elif not transactions.is_aborted_data(batch) and not self._map_batch(batch):
                    return  # Full: the pass ends before this batch.
                self.end_offset = max(self.end_offset, batch.next_offset)
            self.end_offset = max(self.end_offset, next_base)

    def _map_batch(self, batch: RecordBatch) -> bool:
        last_offsets, first_dirty = self.last_offsets, self._first_dirty
        for record in batch.records():
            if record.key is not None and record.offset >= first_dirty:
                if len(last_offsets) >= self._keys_max and map_key(record.key) not in last_offsets:
                    return False
                last_offsets[map_key(record.key)] = record.offset
        return True

    # --- groups ---------------------------------------------------------------------------------

    def next_group(self) -> GroupCleaning | None:
        """The next segments to rewrite into one; None when the pass is done. Raises KafkaError."""
        if self._groups is None:
            for segment in self._dirty:
                segment.log.release()
            self._dirty = []
            self._groups = self._group_segments()
        if not self._groups:
            self.log.first_dirty_offset = self.end_offset
            return None
        group = self._groups.pop(0)
        try:
            return GroupCleaning(self, group)
        except OSError as error:
            raise self.log.fail(error) from error

    def _group_segments(self) -> list[list[Segment]]:
        """Neighbours that fit one segment together: by bytes, by index entries, by 32-bit offsets."""
        config = self.log.config
        groups: list[list[Segment]] = []
        size = entries = stamps = 0
        segments = [segment for segment in self.log.segments if segment.base_offset < self.end_offset]
        for segment in segments:
            if segment is self.log.segments.active:
                break
            end = self.log.segments.base_after(segment) or self.round_end
            if (
                groups
                and size + segment.size_bytes <= config.segment_bytes
                and entries + segment.offset_index.count <= segment.offset_index.max_entries
                and stamps + segment.time_index.count <= segment.time_index.max_entries
                and (segment.size_bytes == 0 or groups[-1][0].can_hold(end - 1))
            ):
                groups[-1].append(segment)
            else:
                groups.append([segment])
                size = entries = stamps = 0
            size += segment.size_bytes
            entries += segment.offset_index.count
            stamps += segment.time_index.count
        return groups

    def abandon(self) -> None:
        """Let everything go: the pass was given up before its groups."""
        for segment in self._dirty:
            segment.log.release()
        self._dirty = []
        self._groups = []


class GroupCleaning:
    """Rewriting one group of neighbouring segments into one new segment."""

    def __init__(self, compaction: Compaction, segments: list[Segment]) -> None:
        """Open what the thread will need. Raises OSError, KafkaError."""
        log = compaction.log
        self._compaction = compaction
        self._log = log
        self._segments = segments
        self._sizes = [segment.size_bytes for segment in segments]
        # What a producer wrote last must stay, be it as an empty batch: its sequence (data) or epoch (marker).
        self._last_data = {
            entry.producer_id: entry.batches[-1].last_offset if entry.batches else -1
            for entry in log.producer_state.entries.values()
        }
        self._epochs = {entry.producer_id: entry.producer_epoch for entry in log.producer_state.entries.values()}
        self._aborted = [
            log.aborted_transactions(segment.base_offset, log.segments.base_after(segment) or compaction.round_end)
            for segment in segments
        ]
        self._delete_retention_ms = log.config.delete_retention_ms
        base = segments[0].base_offset
        for kind in (".log", ".index", ".timeindex", ".txnindex"):
            log.files.delete(f"{log.directory}/{base:020d}{kind}{CLEANED_SUFFIX}")
        self.cleaned = Segment(
            log.files, log.directory, base, log.config, now_ms=compaction.now_ms, suffix=CLEANED_SUFFIX
        )
        self.cleaned.pin(aborts=any(self._aborted))
        for segment in segments:
            segment.log.acquire()

    # --- in a thread ----------------------------------------------------------------------------

    def clean(self) -> None:
        """Write the new segment and bring it to the device. Raises OSError, KafkaError, CorruptSegment."""
        transactions = self._compaction.transactions
        transactions.kept_aborts = []
        for segment, aborted in zip(self._segments, self._aborted, strict=True):
            transactions.expect(aborted)
            for batch in self._compaction.batches(segment):
                content = self._cleaned_batch(batch)
                if content is not None:
                    self._write(content)
        self.cleaned.finish_cleaning(transactions.kept_aborts)

    def _write(self, content: bytes) -> None:
        view = RecordBatch(content)
        position = BatchPosition(
            self.cleaned.size_bytes, len(content), view.base_offset, view.last_offset, view.max_timestamp, 2
        )
        self.cleaned.append([content], [position])

    def _cleaned_batch(self, batch: RecordBatch) -> bytes | None:
        """What stays of a batch: itself, fewer records, a bare header, or nothing."""
        now_ms = self._compaction.now_ms
        transactions = self._compaction.transactions
        needless_marker = False
        if batch.is_control:
            needless_marker = transactions.is_needless_marker(batch)
            horizon = batch.delete_horizon_ms
            discards = needless_marker and horizon is not None and horizon <= now_ms
        else:
            discards = transactions.is_aborted_data(batch)
        if not discards:
            records = list(batch.records())
            kept = records if batch.is_control else [each for each in records if self._stays(batch, each)]
            if kept:
                has_tombstone = any(record.value is None for record in kept)
                sets_horizon = batch.delete_horizon_ms is None and (has_tombstone or needless_marker)
                if len(kept) == len(records) and not sets_horizon:
                    return batch.to_bytes()
                horizon_ms = now_ms + self._delete_retention_ms if sets_horizon else None
                return retain_records(batch, kept, delete_horizon_ms=horizon_ms)
        return empty_batch(batch) if self._must_stay_empty(batch) else None

    def _must_stay_empty(self, batch: RecordBatch) -> bool:
        if batch.next_offset == self._compaction.round_end:
            return True
        if batch.producer_id < 0 or batch.producer_id not in self._last_data:
            return False
        last_data = self._last_data[batch.producer_id]
        if last_data >= 0:
            return batch.last_offset == last_data
        return batch.is_control and batch.producer_epoch == self._epochs[batch.producer_id]

    def _stays(self, batch: RecordBatch, record: Record) -> bool:
        if record.offset > self._compaction.latest_offset:
            return True
        if record.key is None:
            return False
        if record.offset < self._compaction.last_offsets.get(map_key(record.key), -1):
            return False
        horizon = batch.delete_horizon_ms
        return record.value is not None or horizon is None or self._compaction.now_ms < horizon

    # --- on the loop ----------------------------------------------------------------------------

    def swap_in(self, *, now_ms: int) -> bool:
        """Put the new segment in the place of the old ones; False if the log changed under it meanwhile.

        Raises KafkaError.
        """
        held = set(self._log.segments)
        unchanged = self._log.offline is None and all(
            segment in held and segment.size_bytes == size
            for segment, size in zip(self._segments, self._sizes, strict=True)
        )
        if not unchanged:
            self.abandon()
            return False
        self._release()
        self._log.replace_segments(self.cleaned, self._segments, now_ms=now_ms)
        return True

    def abandon(self) -> None:
        """Give the new segment up. Raises KafkaError."""
        self._release()
        try:
            self.cleaned.delete()
        except OSError as error:
            raise self._log.fail(error) from error

    def _release(self) -> None:
        self.cleaned.unpin()
        for segment in self._segments:
            segment.log.release()


def whole_batches(segment: Segment, from_offset: int = 0) -> Iterator[RecordBatch]:
    """The batches of a sealed segment from ``from_offset`` on. Raises CorruptSegment for anything else in it."""
    end = 0
    try:
        for position, batch in read_batches(segment):
            if not isinstance(batch, RecordBatch):
                raise CorruptSegment(
                    f"{segment.log.path} holds batches of magic {batch.magic} at {position}, from before Kafka 0.11: "
                    "Apache Kafka rewrites them when it compacts, this broker does not"
                )
            end = position + batch.size_bytes
            if batch.last_offset >= from_offset:
                yield batch
    except KafkaError as error:
        raise CorruptSegment(f"{segment.log.path} cannot be compacted: {error}") from error
    if end != segment.size_bytes:
        raise CorruptSegment(f"{segment.log.path} ends in the middle of a batch at {end}")


def compact(log: Log, cleanable: CleanableRange, *, now_ms: int, keys_max: int) -> bool:
    """A whole pass without threads; False if the log turned out not to be cleanable (J19: kept in memory)."""
    compaction = Compaction(log, cleanable, now_ms=now_ms, keys_max=keys_max)
    try:
        compaction.map_keys()
        while (group := compaction.next_group()) is not None:
            try:
                group.clean()
            except BaseException:
                group.abandon()
                raise
            if not group.swap_in(now_ms=now_ms):
                return False
    except (CorruptSegment, OSError) as error:
        compaction.abandon()
        log.uncleanable = str(error)
        return False
    return True
