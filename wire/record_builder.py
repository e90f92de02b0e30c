"""Batches made of records, and batch headers overwritten in place.

Source: Kafka classes MemoryRecordsBuilder, DefaultRecordBatch (writeHeader, writeEmptyHeader,
setLastOffset, setMaxTimestamp), MemoryRecords (filterTo); KIP-534 for delete horizons.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from wire.compression import Compression, compress
from wire.record_batch import (
    ATTRIBUTES_MASK,
    BATCH_HEADER_SIZE,
    CONTROL_FLAG,
    CRC_START,
    DELETE_HORIZON_FLAG,
    HEADER,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_SIZE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    Record,
    RecordBatch,
)
from wire.record_kernel import encode_record, wrap_int64

_after_crc = Struct(">hiqqqhii")
_int64 = Struct(">q")
_int32 = Struct(">i")
_uint32 = Struct(">I")
_int16 = Struct(">h")


class NewRecord(NamedTuple):
    """A record to be written; ``timestamp`` in milliseconds, -1 for none."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = NO_TIMESTAMP


def encode_batch(
    payload: bytes,
    *,
    record_count: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
    base_offset: int,
    partition_leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytes:
    """Put a header with its CRC before records that are encoded, and compressed, already."""
    covered = _after_crc.pack(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    checksum = crc32c(payload, crc32c(covered))
    length = BATCH_HEADER_SIZE - LOG_OVERHEAD_SIZE + len(payload)
    head = HEADER.pack(base_offset, length, partition_leader_epoch, 2, checksum, 0, 0, 0, 0, 0, 0, 0, 0)[:CRC_START]
    return b"".join((head, covered, payload))


def batch_attributes(
    compression: Compression,
    *,
    log_append_time: bool = False,
    is_transactional: bool = False,
    is_control: bool = False,
    has_delete_horizon: bool = False,
) -> int:
    """The attribute bits of a magic 2 batch."""
    return (
        compression
        | (LOG_APPEND_TIME_FLAG if log_append_time else 0)
        | (TRANSACTIONAL_FLAG if is_transactional else 0)
        | (CONTROL_FLAG if is_control else 0)
        | (DELETE_HORIZON_FLAG if has_delete_horizon else 0)
    )


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    log_append_time: bool = False,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Encode records as one magic 2 batch.

    Offset deltas are 0, 1, 2… unless given (a compacted batch has gaps, and may keep a
    ``last_offset_delta`` beyond its last record). With ``log_append_time``, ``max_timestamp`` is the time
    of the append; otherwise it is the greatest of the records unless given. The base timestamp
    is the first record's, or the delete horizon where one is set (KIP-534). ``records`` may be
    empty only when ``last_offset_delta`` and ``max_timestamp`` are given.
    """
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    else:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    deltas = range(len(records)) if offset_deltas is None else offset_deltas
    return encode_batch(
        compress(compression, _encoded(records, deltas, base_timestamp), level),
        record_count=len(records),
        last_offset_delta=deltas[-1] if last_offset_delta is None else last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records) if max_timestamp is None else max_timestamp,
        attributes=batch_attributes(
            compression,
            log_append_time=log_append_time,
            is_transactional=is_transactional,
            is_control=is_control,
            has_delete_horizon=delete_horizon_ms is not None,
        ),
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def _encoded(records: Sequence[NewRecord], deltas: Sequence[int], base_timestamp: int) -> bytes:
    return b"".join(
        [
            encode_record(
                delta,
                wrap_int64(record.timestamp - base_timestamp),
                record.key,
                record.value,
                tuple([(name.encode(), content) for name, content in record.headers]),
            )
            for delta, record in zip(deltas, records, strict=True)
        ]
    )


def retain_records(
    batch: RecordBatch,
    records: Sequence[Record],
    *,
    delete_horizon_ms: int | None = None,
    level: int | None = None,
) -> bytes:
    """The batch that compaction writes when it keeps ``records`` (some, in order) of ``batch``.

    Offsets, last offset, codec, producer fields and leader epoch stay. ``delete_horizon_ms``
    sets a horizon; None keeps the one that is there. Without records see ``empty_batch``.
    """
    horizon = batch.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    return build_batch(
        [NewRecord(record.key, record.value, record.headers, record.timestamp) for record in records],
        base_offset=batch.base_offset,
        offset_deltas=[record.offset - batch.base_offset for record in records],
        last_offset_delta=batch.last_offset_delta,
        compression=batch.compression,
        level=level,
        log_append_time=batch.is_log_append_time,
        max_timestamp=batch.max_timestamp if batch.is_log_append_time else None,
        delete_horizon_ms=horizon,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )


def empty_batch(batch: RecordBatch) -> bytes:
    """The bare header that compaction leaves of a batch to keep its offsets and producer state."""
    return build_batch(
        (),
        base_offset=batch.base_offset,
        last_offset_delta=batch.last_offset_delta,
        log_append_time=batch.is_log_append_time,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )


def overwrite_batch_header(
    buffer: bytearray,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    max_timestamp: int | None = None,
    log_append_time: bool | None = None,
    position: int = 0,
) -> None:
    """Overwrite in place what a leader sets of the batch at ``position``.

    Base offset and leader epoch lie outside the CRC. ``max_timestamp`` and ``log_append_time``
    (None leaves them) lie inside: where they change anything, the CRC is computed anew.
    """
    _int64.pack_into(buffer, position, base_offset)
    _int32.pack_into(buffer, position + 12, partition_leader_epoch)
    attributes: int = _int16.unpack_from(buffer, position + CRC_START)[0]
    if log_append_time is None:
        wanted = attributes
    else:
        wanted = attributes | LOG_APPEND_TIME_FLAG if log_append_time else attributes & ~LOG_APPEND_TIME_FLAG
    has_new_timestamp = max_timestamp is not None and _int64.unpack_from(buffer, position + 35)[0] != max_timestamp
    if not has_new_timestamp and wanted == attributes:
        return
    if has_new_timestamp:
        _int64.pack_into(buffer, position + 35, max_timestamp)
    # As in Kafka, attribute bits that mean nothing are lost when a header is written anew.
    _int16.pack_into(buffer, position + CRC_START, wanted & ATTRIBUTES_MASK)
    end = position + LOG_OVERHEAD_SIZE + _int32.unpack_from(buffer, position + 8)[0]
    _uint32.pack_into(buffer, position + 17, crc32c(memoryview(buffer)[position + CRC_START : end]))
