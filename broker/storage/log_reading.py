"""Reading a log: slices of batches, aborted transactions, records by time.

Functions over a `Log`'s segments; they change nothing. Source: LocalLog.read, UnifiedLog.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from broker.storage.log_segments import LogSegments
from broker.storage.segment import BatchPosition, Segment
from wire.log_files import AbortedTransactionEntry
from wire.record_batch import NO_LEADER_EPOCH, RecordBatch


class TimestampOffset(NamedTuple):
    """A record found by its timestamp; ``leader_epoch`` is its batch's (-1 unknown)."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


@dataclass(slots=True)
class LogRead:
    """Bytes of one segment, from the batch that holds ``fetch_offset`` on."""

    records: bytes
    fetch_offset: int
    segment_base_offset: int
    position: int
    first_entry_incomplete: bool = False
    """The first batch did not fit into ``max_bytes`` and ``min_one_batch`` was off; ``records`` is empty."""
    end_offset_bound: int = -1
    """No record of ``records`` is at or above this offset: the upper end for ``aborted_transactions``."""


def read(
    segments: LogSegments,
    offset: int,
    *,
    max_bytes: int,
    upper_offset: int,
    log_end_offset: int,
    min_one_batch: bool,
) -> LogRead:
    """One segment's bytes from the batch holding ``offset``, below ``upper_offset`` at batch granularity.

    ``offset`` is within the log. A hole left by compaction is crossed to the next batch. Empty at and
    above ``upper_offset``. Never spans two segments (E14).
    """
    place = segments.floor_place(offset)
    segment = segments[place]
    if offset >= upper_offset:
        return LogRead(b"", offset, segment.base_offset, segment.size_bytes, end_offset_bound=upper_offset)
    found = segment.find(offset)
    while found is None and place + 1 < len(segments):
        place += 1
        segment = segments[place]
        found = segment.find(offset)
    if found is None:
        return LogRead(b"", offset, segment.base_offset, segment.size_bytes, end_offset_bound=upper_offset)
    end = segment.size_bytes
    next_base = segments[place + 1].base_offset if place + 1 < len(segments) else log_end_offset
    if upper_offset < next_base:
        end = segment.position_of(upper_offset)
    else:
        upper_offset = next_base
    position, first_size = found.position, found.size_bytes
    available = end - position
    if available <= 0:
        return LogRead(b"", offset, segment.base_offset, position, end_offset_bound=upper_offset)
    if max_bytes < first_size:
        if not min_one_batch:
            return LogRead(b"", offset, segment.base_offset, position, True, upper_offset)
        max_bytes = first_size
    if available > max_bytes:
        available = max_bytes
        indexed = segment.offset_index.first_at_or_after_position(position + available)
        # An index entry names the last offset of its batch, which starts beyond the slice.
        if indexed is not None and indexed < upper_offset:
            upper_offset = indexed
    return LogRead(
        segment.log.read_at(position, available),
        offset,
        segment.base_offset,
        position,
        end_offset_bound=upper_offset,
    )


def bytes_between(segments: LogSegments, from_offset: int, to_offset: int) -> int:
    """Bytes from the batch that holds one offset to that which holds the other."""
    if to_offset <= from_offset:
        return 0
    first, last = segments.floor_place(from_offset), segments.floor_place(to_offset)
    start = segments[first].position_of(from_offset)
    if first == last:
        return segments[last].position_of(to_offset) - start
    total = segments[first].size_bytes - start + segments[last].position_of(to_offset)
    return total + sum(segments[place].size_bytes for place in range(first + 1, last))


def aborted_transactions(segments: LogSegments, first_offset: int, upper_offset: int) -> list[AbortedTransactionEntry]:
    """Aborted transactions that overlap [first_offset, upper_offset), walking segments until done (D25)."""
    found: list[AbortedTransactionEntry] = []
    for segment in segments.from_offset(first_offset):
        if segment.transaction_index.collect(first_offset, upper_offset, found):
            break
    return found


def offset_for_timestamp(segments: LogSegments, timestamp_ms: int, log_start_offset: int) -> TimestampOffset | None:
    """The first record, in the order of offsets and from the log start on, of ``timestamp_ms`` or later."""
    for segment in segments:
        if segment.max_timestamp_so_far < timestamp_ms:
            continue
        for candidate in segment.batches_for_timestamp(timestamp_ms, log_start_offset):
            found = _record_with_timestamp(segment, candidate, timestamp_ms, log_start_offset)
            if found is not None:
                return found
    return None


def offset_of_max_timestamp(segments: LogSegments) -> TimestampOffset | None:
    """The first record with the greatest timestamp of the log; None if there is no record.

    That may be a record without a timestamp, if all are.
    """
    newest: Segment | None = None
    for segment in segments:
        if newest is None or segment.max_timestamp_so_far > newest.max_timestamp_so_far:
            newest = segment
    if newest is None:
        return None
    candidate = newest.find(newest.offset_of_max_timestamp)
    if candidate is None:
        return None
    return _record_with_timestamp(newest, candidate, newest.max_timestamp_so_far, 0)


def _record_with_timestamp(
    segment: Segment, candidate: BatchPosition, timestamp_ms: int, first_offset: int
) -> TimestampOffset | None:
    if candidate.magic < 2:
        # Entries of magic 0 and 1 are one record each, or a wrapper whose newest record stands for all.
        return TimestampOffset(candidate.max_timestamp, candidate.last_offset, NO_LEADER_EPOCH)
    batch = RecordBatch(segment.log.read_at(candidate.position, candidate.size_bytes))
    found = batch.find_timestamp(timestamp_ms, first_offset=first_offset)
    if found is None:
        return None
    offset, timestamp = found
    return TimestampOffset(timestamp, offset, batch.partition_leader_epoch)
