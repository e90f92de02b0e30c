"""Index files, and whether they say what their segment holds.

An entry of an offset index must lead to the batch that it names; one of a time index must name a batch with the
greatest timestamp so far; one of a transaction index must end at the abort marker of its producer. Room that was
preallocated (zeros at the end) is no entry. Source: Kafka's DumpLogSegments, OffsetIndex, TimeIndex, AbortedTxn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from odradek.log_dump.batch_scan import Placed, scan
from odradek.log_dump.report import Report
from wire.control_batches import read_end_transaction_marker
from wire.errors import KafkaError
from wire.log_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    TRANSACTION_INDEX_ENTRY,
    AbortedTransactionEntry,
    MalformedFile,
    decode_aborted_transactions,
    offset_of_name,
)
from wire.record_batch import RecordBatch


class Entry(NamedTuple):
    """An entry, and where it stands in its file."""

    place: int
    first: int
    """Offset of an offset index, timestamp of a time index."""
    second: int
    """Position of an offset index, offset of a time index."""


def dump_offset_index(path: Path, report: Report) -> None:
    """Show the entries of a `.index` and hold them against the `.log` beside it. Raises OSError."""
    base = offset_of_name(path.name) or 0
    entries = [
        Entry(place, base + relative, position)
        for place, (relative, position) in fixed_entries(path, OFFSET_INDEX_ENTRY, report, zeros_may_be_first=False)
    ]
    if not path.stat().st_size:
        report.empty()
    for shown in entries:
        report.show("index entry", {"offset": shown.first, "position": shown.second})
    in_order(entries, report, lambda entry, next_one: entry.first < next_one.first and entry.second < next_one.second)
    waiting = iter(sorted(entries, key=lambda entry: entry.second))
    entry = next(waiting, None)
    for position, batch in segment_of(path, report):
        while entry is not None and entry.second <= position:
            if entry.second < position:
                report.fault(f"leads to position {entry.second}, where no batch begins", position=entry.place)
            elif entry.first != batch.last_offset:
                report.fault(
                    f"says that the batch at position {position} ends with offset {entry.first}, it ends with "
                    f"{batch.last_offset}",
                    position=entry.place,
                )
            entry = next(waiting, None)
    all_found(entry, report, path, lambda left: f"leads to position {left.second}")


def dump_time_index(path: Path, report: Report) -> None:
    """Show the entries of a `.timeindex` and hold them against the `.log` beside it. Raises OSError."""
    base = offset_of_name(path.name) or 0
    entries = [
        Entry(place, timestamp, base + relative)
        for place, (timestamp, relative) in fixed_entries(path, TIME_INDEX_ENTRY, report, zeros_may_be_first=True)
    ]
    for shown in entries:
        report.show("time index entry", {"timestamp": shown.first, "offset": shown.second})
    in_order(entries, report, lambda entry, next_one: entry.first < next_one.first and entry.second <= next_one.second)
    waiting = iter(sorted(entries, key=lambda entry: entry.second))
    entry, greatest = next(waiting, None), -1
    for _, batch in segment_of(path, report):
        while entry is not None and entry.second <= batch.last_offset:
            if entry.first != batch.max_timestamp:
                report.fault(
                    f"gives offset {entry.second} timestamp {entry.first}, its batch has {batch.max_timestamp}",
                    position=entry.place,
                )
            elif entry.first < greatest:
                report.fault(
                    f"gives offset {entry.second} timestamp {entry.first} as the greatest so far, an earlier batch "
                    f"has {greatest}",
                    position=entry.place,
                )
            entry = next(waiting, None)
        greatest = max(greatest, batch.max_timestamp)
    all_found(entry, report, path, lambda left: f"names offset {left.second}")


def dump_transaction_index(path: Path, report: Report) -> None:
    """Show the entries of a `.txnindex` and hold them against the `.log` beside it. Raises OSError."""
    found: list[tuple[int, AbortedTransactionEntry]] = []
    try:
        for place, (version, aborted) in enumerate(decode_aborted_transactions(path.read_bytes())):
            report.show(
                "aborted transaction",
                {
                    "version": version,
                    "producerId": aborted.producer_id,
                    "firstOffset": aborted.first_offset,
                    "lastOffset": aborted.last_offset,
                    "lastStableOffset": aborted.last_stable_offset,
                },
            )
            if version < 0 or aborted.first_offset > aborted.last_offset:
                report.fault("is no aborted transaction", position=place * TRANSACTION_INDEX_ENTRY.size)
            found.append((place * TRANSACTION_INDEX_ENTRY.size, aborted))
    except MalformedFile as error:
        report.fault(f"the file {error}")
    entries = [Entry(place, aborted.producer_id, aborted.last_offset) for place, aborted in found]
    in_order(entries, report, lambda entry, next_one: entry.second < next_one.second)
    waiting = iter(sorted(entries, key=lambda entry: entry.second))
    entry = next(waiting, None)
    for _, batch in segment_of(path, report):
        while entry is not None and entry.second <= batch.last_offset:
            if not aborts(batch, entry):
                report.fault(
                    f"has an abort of producer {entry.first} at offset {entry.second}, where there is none",
                    position=entry.place,
                )
            entry = next(waiting, None)
    all_found(entry, report, path, lambda left: f"has an abort at offset {left.second}")


def aborts(batch: object, entry: Entry) -> bool:
    """Whether a batch is the abort marker that an entry speaks of."""
    if not isinstance(batch, RecordBatch) or not batch.is_control or batch.producer_id != entry.first:
        return False
    try:
        marker = read_end_transaction_marker(batch)
    except KafkaError:
        return False
    return batch.last_offset == entry.second and marker is not None and not marker.is_commit


def fixed_entries(
    path: Path, layout: Struct, report: Report, *, zeros_may_be_first: bool
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Place in the file and fields of each entry, without the preallocated room behind the last."""
    size = path.stat().st_size
    if size % layout.size:
        report.fault(f"the file has {size} bytes, not a multiple of {layout.size}")
    content = without_room(path)
    count = -(-len(content) // layout.size)
    content += bytes(count * layout.size - len(content))
    # One entry of zeros in a time index can be earnest: timestamp 0 at the base offset.
    if not count and zeros_may_be_first and size == layout.size:
        count, content = 1, bytes(size)
    if count * layout.size < size:
        report.note(f"{size - count * layout.size} bytes are preallocated room")
    for place, fields in enumerate(layout.iter_unpack(content)):
        yield place * layout.size, fields


def without_room(path: Path) -> bytes:
    """A file's content up to its last byte that is not zero; the holes of a sparse file are not read."""
    with path.open("rb") as file:
        size = end = file.seek(0, os.SEEK_END)
        if hasattr(os, "SEEK_DATA"):
            end = 0
            try:
                while end < size:
                    file.seek(end, os.SEEK_DATA)
                    end = file.seek(0, os.SEEK_CUR)
                    end = os.lseek(file.fileno(), end, os.SEEK_HOLE)
            except OSError:
                pass  # Nothing but a hole from here on.
        file.seek(0)
        return file.read(end).rstrip(b"\0")


def in_order(entries: list[Entry], report: Report, are_ordered: Callable[[Entry, Entry], bool]) -> None:
    """Complain of every entry that does not come after the one before it."""
    for entry, next_one in pairwise(entries):
        if not are_ordered(entry, next_one):
            report.fault(
                f"entry ({next_one.first}, {next_one.second}) does not come after ({entry.first}, {entry.second})",
                position=next_one.place,
            )


def segment_of(path: Path, report: Report) -> Iterator[Placed]:
    """The batches of the `.log` that an index belongs to; what is wrong with that file itself is told with it."""
    log = log_beside(path)
    if log.exists():
        yield from scan(log, lambda sentence, position: None)
    else:
        report.note(f"there is no {log.name} beside it to hold it against")


def log_beside(path: Path) -> Path:
    """The `.log` of an index; both are `.deleted`, `.cleaned` or `.swap`, or neither is."""
    base, _, *state = path.name.split(".")
    return path.with_name(".".join([base + LOG_SUFFIX, *state]))


def all_found(entry: Entry | None, report: Report, path: Path, words: Callable[[Entry], str]) -> None:
    """Complain of the first entry that the segment does not reach."""
    if entry is not None and log_beside(path).exists():
        report.fault(f"{words(entry)}, beyond the last batch of its segment", position=entry.place)
