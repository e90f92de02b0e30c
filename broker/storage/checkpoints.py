"""Kafka's checkpoint text files: offsets per partition, and leader epochs of one partition.

Both hold a version line `0`, a line with the number of entries, and one line per entry. An empty file
reads as no entries; anything else that does not fit raises CorruptCheckpoint.

Source: CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from broker.storage.files import Files, replace_file
from wire.log_files import (
    MalformedFile,
    decode_checkpoint,
    encode_checkpoint,
    epoch_and_start_offset,
    partition_and_offset,
)
from wire.primitives import TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"

_Entry = TypeVar("_Entry")


class CorruptCheckpoint(OSError):
    """A checkpoint file that is not one; the text names the file and the line."""


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Entries of an offset checkpoint; none if the file is missing. Raises CorruptCheckpoint."""
    return dict(_read(files, path, partition_and_offset))


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int], *, durable: bool = True) -> None:
    """Replace an offset checkpoint."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    replace_file(files, path, encode_checkpoint(lines), durable=durable)


def read_epochs(files: Files, path: str) -> list[tuple[int, int]]:
    """Entries (epoch, start offset) of a leader epoch checkpoint; none if the file is missing."""
    return _read(files, path, epoch_and_start_offset)


def write_epochs(files: Files, path: str, epochs: Iterable[tuple[int, int]], *, durable: bool) -> None:
    """Replace a leader epoch checkpoint."""
    replace_file(files, path, encode_epochs(epochs), durable=durable)


def encode_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """The content of a leader epoch checkpoint."""
    return encode_checkpoint(f"{epoch} {start_offset}" for epoch, start_offset in epochs)


def _read(files: Files, path: str, entry: Callable[[list[str]], _Entry]) -> list[_Entry]:
    try:
        return decode_checkpoint(files.read(path), entry)
    except FileNotFoundError:
        return []
    except MalformedFile as error:
        raise CorruptCheckpoint(f"{path} {error}") from error
