"""What Produce checks of a batch before a leader appends it.

The way of a batch: ``sole_batch`` (the request's bytes hold exactly one, magic 2) →
``check_batch_header`` (size, CRC, header) → ``validate_records`` (every record, after
decompression) → ``wire.leader_batch`` (the bytes that go into the log).

Source: Kafka classes ProduceRequest (validateRecords), UnifiedLog (analyzeAndValidateRecords),
LogValidator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from wire.compression import DECOMPRESSED_SIZE_LIMIT, Compression
from wire.errors import ErrorCode, KafkaError, MalformedMessage
from wire.record_batch import MAGIC_POSITION, NO_TIMESTAMP, RecordBatch, next_batch_size
from wire.record_kernel import INT64_MAX, INT64_MIN, NULL_KEY, RecordScan, faulty_records, largest_record

SLICE_SIZE = 256 * 1024
"""Bytes walked in one call of a compiled kernel, which holds the interpreter lock meanwhile."""

RECORD_SIZE_MAX = 0x7FFFFFFF - 8
"""Kafka's default of max.decompressed.message.bytes: no limit but that of an array in Java."""


class RecordError(NamedTuple):
    """Why one record was refused; ``batch_index`` is its place in the batch."""

    batch_index: int
    message: str


class RejectedRecords(KafkaError):
    """A batch refused because of some of its records, all of which are named."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


@dataclass(frozen=True, slots=True)
class ValidatedRecords:
    """What a walk over valid records found.

    ``payload`` is the buffer of the decompressed records, which lie from ``payload_position`` to
    its end. ``min_timestamp`` and ``max_timestamp`` are in milliseconds, the latter is -1 where
    no record has one; ``max_timestamp_index`` is the place of the first record that has it.
    """

    record_count: int
    min_timestamp: int
    max_timestamp: int
    max_timestamp_index: int
    is_consecutive: bool
    payload: bytes
    payload_position: int


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def sole_batch(records: bytes | None, api_version: int) -> RecordBatch:
    """The one batch that a Produce request may carry for a partition.

    Raises KafkaError: CORRUPT_MESSAGE for bytes that are no batch; INVALID_RECORD for none, for
    more than one, and for magic 0 or 1; UNSUPPORTED_COMPRESSION_TYPE for zstd before version 7
    (KIP-110). Bytes after the batch that are no whole batch are ignored, as Kafka does.
    """
    buffer = records or b""
    size_bytes = next_batch_size(buffer, 0)
    if size_bytes is None or size_bytes > len(buffer):
        raise _invalid(f"Produce requests with version {api_version} must have at least one record batch per partition")
    if buffer[MAGIC_POSITION] != 2:
        raise _invalid(
            f"Produce requests with version {api_version} are only allowed to contain record batches"
            f" with magic version 2; this one has {buffer[MAGIC_POSITION]}"
        )
    batch = RecordBatch(buffer)
    if api_version < 7 and batch.compression is Compression.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {api_version} are not allowed to use ZStandard compression",
        )
    next_size_bytes = next_batch_size(buffer, size_bytes)
    if next_size_bytes is not None and size_bytes + next_size_bytes <= len(buffer):
        raise _invalid(
            f"Produce requests with version {api_version} are only allowed to contain exactly one"
            " record batch per partition"
        )
    return batch


def check_batch_header(
    batch: RecordBatch, *, max_message_bytes: int, is_client: bool = True, topic_partition: object = ""
) -> None:
    """Check size, CRC and header of a batch that is to be appended by the leader.

    The rules on counts, control bit and sequence hold for what clients send only (``is_client``);
    coordinators write control batches. Raises KafkaError with INVALID_RECORD, MESSAGE_TOO_LARGE
    or CORRUPT_MESSAGE, in Kafka's order: the size is looked at before the CRC.
    """
    if batch.base_offset != 0:
        raise _invalid(
            f"The baseOffset of the record batch in the append to {topic_partition} should be 0,"
            f" but it is {batch.base_offset}"
        )
    if batch.size_bytes > max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {topic_partition} is {batch.size_bytes} bytes"
            f" which exceeds the maximum configured value of {max_message_bytes} (max.message.bytes).",
        )
    if not batch.has_valid_crc():
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {batch.crc}) in topic partition {topic_partition}.",
        )
    if not is_client:
        return
    if batch.last_offset_delta + 1 <= 0:
        raise _invalid(
            f"Batch has an invalid offset range: [0, {batch.last_offset_delta}] in topic partition {topic_partition}"
        )
    if batch.record_count <= 0:
        raise _invalid(
            f"Invalid reported count for record batch: {batch.record_count} in topic partition {topic_partition}"
        )
    if batch.record_count != batch.last_offset_delta + 1:
        raise _invalid(
            f"Inconsistent batch offset range [0, {batch.last_offset_delta}] and count of records"
            f" {batch.record_count} in topic partition {topic_partition}"
        )
    if batch.is_control:
        raise _invalid(f"Clients are not allowed to write control records in topic partition {topic_partition}")
    if batch.has_producer_id and batch.base_sequence < 0:
        raise _invalid(
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId"
            f" {batch.producer_id} in topic partition {topic_partition}"
        )


def validate_records(
    batch: RecordBatch,
    *,
    now_ms: int,
    log_append_time: bool = False,
    timestamp_before_max_ms: int = INT64_MAX,
    timestamp_after_max_ms: int = INT64_MAX,
    is_compacted: bool = False,
    max_decompressed_message_bytes: int = RECORD_SIZE_MAX,
    topic_partition: object = "",
    size_limit: int = DECOMPRESSED_SIZE_LIMIT,
) -> ValidatedRecords:
    """Walk every record of a batch, decompressed, and check it against the topic's rules.

    ``log_append_time`` says that the topic's message.timestamp.type is LogAppendTime, so that
    timestamps are not compared with ``now_ms``. ``is_compacted``: records need keys.
    ``max_decompressed_message_bytes`` bounds each record of a compressed batch, ``size_limit``
    all of them together.

    Raises KafkaError at once: INVALID_RECORD for records that cannot be decoded or are over a
    limit, UNKNOWN_SERVER_ERROR (Kafka's answer) for payloads that do not decompress. Raises
    RejectedRecords, naming all of them, for records that break a rule.
    """
    payload, start, end = batch.payload(size_limit)
    if end != len(payload):
        payload = payload[:end]
    scan = _walk(batch, payload, start, end)
    if max_decompressed_message_bytes < end - start and batch.compression is not Compression.NONE:
        _check_largest(payload, start, scan, max_decompressed_message_bytes)
    least, most, most_index = _timestamps(batch, scan, topic_partition)
    oldest = now_ms - timestamp_before_max_ms
    newest = now_ms + timestamp_after_max_ms
    is_in_range = log_append_time or (oldest <= least and most <= newest)
    claims_append_time = batch.is_log_append_time and (log_append_time or least == NO_TIMESTAMP)
    if (is_compacted and scan.null_keys) or not is_in_range or claims_append_time:
        rules = _Rules(oldest, newest, not log_append_time, is_compacted, claims_append_time, topic_partition)
        record_errors, code = _record_errors(batch, payload, start, rules)
        if record_errors:
            raise _rejected(code, record_errors)
    return ValidatedRecords(
        scan.count,
        least,
        # Kafka's running maximum starts at NO_TIMESTAMP, so nothing below it is ever stored.
        max(most, NO_TIMESTAMP),
        most_index,
        scan.consecutive,
        payload,
        start,
    )


def _walk(batch: RecordBatch, payload: bytes, start: int, end: int) -> RecordScan:
    count = batch.record_count
    if count < 0:
        raise _invalid(f"Found invalid record count {count} in magic v2 batch")
    scan = RecordScan(start)
    try:
        while scan.count < count and scan.position < end:
            scan.advance(payload, count, min(end, scan.position + SLICE_SIZE))
    except MalformedMessage as error:
        raise _invalid(f"Found invalid record structure: {error}") from None
    if scan.count < count:
        raise _invalid(f"Found invalid record count: the batch declares {count} records and holds {scan.count}")
    if scan.position != end:
        raise _invalid(f"Incorrect declared batch size: {end - scan.position} bytes follow its {count} records")
    return scan


def _check_largest(payload: bytes, start: int, scan: RecordScan, limit: int) -> None:
    largest = largest_record(payload, start, scan.count)
    if largest > limit:
        raise _invalid(
            f"Invalid record size: {largest} exceeds the configured maximum record size of"
            f" {limit} (max.decompressed.message.bytes)."
        )


def _timestamps(batch: RecordBatch, scan: RecordScan, topic_partition: object) -> tuple[int, int, int]:
    """The least and the greatest timestamp of a batch, and the first record that has the greatest."""
    if batch.is_log_append_time or not scan.count:
        return batch.max_timestamp, batch.max_timestamp, 0
    least = batch.base_timestamp + scan.min_timestamp_delta
    most = batch.base_timestamp + scan.max_timestamp_delta
    if least < INT64_MIN or most > INT64_MAX:
        raise _invalid(f"A timestamp of the batch does not fit 64 bits (topic partition {topic_partition}).")
    return least, most, scan.max_timestamp_index


class _Rules(NamedTuple):
    oldest: int
    newest: int
    check_timestamps: bool
    is_compacted: bool
    claims_append_time: bool
    topic_partition: object


def _record_errors(
    batch: RecordBatch, payload: bytes, start: int, rules: _Rules
) -> tuple[list[RecordError], ErrorCode]:
    """Say of every record that breaks a rule which one; the code is INVALID_TIMESTAMP if any says so."""
    errors: list[RecordError] = []
    code = ErrorCode.INVALID_RECORD
    if batch.is_log_append_time:
        # All records have the batch's timestamp: one answer holds for each, unless it has no key.
        is_late = rules.check_timestamps and batch.max_timestamp != NO_TIMESTAMP
        is_late = is_late and not rules.oldest <= batch.max_timestamp <= rules.newest
        keyless = _keyless(payload, start, batch.record_count) if rules.is_compacted else frozenset()
        for index in range(batch.record_count):
            if index in keyless:
                errors.append(RecordError(index, _no_key(rules)))
            elif is_late or rules.claims_append_time:
                code = ErrorCode.INVALID_TIMESTAMP
                errors.append(
                    RecordError(
                        index,
                        _out_of_range(batch.max_timestamp, index, rules)
                        if is_late
                        else f"Invalid timestamp type in message with offset {index}. Producer should not set"
                        " timestamp type to LogAppendTime.",
                    )
                )
        return errors, code
    faults = faulty_records(
        payload,
        start,
        batch.record_count,
        batch.base_timestamp,
        rules.oldest,
        rules.newest,
        rules.check_timestamps,
        rules.is_compacted,
    )
    for index, rule, timestamp, offset_delta in faults:
        if rule == NULL_KEY:
            errors.append(RecordError(index, _no_key(rules)))
        else:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(RecordError(index, _out_of_range(timestamp, offset_delta, rules)))
    return errors, code


def _keyless(payload: bytes, start: int, count: int) -> frozenset[int]:
    faults = faulty_records(payload, start, count, 0, 0, 0, False, True)
    return frozenset(fault[0] for fault in faults)


def _no_key(rules: _Rules) -> str:
    return f"Compacted topic cannot accept message without key in topic partition {rules.topic_partition}"


def _out_of_range(timestamp: int, offset: int, rules: _Rules) -> str:
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. The timestamp should be"
        f" within [{rules.oldest}, {rules.newest}]"
    )


def _rejected(code: ErrorCode, record_errors: list[RecordError]) -> RejectedRecords:
    if code is ErrorCode.INVALID_TIMESTAMP:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        shown = ", ".join(
            f"RecordError(batchIndex={error.batch_index}, message='{error.message}')" for error in record_errors[:3]
        )
        message = (
            f"One or more records have been rejected due to {len(record_errors)} record errors in total,"
            f" and only showing the first three errors at most: [{shown}]"
        )
    return RejectedRecords(code, message, record_errors)
