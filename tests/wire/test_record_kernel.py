"""The hot loops, against plain twins; the same tests run over the compiled extension."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from record_strategies import INT64, RECORD_LISTS

from wire.errors import MalformedMessage
from wire.record_kernel import (
    NULL_KEY,
    TIMESTAMP_OUT_OF_RANGE,
    RecordScan,
    encode_record,
    faulty_records,
    find_timestamp,
    first_timestamp_delta,
    largest_record,
    read_record,
    read_uvarint32,
    read_varlong,
    renumber_records,
    wrap_int64,
    write_uvarint,
    write_varint,
)
from wire.records import NewRecord

Record = tuple[int, int, bytes | None, bytes | None]


def _encode(records: list[Record]) -> bytes:
    return b"".join(encode_record(offset, timestamp, key, value, ()) for timestamp, offset, key, value in records)


def _scan(data: bytes, count: int, start: int = 0) -> RecordScan:
    scan = RecordScan(start)
    scan.advance(data, count, len(data))
    return scan


@given(INT64)
@example(2**63 - 1)
@example(-(2**63))
def test_varlongs_come_back(value: int) -> None:
    encoded = write_varint(value)
    assert read_varlong(encoded, 0) == (value, len(encoded))
    assert len(encoded) <= 10


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varints_come_back(value: int) -> None:
    encoded = write_uvarint(value)
    assert read_uvarint32(b"\xff" + encoded + b"\xff", 1) == (value, 1 + len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (300, "d804"), (2**31 - 1, "feffffff0f")],
)
def test_varints_are_zigzag_little_end_first(value: int, encoded: str) -> None:
    assert write_varint(value).hex() == encoded


def test_overlong_varints_lose_the_bits_that_java_loses() -> None:
    assert read_uvarint32(b"\x90\x80\x80\x80\x70", 0) == (0x10, 5)
    assert read_varlong(b"\x80" * 9 + b"\x7e", 0) == (0, 10)
    with pytest.raises(MalformedMessage, match="five bytes"):
        read_uvarint32(b"\x80" * 5 + b"\0", 0)
    with pytest.raises(MalformedMessage, match="ten bytes"):
        read_varlong(b"\x80" * 10 + b"\0", 0)


@given(st.integers(-(2**70), 2**70))
def test_sums_wrap_as_in_64_bits(value: int) -> None:
    assert wrap_int64(value) == int.from_bytes((value % 2**64).to_bytes(8), signed=True)


@given(RECORD_LISTS, st.lists(INT64, min_size=20, max_size=20), st.integers(1, 7))
def test_a_scan_in_slices_finds_what_a_plain_loop_finds(
    records: list[NewRecord], deltas: list[int], slice_size: int
) -> None:
    data = b"\xff\xff\xff" + b"".join(
        encode_record(
            index, delta, record.key, record.value, tuple((name.encode(), content) for name, content in record.headers)
        )
        for index, (record, delta) in enumerate(zip(records, deltas, strict=False))
    )
    scan = RecordScan(3)
    while scan.count < len(records):
        before = scan.count
        scan.advance(data, len(records), scan.position + slice_size)
        assert scan.count > before
    used = deltas[: len(records)]
    assert scan.position == len(data)
    assert scan.null_keys == sum(record.key is None for record in records)
    assert (scan.min_timestamp_delta, scan.max_timestamp_delta) == (min(used), max(used))
    assert scan.max_timestamp_index == used.index(max(used))
    assert scan.consecutive
    position = 3
    for index, record in enumerate(records):
        position, delta, offset_delta, key, value, headers = read_record(data, position)
        assert (delta, offset_delta, key, value) == (used[index], index, record.key, record.value)
        assert [(name.decode(), content) for name, content in headers] == list(record.headers)


def test_a_scan_sees_offset_deltas_that_are_not_consecutive() -> None:
    for offsets in ([0, 2], [1, 2], [0, 0], [-1, 0], [0, 1, 3]):
        records: list[Record] = [(0, offset, b"k", b"v") for offset in offsets]
        assert not _scan(_encode(records), len(records)).consecutive
    many: list[Record] = [(0, offset, b"k", b"v") for offset in range(10_000)]
    assert _scan(_encode(many), len(many)).consecutive


def test_a_scan_stops_where_it_is_told() -> None:
    data = _encode([(0, index, b"key", b"value") for index in range(10)])
    scan = RecordScan(0)
    scan.advance(data, 4, len(data))
    assert scan.count == 4
    scan.advance(data, 10, scan.position)
    assert scan.count == 4
    scan.advance(data, 10, len(data))
    assert (scan.count, scan.position) == (10, len(data))


@given(st.binary(max_size=120), st.integers(0, 20))
@example(b"\xff\xff\xff\xff\x0f", 1)
@example(b"\x0c\0\0\0\1\1\xfe\xff\xff\xff\x0f", 1)
def test_garbage_is_refused_or_walked_within_its_bytes(data: bytes, count: int) -> None:
    scan = RecordScan(0)
    try:
        scan.advance(data, count, len(data))
    except MalformedMessage:
        pass
    else:
        assert scan.position <= len(data)
        assert faulty_records(data, 0, scan.count, 0, 0, 0, True, True) is not None
    for read in (lambda: read_record(data, 0), lambda: find_timestamp(data, 0, count, 0, 2**62, 0)):
        try:
            read()
        except MalformedMessage:
            pass


def test_a_record_cut_at_any_byte_or_one_byte_off_is_refused() -> None:
    whole = encode_record(0, 5, b"key", b"value" * 30, ((b"a", None), (b"b", b"1" * 200)))
    assert _scan(whole, 1).position == len(whole)
    for size in range(1, len(whole)):
        with pytest.raises(MalformedMessage):
            _scan(whole[:size], 1)
        with pytest.raises(MalformedMessage):
            read_record(whole[:size], 0)
    body = whole[2:]
    for size in range(len(body)):
        for data in (write_varint(size) + body, write_varint(size) + body[:size]):
            with pytest.raises(MalformedMessage):
                _scan(data, 1)


def test_lengths_that_do_not_fit_are_refused() -> None:
    head = b"\0\0\0"
    bad_bodies = {
        "key past the end": head + write_varint(50) + b"k" + b"\1\0",
        "value past the end": head + b"\1" + write_varint(2**31 - 1) + b"\0",
        "headers negative": head + b"\1\1" + write_varint(-1),
        "headers more than bytes": head + b"\1\1" + write_varint(2**31 - 1),
        "header key null": head + b"\1\1" + write_varint(1) + b"\1\1",
        "header value past the end": head + b"\1\1" + write_varint(1) + b"\2a" + write_varint(99),
        "bytes left over": head + b"\1\1\0\0",
        "empty": b"",
    }
    for name, body in bad_bodies.items():
        for data in (write_varint(len(body)) + body, write_varint(len(body)) + body + bytes(200)):
            with pytest.raises(MalformedMessage):
                _scan(data, 1)
            with pytest.raises(MalformedMessage):
                print(name, read_record(data, 0))
    with pytest.raises(MalformedMessage, match="negative length"):
        _scan(write_varint(-5) + bytes(30), 1)


@given(
    st.lists(
        st.tuples(INT64, st.integers(-(2**31), 2**31 - 1), st.none() | st.binary(max_size=3), st.none()), max_size=8
    ),
    INT64,
    INT64,
    INT64,
)
def test_faulty_records_are_those_that_a_plain_loop_names(
    records: list[Record], base_timestamp: int, one: int, other: int
) -> None:
    oldest, newest = sorted((one, other))
    wanted = []
    for index, (delta, offset, key, _) in enumerate(records):
        timestamp = wrap_int64(base_timestamp + delta)
        if key is None:
            wanted.append((index, NULL_KEY, timestamp, offset))
        elif timestamp != -1 and not oldest <= timestamp <= newest:
            wanted.append((index, TIMESTAMP_OUT_OF_RANGE, timestamp, offset))
    assert faulty_records(_encode(records), 0, len(records), base_timestamp, oldest, newest, True, True) == wanted


# Two-fold: offsets 0..3 with the timestamps as keys of the table, and a base timestamp that is not the first's.
@pytest.mark.parametrize(
    ("timestamps", "wanted"),
    [
        ([2, 4, 6, 8], [0, 0, 1, 1, 2, 2, 3, 3, None]),
        ([5, 1, 9, 3], [0, 0, 0, 0, 0, 2, 2, 2, 2]),
    ],
)
def test_f10_a_timestamp_is_looked_up_record_by_record(timestamps: list[int], wanted: list[int | None]) -> None:
    base_timestamp = 3
    data = b"??" + _encode(
        [(timestamp - base_timestamp, index, b"", None) for index, timestamp in enumerate(timestamps)]
    )
    for target, offset in zip(range(1, 10), wanted, strict=True):
        found = find_timestamp(data, 2, 4, base_timestamp, target, 0)
        assert found == ((-1, -1) if offset is None else (offset, timestamps[offset]))
    assert find_timestamp(data, 2, 4, base_timestamp, 1, 2) == (2, timestamps[2])


@given(RECORD_LISTS, INT64, st.integers(0, 1000))
def test_renumbering_changes_offsets_and_timestamps_only(records: list[NewRecord], shift: int, first: int) -> None:
    data = b"".join(
        encode_record(7 * index, index, record.key, record.value, tuple((n.encode(), c) for n, c in record.headers))
        for index, record in enumerate(records)
    )
    wanted = b"".join(
        encode_record(
            first + index,
            wrap_int64(index + shift),
            record.key,
            record.value,
            tuple((n.encode(), c) for n, c in record.headers),
        )
        for index, record in enumerate(records)
    )
    assert renumber_records(data, 0, len(records), shift, False, first) == wanted
    assert first_timestamp_delta(wanted, 0) == shift
    flat = renumber_records(data, 0, len(records), shift, True, first)
    assert _scan(flat, len(records)).max_timestamp_delta == _scan(flat, len(records)).min_timestamp_delta == 0


def test_the_largest_record_is_found() -> None:
    data = _encode([(0, 0, None, b"1"), (0, 1, None, b"1" * 500), (0, 2, None, b"")])
    assert largest_record(data, 0, 3) == len(encode_record(1, 0, None, b"1" * 500, ())) - 2
    assert largest_record(data, 0, 0) == 0
