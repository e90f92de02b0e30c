"""Dropping old segments by log start, size and age (J.3).

Segments go from the oldest on while a reason holds, and never above the high watermark. The active segment
goes only after an empty one took its place, and an empty last segment never. Source: UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.storage.log import Log
from broker.storage.segment import Segment


def delete_old_segments(log: Log, *, now_ms: int) -> int:
    """Retire what the log's settings say; the number of segments. Raises KafkaError KAFKA_STORAGE_ERROR.

    Without `delete` in cleanup.policy only what lies wholly below the log start goes.
    """
    count = _retire_while(log, _below_log_start(log), now_ms)
    if log.config.deletes:
        count += _retire_while(log, _above_size(log), now_ms)
        count += _retire_while(log, _too_old(log, now_ms), now_ms)
    return count


def next_expiry_ms(log: Log) -> int | None:
    """When the age of the oldest segment ends; None if nothing of the log ever becomes too old."""
    limit = log.config.retention_ms_limit
    if not log.config.deletes or limit is None or log.offline is not None:
        return None
    oldest = log.segments[0]
    if oldest is log.segments.active and oldest.size_bytes == 0:
        return None
    return _age_ms(oldest) + limit + 1


def _age_ms(segment: Segment) -> int:
    """What a segment's age counts from: its newest record's timestamp; the file's time if no record has one."""
    newest = segment.max_timestamp_so_far
    return newest if newest >= 0 else segment.modified_ms


Reason = Callable[[Segment, int], bool]
"""Whether a segment may go, given the offset at which the next begins."""


def _below_log_start(log: Log) -> Reason:
    active = log.segments.active
    return lambda segment, next_base: segment is not active and next_base <= log.log_start_offset


def _above_size(log: Log) -> Reason:
    """The log never shrinks below retention.bytes; the active segment counts in its size."""
    limit = log.config.retention_bytes_limit
    excess = -1 if limit is None else log.size_bytes - limit

    def may_go(segment: Segment, next_base: int) -> bool:
        nonlocal excess
        if excess < segment.size_bytes:
            return False
        excess -= segment.size_bytes
        return True

    return may_go


def _too_old(log: Log, now_ms: int) -> Reason:
    limit = log.config.retention_ms_limit
    return lambda segment, next_base: limit is not None and now_ms - _age_ms(segment) > limit


def _retire_while(log: Log, may_go: Reason, now_ms: int) -> int:
    segments = list(log.segments)
    count = 0
    for place, segment in enumerate(segments):
        is_last = place + 1 == len(segments)
        next_base = log.log_end_offset if is_last else segments[place + 1].base_offset
        if log.high_watermark < next_base or (is_last and segment.size_bytes == 0) or not may_go(segment, next_base):
            break
        count += 1
    if count == len(segments):
        log.roll(now_ms=now_ms)
    if count:
        log.retire_segments(count, now_ms=now_ms)
    return count
