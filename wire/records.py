"""The door to record batches: everything other packages use of them, under one name.

- ``wire.record_batch``: the view of a batch and the way from batch to batch
- ``wire.record_builder``: batches made of records, and headers overwritten in place
- ``wire.record_validation``: what Produce checks of a batch
- ``wire.leader_batch``: the bytes a leader appends for it, patched or rebuilt
- ``wire.control_batches``: transaction markers and the control records of the quorum
- ``wire.legacy_records``: magic 0 and 1, to be refused or read from old segments
- ``wire.compression``, ``wire.record_kernel``: codecs and hot loops
"""

from wire.compression import DECOMPRESSED_SIZE_LIMIT, Compression, compress, decompress
from wire.control_batches import (
    ControlRecordType,
    EndTransactionMarker,
    control_batch,
    control_record_type,
    end_transaction_marker,
    read_end_transaction_marker,
)
from wire.leader_batch import leader_batch, rebuild_batch
from wire.legacy_records import LegacyBatch
from wire.record_batch import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD_SIZE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    AnyBatch,
    Record,
    RecordBatch,
    add_to_sequence,
    any_batches,
    batches,
    next_batch_size,
)
from wire.record_builder import NewRecord, build_batch, empty_batch, overwrite_batch_header, retain_records
from wire.record_validation import (
    RecordError,
    RejectedRecords,
    ValidatedRecords,
    check_batch_header,
    sole_batch,
    validate_records,
)

__all__ = [
    "BATCH_HEADER_SIZE",
    "DECOMPRESSED_SIZE_LIMIT",
    "LOG_OVERHEAD_SIZE",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "AnyBatch",
    "Compression",
    "ControlRecordType",
    "EndTransactionMarker",
    "LegacyBatch",
    "NewRecord",
    "Record",
    "RecordBatch",
    "RecordError",
    "RejectedRecords",
    "ValidatedRecords",
    "add_to_sequence",
    "any_batches",
    "batches",
    "build_batch",
    "check_batch_header",
    "compress",
    "control_batch",
    "control_record_type",
    "decompress",
    "empty_batch",
    "end_transaction_marker",
    "leader_batch",
    "next_batch_size",
    "overwrite_batch_header",
    "read_end_transaction_marker",
    "rebuild_batch",
    "retain_records",
    "sole_batch",
    "validate_records",
]
