"""Hot loops over the records of a batch: walked as bytes, without an object per record.

This module is typed so that mypyc can compile it (see ``wire.compile_kernels``); interpreted,
the same code is the fallback. That is why it holds loops over ``bytes`` only, never memoryviews,
and why native integers are used wherever a value is known to fit 64 bits. A walk can stop at a
position and go on later, so that a thread holds the interpreter lock for a slice at a time.

The layout is that of magic 2 (Kafka class DefaultRecord): varint length, attributes, varlong
timestamp delta, varint offset delta, key, value, headers. Kafka reads any negative length of a
key, value or header value as null; so do we. Every function raises MalformedMessage, and nothing
else, for bytes that are not records.
"""

from __future__ import annotations

from typing import Final

from wire.errors import MalformedMessage

try:
    from mypy_extensions import i64
except ImportError:  # only annotations name it, and interpreted they are never evaluated
    i64 = int  # type: ignore[misc]

INT64_MAX: Final = 9223372036854775807
INT64_MIN: Final = -9223372036854775808

NULL_KEY: Final = 0
TIMESTAMP_OUT_OF_RANGE: Final = 1

Headers = tuple[tuple[bytes, bytes | None], ...]


def read_uvarint32(data: bytes, position: i64) -> tuple[i64, i64]:
    """Read an unsigned varint of at most five bytes; as in Java, bits above the 32nd are dropped."""
    byte: i64 = data[position]
    value: i64 = byte & 0x7F
    shift: i64 = 7
    while byte >= 0x80:
        position += 1
        byte = data[position]
        if shift == 28:
            if byte >= 0x80:
                raise MalformedMessage("varint has more than five bytes")
            value |= (byte & 0x0F) << 28
            break
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, position + 1


def read_varlong(data: bytes, position: i64) -> tuple[i64, i64]:
    """Read a zigzag varint of at most ten bytes; as in Java, bits above the 64th are dropped."""
    byte: i64 = data[position]
    value: i64 = byte & 0x7F
    shift: i64 = 7
    while byte >= 0x80:
        position += 1
        byte = data[position]
        if shift == 63:
            if byte >= 0x80:
                raise MalformedMessage("varlong has more than ten bytes")
            value |= (byte & 1) << 63
            break
        value |= (byte & 0x7F) << shift
        shift += 7
    return ((value >> 1) & INT64_MAX) ^ -(value & 1), position + 1


def write_uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def write_varint(value: int) -> bytes:
    """Encode a zigzag varint (or varlong: the encodings are the same)."""
    return write_uvarint(value << 1 if value >= 0 else (~value << 1) | 1)


def _skip_content(data: bytes, position: i64, end: i64) -> i64:
    """Step over key, value and headers of one record.

    Returns the position after them, negated when the key is null: one number is cheaper to hand
    back, interpreted, than two.
    """
    byte: i64
    raw: i64 = data[position]
    position += 1
    if raw >= 0x80:
        raw, position = read_uvarint32(data, position - 1)
    has_no_key = raw & 1
    if not has_no_key:
        position += raw >> 1
    raw = data[position]
    position += 1
    if raw >= 0x80:
        byte = data[position]
        if byte < 0x80:
            position += 1
            raw += (byte << 7) - 0x80
        else:
            raw, position = read_uvarint32(data, position - 1)
    if not raw & 1:
        position += raw >> 1
    if data[position] == 0:
        position += 1
    else:
        position = _skip_headers(data, position, end)
    return -position if has_no_key else position


def _skip_headers(data: bytes, position: i64, end: i64) -> i64:
    """Step over the header count and the headers of one record; returns the position after them."""
    raw, position = read_uvarint32(data, position)
    if raw & 1:
        raise MalformedMessage("a record of the batch has a negative number of headers")
    left = raw >> 1
    if left > end - position:
        raise MalformedMessage("a record of the batch has more headers than bytes left")
    while left > 0:
        raw, position = read_uvarint32(data, position)
        if raw & 1:
            raise MalformedMessage("a record of the batch has a header key of negative length")
        position += raw >> 1
        raw, position = read_uvarint32(data, position)
        if not raw & 1:
            position += raw >> 1
        left -= 1
    return position


