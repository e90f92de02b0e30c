"""Control batches: transaction markers, and the control records of the metadata quorum.

A control record's key is two int16: a version and the type. The value of a marker is versioned
by its own first int16; the values of quorum records are messages of
``wire.messages.records.control_records``, encoded with that message's version in front as its
first field.

Source: Kafka classes ControlRecordType, EndTransactionMarker, MemoryRecords; KIP-98, KIP-595,
KIP-853.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from wire.errors import ErrorCode, KafkaError
from wire.record_batch import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, RecordBatch
from wire.record_builder import NewRecord, build_batch

_key = Struct(">hh")
_marker_value = Struct(">hi")


class ControlRecordType(IntEnum):
    """What a control record says, by the type in its key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    is_commit: bool
    coordinator_epoch: int


def control_record_type(key: bytes | None) -> ControlRecordType | None:
    """The type in a control record's key, or None for a type that came later than this code.

    Raises KafkaError(INVALID_RECORD) for a key that is none.
    """
    if key is None or len(key) < _key.size:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Invalid key of a control record: {0 if key is None else len(key)} bytes, at least {_key.size} expected.",
        )
    version, kind = _key.unpack_from(key)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"Invalid version {version} in the key of a control record.")
    return ControlRecordType(kind) if 0 <= kind <= ControlRecordType.KRAFT_VOTERS else None


def read_end_transaction_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """The marker in a control batch, or None if the batch holds another control record or none.

    Raises KafkaError(INVALID_RECORD) for a malformed one.
    """
    record = next(batch.records(), None)
    if record is None:
        return None
    kind = control_record_type(record.key)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    value = record.value
    if value is None or len(value) < _marker_value.size or value[0] & 0x80:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Invalid value of an end transaction marker.")
    coordinator_epoch: int = _marker_value.unpack_from(value)[1]
    return EndTransactionMarker(kind is ControlRecordType.COMMIT, coordinator_epoch)


def control_batch(
    records: Sequence[tuple[ControlRecordType, bytes]],
    *,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    is_transactional: bool = False,
) -> bytes:
    """Encode control records, given as (type, encoded value), as one control batch."""
    return build_batch(
        [NewRecord(_key.pack(0, kind), value, (), timestamp) for kind, value in records],
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=is_transactional,
        is_control=True,
    )


def end_transaction_marker(
    *,
    is_commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Encode the control batch that commits or aborts a producer's transaction in a partition."""
    return control_batch(
        [
            (
                ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT,
                _marker_value.pack(0, coordinator_epoch),
            )
        ],
        timestamp=timestamp,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
    )
