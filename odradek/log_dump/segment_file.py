"""A `.log` file, or a snapshot of metadata, batch by batch and record by record."""

from __future__ import annotations

from pathlib import Path

from odradek.log_dump.batch_scan import Placed, scan
from odradek.log_dump.record_content import Decoder, Fields, control_value, decoder_of, text_or_base64
from odradek.log_dump.report import Report
from wire.control_batches import ControlRecordType, control_record_type, read_end_transaction_marker
from wire.errors import KafkaError, WireError
from wire.legacy_records import LegacyBatch
from wire.log_files import offset_of_name
from wire.record_batch import AnyBatch, Record, RecordBatch

RECORD_LEAD = "| "


def dump_segment(path: Path, topic: str, report: Report, *, records: bool) -> None:
    """Show every batch, with `records` what is in it, and complain of what is not right. Raises OSError."""
    decoder = decoder_of(topic)
    previous = (offset_of_name(path.name) or 0) - 1 if path.suffix == ".log" else -1
    last_seen: int | None = None

    def complain(sentence: str, position: int) -> None:
        behind = "" if last_seen is None else f", behind offset {last_seen}"
        report.fault(sentence + behind, position=position)

    for position, batch in scan(path, complain):
        report.show("batch", batch_fields(position, batch))
        check_batch(position, batch, previous, report)
        if isinstance(batch, RecordBatch):
            dump_records(Placed(position, batch), decoder, report, shows=records)
        previous = max(previous, batch.last_offset)
        last_seen = batch.last_offset


def batch_fields(position: int, batch: AnyBatch) -> Fields:
    """Under the names that kafka-dump-log has."""
    if isinstance(batch, LegacyBatch):
        return {
            "lastOffset": batch.last_offset,
            "position": position,
            "CreateTime": batch.max_timestamp,
            "size": batch.size_bytes,
            "magic": batch.magic,
            "compresscodec": codec_name(batch),
            "crc": batch.crc,
            "isvalid": batch.has_valid_crc(),
        }
    time_name = "LogAppendTime" if batch.is_log_append_time else "CreateTime"
    horizon = batch.delete_horizon_ms
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": position,
        time_name: batch.max_timestamp,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "compresscodec": codec_name(batch),
        "crc": batch.crc,
        "isvalid": batch.has_valid_crc(),
    }


def codec_name(batch: AnyBatch) -> str:
    try:
        return batch.compression.name.lower()
    except KafkaError:
        return f"unknown({batch.attributes & 7})"


def check_batch(position: int, batch: AnyBatch, previous: int, report: Report) -> None:
    """Complain of a checksum, an order or a count that cannot be."""
    first = batch.base_offset if isinstance(batch, RecordBatch) else batch.last_offset
    if not batch.has_valid_crc():
        report.fault("the batch does not match its CRC", position=position, offset=first)
    if first <= previous:
        report.fault(
            f"the batch starts at or below offset {previous}, which is behind it", position=position, offset=first
        )
    if isinstance(batch, RecordBatch):
        if batch.last_offset_delta < 0 or batch.record_count < 0:
            report.fault(
                f"the batch declares {batch.record_count} records and a last offset of {batch.last_offset_delta} more",
                position=position,
                offset=first,
            )
        elif batch.record_count > batch.last_offset_delta + 1:
            report.fault(
                f"the batch declares {batch.record_count} records in {batch.last_offset_delta + 1} offsets",
                position=position,
                offset=first,
            )


def dump_records(placed: Placed, decoder: Decoder, report: Report, *, shows: bool) -> None:
    """Read every record, so that broken ones are found; show them if asked for."""
    position, batch = placed
    assert isinstance(batch, RecordBatch)
    offset = batch.base_offset
    try:
        for record in batch.records():
            offset = record.offset
            content = control_fields(batch, record) if batch.is_control else decoder(record.key, record.value)
            if shows:
                headers = header_list(record) if report.as_json else header_keys(record)
                report.show("record", record_fields(batch, record) | headers | content, lead=RECORD_LEAD)
    except KafkaError as error:
        report.fault(f"a record cannot be read: {error.message}", position=position, offset=offset)
    except (WireError, ValueError) as error:
        report.fault(f"a record is not what this topic holds: {error}", position=position, offset=offset)


def record_fields(batch: RecordBatch, record: Record) -> Fields:
    return {
        "offset": record.offset,
        "LogAppendTime" if batch.is_log_append_time else "CreateTime": record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": record.sequence,
    }


def header_keys(record: Record) -> Fields:
    return {"headerKeys": f"[{','.join(name for name, _ in record.headers)}]"}


def header_list(record: Record) -> Fields:
    headers = [
        {"key": name, "value": None if value is None else text_or_base64(value)} for name, value in record.headers
    ]
    return {"headers": headers}


def control_fields(batch: RecordBatch, record: Record) -> Fields:
    """A transaction's end, or what the metadata quorum wrote. Raises KafkaError, WireError."""
    kind = control_record_type(record.key)
    if kind is None:
        return {"controlType": "UNKNOWN"}
    if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
        marker = read_end_transaction_marker(batch)
        assert marker is not None
        return {"endTxnMarker": kind.name, "coordinatorEpoch": marker.coordinator_epoch}
    return control_value(kind.name, record.value)
