"""Compaction: what stays, what goes, when, and that a crash in the middle costs nothing. Refusals first."""

from __future__ import annotations

from random import Random

import pytest
from log_fixture import DIRECTORY, NOW_MS, all_batches, all_records, append, batch_of, idempotent, open_log

from broker.config_log import LONG_MAX
from broker.storage.cleaner import cleanable_range, filthiest
from broker.storage.compaction import Compaction, CompactionStopped, compact
from broker.storage.faulty_files import Crash, Fault, FaultyFiles
from broker.storage.files import Files
from broker.storage.log import AppendOrigin, Log
from broker.storage.memory_files import MemoryFiles
from wire.errors import ErrorCode, KafkaError
from wire.records import Compression, NewRecord, RecordBatch, batches, build_batch, end_transaction_marker

DAY_MS = 86_400_000


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles(clock_ms=lambda: NOW_MS)


def compacted(files: Files, **settings: object) -> Log:
    defaults = {"cleanup_policy": frozenset({"compact"}), "segment_bytes": 1500, "index_interval_bytes": 100}
    return open_log(files, **{**defaults, **settings})


def put(log: Log, key: str, value: str | None, **settings: object) -> int:
    sent = batch_of([None if value is None else value.encode()], key=key.encode(), **settings)
    offset = append(log, sent)
    log.advance_high_watermark(log.log_end_offset)
    return offset


def clean(log: Log, *, now_ms: int = NOW_MS, keys_max: int = 10_000, roll: bool = True) -> None:
    """A pass over all that may be cleaned, the active segment included."""
    if roll:
        log.roll(now_ms=now_ms)
    assert compact(log, cleanable_range(log, now_ms=now_ms), now_ms=now_ms, keys_max=keys_max)


def latest(log: Log) -> dict[bytes | None, bytes | None]:
    """What a consumer that reads from the start ends up with."""
    found: dict[bytes | None, bytes | None] = {}
    for content in all_batches(log):
        for view in batches(content):
            if not view.is_control:
                found.update((record.key, record.value) for record in view.records())
    return {key: value for key, value in found.items() if value is not None}


# --- not cleaned ----------------------------------------------------------------------------------


def test_neither_the_active_segment_nor_what_is_not_committed_is_cleaned(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=300)
    for number in range(20):
        append(log, batch_of([b"%d" % number], key=b"key"))
    log.advance_high_watermark(10)
    found = cleanable_range(log, now_ms=NOW_MS)
    assert found.first_uncleanable_offset == log.segments.floor(10).base_offset
    log.advance_high_watermark(20)
    assert cleanable_range(log, now_ms=NOW_MS).first_uncleanable_offset == log.segments.active.base_offset


