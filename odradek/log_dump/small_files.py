"""Producer snapshots, checkpoints, and the files that say whose a directory is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odradek.log_dump.report import Report
from wire.log_files import (
    MalformedFile,
    decode_checkpoint,
    decode_partition_metadata,
    decode_properties,
    epoch_and_start_offset,
    partition_and_offset,
)
from wire.primitives import uuid_text
from wire.producer_snapshot import CorruptSnapshot, decode_snapshot
from wire.record_batch import SEQUENCE_MAX, add_to_sequence

SEQUENCES = SEQUENCE_MAX + 1
"""How many there are: they go round."""


def dump_producer_snapshot(path: Path, report: Report) -> None:
    """The producers of a `.snapshot`. Raises OSError."""
    try:
        entries = decode_snapshot(path.read_bytes())
    except CorruptSnapshot as error:
        report.fault(f"no producer snapshot: {error}")
        return
    for entry in entries:
        first = entry.transaction_first_offset
        fields = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": "OptionalLong.empty" if first < 0 else f"OptionalLong[{first}]",
            "lastTimestamp": entry.timestamp_ms,
        }
        if entry.last_offset >= 0:  # else only a marker of this producer was seen
            fields |= {
                "firstSequence": add_to_sequence(entry.last_sequence, SEQUENCES - entry.offset_delta),
                "lastSequence": entry.last_sequence,
                "lastOffset": entry.last_offset,
                "offsetDelta": entry.offset_delta,
                "timestamp": entry.timestamp_ms,
            }
        report.show("producer", fields)


def dump_offset_checkpoint(path: Path, report: Report) -> None:
    """Partitions and offsets. Raises OSError."""
    for (topic, partition), offset in checkpoint_entries(path, report, partition_and_offset):
        report.show("checkpoint", {"topic": topic, "partition": partition, "offset": offset})


def dump_leader_epochs(path: Path, report: Report) -> None:
    """Leader epochs and where they begin. Raises OSError."""
    previous = (-1, -1)
    for entry in checkpoint_entries(path, report, epoch_and_start_offset):
        report.show("leader epoch", {"epoch": entry[0], "startOffset": entry[1]})
        if entry[0] <= previous[0] or entry[1] <= previous[1]:
            report.fault(f"epoch {entry[0]} from offset {entry[1]} on does not come after epoch {previous[0]}")
        previous = entry


def checkpoint_entries(path: Path, report: Report, entry: Callable[[list[str]], Any]) -> list[Any]:
    try:
        return decode_checkpoint(path.read_bytes(), entry)
    except MalformedFile as error:
        report.fault(f"the file {error}")
        return []


def dump_partition_metadata(path: Path, report: Report) -> None:
    """The topic id. Raises OSError."""
    try:
        report.show("topic", {"topicId": uuid_text(decode_partition_metadata(path.read_bytes()))})
    except MalformedFile as error:
        report.fault(f"the file {error}")


def dump_meta_properties(path: Path, report: Report) -> None:
    """Whose the log directory is. Raises OSError."""
    try:
        properties = decode_properties(path.read_bytes())
    except MalformedFile as error:
        report.fault(f"the file {error}")
        return
    report.show("identity", dict(sorted(properties.items())))
    missing = [name for name in ("version", "cluster.id", "node.id") if name not in properties]
    if properties.get("version", "0") != "0" and missing:
        report.fault(f"the file lacks {' and '.join(missing)}")


def dump_json(path: Path, report: Report) -> None:
    """`quorum-state` and `.kafka_cleanshutdown`: one line of JSON (of old, an empty file). Raises OSError."""
    content = path.read_bytes()
    try:
        fields = json.loads(content or b"{}")
    except ValueError as error:
        report.fault(f"the file is no JSON: {error}")
        return
    if not isinstance(fields, dict):
        report.fault("the file holds no JSON object")
        return
    report.show("state", fields)
