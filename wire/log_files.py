"""The small files beside a log, as bytes and text: names, index entries, checkpoints, identities.

What a node writes and what `odradek dump-log` reads is declared here once; opening files is others' work.
Source: LogFileUtils, OffsetIndex, TimeIndex, AbortedTxn, CheckpointFile, PartitionMetadataFile, PropertiesUtils.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import NamedTuple, TypeVar

from wire.primitives import ZERO_UUID, TopicPartition, uuid_from_text, uuid_text

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

OFFSET_INDEX_ENTRY = Struct(">ii")
"""Last offset of a batch minus the segment's base offset, position of the batch."""
TIME_INDEX_ENTRY = Struct(">qi")
"""Greatest timestamp so far, last offset of the batch that brought it minus the base offset."""
TRANSACTION_INDEX_ENTRY = Struct(">hqqqq")
TRANSACTION_INDEX_VERSION = 0

CHECKPOINT_VERSION = 0

_Entry = TypeVar("_Entry")


class MalformedFile(ValueError):
    """Content that is not what its name says, in words that follow the name of the file."""


def off20(offset: int) -> str:
    """An offset as file names carry it."""
    return f"{offset:020d}"


def offset_of_name(name: str) -> int | None:
    """The offset at the start of a segment file's name, None for other files."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdigit() else None


# --- transaction index ----------------------------------------------------------------------------


class AbortedTransactionEntry(NamedTuple):
    """An aborted transaction: its data lies in [first_offset, last_offset), its marker at last_offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """What the last stable offset became with this abort."""


def encode_aborted_transaction(entry: AbortedTransactionEntry) -> bytes:
    """One entry of a transaction index."""
    return TRANSACTION_INDEX_ENTRY.pack(TRANSACTION_INDEX_VERSION, *entry)


def decode_aborted_transactions(content: bytes) -> Iterator[tuple[int, AbortedTransactionEntry]]:
    """(version, entry) of each entry. Raises MalformedFile where the size is not one of whole entries."""
    if len(content) % TRANSACTION_INDEX_ENTRY.size:
        raise MalformedFile(f"has {len(content)} bytes, not a multiple of {TRANSACTION_INDEX_ENTRY.size}")
    for version, *fields in TRANSACTION_INDEX_ENTRY.iter_unpack(content):
        yield version, AbortedTransactionEntry(*fields)


# --- checkpoints ----------------------------------------------------------------------------------


def encode_checkpoint(lines: Iterable[str]) -> bytes:
    """A checkpoint file of these entries: version, their number, one on each line."""
    entries = list(lines)
    return ("\n".join([str(CHECKPOINT_VERSION), str(len(entries)), *entries]) + "\n").encode()


def decode_checkpoint(content: bytes, entry: Callable[[list[str]], _Entry]) -> list[_Entry]:
    """The entries, each made by ``entry`` from a line's fields; an empty file has none. Raises MalformedFile."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise MalformedFile(f"is not text: {error}") from error
    if not lines:
        return []
    if lines[0].strip() != str(CHECKPOINT_VERSION):
        raise MalformedFile(f"has version {lines[0]!r} in its first line, known is {CHECKPOINT_VERSION}")
    if len(lines) < 2 or not lines[1].strip().isdigit():
        raise MalformedFile("has no number of entries in its second line")
    expected = int(lines[1])
    entries = []
    for number, line in enumerate(lines[2:], 3):
        try:
            entries.append(entry(line.split()))
        except ValueError as error:
            raise MalformedFile(f"line {number} is malformed: {line!r}") from error
    if len(entries) != expected:
        raise MalformedFile(f"announces {expected} entries and holds {len(entries)}")
    return entries


def partition_and_offset(fields: list[str]) -> tuple[TopicPartition, int]:
    """An entry of an offset checkpoint. Raises ValueError."""
    topic, partition, offset = fields
    return TopicPartition(topic, int(partition)), int(offset)


def epoch_and_start_offset(fields: list[str]) -> tuple[int, int]:
    """An entry of a leader epoch checkpoint. Raises ValueError."""
    epoch, start_offset = fields
    return int(epoch), int(start_offset)


# --- identities -----------------------------------------------------------------------------------


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """The content of `partition.metadata`."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def decode_partition_metadata(content: bytes) -> bytes:
    """The topic id. Raises MalformedFile."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise MalformedFile(f"is not text: {error}") from error
    values = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        version = int(values["version"])
        topic_id = uuid_from_text(values["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise MalformedFile(f"is malformed: {error}") from error
    if version < 0:
        raise MalformedFile(f"has version {version}")
    if topic_id == ZERO_UUID:
        raise MalformedFile("holds the zero topic id")
    return topic_id


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def decode_properties(content: bytes) -> dict[str, str]:
    """Java properties, as `meta.properties` holds them. Raises MalformedFile."""
    properties = {}
    for line in content.decode("latin-1").splitlines():
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        end = next((i for i, c in enumerate(line) if c in "=: \t" and (i == 0 or line[i - 1] != "\\")), len(line))
        value = line[end:].lstrip(" \t")
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip(" \t")
        properties[_unescape(line[:end])] = _unescape(value)
    return properties


def _unescape(text: str) -> str:
    """Undo the backslashes of a Java properties line."""
    out = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            if character == "u":
                digits = "".join(next(characters, "") for _ in range(4))
                try:
                    character = chr(int(digits, 16))
                except ValueError as error:
                    raise MalformedFile(f"is malformed: \\u{digits} names no character") from error
            else:
                character = _ESCAPES.get(character, character)
        out.append(character)
    return "".join(out)
