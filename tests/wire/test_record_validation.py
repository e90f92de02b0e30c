"""What Produce refuses of a batch, and the batch that a leader writes (semantics in wire.record_validation)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import RECORD_LISTS

from wire.errors import ErrorCode, KafkaError
from wire.record_builder import encode_batch
from wire.record_kernel import encode_record, write_varint
from wire.records import (
    Compression,
    NewRecord,
    RecordBatch,
    RecordError,
    RejectedRecords,
    build_batch,
    check_batch_header,
    compress,
    leader_batch,
    rebuild_batch,
    sole_batch,
    validate_records,
)

NOW = 1_000_000
RECORDS = [NewRecord(b"a", b"1", (), NOW - 2), NewRecord(b"b", b"2", (), NOW), NewRecord(b"c", None, (), NOW - 1)]


def _raw_batch(payload: bytes, count: int, compression: Compression = Compression.NONE) -> RecordBatch:
    return RecordBatch(
        encode_batch(
            compress(compression, payload),
            record_count=count,
            last_offset_delta=count - 1,
            base_timestamp=NOW,
            max_timestamp=NOW,
            attributes=compression,
            base_offset=0,
            partition_leader_epoch=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
        )
    )


def _code(call: object, *arguments: object, **options: object) -> ErrorCode:
    assert callable(call)
    with pytest.raises(KafkaError) as refused:
        call(*arguments, **options)
    assert refused.value.message
    return refused.value.code


# --- the request's bytes -----------------------------------------------------------------------------


def test_produce_takes_exactly_one_batch_of_magic_2() -> None:
    built = build_batch(RECORDS)
    assert sole_batch(built, 3).to_bytes() == built
    assert sole_batch(built + built[:40], 3).to_bytes() == built  # what is no whole batch is ignored
    assert _code(sole_batch, None, 9) is ErrorCode.INVALID_RECORD
    assert _code(sole_batch, b"", 9) is ErrorCode.INVALID_RECORD
    assert _code(sole_batch, built[:-1], 9) is ErrorCode.INVALID_RECORD
    assert _code(sole_batch, built + built, 9) is ErrorCode.INVALID_RECORD
    assert _code(sole_batch, built[:16] + b"\1" + built[17:], 9) is ErrorCode.INVALID_RECORD
    assert _code(sole_batch, built[:16] + b"\3" + built[17:], 9) is ErrorCode.CORRUPT_MESSAGE
    assert _code(sole_batch, built[:8] + bytes(4) + built[12:], 9) is ErrorCode.CORRUPT_MESSAGE
    assert _code(sole_batch, built + bytes(30), 9) is ErrorCode.CORRUPT_MESSAGE


def test_zstd_needs_version_7() -> None:
    built = build_batch(RECORDS, compression=Compression.ZSTD)
    assert _code(sole_batch, built, 6) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert sole_batch(built, 7).compression is Compression.ZSTD


# --- the header -----------------------------------------------------------------------------------------


def test_the_size_is_looked_at_before_the_crc() -> None:
    built = bytearray(build_batch(RECORDS))
    built[-1] ^= 1
    broken = RecordBatch(bytes(built))
    assert _code(check_batch_header, broken, max_message_bytes=len(built) - 1) is ErrorCode.MESSAGE_TOO_LARGE
    assert _code(check_batch_header, broken, max_message_bytes=len(built)) is ErrorCode.CORRUPT_MESSAGE
    built[0:8] = (1).to_bytes(8)
    assert _code(check_batch_header, RecordBatch(bytes(built)), max_message_bytes=1) is ErrorCode.INVALID_RECORD


def test_p11_no_flipped_byte_passes() -> None:
    built = build_batch(RECORDS)
    check_batch_header(RecordBatch(built), max_message_bytes=1000)
    for position in range(17, len(built)):
        flipped = bytearray(built)
        flipped[position] ^= 0x01
        code = _code(check_batch_header, RecordBatch(bytes(flipped)), max_message_bytes=1000)
        assert code is ErrorCode.CORRUPT_MESSAGE, position


@pytest.mark.parametrize("epoch", [0, 7, -1])
def test_p09_the_leader_epoch_that_a_client_writes_is_not_looked_at(epoch: int) -> None:
    batch = RecordBatch(build_batch(RECORDS, partition_leader_epoch=epoch))
    check_batch_header(batch, max_message_bytes=1000)
    written = leader_batch(batch, validate_records(batch, now_ms=NOW), base_offset=10, partition_leader_epoch=3)
    assert RecordBatch(written).has_valid_crc()
    assert (RecordBatch(written).base_offset, RecordBatch(written).partition_leader_epoch) == (10, 3)


def test_rules_for_clients_do_not_hold_for_coordinators() -> None:
    marker = RecordBatch(build_batch(RECORDS, is_control=True, producer_id=5, producer_epoch=0))
    assert _code(check_batch_header, marker, max_message_bytes=1000) is ErrorCode.INVALID_RECORD
    check_batch_header(marker, max_message_bytes=1000, is_client=False)


# --- the records ----------------------------------------------------------------------------------------

GOOD = encode_record(0, 0, b"k", b"v", ())
HEAD = b"\0\0\0"
MALFORMED = {
    "length past the end": write_varint(5000) + GOOD[1:],
    "length negative": write_varint(-8) + GOOD[1:],
    "value past the end": write_varint(8) + HEAD + b"\2k" + write_varint(70) + b"v\0",
    "header count -1": write_varint(6) + HEAD + b"\1\1\1",
    "header key null": write_varint(8) + HEAD + b"\1\1\2\1\1",
    "one byte left over": GOOD + b"\0",
    "one byte missing": GOOD[:-1],
    "nothing": b"",
    "two records": GOOD + encode_record(1, 0, b"k", b"v", ()),
}


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("name", MALFORMED)
def test_p10_a_malformed_record_is_refused_at_once(name: str, compression: Compression) -> None:
    batch = _raw_batch(MALFORMED[name], 1, compression)
    check_batch_header(batch, max_message_bytes=1000)
    assert _code(validate_records, batch, now_ms=NOW) is ErrorCode.INVALID_RECORD
    assert validate_records(_raw_batch(GOOD, 1, compression), now_ms=NOW).record_count == 1


def test_p10_more_records_declared_than_there_are() -> None:
    assert _code(validate_records, _raw_batch(GOOD, 2), now_ms=NOW) is ErrorCode.INVALID_RECORD
    assert _code(validate_records, _raw_batch(GOOD, -1), now_ms=NOW) is ErrorCode.INVALID_RECORD
    assert _code(validate_records, _raw_batch(GOOD, 2**31 - 1), now_ms=NOW) is ErrorCode.INVALID_RECORD


def test_a_batch_at_any_place_of_a_larger_buffer_is_walked_within_its_own_bytes() -> None:
    built = build_batch(RECORDS)
    batch = RecordBatch(b"??" + built + built[61:], 2)
    assert validate_records(batch, now_ms=NOW).record_count == 3
    cut = bytearray(built[:-1])
    cut[8:12] = (len(cut) - 12).to_bytes(4)
    assert _code(validate_records, RecordBatch(bytes(cut) + built[61:]), now_ms=NOW) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_p06_every_record_without_a_key_is_named_on_a_compacted_topic(compression: Compression) -> None:
    records = [RECORDS[0], NewRecord(None, b"2", (), NOW), RECORDS[2], NewRecord(None, None, (), NOW)]
    batch = RecordBatch(build_batch(records, compression=compression))
    assert validate_records(batch, now_ms=NOW).record_count == 4
    with pytest.raises(RejectedRecords) as refused:
        validate_records(batch, now_ms=NOW, is_compacted=True, topic_partition="t-0")
    assert refused.value.code is ErrorCode.INVALID_RECORD
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    assert refused.value.record_errors == [RecordError(1, text), RecordError(3, text)]
    assert text in str(refused.value.message)


def test_timestamps_out_of_range_are_named_and_win_over_missing_keys() -> None:
    records = [
        NewRecord(b"old", b"", (), NOW - 11),
        NewRecord(b"just old enough", b"", (), NOW - 10),
        NewRecord(b"no timestamp", b"", (), -1),
        NewRecord(b"just new enough", b"", (), NOW + 5),
        NewRecord(b"new", b"", (), NOW + 6),
        NewRecord(None, b"", (), NOW),
    ]
    batch = RecordBatch(build_batch(records))
    bounds = {"timestamp_before_max_ms": 10, "timestamp_after_max_ms": 5}
    with pytest.raises(RejectedRecords) as refused:
        validate_records(batch, now_ms=NOW, is_compacted=True, **bounds)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in refused.value.record_errors] == [0, 4, 5]
    assert "999989" in refused.value.record_errors[0].message
    assert "within [999990, 1000005]" in refused.value.record_errors[0].message
    assert validate_records(batch, now_ms=NOW, log_append_time=True, **bounds).record_count == 6


def test_the_greatest_timestamp_and_the_first_record_that_has_it() -> None:
    batch = RecordBatch(build_batch(RECORDS, max_timestamp=5))
    validated = validate_records(batch, now_ms=NOW)
    assert (validated.max_timestamp, validated.max_timestamp_index, validated.is_consecutive) == (NOW, 1, True)
    written = RecordBatch(leader_batch(batch, validated, base_offset=0, partition_leader_epoch=0))
    assert (written.max_timestamp, written.has_valid_crc()) == (NOW, True)


def test_timestamps_that_do_not_fit_64_bits_are_refused() -> None:
    """Kafka lets them wrap around, which no reader undoes."""
    batch = _raw_batch(encode_record(0, 2**63 - 1, b"k", b"v", ()), 1)
    assert _code(validate_records, batch, now_ms=NOW) is ErrorCode.INVALID_RECORD


def test_a_bomb_is_refused_at_the_limit() -> None:
    bomb = RecordBatch(build_batch([NewRecord(b"k", bytes(5_000_000), (), NOW)], compression=Compression.ZSTD))
    assert bomb.size_bytes < 2000
    assert _code(validate_records, bomb, now_ms=NOW, size_limit=1_000_000) is ErrorCode.INVALID_RECORD
    code = _code(validate_records, bomb, now_ms=NOW, max_decompressed_message_bytes=4_000_000)
    assert code is ErrorCode.INVALID_RECORD
    assert validate_records(bomb, now_ms=NOW).record_count == 1


def test_large_batches_are_walked_in_slices() -> None:
    records = [NewRecord(b"k%d" % i, bytes(900), (), NOW - i % 7) for i in range(1500)]
    records[777] = NewRecord(None, bytes(700_000), (), NOW + 3)
    validated = validate_records(RecordBatch(build_batch(records)), now_ms=NOW)
    assert (validated.record_count, validated.max_timestamp_index, validated.is_consecutive) == (1500, 777, True)


# --- the batch that the leader writes ----------------------------------------------------------------


@given(
    records=RECORD_LISTS,
    source=st.sampled_from(Compression),
    target=st.none() | st.sampled_from(Compression),
    append_time=st.none() | st.integers(0, 2**45),
    is_transactional=st.booleans(),
)
def test_the_leaders_batch_holds_the_same_records(
    records: list[NewRecord],
    source: Compression,
    target: Compression | None,
    append_time: int | None,
    is_transactional: bool,
) -> None:
    batch = RecordBatch(
        build_batch(
            records,
            compression=source,
            producer_id=3,
            producer_epoch=1,
            base_sequence=8,
            is_transactional=is_transactional,
        )
    )
    validated = validate_records(batch, now_ms=NOW, log_append_time=append_time is not None)
    written = RecordBatch(
        leader_batch(
            batch,
            validated,
            base_offset=500,
            partition_leader_epoch=4,
            log_append_time_ms=append_time,
            compression=target,
        )
    )
    assert written.has_valid_crc()
    assert written.compression is (source if target is None else target)
    assert (written.producer_id, written.producer_epoch, written.base_sequence) == (3, 1, 8)
    assert (written.is_transactional, written.partition_leader_epoch) == (is_transactional, 4)
    assert written.is_log_append_time == (append_time is not None)
    assert [(r.offset, r.key, r.value, r.headers, r.timestamp) for r in written.records()] == [
        (500 + index, r.key, r.value, r.headers, r.timestamp if append_time is None else append_time)
        for index, r in enumerate(records)
    ]


def test_offset_deltas_with_gaps() -> None:
    payload = encode_record(0, 0, b"a", b"1", ()) + encode_record(5, -4, b"b", b"2", ())
    plain = _raw_batch(payload, 2)
    validated = validate_records(plain, now_ms=NOW)
    assert not validated.is_consecutive
    # Not compressed they are kept, as in Kafka; compressed anew they are numbered.
    kept = RecordBatch(leader_batch(plain, validated, base_offset=10, partition_leader_epoch=0))
    assert [record.offset for record in kept.records()] == [10, 15]
    packed = _raw_batch(payload, 2, Compression.GZIP)
    options = {"base_offset": 10, "partition_leader_epoch": 0}
    assert (
        _code(leader_batch, packed, validate_records(packed, now_ms=NOW), **options) is ErrorCode.UNKNOWN_SERVER_ERROR
    )
    for batch in (plain, packed):
        rebuilt = RecordBatch(
            rebuild_batch(batch, validate_records(batch, now_ms=NOW), **options, compression=Compression.LZ4)
        )
        assert [(r.offset, r.timestamp, r.key) for r in rebuilt.records()] == [(10, NOW, b"a"), (11, NOW - 4, b"b")]


def test_control_batches_are_not_compressed() -> None:
    control = RecordBatch(build_batch(RECORDS, is_control=True))
    validated = validate_records(control, now_ms=NOW)
    written = leader_batch(control, validated, base_offset=1, partition_leader_epoch=1, compression=Compression.GZIP)
    assert RecordBatch(written).compression is Compression.NONE
    assert RecordBatch(written).is_control
