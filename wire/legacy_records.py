"""Batches of magic 0 and 1: seen, so that Produce can refuse them, and read from old segments.

An entry is one record, or one compressed record whose value wraps a message set. Brokers of 4.x
send such batches as they lie in a log; nothing writes them any more.

Source: Kafka classes LegacyRecord, AbstractLegacyRecordBatch; KIP-724.
"""

from __future__ import annotations

import struct
import zlib

from wire.compression import Compression
from wire.errors import ErrorCode, KafkaError

_head = struct.Struct(">qiIbb")
_int32 = struct.Struct(">i")
_int64 = struct.Struct(">q")
_HEAD_SIZE = 18


def _nullable_bytes(buffer: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size: int = _int32.unpack_from(buffer, position)[0]
    position += 4
    if size < 0:
        return None, position
    if size > end - position:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt: a field declares {size} bytes where {end - position} are left.",
        )
    return buffer[position : position + size], position + size


class LegacyBatch:
    """A view of the magic 0 or 1 entry that starts at ``position`` of ``buffer``.

    ``offset`` is that of the record, or of the last record wrapped inside. ``timestamp`` is in
    milliseconds, -1 in magic 0. Raises KafkaError(CORRUPT_MESSAGE) where the bytes cannot hold
    the entry they declare.
    """

    __slots__ = (
        "attributes",
        "buffer",
        "crc",
        "key",
        "magic",
        "offset",
        "position",
        "size_bytes",
        "timestamp",
        "value",
    )

    def __init__(self, buffer: bytes, position: int = 0) -> None:
        self.buffer = buffer
        self.position = position
        try:
            self.offset: int
            self.crc: int
            self.magic: int
            self.attributes: int
            self.offset, length, self.crc, self.magic, self.attributes = _head.unpack_from(buffer, position)
            self.size_bytes: int = length + 12
            end = position + self.size_bytes
            if self.magic not in (0, 1) or not position + _HEAD_SIZE <= end <= len(buffer):
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"Record of magic {self.magic} is corrupt: it declares {self.size_bytes} bytes"
                    f" where {len(buffer) - position} are left.",
                )
            self.timestamp: int = -1
            cursor = position + _HEAD_SIZE
            if self.magic == 1:
                self.timestamp = _int64.unpack_from(buffer, cursor)[0]
                cursor += 8
            self.key, cursor = _nullable_bytes(buffer, cursor, end)
            self.value, cursor = _nullable_bytes(buffer, cursor, end)
        except struct.error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Record is corrupt: it is cut off.") from None
        if cursor > end:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Record is corrupt: its fields reach past its end.")

    @property
    def last_offset(self) -> int:
        """Offset of the last record of the entry."""
        return self.offset

    @property
    def next_offset(self) -> int:
        """Offset after this entry."""
        return self.offset + 1

    @property
    def max_timestamp(self) -> int:
        """The entry's timestamp in milliseconds, -1 in magic 0."""
        return self.timestamp

    @property
    def end_position(self) -> int:
        """Where the entry ends in ``buffer``."""
        return self.position + self.size_bytes

    @property
    def compression(self) -> Compression:
        """The codec of the wrapped message set; raises KafkaError for ids that mean nothing."""
        return Compression.of_attributes(self.attributes)

    def has_valid_crc(self) -> bool:
        """Whether the CRC-32 in the header is that of the bytes from the magic to the end."""
        return zlib.crc32(memoryview(self.buffer)[self.position + 16 : self.end_position]) == self.crc
