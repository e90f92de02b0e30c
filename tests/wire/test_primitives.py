"""Primitive values as Java computes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.primitives import REMEMBERED_KEY_LENGTH_MAX, coordinator_partition, java_string_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("caf\u00e9", 3045921),
        ("\u65e5\u672c", 835047),
        ("\U0001f600", 1772899),
        ("\ufffd" * 3, 65533 * (31 * 31 + 31 + 1)),
    ],
)
def test_a_string_hashes_as_in_java(text: str, value: int) -> None:
    assert java_string_hash(text) == value


@given(st.text(max_size=2 * REMEMBERED_KEY_LENGTH_MAX), st.integers(1, 100))
def test_a_coordinator_is_found_by_the_hash_of_utf_16_units(key: str, partitions: int) -> None:
    encoded, value = key.encode("utf-16-be", "surrogatepass"), 0
    for index in range(0, len(encoded), 2):
        value = (value * 31 + int.from_bytes(encoded[index : index + 2], "big")) % 2**32
    magnitude = min(value, 2**32 - value) % 2**31
    assert coordinator_partition(key, partitions) == coordinator_partition(key, partitions) == magnitude % partitions