class RecordScan:
    """A resumable walk over records that checks each one's structure and keeps running totals.

    ``position`` is where the next record starts and ``count`` how many were walked.
    ``max_timestamp_index`` is the first record that has ``max_timestamp_delta`` (0 before any is
    walked); ``consecutive`` says whether the offset deltas were 0, 1, 2 and so on.
    """

    def __init__(self, position: i64) -> None:
        self.position: i64 = position
        self.count: i64 = 0
        self.null_keys: i64 = 0
        self.min_timestamp_delta: i64 = INT64_MAX
        self.max_timestamp_delta: i64 = INT64_MIN
        self.max_timestamp_index: i64 = 0
        self.consecutive = True

    def advance(self, data: bytes, goal: i64, stop: i64) -> None:
        """Walk on until ``goal`` records are walked or ``stop`` (a position) is reached."""
        try:
            self._walk(data, goal, stop)
        except IndexError:
            raise MalformedMessage("a record of the batch ends in the middle of a field") from None

    def _walk(self, data: bytes, goal: i64, stop: i64) -> None:
        position = self.position
        index = self.count
        null_keys = self.null_keys
        least = self.min_timestamp_delta
        most = self.max_timestamp_delta
        most_index = self.max_timestamp_index
        consecutive = self.consecutive
        size: i64 = len(data)
        while index < goal and position < stop:
            # Varints of one and two bytes are read here: interpreted, a call costs more than they do.
            raw: i64 = data[position]
            position += 1
            if raw >= 0x80:
                byte: i64 = data[position]
                if byte < 0x80:
                    position += 1
                    raw += (byte << 7) - 0x80
                else:
                    raw, position = read_uvarint32(data, position - 1)
            if raw & 1:
                raise MalformedMessage(f"record {index} of the batch has a negative length")
            end = position + (raw >> 1)
            if end > size:
                raise MalformedMessage(f"record {index} of the batch is longer than the bytes left")
            raw = data[position + 1]  # the timestamp delta, after the attributes
            if raw < 0x80:
                position += 2
                raw = (raw >> 1) ^ -(raw & 1)
            else:
                raw, position = read_varlong(data, position + 1)
            if raw > most:
                most = raw
                most_index = index
            if raw < least:
                least = raw
            raw = data[position]
            position += 1
            if raw >= 0x80:
                byte = data[position]
                if byte < 0x80:
                    position += 1
                    raw += (byte << 7) - 0x80
                else:
                    raw, position = read_uvarint32(data, position - 1)
            if raw != index << 1:
                consecutive = False
            position = _skip_content(data, position, end)
            if position < 0:
                null_keys += 1
                position = -position
            if position != end:
                raise MalformedMessage(f"record {index} of the batch does not fill its declared length")
            index += 1
        self.position, self.count = position, index
        self.null_keys = null_keys
        self.min_timestamp_delta = least
        self.max_timestamp_delta = most
        self.max_timestamp_index = most_index
        self.consecutive = consecutive


def wrap_int64(value: int) -> int:
    """The value that Java's 64-bit arithmetic leaves of a sum."""
    if INT64_MIN <= value <= INT64_MAX:
        return value
    return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def _fields(data: bytes, position: i64) -> tuple[i64, int, i64, i64]:
    """Read a record's head: (position after it, timestamp delta, offset delta, position of the key)."""
    raw, position = read_uvarint32(data, position)
    end = position + (raw >> 1)
    timestamp_delta, position = read_varlong(data, position + 1)
    raw, position = read_uvarint32(data, position)
    return end, timestamp_delta, (raw >> 1) ^ -(raw & 1), position


def faulty_records(
    data: bytes,
    position: i64,
    count: i64,
    base_timestamp: int,
    oldest: int,
    newest: int,
    check_timestamps: bool,
    check_keys: bool,
) -> list[tuple[int, int, int, int]]:
    """Name every record that breaks a rule, as (index, rule, timestamp, offset delta).

    The records must have been walked before. A record without a key is named once, by NULL_KEY;
    a timestamp of -1 is never out of range (Kafka class LogValidator, validateRecord).
    """
    faults: list[tuple[int, int, int, int]] = []
    index: i64 = 0
    while index < count:
        end, timestamp_delta, offset_delta, key_position = _fields(data, position)
        timestamp = wrap_int64(base_timestamp + timestamp_delta)
        if check_keys and data[key_position] & 1:
            faults.append((index, NULL_KEY, timestamp, offset_delta))
        elif check_timestamps and timestamp != -1 and not oldest <= timestamp <= newest:
            faults.append((index, TIMESTAMP_OUT_OF_RANGE, timestamp, offset_delta))
        position = end
        index += 1
    return faults


def largest_record(data: bytes, position: i64, count: i64) -> int:
    """The greatest size in bytes that a record declares; the records must have been walked before."""
    largest: i64 = 0
    while count > 0:
        raw, position = read_uvarint32(data, position)
        size = raw >> 1
        if size > largest:
            largest = size
        position += size
        count -= 1
    return largest


