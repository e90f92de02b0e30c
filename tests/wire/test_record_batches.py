"""Batches built and read back; headers overwritten; garbage and truncations."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import RECORD_LISTS

from wire.errors import ErrorCode, KafkaError, WireError
from wire.records import (
    BATCH_HEADER_SIZE,
    Compression,
    ControlRecordType,
    EndTransactionMarker,
    NewRecord,
    RecordBatch,
    add_to_sequence,
    any_batches,
    batches,
    build_batch,
    control_batch,
    control_record_type,
    end_transaction_marker,
    next_batch_size,
    overwrite_batch_header,
    read_end_transaction_marker,
    sole_batch,
    validate_records,
)

RECORDS = [NewRecord(b"key-%d" % i, b"value" * i, (("h", b"1"), ("n", None)), 1000 + i) for i in range(5)]


@given(
    records=RECORD_LISTS,
    compression=st.sampled_from(Compression),
    base_offset=st.integers(0, 2**62),
    leader_epoch=st.integers(-1, 2**31 - 1),
    producer=st.sampled_from([(-1, -1, -1), (0, 0, 0), (2**62, 2**15 - 1, 2**31 - 3)]),
    is_transactional=st.booleans(),
)
def test_what_was_built_comes_back(
    records: list[NewRecord],
    compression: Compression,
    base_offset: int,
    leader_epoch: int,
    producer: tuple[int, int, int],
    is_transactional: bool,
) -> None:
    built = build_batch(
        records,
        base_offset=base_offset,
        compression=compression,
        partition_leader_epoch=leader_epoch,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=is_transactional,
    )
    batch = RecordBatch(b"??" + built + b"??", 2)
    assert batch.has_valid_crc()
    assert (batch.size_bytes, batch.to_bytes(), batch.end_position) == (len(built), built, 2 + len(built))
    assert (batch.base_offset, batch.partition_leader_epoch) == (base_offset, leader_epoch)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == producer
    assert (batch.is_transactional, batch.is_control, batch.compression) == (is_transactional, False, compression)
    assert batch.has_producer_id == (producer[0] >= 0)
    assert batch.record_count == len(records)
    assert batch.next_offset == base_offset + len(records)
    assert batch.max_timestamp == max(record.timestamp for record in records)
    assert [(r.key, r.value, r.headers, r.timestamp) for r in batch.records()] == [
        tuple(r) for r in _with_tuple(records)
    ]
    assert [r.offset - base_offset for r in batch.records()] == list(range(len(records)))
    assert [r.sequence for r in batch.records()] == [
        add_to_sequence(producer[2], index) if producer[0] >= 0 else -1 for index in range(len(records))
    ]


def _with_tuple(records: list[NewRecord]) -> list[tuple[object, ...]]:
    return [(record.key, record.value, record.headers, record.timestamp) for record in records]


def test_p14_null_and_empty_are_different_and_kept() -> None:
    contents = [None, b""]
    headers = [(), (("h", None),), (("h", b""),), (("same", b"1"), ("same", b"2"), ("same", b"1"))]
    table = list(itertools.product(contents, contents, headers))
    assert len(table) == 16
    for compression in Compression:
        built = build_batch([NewRecord(key, value, some, 0) for key, value, some in table], compression=compression)
        assert [(r.key, r.value, r.headers) for r in RecordBatch(built).records()] == table
        assert all(r.timestamp == 0 for r in RecordBatch(built).records())


def test_sequences_go_on_at_0_after_the_greatest() -> None:
    assert [add_to_sequence(2**31 - 2, step) for step in range(4)] == [2**31 - 2, 2**31 - 1, 0, 1]
    batch = RecordBatch(build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=2**31 - 3))
    assert batch.last_sequence == 1
    assert [record.sequence for record in batch.records()][-2:] == [0, 1]
    assert RecordBatch(build_batch(RECORDS)).last_sequence == -1


def test_p09_offset_and_leader_epoch_are_overwritten_without_a_new_crc() -> None:
    for epoch in (0, 7, -1):
        buffer = bytearray(build_batch(RECORDS, partition_leader_epoch=epoch))
        crc = bytes(buffer[17:21])
        overwrite_batch_header(buffer, base_offset=42, partition_leader_epoch=9)
        batch = RecordBatch(bytes(buffer))
        assert (batch.base_offset, batch.partition_leader_epoch, bytes(buffer[17:21])) == (42, 9, crc)
        assert batch.has_valid_crc()
        assert [record.offset for record in batch.records()] == [42, 43, 44, 45, 46]


def test_timestamp_and_its_type_are_overwritten_with_a_new_crc() -> None:
    buffer = bytearray(b"??" + build_batch(RECORDS) + b"??")
    overwrite_batch_header(
        buffer, base_offset=1, partition_leader_epoch=2, max_timestamp=5000, log_append_time=True, position=2
    )
    batch = RecordBatch(bytes(buffer), 2)
    assert batch.has_valid_crc()
    assert batch.is_log_append_time
    assert {record.timestamp for record in batch.records()} == {5000}
    assert batch.base_timestamp == 1000
    overwrite_batch_header(buffer, base_offset=1, partition_leader_epoch=2, log_append_time=False, position=2)
    batch = RecordBatch(bytes(buffer), 2)
    assert batch.has_valid_crc()
    assert [record.timestamp for record in batch.records()] == [1000, 1001, 1002, 1003, 1004]
    assert (buffer[:2], buffer[-2:]) == (b"??", b"??")


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP, Compression.ZSTD])
@pytest.mark.parametrize("per_record", [False, True])
def test_f10_seek_by_time_finds_the_record(compression: Compression, per_record: bool) -> None:
    table = {(2, 4, 6, 8): [0, 0, 1, 1, 2, 2, 3, 3, None], (5, 1, 9, 3): [0, 0, 0, 0, 0, 2, 2, 2, 2]}
    for timestamps, wanted in table.items():
        records = [NewRecord(b"k", b"v", (), timestamp) for timestamp in timestamps]
        groups = [[record] for record in records] if per_record else [records]
        log = b""
        for group in groups:
            base_offset = 0 if not log else max(batch.next_offset for batch in batches(log))
            log += build_batch(group, base_offset=base_offset, compression=compression)
        for target, offset in zip(range(1, 10), wanted, strict=True):
            found = next(filter(None, (batch.find_timestamp(target) for batch in batches(log))), None)
            assert found == (None if offset is None else (offset, timestamps[offset])), (timestamps, target)


def test_seek_by_time_in_a_batch_of_append_time_gives_a_record_that_is_there() -> None:
    built = build_batch(
        RECORDS[:2], base_offset=10, offset_deltas=[3, 5], last_offset_delta=8, log_append_time=True, max_timestamp=7000
    )
    batch = RecordBatch(built)
    assert batch.find_timestamp(7001) is None
    assert batch.find_timestamp(7000) == (13, 7000)
    assert batch.find_timestamp(0, first_offset=14) == (15, 7000)
    assert batch.find_timestamp(0, first_offset=16) is None
    assert batch.find_timestamp(0, first_offset=19) is None


def test_a_log_is_walked_batch_by_batch_and_its_incomplete_end_left_alone() -> None:
    log = b"".join(build_batch(RECORDS, base_offset=offset) for offset in (0, 5, 10))
    size = len(log) // 3
    assert [batch.base_offset for batch in batches(log)] == [0, 5, 10]
    assert [batch.base_offset for batch in batches(log, size)] == [5, 10]
    for cut in range(len(log)):
        assert len(list(batches(log[:cut]))) == cut // size
        assert len(list(any_batches(log[:cut]))) == cut // size


def test_the_size_of_a_batch_is_told_before_it_is_whole() -> None:
    built = build_batch(RECORDS)
    assert next_batch_size(built[:16], 0) is None
    assert next_batch_size(built[:17], 0) == len(built)
    with pytest.raises(KafkaError, match="less than the minimum record overhead"):
        next_batch_size(built[:8] + b"\0\0\0\x0d" + built[12:], 0)
    with pytest.raises(KafkaError, match="Invalid magic found in record: -1"):
        next_batch_size(built[:16] + b"\xff" + built[17:], 0)


def test_a_batch_that_cannot_hold_what_it_declares_is_corrupt() -> None:
    built = build_batch(RECORDS)
    shorter_than_header = built[:8] + (BATCH_HEADER_SIZE - 13).to_bytes(4) + built[12:]
    longer_than_buffer = built[:8] + (len(built) - 11).to_bytes(4) + built[12:]
    for bad in (built[:60], shorter_than_header, longer_than_buffer, built[:16] + b"\1" + built[17:]):
        with pytest.raises(KafkaError) as refused:
            RecordBatch(bad)
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_p11_a_flipped_byte_after_the_crc_field_is_seen() -> None:
    built = build_batch(RECORDS)
    for position in range(17, len(built)):
        flipped = bytearray(built)
        flipped[position] ^= 0x10
        assert not RecordBatch(bytes(flipped)).has_valid_crc(), position


def _read_everything(data: bytes) -> None:
    """Use every reader on bytes that may be anything; only the errors of ``wire`` may come out."""
    readers = (
        lambda: [list(batch.records(100_000)) for batch in batches(data)],
        lambda: [batch.find_timestamp(5) for batch in batches(data)],
        lambda: [(batch.has_valid_crc(), batch.compression, repr(batch)) for batch in any_batches(data)],
        lambda: [read_end_transaction_marker(batch) for batch in batches(data)],
        lambda: validate_records(sole_batch(data, 12), now_ms=0, size_limit=100_000),
    )
    for read in readers:
        try:
            read()
        except (WireError, KafkaError):
            pass


@given(st.binary(max_size=300))
def test_garbage_raises_nothing_but_wire_errors(data: bytes) -> None:
    _read_everything(data)
    _read_everything(data[:16] + bytes([len(data) % 3]) + data[17:])


@given(
    compression=st.sampled_from(Compression),
    flips=st.lists(st.tuples(st.integers(8, 400), st.integers(1, 255)), min_size=1, max_size=4),
)
def test_flipped_bytes_raise_nothing_but_wire_errors(compression: Compression, flips: list[tuple[int, int]]) -> None:
    data = bytearray(build_batch(RECORDS, compression=compression))
    for position, mask in flips:
        data[8 + (position - 8) % (len(data) - 8)] ^= mask
    _read_everything(bytes(data))


def test_a_batch_cut_at_any_byte_raises_nothing_but_wire_errors() -> None:
    for compression in Compression:
        built = build_batch(RECORDS, compression=compression)
        for size in range(len(built)):
            _read_everything(built[:size])
            # Declared as it is cut, so that the records end early rather than the batch.
            _read_everything(built[:8] + max(size - 12, 0).to_bytes(4) + built[12:size])


def test_a_record_count_that_lies_costs_nothing() -> None:
    built = bytearray(build_batch(RECORDS))
    built[57:61] = (2**31 - 1).to_bytes(4)
    with pytest.raises(KafkaError) as refused:
        list(RecordBatch(bytes(built)).records())
    assert refused.value.code is ErrorCode.INVALID_RECORD
    built[57:61] = (3).to_bytes(4)
    with pytest.raises(KafkaError, match="bytes follow its last record"):
        list(RecordBatch(bytes(built)).records())


# --- control batches -------------------------------------------------------------------------------


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_marker_comes_back(is_commit: bool) -> None:
    built = end_transaction_marker(
        is_commit=is_commit, producer_id=9, producer_epoch=3, coordinator_epoch=12, timestamp=77, base_offset=5
    )
    batch = RecordBatch(built)
    assert (batch.is_control, batch.is_transactional, batch.base_sequence) == (True, True, -1)
    assert (batch.producer_id, batch.producer_epoch, batch.max_timestamp) == (9, 3, 77)
    assert read_end_transaction_marker(batch) == EndTransactionMarker(is_commit, 12)


def test_other_control_batches_are_no_markers() -> None:
    quorum = RecordBatch(control_batch([(ControlRecordType.LEADER_CHANGE, b"\0\0")], timestamp=1))
    assert read_end_transaction_marker(quorum) is None
    assert not quorum.is_transactional
    later = RecordBatch(build_batch([NewRecord(b"\0\0\0\x63", b"", (), 1)], is_control=True))
    assert read_end_transaction_marker(later) is None
    empty = RecordBatch(build_batch((), last_offset_delta=0, max_timestamp=1, is_control=True))
    assert read_end_transaction_marker(empty) is None


def test_keys_and_values_of_control_records_are_checked() -> None:
    assert control_record_type(b"\0\0\0\1") is ControlRecordType.COMMIT
    assert control_record_type(b"\0\5\0\0more") is ControlRecordType.ABORT
    assert control_record_type(b"\0\0\xff\xff") is None
    for key in (None, b"", b"\0\0\0", b"\xff\xff\0\1"):
        with pytest.raises(KafkaError) as refused:
            control_record_type(key)
        assert refused.value.code is ErrorCode.INVALID_RECORD
    for value in (None, b"", b"\0\0\0\0\0", b"\xff\xff\0\0\0\1"):
        with pytest.raises(KafkaError):
            read_end_transaction_marker(
                RecordBatch(build_batch([NewRecord(b"\0\0\0\0", value, (), 1)], is_control=True))
            )
