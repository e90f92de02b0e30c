"""Record batches as they lie in a log: a view over bytes, and the way from batch to batch.

A view decodes the 61-byte header of a magic 2 batch and nothing else; records are decoded only
when asked for. Batches of magic 0 and 1 are seen by ``batches`` too (old segments may hold them)
as LegacyBatch of ``wire.legacy_records``.

Source: Kafka classes DefaultRecordBatch, ByteBufferLogInputStream; KIP-98 for magic 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

from crc32c import crc32c

from wire.compression import DECOMPRESSED_SIZE_LIMIT, Compression, DecompressedTooLarge, decompress
from wire.errors import ErrorCode, KafkaError, MalformedMessage
from wire.legacy_records import LegacyBatch
from wire.record_kernel import INT64_MIN, find_timestamp, read_record, wrap_int64

BATCH_HEADER_SIZE = 61
LOG_OVERHEAD_SIZE = 12
"""Bytes of base offset and length, which the length does not count."""
LEAST_DECLARED_SIZE = 14
"""The least a batch of any magic can declare (LegacyRecord.RECORD_OVERHEAD_V0)."""
MAGIC_POSITION = 16
CRC_POSITION = 17
CRC_START = 21
"""The CRC covers the bytes from the attributes to the end of the batch."""

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
SEQUENCE_MAX = 0x7FFFFFFF

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40
ATTRIBUTES_MASK = 0x7F
"""All attribute bits that mean something."""

HEADER = Struct(">qiibIhiqqqhii")
_length = Struct(">i")


class Record(NamedTuple):
    """One record as a reader sees it; ``timestamp`` in milliseconds, -1 where there is none.

    ``sequence`` is -1 in batches without a producer id. Header keys that are not UTF-8 show
    replacement characters, as they do to Java clients.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    sequence: int = NO_SEQUENCE


def add_to_sequence(sequence: int, increment: int) -> int:
    """A sequence number moved on; past 2^31-1 it goes on at 0 (semantics of KIP-98)."""
    moved = sequence + increment
    return moved if moved <= SEQUENCE_MAX else moved - SEQUENCE_MAX - 1


