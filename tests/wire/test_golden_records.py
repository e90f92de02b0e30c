"""Batches that Apache Kafka built, and what its LogValidator made of good and bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wire.errors import KafkaError
from wire.records import (
    Compression,
    NewRecord,
    RecordBatch,
    RejectedRecords,
    any_batches,
    batches,
    build_batch,
    check_batch_header,
    empty_batch,
    leader_batch,
    retain_records,
    sole_batch,
    validate_records,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "records"
NOW = 1_700_000_000_000


def _load(name: str) -> dict[str, dict[str, Any]]:
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    return {entry["name"]: entry for entry in map(json.loads, lines)}


BATCHES = _load("batches.jsonl")
VALIDATIONS = _load("validation.jsonl")
MAGIC_2 = [name for name in BATCHES if not name.startswith("magic")]
LEGACY = [name for name in BATCHES if name.startswith("magic")]


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else bytes.fromhex(value)


@pytest.mark.parametrize("name", MAGIC_2)
def test_a_batch_built_by_kafka_reads_as_kafka_reads_it(name: str) -> None:
    (wanted,) = BATCHES[name]["batches"]
    (batch,) = batches(bytes.fromhex(BATCHES[name]["bytes"]))
    assert batch.has_valid_crc()
    assert wanted.pop("compression") == batch.compression.label
    records = wanted.pop("records")
    assert {field: getattr(batch, field) for field in wanted} == wanted
    assert [
        [
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            [(key, value) for key, value in record.headers],
            record.sequence,
        ]
        for record in batch.records()
    ] == [
        [
            offset,
            timestamp,
            _bytes(key),
            _bytes(value),
            [(bytes.fromhex(header).decode(), _bytes(content)) for header, content in headers],
            sequence,
        ]
        for offset, timestamp, key, value, headers, sequence in records
    ]


@pytest.mark.parametrize("name", [name for name in MAGIC_2 if name != "emptied"])
def test_our_builder_writes_the_same_bytes_as_kafka(name: str) -> None:
    golden = bytes.fromhex(BATCHES[name]["bytes"])
    batch = RecordBatch(golden)
    records = list(batch.records())
    rebuilt = build_batch(
        [NewRecord(record.key, record.value, record.headers, record.timestamp) for record in records]
        if not batch.is_log_append_time
        else _records_without_append_time(batch),
        base_offset=batch.base_offset,
        offset_deltas=[record.offset - batch.base_offset for record in records],
        last_offset_delta=batch.last_offset_delta,
        compression=batch.compression,
        log_append_time=batch.is_log_append_time,
        max_timestamp=batch.max_timestamp if batch.is_log_append_time else None,
        delete_horizon_ms=batch.delete_horizon_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )
    _assert_same_batch(rebuilt, golden)


def _assert_same_batch(ours: bytes, golden: bytes) -> None:
    """The same bytes; compressed, the same records and header, for each library finds its own matches."""
    wanted = RecordBatch(golden)
    if wanted.compression is Compression.NONE:
        assert ours.hex() == golden.hex()
        return
    assert RecordBatch(ours).has_valid_crc()
    assert list(RecordBatch(ours).records()) == list(wanted.records())
    assert ours[21:61] == golden[21:61]


def _records_without_append_time(batch: RecordBatch) -> list[NewRecord]:
    """The records with the timestamps that their deltas hold."""
    cleared = bytearray(batch.to_bytes())
    cleared[22] &= ~0x08
    return [
        NewRecord(record.key, record.value, record.headers, record.timestamp)
        for record in RecordBatch(bytes(cleared)).records()
    ]


def test_an_emptied_batch_is_kafkas_bare_header() -> None:
    golden = bytes.fromhex(BATCHES["emptied"]["bytes"])
    whole = build_batch(
        [NewRecord(b"k", b"v", (), NOW)],
        base_offset=100,
        last_offset_delta=10,
        producer_id=7,
        producer_epoch=1,
        base_sequence=20,
        partition_leader_epoch=4,
        is_transactional=True,
    )
    assert empty_batch(RecordBatch(whole)).hex() == golden.hex()


def test_retaining_records_writes_what_kafkas_cleaner_writes() -> None:
    with_horizon = BATCHES["compacted with delete horizon"]["bytes"]
    batch = RecordBatch(bytes.fromhex(BATCHES["compacted"]["bytes"]))
    records = list(batch.records())
    assert retain_records(batch, records, delete_horizon_ms=NOW + 1000).hex() == with_horizon
    assert retain_records(batch, records) == batch.to_bytes()
    kept = RecordBatch(retain_records(RecordBatch(bytes.fromhex(with_horizon)), records[1:]))
    assert (kept.delete_horizon_ms, kept.base_offset, kept.last_offset) == (NOW + 1000, 100, 110)
    assert list(kept.records()) == records[1:]


@pytest.mark.parametrize("name", LEGACY)
def test_batches_of_magic_0_and_1_are_seen_and_refused_by_produce(name: str) -> None:
    log = bytes.fromhex(BATCHES[name]["bytes"])
    found = list(any_batches(log))
    wanted = BATCHES[name]["batches"]
    assert [
        (batch.magic, batch.last_offset, batch.size_bytes, batch.max_timestamp, batch.compression.label)
        for batch in found
    ] == [
        (batch["magic"], batch["last_offset"], batch["size_bytes"], batch["max_timestamp"], batch["compression"])
        for batch in wanted
    ]
    assert all(batch.has_valid_crc() for batch in found)
    with pytest.raises(KafkaError) as refused:
        sole_batch(log, 13)
    assert refused.value.code.name == "INVALID_RECORD"


# Where our answer is not Kafka's, and why it is not.
STRICTER = {
    # Kafka does not compare the declared size of a compressed record with what it holds, and
    # stores a batch that its own consumers cannot read.
    "record one byte too short gzip": "INVALID_RECORD",
    "record one byte too long gzip": "INVALID_RECORD",
    "record length huge gzip": "INVALID_RECORD",
    # Kafka answers UNKNOWN_SERVER_ERROR to this one shape of malformed record only.
    "record length of six bytes none": "INVALID_RECORD",
}


def _leader_bytes(golden: dict[str, Any]) -> bytes:
    batch = sole_batch(bytes.fromhex(golden["input"]), 13)
    check_batch_header(batch, max_message_bytes=1 << 20, topic_partition="t-0")
    validated = validate_records(
        batch,
        now_ms=NOW,
        log_append_time=golden["log_append_time"],
        timestamp_before_max_ms=golden["timestamp_before_max_ms"],
        timestamp_after_max_ms=golden["timestamp_after_max_ms"],
        is_compacted=golden["is_compacted"],
        max_decompressed_message_bytes=golden["max_decompressed_message_bytes"],
        topic_partition="t-0",
    )
    return leader_batch(
        batch,
        validated,
        base_offset=1000,
        partition_leader_epoch=7,
        log_append_time_ms=NOW if golden["log_append_time"] else None,
        compression=Compression.from_name(golden["compression"]) if golden["compression"] else None,
    )


@pytest.mark.parametrize("name", [name for name in VALIDATIONS if "output" in VALIDATIONS[name]])
def test_a_batch_is_accepted_as_by_kafka(name: str) -> None:
    golden = VALIDATIONS[name]
    if name in STRICTER:
        with pytest.raises(KafkaError) as refused:
            _leader_bytes(golden)
        assert refused.value.code.name == STRICTER[name]
        return
    written = _leader_bytes(golden)
    assert RecordBatch(written).max_timestamp == golden["max_timestamp"]
    if golden["compression"]:
        _assert_same_batch(written, bytes.fromhex(golden["output"]))
    else:
        assert written.hex() == golden["output"]


@pytest.mark.parametrize("name", [name for name in VALIDATIONS if "error" in VALIDATIONS[name]])
def test_a_batch_is_refused_as_by_kafka(name: str) -> None:
    golden = VALIDATIONS[name]
    with pytest.raises(KafkaError) as refused:
        _leader_bytes(golden)
    assert refused.value.code.name == STRICTER.get(name, golden["error"])
    assert refused.value.message
    if "record_errors" in golden:
        assert isinstance(refused.value, RejectedRecords)
        # Kafka's text for a batch that claims LogAppendTime shows a Java object; ours names the offset.
        assert [
            (error.batch_index, error.message.replace("message with offset", "message")[:33])
            for error in refused.value.record_errors
        ] == [
            (index, message.replace("message with offset", "message")[:33])
            for index, message in golden["record_errors"]
        ]
