"""Batches of `__cluster_metadata-0` and of its snapshots: records to bytes and back.

A data batch holds metadata records as values without keys; a control batch holds what concerns the
quorum. Source: Kafka's BatchAccumulator, RecordsBatchReader and RecordsSnapshotWriter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from coordinator.machine import MetadataRecord
from coordinator.metadata.framing import decode_record, encode_record
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.control_batches import ControlRecordType, control_batch, control_record_type
from wire.errors import ErrorCode, KafkaError, WireError
from wire.messages.records.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from wire.record_batch import RecordBatch, batches
from wire.record_builder import NewRecord, build_batch

BATCH_BYTES_MAX = 8 * 1024 * 1024
"""Kafka's KafkaRaftClient.MAX_BATCH_SIZE_BYTES."""

_RECORD_OVERHEAD_BYTES_MAX = 32

_CONTROL_MESSAGES: dict[ControlRecordType, Any] = {
    ControlRecordType.LEADER_CHANGE: LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: VotersRecord,
}
_CONTROL_TYPES = {message: kind for kind, message in _CONTROL_MESSAGES.items()}


class MetadataBatch(NamedTuple):
    """One batch as read: control messages or metadata records, with the offset of the first."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    control: list[Any]
    records: list[MetadataRecord]
    size_bytes: int


def data_batches(
    records: Sequence[MetadataRecord], *, base_offset: int, epoch: int, timestamp_ms: int
) -> Iterator[bytes]:
    """The records as batches of at most BATCH_BYTES_MAX, their offsets from `base_offset` on. Raises
    KafkaError UNKNOWN_SERVER_ERROR, before it yields, for a record that is larger on its own."""
    values = [encode_record(record) for record in records]
    for record, value in zip(records, values, strict=True):
        if len(value) + _RECORD_OVERHEAD_BYTES_MAX > BATCH_BYTES_MAX:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{type(record.message).__name__} has {len(value)} bytes, "
                f"a metadata batch holds at most {BATCH_BYTES_MAX}.",
            )
    pending: list[NewRecord] = []
    size = 0
    for value in values:
        if size + len(value) + _RECORD_OVERHEAD_BYTES_MAX > BATCH_BYTES_MAX:
            yield _data_batch(pending, base_offset, epoch)
            base_offset += len(pending)
            pending, size = [], 0
        pending.append(NewRecord(None, value, (), timestamp_ms))
        size += len(value) + _RECORD_OVERHEAD_BYTES_MAX
    if pending:
        yield _data_batch(pending, base_offset, epoch)


def _data_batch(records: list[NewRecord], base_offset: int, epoch: int) -> bytes:
    return build_batch(records, base_offset=base_offset, partition_leader_epoch=epoch)


def quorum_batch(messages: Sequence[Any], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    """Control messages as one control batch. Each is written at the version in its first field."""
    return control_batch(
        [(_CONTROL_TYPES[type(message)], message.encode(message.version)) for message in messages],
        timestamp=timestamp_ms,
        base_offset=base_offset,
        partition_leader_epoch=epoch,
    )


def read_batches(buffer: bytes) -> Iterator[MetadataBatch]:
    """The complete batches in `buffer`. Raises MetadataReplayError for bytes that are none."""
    try:
        for batch in batches(buffer):
            if not batch.has_valid_crc():
                raise MetadataReplayError(f"the batch at offset {batch.base_offset} does not match its checksum")
            yield _read_batch(batch)
    except (KafkaError, WireError) as error:
        raise MetadataReplayError(f"a batch of metadata records is broken: {error}") from error


def _read_batch(batch: RecordBatch) -> MetadataBatch:
    control: list[Any] = []
    records: list[MetadataRecord] = []
    if batch.is_control:
        for record in batch.records():
            kind = control_record_type(record.key)
            message_class = None if kind is None else _CONTROL_MESSAGES.get(kind)
            # An unknown type is ignored, as Kafka does: it is of no concern to those that read it.
            if message_class is not None:
                value = record.value or b""
                version = int.from_bytes(value[:2], "big")
                control.append(message_class.decode(value, min(version, message_class.MAX_VERSION)))
    else:
        records = [decode_record(record.value) for record in batch.records()]
    return MetadataBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        epoch=batch.partition_leader_epoch,
        timestamp_ms=batch.max_timestamp,
        control=control,
        records=records,
        size_bytes=batch.size_bytes,
    )
