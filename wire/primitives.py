"""The protocol's primitive types: variable-length integers, strings, bytes, arrays, ids.

Readers take ``(buffer, position)`` and return ``(value, position after it)``; writers append
buffers to a list. Every length is compared with the bytes that are left before anything is
sliced or allocated, so that a forged length costs nothing.

Source: the protocol guide's primitive types; KIP-482 for compact and tagged forms.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from wire.errors import MalformedMessage

ZERO_UUID = bytes(16)

_int16 = Struct(">h")
_int32 = Struct(">i")
read_int16 = _int16.unpack_from
read_int32 = _int32.unpack_from
pack_int16 = _int16.pack
pack_int32 = _int32.pack

Buffer = bytes | bytearray | memoryview
"""What a writer accepts as bytes."""

# One-byte encodings are most of what is written: small lengths, counts and tags.
_SMALL = [bytes([value]) for value in range(0x80)]
NO_TAGS = b"\x00"


class TopicPartition(NamedTuple):
    """A partition of a topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def read_uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned LEB128 integer of at most 32 bits; raises MalformedMessage when longer."""
    value = buffer[position]
    position += 1
    if value < 0x80:
        return value, position
    value &= 0x7F
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedMessage(f"variable-length integer of {value} has more than 32 bits")
            return value, position
        shift += 7
        if shift > 28:
            raise MalformedMessage("variable-length integer has more than five bytes")


def uvarint(value: int) -> bytes:
    """Encode an unsigned LEB128 integer."""
    if value < 0x80:
        return _SMALL[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _take(buffer: bytes, position: int, length: int, what: str) -> tuple[bytes, int]:
    end = position + length
    if end > len(buffer):
        raise MalformedMessage(f"{what} of {length} bytes, but {len(buffer) - position} are left")
    return buffer[position:end], end


def read_bytes(buffer: bytes, position: int) -> tuple[bytes | None, int]:
    """Read bytes with an int32 length; a negative one is None (-1, but Kafka takes any)."""
    (length,) = read_int32(buffer, position)
    if length < 0:
        return None, position + 4
    return _take(buffer, position + 4, length, "bytes")


def read_compact_bytes(buffer: bytes, position: int) -> tuple[bytes | None, int]:
    """Read bytes with an unsigned variable-length length plus one; 0 is None."""
    length, position = read_uvarint(buffer, position)
    if length == 0:
        return None, position
    return _take(buffer, position, length - 1, "bytes")


def read_string(buffer: bytes, position: int) -> tuple[str | None, int]:
    """Read UTF-8 text with an int16 length; a negative one is None (-1, but Kafka takes any).

    What is not UTF-8 becomes U+FFFD, as in Kafka.
    """
    (length,) = read_int16(buffer, position)
    if length < 0:
        return None, position + 2
    position += 2
    end = position + length
    if end > len(buffer):
        raise MalformedMessage(f"string of {length} bytes, but {len(buffer) - position} are left")
    return buffer[position:end].decode("utf-8", "replace"), end


def read_compact_string(buffer: bytes, position: int) -> tuple[str | None, int]:
    """Read UTF-8 text with an unsigned variable-length length plus one; 0 is None.

    What is not UTF-8 becomes U+FFFD, as in Kafka.
    """
    length = buffer[position]
    position += 1
    if length >= 0x80:
        length, position = read_uvarint(buffer, position - 1)
        if length > 0x8000:
            raise MalformedMessage(f"string of {length - 1} bytes, the limit is 32767")
    if length == 0:
        return None, position
    end = position + length - 1
    if end > len(buffer):
        raise MalformedMessage(
            f"string of {length - 1} bytes, but {len(buffer) - position} are left"
        )
    return buffer[position:end].decode("utf-8", "replace"), end


def read_array_length(buffer: bytes, position: int) -> tuple[int, int]:
    """Read an int32 element count, negative meaning null; never more than the bytes that are left."""
    (count,) = read_int32(buffer, position)
    position += 4
    if count > len(buffer) - position:
        raise MalformedMessage(f"array of {count} elements, but {len(buffer) - position} bytes left")
    return count, position


def read_compact_array_length(buffer: bytes, position: int) -> tuple[int, int]:
    """Read a variable-length element count plus one (0 is null, returned as -1), bounded likewise."""
    count, position = read_uvarint(buffer, position)
    if count - 1 > len(buffer) - position:
        raise MalformedMessage(
            f"array of {count - 1} elements, but {len(buffer) - position} bytes left"
        )
    return count - 1, position


def read_unknown_tag(buffer: bytes, position: int, size: int) -> tuple[bytes, int]:
    """Read the raw value of a tagged field this code does not know (kept, not judged: KIP-482)."""
    return _take(buffer, position, size, "tagged field")


def write_string(out: list[Buffer], value: str) -> None:
    """Append text with an int16 length."""
    encoded = value.encode()
    if len(encoded) > 0x7FFF:
        raise ValueError(f"string of {len(encoded)} bytes, the limit is 32767")
    out.append(pack_int16(len(encoded)))
    out.append(encoded)


def write_compact_string(out: list[Buffer], value: str) -> None:
    """Append text with a variable-length length plus one."""
    encoded = value.encode()
    length = len(encoded) + 1
    if length > 0x8000:
        raise ValueError(f"string of {length - 1} bytes, the limit is 32767")
    out.append(_SMALL[length] if length < 0x80 else uvarint(length))
    out.append(encoded)


def _size(value: Buffer | Sequence[Buffer]) -> int:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value)
    return sum(map(len, value))


def _append(out: list[Buffer], value: Buffer | Sequence[Buffer]) -> None:
    if isinstance(value, (bytes, bytearray, memoryview)):
        out.append(value)
    else:
        out.extend(value)


def write_bytes(out: list[Buffer], value: Buffer | Sequence[Buffer]) -> None:
    """Append bytes (or the buffers of a list, unjoined) with an int32 length."""
    out.append(pack_int32(_size(value)))
    _append(out, value)


def write_compact_bytes(out: list[Buffer], value: Buffer | Sequence[Buffer]) -> None:
    """Append bytes (or the buffers of a list, unjoined) with a variable-length length plus one."""
    out.append(uvarint(_size(value) + 1))
    _append(out, value)


def write_tagged_fields(
    out: list[Buffer],
    known: list[tuple[int, list[Buffer]]],
    unknown: list[tuple[int, bytes]] | None,
) -> None:
    """Append a tagged-field section: ``known`` is (tag, encoded buffers), ``unknown`` kept raw."""
    fields: list[tuple[int, Sequence[Buffer]]] = list(known)
    if unknown:
        fields.extend((tag, (value,)) for tag, value in unknown)
        fields.sort(key=lambda field: field[0])
    out.append(uvarint(len(fields)))
    for tag, buffers in fields:
        out.append(uvarint(tag))
        out.append(uvarint(sum(map(len, buffers))))
        out.extend(buffers)


def uuid_text(uuid: bytes) -> str:
    """Kafka's text of a 16-byte id: URL-safe base64 without padding, 22 characters (Uuid)."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of an id's text; raises ValueError when it is not one."""
    try:
        uuid = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an id of 22 base64 characters") from error
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not an id of 22 base64 characters")
    return uuid


def _utf_16_units(text: str) -> memoryview:
    order = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
    return memoryview(text.encode(order, "surrogatepass")).cast("H")


def java_string_hash(text: str) -> int:
    """Java's String.hashCode: 31*h + UTF-16 code unit, as a signed 32-bit integer."""
    units: bytes | memoryview = text.encode("ascii") if text.isascii() else _utf_16_units(text)
    value = 0
    for unit in units:
        value = value * 31 + unit & 0xFFFFFFFF
    return value - 0x100000000 if value >= 0x80000000 else value


REMEMBERED_KEY_LENGTH_MAX = 255
_hash_of_known = lru_cache(maxsize=4096)(java_string_hash)
"""Clients name the same groups again and again: with every heartbeat and commit."""


def coordinator_partition(key: str, partition_count: int) -> int:
    """The internal topic's partition that owns a group, transactional or share-partition key.

    Source: GroupCoordinatorService.partitionFor; Utils.abs maps the smallest int32 to 0.
    """
    value = _hash_of_known(key) if len(key) <= REMEMBERED_KEY_LENGTH_MAX else java_string_hash(key)
    return (0 if value == -0x80000000 else abs(value)) % partition_count
