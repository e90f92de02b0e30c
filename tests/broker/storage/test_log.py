"""The log as leaders, followers and readers use it. Errors first."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from log_fixture import (
    NOW_MS,
    all_batches,
    all_records,
    append,
    batch_of,
    numbered,
    offsets_and_values,
    open_log,
)

from broker.storage.log import Log
from broker.storage.memory_files import MemoryFiles
from wire.errors import ErrorCode, KafkaError
from wire.record_validation import RejectedRecords
from wire.records import Compression, NewRecord, RecordBatch, batches, build_batch


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def refused(log: Log, batch: bytes) -> KafkaError:
    """Append what must be refused: nothing may be written by it, and the next batch goes on as before."""
    end, size = log.log_end_offset, log.size_bytes
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    assert (log.log_end_offset, log.size_bytes) == (end, size)
    assert append(log, numbered(1, timestamp=NOW_MS)) == end
    return caught.value


# --- refused --------------------------------------------------------------------------------------


def test_p05_a_batch_above_max_message_bytes_is_too_large_and_one_that_compresses_fits(files: MemoryFiles) -> None:
    log = open_log(files, max_message_bytes=2000)
    error = refused(log, batch_of([b"x" * 5000]))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "max.message.bytes" in str(error)
    assert "2000" in str(error)
    assert append(log, batch_of([b"x" * 5000], compression=Compression.GZIP)) == 1


def test_a_batch_that_only_recompression_makes_too_large_is_refused(files: MemoryFiles) -> None:
    log = open_log(files, max_message_bytes=2000, compression_type="uncompressed")
    error = refused(log, batch_of([b"x" * 5000], compression=Compression.GZIP))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_above_segment_bytes_is_refused(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=1500)
    error = refused(log, batch_of([b"x" * 1600]))
    assert error.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert "segment.bytes" in str(error)


def test_p06_a_record_without_key_on_a_compacted_topic_is_named(files: MemoryFiles) -> None:
    log = open_log(files, cleanup_policy=frozenset({"compact"}))
    mixed = build_batch([NewRecord(key, b"v", (), NOW_MS) for key in (b"a", None, b"c")])
    error = refused(log, mixed)
    assert isinstance(error, RejectedRecords)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [entry.batch_index for entry in error.record_errors] == [1]
    assert "key" in error.record_errors[0].message


def test_a_timestamp_out_of_range_is_refused(files: MemoryFiles) -> None:
    log = open_log(files, message_timestamp_after_max_ms=1000, message_timestamp_before_max_ms=1000)
    error = refused(log, batch_of([b"a", b"b"], timestamp=[NOW_MS, NOW_MS + 1001]))
    assert isinstance(error, RejectedRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [entry.batch_index for entry in error.record_errors] == [1]
    assert refused(log, batch_of([b"a"], timestamp=NOW_MS - 1001)).code is ErrorCode.INVALID_TIMESTAMP


def test_p11_a_flipped_bit_is_corrupt(files: MemoryFiles) -> None:
    log = open_log(files)
    good = numbered(5)
    for position in range(21, len(good), 7):
        bad = bytearray(good)
        bad[position] ^= 1
        assert refused(log, bytes(bad)).code is ErrorCode.CORRUPT_MESSAGE, position


@pytest.mark.parametrize("size", [0, 11, 30, 60, 100])
def test_p10_a_batch_cut_off_is_refused(files: MemoryFiles, size: int) -> None:
    error = refused(open_log(files), numbered(5)[:size])
    assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)


def test_a_base_offset_other_than_zero_is_refused(files: MemoryFiles) -> None:
    assert refused(open_log(files), numbered(2, base_offset=5)).code is ErrorCode.INVALID_RECORD


def test_two_batches_in_one_append_are_refused(files: MemoryFiles) -> None:
    assert refused(open_log(files), numbered(1) + numbered(1)).code is ErrorCode.INVALID_RECORD


# --- kept and patched -----------------------------------------------------------------------------


def test_p07_log_append_time_stamps_every_record(files: MemoryFiles) -> None:
    log = open_log(files, message_timestamp_type="LogAppendTime")
    info = log.append_as_leader(batch_of([b"a", b"b"], timestamp=1), leader_epoch=0, now_ms=NOW_MS)
    assert info.log_append_time_ms == info.max_timestamp_ms == NOW_MS
    (view,) = [RecordBatch(content) for content in all_batches(log)]
    assert view.is_log_append_time
    assert view.has_valid_crc()
    assert [record.timestamp for record in all_records(log)] == [NOW_MS, NOW_MS]
    created = open_log(files, directory="/logs/other-0")
    assert created.append_as_leader(numbered(1), leader_epoch=0, now_ms=NOW_MS).log_append_time_ms == -1


def test_p09_the_leader_epoch_of_the_producer_is_overwritten(files: MemoryFiles) -> None:
    log = open_log(files)
    for epoch in (0, 7, -1):
        append(log, numbered(1, partition_leader_epoch=epoch), leader_epoch=3)
    views = [RecordBatch(content) for content in all_batches(log)]
    assert [view.partition_leader_epoch for view in views] == [3, 3, 3]
    assert all(view.has_valid_crc() for view in views)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_the_topics_codec_wins(files: MemoryFiles, codec: str) -> None:
    log = open_log(files, compression_type=codec)
    append(log, numbered(3))
    append(log, numbered(3, compression=Compression.LZ4))
    wanted = Compression.from_name(codec)
    assert [RecordBatch(content).compression for content in all_batches(log)] == [wanted, wanted]
    assert [offset for offset, _ in offsets_and_values(log)] == list(range(6))


# --- reading --------------------------------------------------------------------------------------


def test_f01_the_batch_that_holds_the_offset_comes_whole(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, numbered(2))
    append(log, numbered(2))
    found = []
    for offset in range(5):
        read = log.read(offset, max_bytes=1)
        found.append(RecordBatch(read.records).base_offset if read.records else None)
    assert found == [0, 0, 2, 2, None]


def test_f02_the_first_batch_comes_whole_over_any_limit(files: MemoryFiles) -> None:
    log = open_log(files, max_message_bytes=6_000_000)
    sizes = [1, 5_000_000, 1]
    for size in sizes:
        append(log, batch_of([b"x" * size]))
    for offset, size in enumerate(sizes):
        view = RecordBatch(log.read(offset, max_bytes=1000).records)
        assert [len(record.value or b"") for record in view.records()] == [size]
    # A later partition of a fetch may not exceed its limit: nothing then, rather than a piece.
    read = log.read(1, max_bytes=1000, min_one_batch=False)
    assert (read.records, read.first_entry_incomplete) == (b"", True)


def test_a_fetch_is_cut_in_the_middle_of_a_batch_not_before_the_first(files: MemoryFiles) -> None:
    log = open_log(files)
    for _ in range(3):
        append(log, numbered(2))
    size = log.size_bytes // 3
    read = log.read(0, max_bytes=size + 10, min_one_batch=False)
    assert len(read.records) == size + 10
    assert [view.base_offset for view in batches(read.records)] == [0]


def test_f13_edges_of_the_log(files: MemoryFiles) -> None:
    log = open_log(files)
    for _ in range(20):
        append(log, numbered(1))
    log.advance_high_watermark(20)
    assert log.delete_records_before(10) == 10
    for offset in (9, 21):
        with pytest.raises(KafkaError) as caught:
            log.read(offset, max_bytes=100)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert RecordBatch(log.read(10, max_bytes=1).records).base_offset == 10
    assert log.read(20, max_bytes=1).records == b""
    # Between an upper limit (high watermark, last stable offset) and the end: empty, no error.
    for offset in (15, 17, 20):
        assert log.read(offset, max_bytes=10**6, upper_offset=15).records == b""


def test_an_upper_offset_limits_at_batch_granularity(files: MemoryFiles) -> None:
    log = open_log(files)
    for _ in range(10):
        append(log, numbered(3))
    for upper in range(31):
        read = log.read(0, max_bytes=10**6, upper_offset=upper)
        views = list(batches(read.records))
        assert [view.base_offset for view in views] == [base for base in range(0, 30, 3) if base + 3 <= upper]


def test_a_read_never_spans_two_segments_and_goes_on_in_the_next(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=1000, index_interval_bytes=50)
    for _ in range(50):
        append(log, numbered(2))
    assert len(log.segments) > 5
    bases = log.segments.base_offsets
    for offset in range(100):
        read = log.read(offset, max_bytes=10**6)
        views = list(batches(read.records))
        assert views[0].base_offset <= offset <= views[0].last_offset
        following = [base for base in bases if base > offset]
        assert views[-1].next_offset == (following[0] if following else 100)
        assert read.end_offset_bound == views[-1].next_offset
    assert [offset for offset, _ in offsets_and_values(log)] == list(range(100))


def test_the_end_bound_covers_what_was_read(files: MemoryFiles) -> None:
    log = open_log(files, index_interval_bytes=100)
    for _ in range(100):
        append(log, numbered(2))
    for offset in range(0, 200, 7):
        for max_bytes in (1, 200, 1000, 10**6):
            read = log.read(offset, max_bytes=max_bytes)
            last = list(batches(read.records))[-1]
            assert last.next_offset <= read.end_offset_bound <= 200


# --- by time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("one_batch", [True, False])
def test_f10_by_time_the_record_itself_is_found(files: MemoryFiles, compression: Compression, one_batch: bool) -> None:
    log = open_log(files)
    stamps = [2, 4, 6, 8]
    if one_batch:
        append(log, batch_of([b"v"] * 4, timestamp=stamps, compression=compression))
    else:
        for stamp in stamps:
            append(log, batch_of([b"v"], timestamp=stamp, compression=compression))
    found = [log.offset_for_timestamp(asked) for asked in range(1, 10)]
    assert [each and each.offset for each in found] == [0, 0, 1, 1, 2, 2, 3, 3, None]
    assert [each and each.timestamp_ms for each in found] == [2, 2, 4, 4, 6, 6, 8, 8, None]
    newest = log.offset_of_max_timestamp()
    assert newest is not None
    assert (newest.offset, newest.timestamp_ms, newest.leader_epoch) == (3, 8, 0)


def test_f10_timestamps_out_of_order(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, batch_of([b"v"] * 4, timestamp=[5, 1, 9, 3]))
    found = [log.offset_for_timestamp(asked) for asked in (1, 5, 6, 9, 10)]
    assert [each and (each.offset, each.timestamp_ms) for each in found] == [(0, 5), (0, 5), (2, 9), (2, 9), None]
    newest = log.offset_of_max_timestamp()
    assert newest is not None
    assert (newest.offset, newest.timestamp_ms) == (2, 9)


def test_by_time_nothing_below_the_log_start_is_found(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=400, index_interval_bytes=0)
    for stamp in range(100, 110):
        append(log, batch_of([b"v", b"w"], timestamp=[stamp, stamp + 100]))
    log.advance_high_watermark(20)
    log.delete_records_before(7)
    found = log.offset_for_timestamp(50)
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (7, 203)


def test_records_without_timestamp_never_match_and_the_first_is_the_greatest_if_all_are(files: MemoryFiles) -> None:
    log = open_log(files)
    assert log.offset_of_max_timestamp() is None
    for _ in range(2):
        append(log, batch_of([b"a"], timestamp=-1))
    assert log.offset_of_max_timestamp() == (-1, 0, 0)
    assert log.offset_for_timestamp(0) is None
    append(log, batch_of([b"a"], timestamp=5))
    assert log.offset_of_max_timestamp() == (5, 2, 0)


# --- rolling --------------------------------------------------------------------------------------


def test_rolls_by_size_by_record_time_by_full_index_and_not_otherwise(files: MemoryFiles) -> None:
    by_size = open_log(files, directory="/logs/size-0", segment_bytes=3 * len(batch_of([b"x" * 30])))
    for _ in range(4):
        append(by_size, batch_of([b"x" * 30]))
    assert by_size.segments.base_offsets == [0, 3]
    by_time = open_log(files, directory="/logs/time-0", segment_ms=1000)
    for stamp in (0, 999, 1000, 1001, 1002, 2001, 2002):
        append(by_time, batch_of([b"x"], timestamp=stamp))
    assert by_time.segments.base_offsets == [0, 3, 6]
    by_index = open_log(files, directory="/logs/index-0", segment_index_bytes=24, index_interval_bytes=0)
    for _ in range(6):
        append(by_index, batch_of([b"x"], timestamp=NOW_MS))
    # 24 bytes hold two entries of the time index, and one slot is kept for the roll.
    assert by_index.segments.base_offsets == [0, 2, 4]
    # Without timestamps the age of the segment counts.
    by_age = open_log(files, directory="/logs/age-0", segment_ms=1000)
    for age in (0, 1000, 1001):
        append(by_age, batch_of([b"x"], timestamp=-1), now_ms=NOW_MS + age)
    assert by_age.segments.base_offsets == [0, 2]


def test_rolling_an_empty_segment_does_nothing(files: MemoryFiles) -> None:
    log = open_log(files)
    log.roll(now_ms=NOW_MS)
    append(log, numbered(1))
    log.roll(now_ms=NOW_MS)
    log.roll(now_ms=NOW_MS)
    assert log.segments.base_offsets == [0, 1]


# --- changing -------------------------------------------------------------------------------------


def test_truncation_cuts_whole_batches_and_lowers_everything(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=1000, index_interval_bytes=50)
    for number in range(50):
        append(log, numbered(2), leader_epoch=number // 10)
    log.advance_high_watermark(100)
    log.flush(now_ms=NOW_MS)
    kept = all_batches(log)
    assert not log.truncate_to(100, now_ms=NOW_MS)
    assert log.truncate_to(61, now_ms=NOW_MS)
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (60, 60, 60)
    assert all_batches(log) == kept[:30]
    assert log.leader_epochs.entries == [(0, 0), (1, 20), (2, 40)]
    assert append(log, numbered(2), leader_epoch=9) == 60
    assert log.leader_epochs.entries[-1] == (9, 60)
    log.close()
    assert all_batches(open_log(files))[:30] == kept[:30]


def test_full_truncation_starts_over(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, numbered(5))
    log.truncate_fully_and_start_at(70, now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (70, 70, 70)
    assert log.leader_epochs.entries == []
    assert append(log, numbered(2), leader_epoch=4) == 70
    assert [offset for offset, _ in offsets_and_values(log)] == [70, 71]
    log.segments.delete_due(NOW_MS + 60_000)
    assert [name for name in files.list(log.directory) if "0000000000000000000." in name] == []


def test_delete_records_moves_the_log_start_only_forward_and_not_above_the_high_watermark(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, numbered(10))
    log.advance_high_watermark(8)
    with pytest.raises(KafkaError) as caught:
        log.delete_records_before(9)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records_before(3) == 3
    assert log.delete_records_before(1) == 3
    # S07: the batch [0..9] is served whole, the client sees 3..9.
    assert RecordBatch(log.read(3, max_bytes=1).records).base_offset == 0
    assert [record.offset for record in all_records(log)] == list(range(3, 10))
    log.close()
    assert open_log(files, log_start_offset=3).log_start_offset == 3


def test_retiring_segments_moves_the_log_start_and_readers_finish(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=500)
    for _ in range(20):
        append(log, numbered(2))
    oldest = log.segments[0]
    oldest.log.acquire()
    second = log.segments.base_offsets[1]
    log.retire_segments(1, now_ms=NOW_MS)
    assert log.log_start_offset == second
    assert log.segments.next_deletion_ms == NOW_MS + 60_000
    log.segments.delete_due(NOW_MS + 60_000)
    assert f"{0:020d}.log.deleted" not in files.list(log.directory)
    assert RecordBatch(oldest.log.read_at(0, 10**6)).base_offset == 0
    oldest.log.release()


def test_r03_leader_epochs_tell_where_each_ended(files: MemoryFiles) -> None:
    log = open_log(files)
    for epoch in (0, 3, 5):
        append(log, numbered(10), leader_epoch=epoch)
    asked = [0, 1, 3, 4, 5, 9, -1]
    assert [log.leader_epochs.end_offset_for(epoch, log.log_end_offset) for epoch in asked] == [
        (0, 10),
        (0, 10),
        (3, 20),
        (3, 20),
        (5, 30),
        (-1, -1),
        (-1, -1),
    ]
    log.advance_high_watermark(30)
    log.delete_records_before(15)
    assert log.leader_epochs.entries == [(3, 15), (5, 20)]
    assert log.leader_epochs.end_offset_for(0, 30) == (0, 15)
    assert log.earliest_leader_epoch() == 3
    log.close()
    assert open_log(files, log_start_offset=15).leader_epochs.entries == [(3, 15), (5, 20)]


# --- followers ------------------------------------------------------------------------------------


def fetched(log: Log, offset: int = 0) -> bytes:
    return b"".join(all_batches(log, offset))


def test_a_follower_takes_the_leaders_bytes_over(files: MemoryFiles) -> None:
    leader = open_log(files, directory="/logs/leader-0", segment_bytes=700)
    follower = open_log(files, directory="/logs/follower-0", segment_bytes=500)
    for number in range(30):
        append(leader, numbered(2), leader_epoch=number // 7)
    content = fetched(leader)
    info = follower.append_as_follower(content + content[:30], leader_epoch=9, now_ms=NOW_MS)
    assert info is not None
    assert (info.first_offset, info.last_offset) == (0, 59)
    assert fetched(follower) == content
    assert follower.leader_epochs.entries == leader.leader_epochs.entries
    assert follower.append_as_follower(b"", leader_epoch=9, now_ms=NOW_MS) is None


def test_a_follower_refuses_what_does_not_go_on_at_its_end(files: MemoryFiles) -> None:
    leader = open_log(files, directory="/logs/leader-0")
    follower = open_log(files, directory="/logs/follower-0")
    for _ in range(5):
        append(leader, numbered(2))
    follower.append_as_follower(fetched(leader), leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(KafkaError) as caught:
        follower.append_as_follower(fetched(leader, 8), leader_epoch=0, now_ms=NOW_MS)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert follower.log_end_offset == 10


def test_a_follower_refuses_a_wrong_crc_and_cuts_a_later_epoch_off(files: MemoryFiles) -> None:
    leader = open_log(files, directory="/logs/leader-0")
    follower = open_log(files, directory="/logs/follower-0")
    for epoch in (1, 1, 2):
        append(leader, numbered(2), leader_epoch=epoch)
    bad = bytearray(fetched(leader))
    bad[-1] ^= 1
    with pytest.raises(KafkaError) as caught:
        follower.append_as_follower(bytes(bad), leader_epoch=2, now_ms=NOW_MS)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert follower.log_end_offset == 0
    follower.append_as_follower(fetched(leader), leader_epoch=1, now_ms=NOW_MS)
    assert follower.log_end_offset == 4


def test_an_empty_follower_starts_within_a_batch_of_the_leader(files: MemoryFiles) -> None:
    leader = open_log(files, directory="/logs/leader-0")
    append(leader, numbered(10))
    follower = open_log(files, directory="/logs/follower-0")
    follower.truncate_fully_and_start_at(4, now_ms=NOW_MS)
    follower.append_as_follower(fetched(leader), leader_epoch=0, now_ms=NOW_MS)
    assert (follower.log_start_offset, follower.log_end_offset) == (0, 10)


def test_holes_of_compaction_are_crossed(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=300)
    parts = [numbered(1, base_offset=base, partition_leader_epoch=0) for base in (0, 5, 9, 30, 31)]
    for part in parts:
        log.append_as_follower(part, leader_epoch=0, now_ms=NOW_MS)
    found = [RecordBatch(log.read(offset, max_bytes=1).records).base_offset for offset in (0, 1, 5, 6, 10, 29, 31)]
    assert found == [0, 5, 5, 9, 30, 30, 31]
    log.append_as_follower(numbered(1, base_offset=2**31 + 40), leader_epoch=0, now_ms=NOW_MS)
    assert log.segments.base_offsets[-1] == 2**31 + 40


def test_old_batches_of_magic_1_are_found_and_served(files: MemoryFiles) -> None:
    """Segments from before 0.11 may lie in a directory; they are served as they are."""
    from zlib import crc32

    def legacy(offset: int, timestamp: int, value: bytes) -> bytes:
        body = struct.pack(">bbqi", 1, 0, timestamp, -1) + struct.pack(">i", len(value)) + value
        return struct.pack(">qiI", offset, 4 + len(body), crc32(body)) + body

    files.make_directory("/logs/topic-0")
    file = files.open(f"/logs/topic-0/{0:020d}.log")
    content = b"".join(legacy(offset, 100 + offset, b"") for offset in range(5))
    file.append([content])
    file.release()
    log = open_log(files, clean=False)
    assert log.log_end_offset == 5
    assert log.read(3, max_bytes=10**6).records == content[3 * 34 :]
    found = log.offset_for_timestamp(102)
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (2, 102)
    assert append(log, numbered(1)) == 5


def test_settings_change_takes_effect_at_once(files: MemoryFiles) -> None:
    log = open_log(files)
    log.update_config(replace(log.config, max_message_bytes=100))
    assert refused_code(log, batch_of([b"x" * 200])) is ErrorCode.MESSAGE_TOO_LARGE


def refused_code(log: Log, batch: bytes) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        append(log, batch)
    return caught.value.code
