"""Snapshot files of the metadata log: `<end offset>-<epoch>.checkpoint`, found, read, written, removed.

A snapshot is written beside its final name and renamed, so that what has the name is whole. The one
at 0-0 is the format's: it holds the bootstrap records and is never the state of a running cluster.
Source: Kafka's Snapshots, FileRawSnapshotWriter, RecordsSnapshotWriter; KIP-630.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.runtime.metadata_batches import (
    MetadataBatch,
    data_batches,
    quorum_batch,
    read_batches,
)
from broker.storage.files import Files
from coordinator.machine import MetadataRecord
from coordinator.metadata.replay_errors import MetadataReplayError
from coordinator.quorum.voters import Quorum
from wire.messages.records.control_records import SnapshotFooterRecord, SnapshotHeaderRecord

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_UNFINISHED = re.compile(r"\d{20}-\d{10}\.checkpoint(\..*)?\.(part|deleted)")


class SnapshotId(NamedTuple):
    """The snapshot holds everything below `end_offset`; the last of it was written in `epoch`."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """Kafka's name of the file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


BOOTSTRAP_ID = SnapshotId(0, 0)


class Snapshots:
    """The snapshots in one metadata directory."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def ids(self) -> list[SnapshotId]:
        """The whole snapshots, oldest first."""
        found = []
        for name in self._files.list(self._directory):
            match = _NAME.fullmatch(name)
            if match:
                found.append(SnapshotId(int(match[1]), int(match[2])))
        return sorted(found)

    def remove_unfinished(self) -> None:
        """Remove what a stop in the middle of writing or removing has left."""
        for name in self._files.list(self._directory):
            if _UNFINISHED.fullmatch(name):
                self._files.delete(self._path(name))

    def read(self, snapshot: SnapshotId) -> list[MetadataBatch]:
        """The batches of a snapshot. Raises MetadataReplayError when it is broken or cut short."""
        try:
            content = list(read_batches(self._files.read(self._path(snapshot.file_name))))
        except MetadataReplayError as error:
            raise MetadataReplayError(f"snapshot {snapshot.file_name}: {error}") from error
        whole = (
            content
            and any(isinstance(message, SnapshotHeaderRecord) for message in content[0].control)
            and any(isinstance(message, SnapshotFooterRecord) for message in content[-1].control)
        )
        if not whole:
            raise MetadataReplayError(f"snapshot {snapshot.file_name} has no header or no footer: it is not whole")
        return content

    def write(
        self,
        snapshot: SnapshotId,
        records: Sequence[MetadataRecord],
        quorum: Quorum,
        *,
        last_timestamp_ms: int,
        now_ms: int,
    ) -> None:
        """Write a snapshot under a temporary name; `publish` gives it its own. May run in a thread:
        nobody else knows the file."""
        part = self._path(snapshot.file_name + ".part")
        self._files.delete(part)
        file = self._files.open(part)
        try:
            for buffer in self._content(snapshot, records, quorum, last_timestamp_ms, now_ms):
                file.append([buffer])
            file.sync()
        finally:
            file.release()

    def _content(
        self,
        snapshot: SnapshotId,
        records: Sequence[MetadataRecord],
        quorum: Quorum,
        last_timestamp_ms: int,
        now_ms: int,
    ) -> list[bytes]:
        epoch = snapshot.epoch
        header: list[Any] = [
            SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp_ms),
            *quorum.records(),
        ]
        buffers = [quorum_batch(header, base_offset=0, epoch=epoch, timestamp_ms=now_ms)]
        offset = len(header)
        buffers += data_batches(records, base_offset=offset, epoch=epoch, timestamp_ms=last_timestamp_ms)
        offset += len(records)
        footer = [SnapshotFooterRecord(version=0)]
        buffers.append(quorum_batch(footer, base_offset=offset, epoch=epoch, timestamp_ms=now_ms))
        return buffers

    def publish(self, snapshot: SnapshotId) -> None:
        """Give a written snapshot its name."""
        path = self._path(snapshot.file_name)
        self._files.rename(path + ".part", path)
        self._files.sync_directory(self._directory)

    def size_bytes(self, snapshot: SnapshotId) -> int:
        """The size of a snapshot's file."""
        return self._files.size(self._path(snapshot.file_name))

    def modified_ms(self, snapshot: SnapshotId) -> int:
        """When a snapshot was written."""
        return self._files.modified_ms(self._path(snapshot.file_name))

    def remove(self, snapshot: SnapshotId) -> None:
        """Remove a snapshot, through the name that says so."""
        path = self._path(snapshot.file_name)
        self._files.rename(path, path + ".deleted")
        self._files.delete(path + ".deleted")

    def read_legacy_bootstrap(self, log_directory: str) -> list[MetadataRecord]:
        """The records of `bootstrap.checkpoint`, the older way of a format; empty without one."""
        path = f"{log_directory}/bootstrap.checkpoint"
        if not self._files.exists(path):
            return []
        content = read_batches(self._files.read(path))
        return [record for batch in content for record in batch.records]
