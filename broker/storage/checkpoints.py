"""Kafka's checkpoint text files: offsets per partition, and leader epochs of one partition.

Both hold a version line `0`, a line with the number of entries, and one line per entry. An empty file
reads as no entries; anything else that does not fit raises CorruptCheckpoint.

Source: CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from broker.storage.files import Files, replace_file
from wire.primitives import TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"

_VERSION = 0
_Entry = TypeVar("_Entry")


class CorruptCheckpoint(OSError):
    """A checkpoint file that is not one; the text names the file and the line."""


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Entries of an offset checkpoint; none if the file is missing. Raises CorruptCheckpoint."""

    def entry(fields: list[str]) -> tuple[TopicPartition, int]:
        topic, partition, offset = fields
        return TopicPartition(topic, int(partition)), int(offset)

    return dict(_read(files, path, entry))


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int], *, durable: bool = True) -> None:
    """Replace an offset checkpoint."""
    _write(files, path, (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()), durable)


def read_epochs(files: Files, path: str) -> list[tuple[int, int]]:
    """Entries (epoch, start offset) of a leader epoch checkpoint; none if the file is missing."""

    def entry(fields: list[str]) -> tuple[int, int]:
        epoch, start_offset = fields
        return int(epoch), int(start_offset)

    return _read(files, path, entry)


def write_epochs(files: Files, path: str, epochs: Iterable[tuple[int, int]], *, durable: bool) -> None:
    """Replace a leader epoch checkpoint."""
    _write(files, path, (f"{epoch} {start_offset}" for epoch, start_offset in epochs), durable)


def _write(files: Files, path: str, entries: Iterable[str], durable: bool) -> None:
    lines = list(entries)
    text = "\n".join([str(_VERSION), str(len(lines)), *lines]) + "\n"
    replace_file(files, path, text.encode(), durable=durable)


def _read(files: Files, path: str, entry: Callable[[list[str]], _Entry]) -> list[_Entry]:
    try:
        text = files.read(path).decode()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path} is not text: {error}") from error
    lines = text.splitlines()
    if not lines:
        return []
    if lines[0].strip() != str(_VERSION):
        raise CorruptCheckpoint(f"{path} has version {lines[0]!r} in its first line, known is {_VERSION}")
    if len(lines) < 2 or not lines[1].strip().isdigit():
        raise CorruptCheckpoint(f"{path} has no number of entries in its second line")
    expected = int(lines[1])
    entries = []
    for number, line in enumerate(lines[2:], 3):
        try:
            entries.append(entry(line.split()))
        except ValueError as error:
            raise CorruptCheckpoint(f"{path} line {number} is malformed: {line!r}") from error
    if len(entries) != expected:
        raise CorruptCheckpoint(f"{path} announces {expected} entries and holds {len(entries)}")
    return entries
