"""Which compacted log is to be cleaned next, and how far (J10, J11).

Source: LogCleanerManager, LogToClean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from broker.storage.log import Log


@dataclass(frozen=True, slots=True)
class CleanableRange:
    """What of a log can be compacted: segments below ``first_uncleanable_offset``, dirty from
    ``first_dirty_offset`` on."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool
    """A dirty record is older than max.compaction.lag.ms."""

    @property
    def dirty_ratio(self) -> float:
        """Share of the cleanable dirty bytes in all bytes up to the end of the range."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def cleanable_range(log: Log, *, now_ms: int) -> CleanableRange:
    """The range that may be cleaned now; empty (no cleanable bytes) if there is none.

    It ends at a segment's base: before the active segment, the last stable offset, and the first segment with
    a record younger than min.compaction.lag.ms. A first dirty offset outside the log counts as the log start.
    """
    first_dirty = log.first_dirty_offset
    if first_dirty is None or not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    dirty_sealed = [segment for segment in log.segments.from_offset(first_dirty) if segment is not log.segments.active]
    limit = min(log.last_stable_offset, log.segments.active.base_offset)
    if log.config.min_compaction_lag_ms > 0:
        youngest_allowed = now_ms - log.config.min_compaction_lag_ms
        for segment in dirty_sealed:
            newest = segment.max_timestamp_so_far
            if (newest if newest >= 0 else segment.modified_ms) > youngest_allowed:
                limit = min(limit, segment.base_offset)
                break
    limit = max(first_dirty, limit)
    first_uncleanable = log.segments.floor(limit).base_offset
    first_stamps = [stamp for segment in dirty_sealed if (stamp := segment.first_batch_timestamp) > 0]
    clean_until = now_ms - log.config.max_compaction_lag_ms
    return CleanableRange(
        first_dirty,
        first_uncleanable,
        sum(segment.size_bytes for segment in log.segments if segment.base_offset < first_dirty),
        sum(
            segment.size_bytes
            for segment in log.segments.from_offset(min(first_dirty, first_uncleanable))
            if segment.base_offset < first_uncleanable
        ),
        min(first_stamps, default=clean_until) < clean_until,
    )


def filthiest(logs: Iterable[Log], *, now_ms: int, at_once: bool = False) -> tuple[Log, CleanableRange] | None:
    """The compacted log with the greatest dirty ratio among those due; None if none is.

    Due is a log above min.cleanable.dirty.ratio, or with a dirty record older than max.compaction.lag.ms;
    ``at_once``: every log with something to clean.
    """
    best: tuple[Log, CleanableRange] | None = None
    for log in logs:
        if not log.config.compacts or log.offline is not None or log.uncleanable is not None:
            continue
        found = cleanable_range(log, now_ms=now_ms)
        if found.cleanable_bytes == 0:
            continue
        due = found.is_overdue or found.dirty_ratio > log.config.min_cleanable_dirty_ratio
        if (due or at_once) and (best is None or found.dirty_ratio > best[1].dirty_ratio):
            best = (log, found)
    return best
