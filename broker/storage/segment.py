"""A segment: one `.log` file of batches back to back, and its three indexes.

Positions are found by the offset index and a walk over batch headers; no record is decoded here but for
look-ups by time. Source: LogSegment, FileRecords.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from broker.config_log import LogConfig
from broker.storage.files import Buffer, File, Files
from broker.storage.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from broker.storage.time_index import NO_TIMESTAMP, TimeIndex
from broker.storage.transaction_index import TransactionIndex
from wire.log_files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    AbortedTransactionEntry,
    off20,
)

SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

# Base offset, length, magic, last offset delta, max timestamp; the rest is skipped.
_HEAD = Struct(">qi4xb6xi8xq")
_LEGACY_TIMESTAMP = Struct(">q")
_OVERHEAD = 12
_LEAST_LENGTH = 14
_WALK_BYTES = 8192
"""Two index intervals: one read usually finds the batch."""


class CorruptSegment(Exception):
    """Bytes in the middle of a segment that are no batch; the text names file and position."""


class BatchPosition(NamedTuple):
    """Where a batch lies, from its header alone."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    magic: int


def _roll_ms(config: LogConfig) -> int:
    """segment.ms; a compacted log rolls in time for max.compaction.lag.ms."""
    return min(config.segment_ms, config.max_compaction_lag_ms) if config.compacts else config.segment_ms


