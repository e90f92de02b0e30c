"""From the batch a producer sent to the bytes a leader writes, or to the reason why not (B.2 steps 4 to 9).

The rules and the kernels are those of `wire.records`; here the topic's settings are put to them.
Source: UnifiedLog.analyzeAndValidateRecords, LogValidator.
"""

from __future__ import annotations

from broker.config_log import LogConfig
from broker.storage.producer_state import AppendOrigin
from wire.compression import Compression
from wire.errors import ErrorCode, KafkaError
from wire.leader_batch import leader_batch
from wire.primitives import TopicPartition
from wire.record_batch import RecordBatch, next_batch_size
from wire.record_validation import ValidatedRecords, check_batch_header, validate_records

_NO_LIMIT = 0x7FFFFFFF


def check_produced_batch(
    batch: RecordBatch, config: LogConfig, origin: AppendOrigin, *, now_ms: int, topic_partition: TopicPartition
) -> ValidatedRecords:
    """Size, CRC, header and every record of a batch that is to be appended by the leader.

    Raises KafkaError: MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, INVALID_RECORD; RejectedRecords (with
    ``record_errors``) INVALID_RECORD or INVALID_TIMESTAMP for records that break a rule of the topic.
    """
    if batch.end_position != len(batch.buffer):
        following = next_batch_size(batch.buffer, batch.end_position)
        if following is not None and batch.end_position + following <= len(batch.buffer):
            raise KafkaError(ErrorCode.INVALID_RECORD, f"more than one record batch in one append to {topic_partition}")
    check_batch_header(
        batch,
        # The quorum's leader keeps to its own limit (ignoreRecordSize of AppendOrigin.RAFT_LEADER).
        max_message_bytes=_NO_LIMIT if origin is AppendOrigin.RAFT_LEADER else config.max_message_bytes,
        is_client=origin is AppendOrigin.CLIENT,
        topic_partition=topic_partition,
    )
    return validate_records(
        batch,
        now_ms=now_ms,
        log_append_time=config.is_log_append_time,
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        is_compacted=config.compacts,
        max_decompressed_message_bytes=config.max_decompressed_message_bytes,
        topic_partition=topic_partition,
    )


def batch_to_write(
    batch: RecordBatch,
    validated: ValidatedRecords,
    config: LogConfig,
    *,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    topic_partition: TopicPartition,
) -> bytes:
    """The bytes for the log: header patched, or rebuilt with the topic's codec.

    Raises KafkaError: MESSAGE_TOO_LARGE if rebuilding made it so, RECORD_LIST_TOO_LARGE above segment.bytes.
    """
    compression = None if config.compression_type == "producer" else Compression.from_name(config.compression_type)
    written = leader_batch(
        batch,
        validated,
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
        log_append_time_ms=now_ms if config.is_log_append_time else None,
        compression=compression,
        level=None if compression is None else _level(config, compression),
    )
    if len(written) > config.max_message_bytes and len(written) != batch.size_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Message batch size is {len(written)} bytes in append to partition {topic_partition} "
            f"which exceeds the maximum configured size of {config.max_message_bytes} (max.message.bytes).",
        )
    if len(written) > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {len(written)} bytes in append to partition {topic_partition}, "
            f"which exceeds the maximum configured segment size of {config.segment_bytes} (segment.bytes).",
        )
    return written


def _level(config: LogConfig, compression: Compression) -> int | None:
    """The topic's level for a codec that has levels."""
    return {
        Compression.GZIP: config.compression_gzip_level,
        Compression.LZ4: config.compression_lz4_level,
        Compression.ZSTD: config.compression_zstd_level,
    }.get(compression)