def test_an_open_transaction_holds_the_cleaner_back(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=300)
    for number in range(6):
        put(log, "key", str(number))
    guard = log.start_verification(9, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    opened = append(log, idempotent(0, producer_id=9, is_transactional=True), verification_guard=guard)
    for number in range(6):
        put(log, "key", str(number))
    assert cleanable_range(log, now_ms=NOW_MS).first_uncleanable_offset <= opened


def test_young_records_wait_for_min_compaction_lag(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=300, min_compaction_lag_ms=1000)
    for number in range(10):
        put(log, "key", str(number), timestamp=NOW_MS + number * 100)
    first, second = log.segments[0], log.segments[1]
    exactly_old_enough = first.max_timestamp_so_far + 1000
    assert cleanable_range(log, now_ms=exactly_old_enough).first_uncleanable_offset == second.base_offset
    assert cleanable_range(log, now_ms=exactly_old_enough - 1).cleanable_bytes == 0


def test_j11_the_filthiest_log_above_its_ratio_is_chosen(files: MemoryFiles) -> None:
    logs = [compacted(files, directory=f"/logs/topic-{number}", segment_bytes=300) for number in range(3)]
    for number, log in enumerate(logs):
        for _ in range(10 * (number + 1)):
            put(log, "key", "value")
    clean(logs[2])
    put(logs[2], "key", "value")
    chosen = filthiest(logs, now_ms=NOW_MS)
    assert chosen is not None
    assert chosen[0] in logs[:2]
    logs[0].update_config(open_log(files, directory="/logs/x-0").config)  # Not compacted any more.
    assert filthiest(logs, now_ms=NOW_MS) == (logs[1], cleanable_range(logs[1], now_ms=NOW_MS))
    logs[1].uncleanable = "for a reason"
    assert filthiest(logs, now_ms=NOW_MS) is None
    for _ in range(5):
        put(logs[2], "key", "value")
    assert filthiest(logs, now_ms=NOW_MS) is not None


def test_a_dirty_record_past_max_compaction_lag_makes_a_log_due(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=300, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    for number in range(6):
        put(log, "key", str(number))
    assert filthiest([log], now_ms=NOW_MS + 1000) is None
    assert filthiest([log], now_ms=NOW_MS + 1001) is not None
    # And its segments roll in time for it.
    rolled = compacted(files, directory="/logs/r-0", max_compaction_lag_ms=1000)
    for stamp in (0, 1000, 1001):
        put(rolled, "key", "value", timestamp=NOW_MS + stamp)
    assert rolled.segments.base_offsets == [0, 2]


def test_j19_a_corrupt_segment_is_left_as_it_is_and_the_log_alone(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=300)
    for number in range(10):
        put(log, "key", str(number))
    segment = log.segments[1]
    content = bytearray(files.read(segment.log.path))
    content[8:12] = b"\xff\xff\xff\x00"
    segment.log.truncate(0)
    segment.log.append([content])
    before = {name: files.read(f"{DIRECTORY}/{name}") for name in files.list(DIRECTORY)}
    assert not compact(log, cleanable_range(log, now_ms=NOW_MS), now_ms=NOW_MS, keys_max=100)
    assert log.uncleanable is not None
    assert "cannot be compacted" in log.uncleanable
    assert {name: files.read(f"{DIRECTORY}/{name}") for name in files.list(DIRECTORY)} == before
    assert filthiest([log], now_ms=NOW_MS) is None


def test_a_log_that_changed_meanwhile_keeps_its_segments(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=300)
    for number in range(10):
        put(log, "key", str(number))
    compaction = Compaction(log, cleanable_range(log, now_ms=NOW_MS), now_ms=NOW_MS, keys_max=100)
    compaction.map_keys()
    group = compaction.next_group()
    assert group is not None
    group.clean()
    log.truncate_to(1, now_ms=NOW_MS)
    assert not group.swap_in(now_ms=NOW_MS)
    assert [record.value for record in all_records(log)] == [b"0"]
    assert [name for name in files.list(DIRECTORY) if "cleaned" in name] == []


def test_a_stopped_pass_leaves_nothing_behind(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=300)
    for number in range(10):
        put(log, "key", str(number))
    before = all_batches(log)
    compaction = Compaction(log, cleanable_range(log, now_ms=NOW_MS), now_ms=NOW_MS, keys_max=100)
    compaction.map_keys()
    group = compaction.next_group()
    assert group is not None
    compaction.stop()
    with pytest.raises(CompactionStopped):
        group.clean()
    group.abandon()
    compaction.abandon()
    assert all_batches(log) == before
    assert [name for name in files.list(DIRECTORY) if "cleaned" in name] == []


# --- records --------------------------------------------------------------------------------------


def test_s01_holes_keep_their_offsets_and_the_end_survives(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=20_000)
    newest = {}
    for number in range(2000):
        key = f"key-{number % 10}"
        newest[key] = (put(log, key, str(number)), str(number))
    clean(log)
    assert log.log_end_offset == 2000
    assert [(record.offset, record.key, record.value) for record in all_records(log)] == sorted(
        (offset, key.encode(), value.encode()) for key, (offset, value) in newest.items()
    )
    # Any offset of a hole leads to the next surviving batch.
    for offset in range(0, 1990, 97):
        assert RecordBatch(log.read(offset, max_bytes=1).records).base_offset == 1990
    assert put(log, "another", "x") == 2000
    log.close()
    again = compacted(files, segment_bytes=20_000)
    assert again.log_end_offset == 2001
    assert latest(again)[b"key-3"] == newest["key-3"][1].encode()


def test_s01_a_round_that_ends_with_a_removed_record_keeps_its_end(files: MemoryFiles) -> None:
    log = compacted(files)
    for number in range(5):
        put(log, "same", str(number))
    log.roll(now_ms=NOW_MS)
    put(log, "same", "newest")
    clean(log)
    views = [RecordBatch(content) for content in all_batches(log)]
    assert [(view.base_offset, view.record_count) for view in views] == [(5, 1)]
    # The range is cleaned in two rounds here: the first one's last batch stays, empty.
    other = compacted(files, directory="/logs/other-0")
    for number in range(5):
        put(other, "same", str(number))
    clean(other)
    put(other, "same", "newest")
    clean(other)
    assert [record.value for record in all_records(other)] == [b"newest"]
    assert other.log_end_offset == 6


@pytest.mark.parametrize("compression", list(Compression))
def test_batches_keep_codec_bounds_headers_and_surviving_records(files: MemoryFiles, compression: Compression) -> None:
    log = compacted(files)
    sent = build_batch(
        [
            NewRecord(b"%d" % (number % 4), b"v%d" % number, (("h", b"%d" % number),), NOW_MS + number)
            for number in range(8)
        ],
        compression=compression,
    )
    append(log, sent, leader_epoch=3)
    log.advance_high_watermark(8)
    clean(log)
    (view,) = [RecordBatch(content) for content in all_batches(log)]
    assert view.has_valid_crc()
    assert (view.base_offset, view.last_offset, view.compression) == (0, 7, compression)
    assert view.partition_leader_epoch == 3
    assert [(record.offset, record.timestamp, record.value, record.headers) for record in view.records()] == [
        (number, NOW_MS + number, b"v%d" % number, (("h", b"%d" % number),)) for number in range(4, 8)
    ]


def test_records_without_key_go(files: MemoryFiles) -> None:
    """They can be there only from before the topic was compacted."""
    log = open_log(files)
    append(log, batch_of([b"a", b"b"], key=None))
    append(log, batch_of([b"c"], key=b"key"))
    log.advance_high_watermark(3)
    log.close()
    log = compacted(files)
    log.set_high_watermark(3)
    clean(log)
    assert [record.value for record in all_records(log)] == [b"c"]


def test_s02_a_tombstone_stays_until_its_horizon(files: MemoryFiles) -> None:
    log = compacted(files, delete_retention_ms=DAY_MS)
    put(log, "key", "value")
    put(log, "key", None)
    put(log, "other", "value")
    clean(log, now_ms=NOW_MS)
    assert [(record.offset, record.value) for record in all_records(log)] == [(1, None), (2, b"value")]
    tombstone = RecordBatch(all_batches(log)[0])
    assert tombstone.delete_horizon_ms == NOW_MS + DAY_MS
    assert [record.timestamp for record in tombstone.records()] == [NOW_MS]
    put(log, "more", "1")
    clean(log, now_ms=NOW_MS + DAY_MS - 1)
    assert [record.offset for record in all_records(log)] == [1, 2, 3]
    assert RecordBatch(all_batches(log)[0]).delete_horizon_ms == NOW_MS + DAY_MS  # set once
    put(log, "more", "2")
    clean(log, now_ms=NOW_MS + DAY_MS)
    assert [record.offset for record in all_records(log)] == [2, 4]


def test_neighbouring_segments_are_merged_up_to_segment_bytes(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=1000)
    for number in range(100):
        put(log, f"key-{number % 20}", str(number))
    clean(log)
    before = len(log.segments)
    put(log, "key-0", "again")
    clean(log)  # What the first pass left is small enough to be merged.
    assert len(log.segments) < before // 2
    assert all(segment.size_bytes <= 1000 for segment in log.segments)
    assert len(latest(log)) == 20


def test_a_full_map_ends_the_round_and_the_next_goes_on(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=100_000)
    for turn in range(3):
        for number in range(50):
            put(log, f"key-{number}", f"{turn}-{number}")
    log.roll(now_ms=NOW_MS)
    expected = latest(log)
    ends = []
    while (found := cleanable_range(log, now_ms=NOW_MS)).cleanable_bytes and log.first_dirty_offset != 150:
        assert compact(log, found, now_ms=NOW_MS, keys_max=7)
        ends.append(log.first_dirty_offset)
        assert latest(log) == expected
    assert ends[:3] == [7, 14, 21]
    assert ends[-1] == 150


def test_long_keys_are_told_apart(files: MemoryFiles) -> None:
    log = compacted(files, segment_bytes=100_000)
    for turn in range(2):
        for number in range(20):
            put(log, "k" * 500 + str(number), f"{turn}-{number}")
    expected = latest(log)
    clean(log)
    assert latest(log) == expected
    assert len(all_records(log)) == 20


# --- producers and transactions -------------------------------------------------------------------


def test_j16_c17_a_producers_last_batch_stays_empty_so_that_sequences_survive(files: MemoryFiles) -> None:
    log = compacted(files)
    for sequence in range(3):
        append(log, idempotent(sequence, key=b"key"))
    log.advance_high_watermark(3)
    put(log, "key", "newest")
    clean(log)
    views = [RecordBatch(content) for content in all_batches(log)]
    assert [(view.base_offset, view.record_count, view.base_sequence) for view in views] == [(2, 0, 2), (3, 1, -1)]
    assert all(view.has_valid_crc() for view in views)
    again = compacted(files, clean=False)
    assert again.append_as_leader(idempotent(2, key=b"key"), leader_epoch=0, now_ms=NOW_MS).duplicate
    with pytest.raises(KafkaError) as caught:
        append(again, idempotent(4, key=b"key"))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    # Once the producer has expired, its empty batch goes too.
    again.advance_high_watermark(4)
    again.producer_state.remove_expired(NOW_MS + DAY_MS)
    clean(again)
    assert [RecordBatch(content).base_offset for content in all_batches(again)] == [3]


def transaction(log: Log, producer_id: int, *, commit: bool, key: bytes = b"key") -> int:
    guard = log.start_verification(producer_id, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    first = append(
        log, idempotent(0, 2, producer_id=producer_id, is_transactional=True, key=key), verification_guard=guard
    )
    marker = end_transaction_marker(
        is_commit=commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
    )
    append(log, marker, origin=AppendOrigin.COORDINATOR, transaction_version=0)
    log.advance_high_watermark(log.log_end_offset)
    return first


def test_j15_aborted_data_goes_at_once_and_markers_when_nothing_is_left(files: MemoryFiles) -> None:
    log = compacted(files, delete_retention_ms=DAY_MS)
    put(log, "key", "committed before")
    transaction(log, 1, commit=False)  # 1, 2, marker 3
    transaction(log, 2, commit=True, key=b"other")  # 4, 5, marker 6
    put(log, "end", "x")
    log.producer_state.remove_expired(NOW_MS + DAY_MS)
    clean(log)
    kept = [(view.base_offset, view.is_control) for view in map(RecordBatch, all_batches(log))]
    # The abort marker waits: its data was seen in this round. Aborted values never shadow committed ones.
    assert kept == [(0, False), (3, True), (4, False), (6, True), (7, False)]
    assert [(record.offset, record.value) for record in all_records(log) if record.offset in (0, 5)] == [
        (0, b"committed before"),
        (5, b"1"),
    ]
    assert [entry.producer_id for entry in log.aborted_transactions(0, 8)] == [1]
    put(log, "end", "y")
    clean(log)
    marker = RecordBatch(all_batches(log)[1])
    assert (marker.base_offset, marker.delete_horizon_ms) == (3, NOW_MS + DAY_MS)
    assert log.aborted_transactions(0, 8) == []
    put(log, "end", "z")
    clean(log, now_ms=NOW_MS + DAY_MS)
    assert [RecordBatch(content).base_offset for content in all_batches(log)] == [0, 4, 6, 9]


def test_the_last_marker_of_a_live_producer_without_data_stays(files: MemoryFiles) -> None:
    log = compacted(files, delete_retention_ms=0)
    marker = end_transaction_marker(
        is_commit=True, producer_id=5, producer_epoch=3, coordinator_epoch=0, timestamp=NOW_MS
    )
    append(log, marker, origin=AppendOrigin.COORDINATOR, transaction_version=0)
    put(log, "key", "value")
    for turn in range(3):
        put(log, "end", str(turn))
        clean(log, now_ms=NOW_MS + turn)
    assert RecordBatch(all_batches(log)[0]).base_offset == 0
    again = compacted(files, clean=False)
    with pytest.raises(KafkaError) as caught:
        append(again, idempotent(0, producer_id=5, epoch=2))
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


# --- crashes --------------------------------------------------------------------------------------


def test_j18_a_crash_at_any_call_of_a_cleaning_costs_nothing() -> None:
    calls = 0
    number = 0
    while number <= calls:
        files = FaultyFiles(clock_ms=lambda: NOW_MS)
        log = compacted(files, segment_bytes=600)
        for turn in range(40):
            put(log, f"key-{turn % 7}", str(turn))
        put(log, "key-1", None)
        log.roll(now_ms=NOW_MS)
        log.flush(now_ms=NOW_MS)
        expected, end, start = latest(log), log.log_end_offset, len(files.calls)
        files.faults[start + number] = Fault("crash", written=50)
        try:
            clean(log)
        except Crash:
            pass
        else:
            calls = -1  # Beyond its last call: done.
        for power_loss in (None, Random(number)):
            survivor = files.survivor(power_loss=power_loss)
            again = compacted(survivor, segment_bytes=600, clean=False, recovery_point=end)
            assert latest(again) == expected, (number, files.calls[-5:])
            assert again.log_end_offset == end
            assert [name for name in survivor.list(DIRECTORY) if name.endswith((".swap", ".cleaned"))] == []
            again.segments.close_files()
        calls = calls if calls < 0 else number + 1
        number += 1
    assert number > 20


def test_many_random_logs_end_up_with_the_newest_of_each_key(files: MemoryFiles) -> None:
    for seed in range(60):
        chance = Random(seed)
        directory = f"/logs/random-{seed}"
        log = compacted(
            files, directory=directory, segment_bytes=chance.choice([400, 900, 5000]), delete_retention_ms=50
        )
        now_ms = NOW_MS
        expected: dict[bytes, bytes] = {}
        for _ in range(chance.randint(10, 150)):
            keys = [f"key-{chance.randint(0, 12)}".encode() for _ in range(chance.randint(1, 4))]
            values = [
                chance.choice([None, b"%d" % chance.randint(0, 999), b"%d" % chance.randint(0, 999)]) for _ in keys
            ]
            sent = build_batch(
                [NewRecord(key, value, (), now_ms) for key, value in zip(keys, values, strict=True)],
                compression=chance.choice(list(Compression)),
            )
            append(log, sent, now_ms=now_ms)
            log.advance_high_watermark(log.log_end_offset)
            for key, value in zip(keys, values, strict=True):
                expected.pop(key, None)
                if value is not None:
                    expected[key] = value
            now_ms += chance.randint(0, 20)
            if chance.random() < 0.15:
                clean(log, now_ms=now_ms, keys_max=chance.choice([3, 10_000]), roll=chance.random() < 0.5)
        end = log.log_end_offset
        assert latest(log) == expected, seed
        log.roll(now_ms=now_ms)
        while log.first_dirty_offset != log.segments.active.base_offset:
            clean(log, now_ms=now_ms)
        offsets = [record.offset for record in all_records(log)]
        assert offsets == sorted(set(offsets))
        log.close()
        again = compacted(files, directory=directory)
        assert (latest(again), again.log_end_offset) == (expected, end), seed
    assert log.config.max_compaction_lag_ms == LONG_MAX