def find_timestamp(
    data: bytes, position: i64, count: i64, base_timestamp: int, target: int, first_offset_delta: int
) -> tuple[int, int]:
    """The first record at or after an offset delta whose timestamp is at least ``target``.

    Returns (offset delta, timestamp), or (-1, -1) when there is none.
    """
    try:
        index: i64 = 0
        while index < count:
            end, timestamp_delta, offset_delta, _ = _fields(data, position)
            timestamp = wrap_int64(base_timestamp + timestamp_delta)
            if timestamp >= target and offset_delta >= first_offset_delta:
                return offset_delta, timestamp
            position = end
            index += 1
    except IndexError:
        raise MalformedMessage("a record of the batch ends in the middle of a field") from None
    return -1, -1


def _read_bytes(data: bytes, position: i64, end: i64) -> tuple[bytes | None, i64]:
    raw, position = read_uvarint32(data, position)
    if raw & 1:
        return None, position
    stop = position + (raw >> 1)
    if stop > end:
        raise MalformedMessage("a field of the record reaches past its end")
    return data[position:stop], stop


def read_record(data: bytes, position: i64) -> tuple[int, int, int, bytes | None, bytes | None, Headers]:
    """Read one record: (position after it, timestamp delta, offset delta, key, value, headers)."""
    try:
        raw, position = read_uvarint32(data, position)
        end = position + (raw >> 1)
        if raw & 1 or end > len(data):
            raise MalformedMessage("a record is longer than the bytes left")
        timestamp_delta, position = read_varlong(data, position + 1)
        raw, position = read_uvarint32(data, position)
        offset_delta = (raw >> 1) ^ -(raw & 1)
        key, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
        headers: Headers = ()
        if data[position] == 0:
            position += 1
        else:
            headers, position = _read_headers(data, position, end)
    except IndexError:
        raise MalformedMessage("a record ends in the middle of a field") from None
    if position != end:
        raise MalformedMessage("a record does not fill its declared length")
    return end, timestamp_delta, offset_delta, key, value, headers


def _read_headers(data: bytes, position: i64, end: i64) -> tuple[Headers, i64]:
    raw, position = read_uvarint32(data, position)
    left = raw >> 1
    if raw & 1 or left > end - position:
        raise MalformedMessage("a record has an impossible number of headers")
    headers: list[tuple[bytes, bytes | None]] = []
    while left > 0:
        key, position = _read_bytes(data, position, end)
        if key is None:
            raise MalformedMessage("a record has a header key of negative length")
        value, position = _read_bytes(data, position, end)
        headers.append((key, value))
        left -= 1
    return tuple(headers), position


def first_timestamp_delta(data: bytes, position: i64) -> int:
    """The timestamp delta of the record at ``position``, which must have been walked before."""
    return _fields(data, position)[1]


def renumber_records(
    data: bytes, position: i64, count: i64, timestamp_shift: int, is_flat: bool, first_offset_delta: int
) -> bytes:
    """Copy records with offset deltas 0, 1, 2… and each timestamp delta moved by ``timestamp_shift``.

    With ``is_flat`` every timestamp delta becomes 0. ``first_offset_delta`` is given to the first
    record, so that a large batch can be copied in slices. Keys, values and headers are copied as
    they are. The records must have been walked before.
    """
    copied: list[bytes] = []
    index: i64 = 0
    while index < count:
        end, timestamp_delta, _, key_position = _fields(data, position)
        head = (
            b"\0"
            + write_varint(0 if is_flat else wrap_int64(timestamp_delta + timestamp_shift))
            + write_varint(first_offset_delta + index)
        )
        copied.append(write_varint(len(head) + (end - key_position)))
        copied.append(head)
        copied.append(data[key_position:end])
        position = end
        index += 1
    return b"".join(copied)


def encode_record(
    offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: Headers
) -> bytes:
    """Encode one record; header keys are given as UTF-8 bytes."""
    parts: list[bytes] = [b"\0", write_varint(timestamp_delta), write_varint(offset_delta)]
    if key is None:
        parts.append(b"\1")
    else:
        parts.append(write_uvarint(len(key) << 1))
        parts.append(key)
    if value is None:
        parts.append(b"\1")
    else:
        parts.append(write_uvarint(len(value) << 1))
        parts.append(value)
    parts.append(write_uvarint(len(headers) << 1))
    for name, content in headers:
        parts.append(write_uvarint(len(name) << 1))
        parts.append(name)
        if content is None:
            parts.append(b"\1")
        else:
            parts.append(write_uvarint(len(content) << 1))
            parts.append(content)
    body = b"".join(parts)
    return write_uvarint(len(body) << 1) + body
