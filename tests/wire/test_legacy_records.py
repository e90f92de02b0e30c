"""Entries of magic 0 and 1 that are not what they claim."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.errors import ErrorCode, KafkaError
from wire.records import LegacyBatch, any_batches


def _entry(magic: int, body: bytes, attributes: int = 0) -> bytes:
    return struct.pack(">qiIbb", 7, 6 + len(body), 0, magic, attributes) + body


def _nullable(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def test_fields_are_read_null_or_not() -> None:
    entry = LegacyBatch(b"??" + _entry(1, struct.pack(">q", 99) + _nullable(b"k") + _nullable(None)), 2)
    assert (entry.offset, entry.next_offset, entry.magic, entry.timestamp) == (7, 8, 1, 99)
    assert (entry.key, entry.value, entry.position, entry.end_position) == (b"k", None, 2, 2 + entry.size_bytes)
    assert not entry.has_valid_crc()
    old = LegacyBatch(_entry(0, _nullable(None) + _nullable(b"v")))
    assert (old.max_timestamp, old.key, old.value) == (-1, None, b"v")


@pytest.mark.parametrize(
    "entry",
    [
        _entry(2, _nullable(None) + _nullable(None)),
        _entry(0, _nullable(b"k" * 10)[:8] + _nullable(None)),
        _entry(0, struct.pack(">i", 2**31 - 1) + _nullable(None)),
        _entry(0, _nullable(None)),
        _entry(1, struct.pack(">q", 99)),
        _entry(0, _nullable(None) + _nullable(None))[:-1],
        _entry(0, b"")[:17],
        _entry(0, _nullable(None)) + _nullable(None),
    ],
)
def test_an_entry_that_does_not_hold_its_fields_is_corrupt(entry: bytes) -> None:
    with pytest.raises(KafkaError) as refused:
        LegacyBatch(entry)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@given(st.integers(0, 1), st.binary(max_size=60))
def test_garbage_is_corrupt_or_read(magic: int, body: bytes) -> None:
    data = _entry(magic, body)
    codes = []
    try:
        assert [entry.end_position for entry in any_batches(data)] in ([], [len(data)])
    except KafkaError as error:
        codes.append(error.code)
    assert codes in ([], [ErrorCode.CORRUPT_MESSAGE])