class Segment:
    """One segment. ``suffix`` is `.cleaned` or `.swap` while it is being made, else empty."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_files",
        "_first_batch_timestamp",
        "_index_interval_bytes",
        "_recent",
        "_recent_floor",
        "_recent_last_offsets",
        "base_offset",
        "created_ms",
        "directory",
        "log",
        "max_timestamp_so_far",
        "offset_index",
        "offset_of_max_timestamp",
        "roll_jitter_ms",
        "sealed",
        "suffix",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        roll_jitter_ms: int = 0,
        suffix: str = "",
    ) -> None:
        """Open the log file (made if missing); the indexes start empty, see ``load_indexes``."""
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.created_ms = now_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.sealed = False
        self._index_interval_bytes = config.index_interval_bytes
        self.log: File = files.open(self.path(LOG_SUFFIX))
        index_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndex(files, self.path(INDEX_SUFFIX), base_offset, index_bytes)
        self.time_index = TimeIndex(files, self.path(TIME_INDEX_SUFFIX), base_offset, index_bytes)
        self.transaction_index = TransactionIndex(files, self.path(TRANSACTION_INDEX_SUFFIX), base_offset)
        self.max_timestamp_so_far = NO_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        self._first_batch_timestamp: int | None = None
        self._bytes_since_index_entry = 0
        self._recent_floor = base_offset - 1
        self._recent_last_offsets: list[int] = []
        self._recent: list[BatchPosition] = []

    def path(self, suffix: str) -> str:
        """Path of one of the segment's files."""
        return f"{self.directory}/{off20(self.base_offset)}{suffix}{self.suffix}"

    @property
    def size_bytes(self) -> int:
        """Bytes of batches."""
        return self.log.size

    @property
    def modified_ms(self) -> int:
        """When the file last changed."""
        return self._files.modified_ms(self.log.path)

    # --- loading --------------------------------------------------------------------------------

    def load_indexes(self, *, sealed: bool) -> None:
        """Take up the indexes' files. Raises FileNotFoundError without one of the first two and ValueError for
        one that cannot be of this segment: both mean that the segment must be recovered."""
        self.offset_index.load(sealed=sealed)
        self.time_index.load(sealed=sealed)
        self.sealed = sealed
        last_offset, position = self.offset_index.last()
        if last_offset < self.base_offset or position < 0 or position >= max(self.size_bytes, 1):
            raise ValueError(f"{self.offset_index.path} ends beyond its segment")
        if self.time_index.last()[1] < self.base_offset:
            raise ValueError(f"{self.time_index.path} ends before its segment")
        _ = self.transaction_index.entries
        self._forget_recent()
        self._check_emptiness()
        self._check_last_timestamp()
        # A clean close ends the time index with the greatest timestamp, so an empty one tells nothing.
        self.max_timestamp_so_far, self.offset_of_max_timestamp = (
            self.time_index.last() if self.time_index.count else self.largest_timestamp()
        )

    def _check_emptiness(self) -> None:
        """Without entries every look-up would read the segment from its start. Raises ValueError for an index that
        must have some: the next batch begins more than an interval after the first, or there is a timestamp."""
        if self.offset_index.count and self.time_index.count:
            return
        walked = 0
        for batch in self.walk(0):
            if not self.offset_index.count and walked > self._index_interval_bytes:
                raise ValueError(f"{self.offset_index.path} has no entry for a segment of {self.size_bytes} bytes")
            if not self.time_index.count and batch.max_timestamp >= 0:
                raise ValueError(f"{self.time_index.path} has no entry for a segment with timestamps")
            walked += batch.size_bytes
            if walked > self._index_interval_bytes and self.offset_index.count:
                return

    def _check_last_timestamp(self) -> None:
        """Retention goes by the time index's last entry, and indexes carry no checksum: it must be its batch's.
        Raises ValueError."""
        if self.time_index.count:
            timestamp, offset = self.time_index.last()
            batch = self.find(offset)
            if batch is None or not batch.base_offset <= offset or batch.max_timestamp != timestamp:
                raise ValueError(f"{self.time_index.path} ends with a timestamp that its segment does not have")

    def _forget_recent(self) -> None:
        """Nothing is known of the batches at the end but what the index says."""
        self._recent_floor = RELATIVE_OFFSET_MAX + self.base_offset + 1
        self._recent_last_offsets = []
        self._recent = []

    # --- appending ------------------------------------------------------------------------------

    def can_hold(self, offset: int) -> bool:
        """Whether an offset fits the indexes' 32 bits."""
        return 0 <= offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def append(self, buffers: Sequence[Buffer], batches: Sequence[BatchPosition]) -> None:
        """Write ``buffers``, which hold ``batches``, at the end. Raises OSError, and then holds what it
        held before (see ``drop_failed_append``)."""
        self.log.append(buffers)
        for batch in batches:
            self.note_batch(batch)

    def note_batch(self, batch: BatchPosition) -> None:
        """Keep the indexes in step with a batch that is in the file."""
        position, size_bytes, _, last_offset, max_timestamp, _ = batch
        if position == 0:
            self._first_batch_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp_so_far:
            self.max_timestamp_so_far = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp_so_far, self.offset_of_max_timestamp)
            self._bytes_since_index_entry = 0
            self._recent_floor = self._recent_last_offsets[-1] if self._recent_last_offsets else last_offset
            self._recent_last_offsets = []
            self._recent = []
        self._bytes_since_index_entry += size_bytes
        if self._recent_floor < last_offset:
            self._recent_last_offsets.append(last_offset)
            self._recent.append(batch)

    def drop_failed_append(self) -> None:
        """After a failed write: cut what it left beyond the known end. Raises OSError if that fails too."""
        self.log.truncate(self.log.size)

    def should_roll(
        self, config: LogConfig, *, size_bytes: int, max_timestamp: int, last_offset: int, now_ms: int
    ) -> bool:
        """Whether an append of ``size_bytes`` up to ``last_offset`` belongs into a new segment (J.2)."""
        size = self.log.size
        return (
            size > config.segment_bytes - size_bytes
            or (size > 0 and self.waited_for_roll_ms(now_ms, max_timestamp) > _roll_ms(config) - self.roll_jitter_ms)
            or self.offset_index.is_full()
            or self.time_index.is_full()
            or not self.can_hold(last_offset)
        )

    def waited_for_roll_ms(self, now_ms: int, max_timestamp: int) -> int:
        """Time since the first batch by the records' clock, or since creation if it has no timestamp."""
        first = self.first_batch_timestamp
        return max_timestamp - first if first >= 0 else now_ms - self.created_ms

    @property
    def first_batch_timestamp(self) -> int:
        """Max timestamp of the first batch, -1 without one."""
        if self._first_batch_timestamp is None:
            first = next(self.walk(0), None)
            if first is None:
                return NO_TIMESTAMP
            self._first_batch_timestamp = first.max_timestamp
        return self._first_batch_timestamp

    # --- finding --------------------------------------------------------------------------------

    def walk(self, position: int, end: int | None = None) -> Iterator[BatchPosition]:
        """Headers of the batches from ``position`` on. Raises CorruptSegment at bytes that are no batch;
        an incomplete last batch ends the walk."""
        log = self.log
        end = log.size if end is None else min(end, log.size)
        while position + _OVERHEAD + _LEAST_LENGTH <= end:
            chunk = log.read_at(position, min(_WALK_BYTES, end - position))
            if len(chunk) < _HEAD.size:  # Only an old, small entry may still fit.
                chunk += bytes(_HEAD.size - len(chunk))
            at = 0
            while at + _HEAD.size <= len(chunk):
                base_offset, length, magic, last_delta, max_timestamp = _HEAD.unpack_from(chunk, at)
                if magic != 2:
                    break
                if length < _LEAST_LENGTH:
                    raise CorruptSegment(f"{log.path} holds no batch at position {position}: length {length}")
                size = length + _OVERHEAD
                if position + size > end:
                    return
                yield BatchPosition(position, size, base_offset, base_offset + last_delta, max_timestamp, magic)
                position += size
                at += size
            else:
                continue
            found = self._legacy_at(chunk[at:], position, end)
            if found is None:
                return
            yield found
            position += found.size_bytes

    def _legacy_at(self, chunk: bytes, position: int, end: int) -> BatchPosition | None:
        """An entry of magic 0 or 1, whose offset is that of its last record."""
        offset, length, magic = _HEAD.unpack_from(chunk)[:3]
        if length < _LEAST_LENGTH or magic not in (0, 1):
            raise CorruptSegment(
                f"{self.log.path} holds no batch at position {position}: magic {magic}, length {length}"
            )
        if position + length + _OVERHEAD > end:
            return None
        timestamp = _LEGACY_TIMESTAMP.unpack_from(chunk, 18)[0] if magic == 1 else NO_TIMESTAMP
        return BatchPosition(position, length + _OVERHEAD, offset, offset, timestamp, magic)

    def find(self, offset: int) -> BatchPosition | None:
        """The first batch whose last offset is at least ``offset``, None beyond the end."""
        if offset > self._recent_floor:
            place = bisect_left(self._recent_last_offsets, offset)
            return self._recent[place] if place < len(self._recent) else None
        for batch in self._walk_from_index(offset):
            if batch.last_offset >= offset:
                return batch
        return None

    def _walk_from_index(self, offset: int) -> Iterator[BatchPosition]:
        """The batches from the index entry at or below ``offset`` on.

        An entry that does not lead to its batch is a lie (indexes carry no checksum): both are made anew.
        """
        indexed_offset, position = self.offset_index.lookup(offset)
        if position > 0:
            try:
                first = next(self.walk(position), None)
            except CorruptSegment:
                first = None
            if first is None or first.last_offset != indexed_offset:
                self.rebuild_indexes()
                position = self.offset_index.lookup(offset)[1]
        return self.walk(position)

    def rebuild_indexes(self) -> None:
        """Make the offset and time index anew from the batches' headers. Raises OSError, CorruptSegment."""
        sealed = self.sealed
        self._reset_position_indexes()
        for batch in self.walk(0):
            self.note_batch(batch)
        if sealed:
            self.seal()

    def position_of(self, offset: int) -> int:
        """Where the first batch that reaches ``offset`` starts; the segment's size beyond the end."""
        if self._recent_last_offsets and offset > self._recent_last_offsets[-1]:
            return self.log.size
        found = self.find(offset)
        return self.log.size if found is None else found.position

    def next_offset(self) -> int:
        """The offset after the last batch, found by walking from the last index entry."""
        if self._recent_last_offsets:
            return self._recent_last_offsets[-1] + 1
        end = self.base_offset
        for batch in self._walk_from_index(self.offset_index.last()[0]):
            end = batch.last_offset + 1
        return end

    def batches_for_timestamp(self, timestamp_ms: int, from_offset: int) -> Iterator[BatchPosition]:
        """Batches from ``from_offset`` on, in order, that may hold a record of ``timestamp_ms`` or later."""
        _, indexed_offset = self.time_index.lookup(timestamp_ms)
        for batch in self._walk_from_index(max(indexed_offset, from_offset)):
            if batch.max_timestamp >= timestamp_ms and batch.last_offset >= from_offset:
                yield batch

    def largest_timestamp(self) -> tuple[int, int]:
        """(timestamp, last offset of its batch), by the index and a walk over what it does not cover."""
        timestamp, offset = self.time_index.last()
        for batch in self._walk_from_index(offset):
            if batch.max_timestamp > timestamp:
                timestamp, offset = batch.max_timestamp, batch.last_offset
        return timestamp, offset

    # --- changing -------------------------------------------------------------------------------

    def reset_indexes(self) -> None:
        """Start the indexes anew, whatever their files hold; the segment is about to be scanned."""
        self._reset_position_indexes()
        self.transaction_index.reset()

    def _reset_position_indexes(self) -> None:
        for index in (self.offset_index, self.time_index):
            index.reset()
        self.sealed = False
        self.max_timestamp_so_far = NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset
        self._first_batch_timestamp = None
        self._bytes_since_index_entry = 0
        self._recent_floor = self.base_offset - 1
        self._recent_last_offsets = []
        self._recent = []

    def finish_recovery(self) -> None:
        """The scan is over: end the time index as a clean close would, write both."""
        self.time_index.maybe_append(self.max_timestamp_so_far, self.offset_of_max_timestamp)
        self.offset_index.write()
        self.time_index.write()

    def durable_paths(self) -> list[str]:
        """The files that must be on the device before the recovery point passes the segment."""
        return [path for kind in SUFFIXES if self._files.exists(path := self.path(kind))]

    def restore_bookkeeping(self) -> None:
        """After loading an active segment: what the appends since the last index entry would have left."""
        _, position = self.offset_index.last()
        self._bytes_since_index_entry = self.log.size - position

    def truncate_to(self, offset: int, *, now_ms: int) -> int:
        """Cut at the batch that contains ``offset``; the number of bytes cut. Raises OSError."""
        if self.sealed:
            self.unseal()
        found = self.find(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self._forget_recent()
        cut = 0
        if found is not None:
            cut = self.log.size - found.position
            self.log.truncate(found.position)
        if self.log.size == 0:
            self.created_ms = now_ms
            self._first_batch_timestamp = None
        self._bytes_since_index_entry = 0
        self.max_timestamp_so_far, self.offset_of_max_timestamp = self.largest_timestamp()
        return cut

    def pin(self, *, aborts: bool) -> None:
        """Open all files and hold them open, so that a thread may write and sync them; the transaction index
        only if there may be ``aborts``."""
        self.log.acquire()
        self.offset_index.pin()
        self.time_index.pin()
        if aborts:
            self.transaction_index.pin()

    def unpin(self) -> None:
        """The thread is done."""
        self.log.release()
        self.offset_index.unpin()
        self.time_index.unpin()
        self.transaction_index.unpin()

    def finish_cleaning(self, aborted: list[AbortedTransactionEntry]) -> None:
        """The cleaner wrote its last batch: end the indexes, bring all to the device. Raises OSError."""
        self.seal()
        for entry in aborted:
            self.transaction_index.append(entry)
        self.flush()

    def seal(self) -> None:
        """No append will follow: end the time index, leave both indexes to their files."""
        self.time_index.maybe_append(self.max_timestamp_so_far, self.offset_of_max_timestamp)
        self.offset_index.seal()
        self.time_index.seal()
        self._forget_recent()
        self.sealed = True

    def unseal(self) -> None:
        """Take appends again."""
        self.offset_index.unseal()
        self.time_index.unseal()
        self.sealed = False

    def flush(self) -> None:
        """Bring everything to the device. Raises OSError."""
        self.log.sync()
        self.offset_index.sync()
        self.time_index.sync()
        self.transaction_index.sync()

    def close(self) -> None:
        """A clean end: indexes complete on disk, files closed. Raises OSError."""
        try:
            if not self.sealed:
                self.time_index.maybe_append(self.max_timestamp_so_far, self.offset_of_max_timestamp)
                self.offset_index.write()
                self.time_index.write()
        finally:
            self.close_files()

    def close_files(self) -> None:
        """Let the files go, nothing is written."""
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()
        self.log.release()

    def rename(self, suffix: str) -> None:
        """Change the suffix of all files; open readers are not disturbed. Raises OSError."""
        names = [self.path(kind) for kind in SUFFIXES]
        self.suffix = suffix
        for kind, old in zip(SUFFIXES, names, strict=True):
            if self._files.exists(old):
                self._files.rename(old, self.path(kind))
        self.moved(self.directory)

    def moved(self, directory: str) -> None:
        """The directory (or the suffix) has another name now."""
        self.directory = directory
        self.offset_index.path = self.path(INDEX_SUFFIX)
        self.time_index.path = self.path(TIME_INDEX_SUFFIX)
        self.transaction_index.path = self.path(TRANSACTION_INDEX_SUFFIX)

    def delete(self) -> None:
        """Remove the files. Raises OSError."""
        for kind in SUFFIXES:
            self._files.delete(self.path(kind))
        self.close_files()
