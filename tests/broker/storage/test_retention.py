"""Retention: what goes, what stays, and what is never touched."""

from __future__ import annotations

import pytest
from log_fixture import NOW_MS, append, batch_of, numbered, offsets_and_values, open_log

from broker.storage.log import Log
from broker.storage.memory_files import MemoryFiles
from broker.storage.retention import delete_old_segments


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles(clock_ms=lambda: NOW_MS)


SIZE = len(batch_of([b"x" * 30]))


def log_of(files: MemoryFiles, count: int = 10, *, timestamps: list[int] | None = None, **settings: object) -> Log:
    """A log of ``count`` segments of one batch each, replicated to its end."""
    log = open_log(files, segment_bytes=SIZE, **{"retention_ms": -1, **settings})
    for number in range(count):
        append(log, batch_of([b"x" * 30], timestamp=NOW_MS if timestamps is None else timestamps[number]))
    assert len(log.segments) == count
    log.advance_high_watermark(count)
    return log


def test_without_limits_nothing_goes(files: MemoryFiles) -> None:
    log = log_of(files, timestamps=[0] * 10)
    assert delete_old_segments(log, now_ms=NOW_MS + 10**12) == 0


def test_nothing_above_the_high_watermark_goes(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=SIZE, retention_ms=1, retention_bytes=0)
    for _ in range(5):
        append(log, batch_of([b"x" * 30], timestamp=0))
    log.advance_high_watermark(3)
    assert delete_old_segments(log, now_ms=NOW_MS) == 3
    assert (log.log_start_offset, log.log_end_offset) == (3, 5)


def test_a_future_timestamp_blocks_its_segment_and_all_after(files: MemoryFiles) -> None:
    stamps = [0, 0, NOW_MS * 2, 0, 0]
    log = open_log(files, segment_bytes=SIZE, retention_ms=1000, message_timestamp_after_max_ms=2**62)
    for stamp in stamps:
        append(log, batch_of([b"x" * 30], timestamp=stamp))
    log.advance_high_watermark(5)
    assert delete_old_segments(log, now_ms=NOW_MS) == 2
    assert log.log_start_offset == 2


def test_by_size_the_log_never_shrinks_below_the_limit(files: MemoryFiles) -> None:
    log = log_of(files, retention_bytes=3 * SIZE + 1)
    assert delete_old_segments(log, now_ms=NOW_MS) == 6
    assert log.log_start_offset == 6
    assert log.size_bytes == 4 * SIZE
    assert delete_old_segments(log, now_ms=NOW_MS) == 0
    assert [offset for offset, _ in offsets_and_values(log)] == [6, 7, 8, 9]


def test_by_age_the_newest_record_of_a_segment_counts(files: MemoryFiles) -> None:
    log = log_of(files, timestamps=[NOW_MS + number * 100 for number in range(10)], retention_ms=500)
    assert delete_old_segments(log, now_ms=NOW_MS + 900) == 4  # older than 400; 400 itself is exactly at the limit
    assert log.log_start_offset == 4


def test_records_without_timestamp_age_by_the_files_time(files: MemoryFiles) -> None:
    log = log_of(files, timestamps=[-1] * 10, retention_ms=500, segment_ms=10**9)
    assert delete_old_segments(log, now_ms=NOW_MS + 500) == 0
    assert delete_old_segments(log, now_ms=NOW_MS + 501) == 10


def test_s08_the_active_segment_goes_only_after_a_new_one_took_its_place(files: MemoryFiles) -> None:
    log = log_of(files, timestamps=[NOW_MS] * 10, retention_ms=1000)
    assert delete_old_segments(log, now_ms=NOW_MS + 1001) == 10
    assert log.segments.base_offsets == [10]
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (10, 10, 10)
    # The empty last segment is never deleted.
    assert delete_old_segments(log, now_ms=NOW_MS + 10**9) == 0
    assert append(log, numbered(1, timestamp=NOW_MS)) == 10
    log.close()
    again = open_log(files, segment_bytes=SIZE)
    assert (again.log_start_offset, again.log_end_offset) == (10, 11)


@pytest.mark.parametrize("policy", [{"delete"}, {"compact"}, {"compact", "delete"}])
def test_s11_what_lies_below_the_log_start_goes_under_every_policy(files: MemoryFiles, policy: set[str]) -> None:
    log = log_of(
        files, timestamps=[0] * 10, cleanup_policy=frozenset(policy), retention_ms=1000, retention_bytes=SIZE * 2
    )
    log.delete_records_before(4)
    assert delete_old_segments(log, now_ms=NOW_MS) == (10 if "delete" in policy else 4)
    assert log.log_start_offset == (10 if "delete" in policy else 4)


def test_delete_records_within_a_segment_frees_only_those_wholly_below(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=3 * SIZE, retention_ms=-1)
    for _ in range(9):
        append(log, batch_of([b"x" * 30]))
    log.advance_high_watermark(9)
    log.delete_records_before(4)
    assert delete_old_segments(log, now_ms=NOW_MS) == 1
    assert log.segments.base_offsets == [3, 6]
    assert log.log_start_offset == 4
    # Everything deleted: the active segment stays all the same, it is not wholly below the end.
    log.delete_records_before(9)
    assert delete_old_segments(log, now_ms=NOW_MS) == 1
    assert log.segments.base_offsets == [6]


def test_snapshots_go_with_their_segments_and_files_after_the_delay(files: MemoryFiles) -> None:
    log = log_of(files, retention_bytes=3 * SIZE)
    assert delete_old_segments(log, now_ms=NOW_MS) == 7
    assert log.snapshots.offsets == [7, 8, 9]
    assert sum(name.endswith(".deleted") for name in files.list(log.directory)) > 7
    log.segments.delete_due(NOW_MS + log.config.file_delete_delay_ms)
    assert sum(name.endswith(".deleted") for name in files.list(log.directory)) == 0
