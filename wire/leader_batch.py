"""The batch that a leader writes for a validated one: patched in place, or rebuilt.

Source: Kafka class LogValidator (assignOffsetsNonCompressed,
validateMessagesAndAssignOffsetsCompressed, buildRecordsAndAssignOffsets).
"""

from __future__ import annotations

from wire.compression import Compression, compress
from wire.errors import ErrorCode, KafkaError
from wire.record_batch import NO_TIMESTAMP, RecordBatch
from wire.record_builder import batch_attributes, encode_batch, overwrite_batch_header
from wire.record_kernel import first_timestamp_delta, renumber_records, wrap_int64
from wire.record_validation import ValidatedRecords


def leader_batch(
    batch: RecordBatch,
    validated: ValidatedRecords,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    log_append_time_ms: int | None = None,
    compression: Compression | None = None,
    level: int | None = None,
) -> bytes:
    """The bytes that a leader appends for a validated batch.

    ``log_append_time_ms`` is the time of the append on a LogAppendTime topic, else None;
    ``compression`` is the topic's codec, None for compression.type=producer. The batch is
    rebuilt when the codec differs (control batches stay as they are); otherwise its bytes are
    kept and the header patched. Raises KafkaError(UNKNOWN_SERVER_ERROR), as Kafka 4.4 does, for a
    batch that stays compressed with its codec and whose offset deltas are not 0, 1, 2…: Kafka means to
    rebuild it, but has skipped the keys and values by then.
    """
    source = batch.compression
    target = source if compression is None else compression
    if target is source and source is not Compression.NONE and not validated.is_consecutive:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"The offset deltas of the records in a batch compressed with {source.label} are not 0, 1, 2 and so on.",
        )
    if target is not source and not (source is Compression.NONE and batch.is_control):
        return rebuild_batch(
            batch,
            validated,
            base_offset=base_offset,
            partition_leader_epoch=partition_leader_epoch,
            log_append_time_ms=log_append_time_ms,
            compression=target,
            level=level,
        )
    patched = bytearray(batch.to_bytes())
    is_append_time = log_append_time_ms is not None
    overwrite_batch_header(
        patched,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        max_timestamp=log_append_time_ms if is_append_time else validated.max_timestamp,
        log_append_time=is_append_time,
    )
    return bytes(patched)


def rebuild_batch(
    batch: RecordBatch,
    validated: ValidatedRecords,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    log_append_time_ms: int | None = None,
    compression: Compression = Compression.NONE,
    level: int | None = None,
) -> bytes:
    """Encode the records of a validated batch anew, with offset deltas 0, 1, 2…

    Keys, values and headers are copied byte for byte; the first record's timestamp becomes the
    base timestamp (LogValidator.buildRecordsAndAssignOffsets). Raises KafkaError
    UNKNOWN_SERVER_ERROR, as Kafka does, for timestamps below -1.
    """
    first_delta = first_timestamp_delta(validated.payload, validated.payload_position)
    is_flat = batch.is_log_append_time  # all records then have the batch's one timestamp
    if not is_flat and validated.min_timestamp < NO_TIMESTAMP:
        # Kafka's builder takes no negative timestamp but -1; batches that are not rebuilt pass with one.
        text = f"Invalid negative timestamp {validated.min_timestamp}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
    records = renumber_records(
        validated.payload, validated.payload_position, validated.record_count, -first_delta, is_flat, 0
    )
    first_timestamp = batch.max_timestamp if is_flat else wrap_int64(batch.base_timestamp + first_delta)
    return encode_batch(
        compress(compression, records, level),
        record_count=validated.record_count,
        last_offset_delta=validated.record_count - 1,
        base_timestamp=first_timestamp,
        max_timestamp=validated.max_timestamp if log_append_time_ms is None else log_append_time_ms,
        attributes=batch_attributes(
            compression,
            log_append_time=log_append_time_ms is not None,
            is_transactional=batch.is_transactional,
        ),
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
