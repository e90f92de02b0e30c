"""Bytes that are no message: refused with MalformedMessage, quickly and without large allocations."""

from __future__ import annotations

import random
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_strategies import declared_messages
from message_vectors import golden_messages

from wire.errors import MalformedMessage
from wire.message import Message
from wire.messages.fetch import FetchRequest

MESSAGES = declared_messages()
VECTORS = golden_messages()

# Lengths, in every form they take: int16, int32, varint; -2, -1 and far too many.
FORGED = [
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\xfe\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xfe",
    b"\xff\xff\xff\xff",
    b"\x7f\xff",
    b"\xff\xfe",
    b"\x80",
    b"\x00",
]


def _class(name: str) -> type[Message]:
    return (MESSAGES.get(name) or MESSAGES[name.removesuffix("Data")]).message_class


def _read(message_class: type[Message], data: bytes, version: int) -> Message | None:
    try:
        return message_class.decode(data, version)
    except MalformedMessage:
        return None


def _filled(name: str) -> list[dict[str, Any]]:
    """The fullest vectors of the first, the last and the first flexible version."""
    vectors = [vector for vector in VECTORS[name] if vector["variant"] in ("filled", "default")]
    fullest = {vector["version"]: vector for vector in vectors}
    message_class = _class(name)
    versions = {message_class.MIN_VERSION, message_class.MAX_VERSION, message_class.FLEXIBLE_FROM}
    return [fullest[version] for version in sorted(versions & set(fullest))]


@pytest.mark.parametrize("name", VECTORS)
def test_a_message_cut_at_any_byte_is_malformed(name: str) -> None:
    for vector in _filled(name):
        golden = bytes.fromhex(vector["bytes"])
        for size in range(len(golden)):
            with pytest.raises(MalformedMessage):
                _class(name).decode(golden[:size], vector["version"])


@pytest.mark.parametrize("name", VECTORS)
def test_forged_lengths_are_refused_before_anything_is_allocated(name: str) -> None:
    chance = random.Random(name)
    started = time.monotonic()
    for vector in _filled(name)[-1:]:
        golden = bytes.fromhex(vector["bytes"])
        positions = range(len(golden))
        if len(golden) > 60:
            positions = sorted(chance.sample(positions, 60))
        tracemalloc.start()
        try:
            for position in positions:
                for forged in FORGED:
                    data = golden[:position] + forged + golden[position + len(forged) :]
                    _read(_class(name), data, vector["version"])
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 200_000
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("name", VECTORS)
def test_flipped_bits_are_refused_or_read_as_another_message(name: str) -> None:
    chance = random.Random(name)
    for vector in VECTORS[name]:
        golden = bytes.fromhex(vector["bytes"])
        for _ in range(4):
            data = bytearray(golden)
            if not data:
                break
            for _ in range(chance.randint(1, 3)):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            message = _read(_class(name), bytes(data), vector["version"])
            if message is not None:
                again = message.encode(vector["version"])
                reread = _class(name).decode(again, vector["version"])
                # Compared as text, since NaN equals nothing; tags that did not ascend do so in what was written.
                assert repr(reread) == repr(message)
                assert reread.encode(vector["version"]) == again


def test_tags_out_of_order_are_read_the_last_of_one_tag_counts() -> None:
    """Kafka asks neither for their order nor that each comes once."""
    written = FetchRequest(cluster_id="a", max_wait_ms=1).encode(15)
    tags = written.index(b"\x01\x00\x02\x02a")
    many = b"\x03\x63\x01x\x00\x02\x02a\x00\x02\x02b" + written[tags + 5 :]
    request = FetchRequest.decode(written[:tags] + many, 15)
    assert (request.cluster_id, request.max_wait_ms) == ("b", 1)
    assert request.unknown_tagged_fields == [(99, b"x")]


@settings(max_examples=300)
@given(name=st.sampled_from(sorted(MESSAGES)), data=st.binary(max_size=60), choice=st.integers(0, 1000))
def test_random_bytes_are_refused_or_read(name: str, data: bytes, choice: int) -> None:
    declared = MESSAGES[name]
    _read(declared.message_class, data, declared.versions[choice % len(declared.versions)])


def test_an_array_of_elements_without_bytes_is_no_way_to_loop_for_ever() -> None:
    """Each element is taken to need a byte at least, as in Kafka, even where its version has no field."""
    for declared in MESSAGES.values():
        for version in (declared.versions[0], declared.versions[-1]):
            for forged in (b"\x7f\xff\xff\xff" * 8, b"\xff\xff\xff\xff\x07" * 8):
                _read(declared.message_class, forged, version)