class RecordBatch:
    """A view of the magic 2 batch that starts at ``position`` of ``buffer``.

    Raises KafkaError(CORRUPT_MESSAGE) where the bytes cannot hold the batch they declare or the
    magic is not 2. The CRC is not checked here: see ``has_valid_crc``.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
    )

    def __init__(self, buffer: bytes, position: int = 0) -> None:
        left = len(buffer) - position
        if left < BATCH_HEADER_SIZE:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"Record batch is corrupt: {left} bytes cannot hold its header of {BATCH_HEADER_SIZE} bytes.",
            )
        self.buffer = buffer
        self.position = position
        self.base_offset: int
        self.partition_leader_epoch: int
        self.magic: int
        self.crc: int
        self.attributes: int
        self.last_offset_delta: int
        self.base_timestamp: int
        self.max_timestamp: int
        self.producer_id: int
        self.producer_epoch: int
        self.base_sequence: int
        self.record_count: int
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(buffer, position)
        size_bytes = length + LOG_OVERHEAD_SIZE
        if self.magic != 2:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Record batch has magic {self.magic} where 2 is expected.")
        if not BATCH_HEADER_SIZE <= size_bytes <= left:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"Record batch is corrupt: it declares {size_bytes} bytes; its header alone takes"
                f" {BATCH_HEADER_SIZE} and {left} are there.",
            )
        self.size_bytes: int = size_bytes

    @property
    def last_offset(self) -> int:
        """Offset of the last record (kept when compaction removes that record)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, or -1 in a batch without sequence numbers."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def compression(self) -> Compression:
        """The codec; raises KafkaError(UNKNOWN_SERVER_ERROR) for ids that mean nothing."""
        return Compression.of_attributes(self.attributes)

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        """Whether this is a control batch (markers and quorum records, not shown to consumers)."""
        return self.attributes & CONTROL_FLAG != 0

    @property
    def is_log_append_time(self) -> bool:
        """Whether all records carry ``max_timestamp``, given by the broker."""
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote the batch."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers of the batch may go, once the cleaner has set it (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def payload_position(self) -> int:
        """Where the records, compressed or not, start in ``buffer``."""
        return self.position + BATCH_HEADER_SIZE

    @property
    def end_position(self) -> int:
        """Where the batch ends in ``buffer``."""
        return self.position + self.size_bytes

    def has_valid_crc(self) -> bool:
        """Whether the CRC-32C in the header is that of the bytes from the attributes to the end."""
        covered = memoryview(self.buffer)[self.position + CRC_START : self.position + self.size_bytes]
        return bool(crc32c(covered) == self.crc)

    def to_bytes(self) -> bytes:
        """The bytes of this batch alone."""
        if self.position == 0 and len(self.buffer) == self.size_bytes:
            return self.buffer
        return self.buffer[self.position : self.end_position]

    def payload(self, size_limit: int = DECOMPRESSED_SIZE_LIMIT) -> tuple[bytes, int, int]:
        """The records without compression, as (buffer, start, end).

        Uncompressed records are not copied. Raises KafkaError(UNKNOWN_SERVER_ERROR), which is
        Kafka's answer, when they do not decompress, and INVALID_RECORD when they would take more
        than ``size_limit`` bytes.
        """
        compression = self.compression
        if compression is Compression.NONE:
            return self.buffer, self.payload_position, self.end_position
        packed = memoryview(self.buffer)[self.payload_position : self.end_position]
        try:
            unpacked = decompress(compression, packed, size_limit)
        except DecompressedTooLarge as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"Record batch cannot be read: {error}.") from None
        except MalformedMessage as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Record batch cannot be read: {error}.") from None
        return unpacked, 0, len(unpacked)

    def records(self, size_limit: int = DECOMPRESSED_SIZE_LIMIT) -> Iterator[Record]:
        """Decode the records one by one.

        Raises KafkaError(INVALID_RECORD) at the first that is malformed, and after the last if
        bytes are left over.
        """
        payload, position, end = self.payload(size_limit)
        if end != len(payload):
            payload, position, end = payload[position:end], 0, end - position
        append_time = self.max_timestamp if self.is_log_append_time else None
        for _ in range(self.record_count):
            try:
                position, timestamp_delta, offset_delta, key, value, raw_headers = read_record(payload, position)
            except MalformedMessage as error:
                raise KafkaError(ErrorCode.INVALID_RECORD, f"Record batch cannot be read: {error}.") from None
            yield Record(
                self.base_offset + offset_delta,
                wrap_int64(self.base_timestamp + timestamp_delta) if append_time is None else append_time,
                key,
                value,
                tuple([(name.decode(errors="replace"), content) for name, content in raw_headers]),
                add_to_sequence(self.base_sequence, offset_delta) if self.base_sequence >= 0 else NO_SEQUENCE,
            )
        if position != end:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"Record batch cannot be read: {end - position} bytes follow its last record.",
            )

    def find_timestamp(
        self, target: int, *, first_offset: int = 0, size_limit: int = DECOMPRESSED_SIZE_LIMIT
    ) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record at or after ``first_offset`` not older than ``target``.

        None when no record of the batch is that young. Used by ListOffsets (KIP-79).
        """
        if self.max_timestamp < target or self.last_offset < first_offset:
            return None
        payload, position, end = self.payload(size_limit)
        if end != len(payload):
            payload, position = payload[position:end], 0
        try:
            offset_delta, timestamp = find_timestamp(
                payload,
                position,
                self.record_count,
                self.base_timestamp,
                INT64_MIN if self.is_log_append_time else target,
                max(first_offset - self.base_offset, 0),
            )
        except MalformedMessage as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"Record batch cannot be read: {error}.") from None
        if offset_delta < 0:
            return None
        return self.base_offset + offset_delta, self.max_timestamp if self.is_log_append_time else timestamp

    def __repr__(self) -> str:
        return (
            f"RecordBatch(offsets {self.base_offset}..{self.last_offset}, {self.record_count} records,"
            f" {self.size_bytes} bytes, leader epoch {self.partition_leader_epoch},"
            f" producer {self.producer_id}/{self.producer_epoch}, attributes {self.attributes:#04x})"
        )


AnyBatch: TypeAlias = RecordBatch | LegacyBatch


def next_batch_size(buffer: bytes, position: int) -> int | None:
    """Whole size in bytes of the batch at ``position``, or None if too few bytes are there to tell.

    The batch itself may be incomplete. Raises KafkaError(CORRUPT_MESSAGE) for a declared size
    below the least of all formats and for an unknown magic (ByteBufferLogInputStream).
    """
    left = len(buffer) - position
    if left < LOG_OVERHEAD_SIZE:
        return None
    declared: int = _length.unpack_from(buffer, position + 8)[0]
    if declared < LEAST_DECLARED_SIZE:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {declared} is less than the minimum record overhead ({LEAST_DECLARED_SIZE}).",
        )
    if left <= MAGIC_POSITION:
        return None
    if buffer[position + MAGIC_POSITION] > 2:
        magic = buffer[position + MAGIC_POSITION]
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Invalid magic found in record: {magic if magic < 0x80 else magic - 0x100}.",
        )
    return declared + LOG_OVERHEAD_SIZE


def any_batches(buffer: bytes, position: int = 0) -> Iterator[AnyBatch]:
    """Iterate over the complete batches of any magic; bytes of an incomplete last one are left alone.

    Raises KafkaError(CORRUPT_MESSAGE) at bytes that are no batch.
    """
    end = len(buffer)
    while (size_bytes := next_batch_size(buffer, position)) is not None and position + size_bytes <= end:
        if buffer[position + MAGIC_POSITION] == 2:
            yield RecordBatch(buffer, position)
        else:
            yield LegacyBatch(buffer, position)
        position += size_bytes


def batches(buffer: bytes, position: int = 0) -> Iterator[RecordBatch]:
    """Iterate over the complete magic 2 batches; bytes of an incomplete last one are left alone.

    Raises KafkaError(CORRUPT_MESSAGE) at bytes that are no magic 2 batch.
    """
    end = len(buffer)
    while (size_bytes := next_batch_size(buffer, position)) is not None and position + size_bytes <= end:
        yield RecordBatch(buffer, position)
        position += size_bytes
