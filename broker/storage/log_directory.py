"""One log directory: its lock, identity, checkpoints, and the partition directories in it.

Source: LogManager, MetaPropertiesEnsemble, LocalLog (names of directories).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from random import Random

from broker.storage import checkpoints
from broker.storage.files import Files, StorageFault
from broker.storage.log import Log
from broker.storage.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    read_meta_properties,
    take_clean_shutdown,
    write_clean_shutdown,
    write_meta_properties,
)
from wire.primitives import TopicPartition, uuid_text

LOCK = ".lock"
REMOTE_INDEX_CACHE = "remote-log-index-cache"
METADATA_PARTITION = TopicPartition("__cluster_metadata", 0)
METADATA_DIRECTORY = f"{METADATA_PARTITION.topic}-{METADATA_PARTITION.partition}"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
NAME_LENGTH_MAX = 255

_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]{1,10})")
_LEAVING = re.compile(r".+\.[0-9a-f]{32}(-delete|-stray|-future)")


def new_uuid(chance: Random) -> bytes:
    """A random id (version 4) whose text holds no ``-``, as Kafka makes them for topics and directories."""
    while True:
        bits = chance.getrandbits(128)
        bits = bits & ~(0xF << 76) | 0x4 << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        uuid = bits.to_bytes(16, "big")
        if not uuid_text(uuid).startswith("-"):
            return uuid


def leaving_name(topic_partition: TopicPartition, suffix: str, chance: Random) -> str:
    """`<topic>-<partition>.<32 hex>-delete` (or `-stray`), the topic cut so that file systems take it."""
    ending = f"-{topic_partition.partition}.{chance.getrandbits(128):032x}{suffix}"
    return topic_partition.topic[: NAME_LENGTH_MAX - len(ending)] + ending


class LogDirectory:
    """``failure`` is None while the directory can be used."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
        self.failure: str | None = None
        self.identity = MetaProperties()
        self.was_closed_cleanly = False
        self.last_broker_epoch = -1
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.cleaner_offsets: dict[TopicPartition, int] = {}
        self.partitions: dict[TopicPartition, str] = {}
        """Partition directories by partition, as `look` found them."""
        self.to_delete: list[str] = []
        """Directories that were to be deleted."""
        self.log_count = 0
        """How many logs lie in it."""
        self._locked = False

    # --- identity -------------------------------------------------------------------------------

    def look(self) -> None:
        """Read who the directory belongs to and what it holds, without changing anything.

        Raises StorageFault for a directory that holds something else, or a metadata log and no word of whose it is;
        OSError if it cannot be read.
        """
        self._require_no_file()
        found = read_meta_properties(self.files, self.path)
        if found is not None:
            self.identity = found
        if self.files.exists(self.path):
            self._find_partitions()
        if self.identity.cluster_id is None and self.files.exists(f"{self.path}/{METADATA_DIRECTORY}"):
            # A new identity would not be the one that the metadata names: every partition would be without a leader.
            raise StorageFault(
                f"log directory {self.path} holds the metadata of a cluster, but {self.path}/{META_PROPERTIES} does "
                "not say of which: restore that file, or name another directory (--data, log.dirs)"
            )

    def _require_no_file(self) -> None:
        """Raise NotADirectoryError, which says so, if the path or one above it is that of a file."""
        path = self.path
        while path != os.path.dirname(path) and not self.files.exists(path):
            path = os.path.dirname(path)
        if self.files.exists(path) and not self.files.is_directory(path):
            what = "it is a file" if path == self.path else f"{path} is a file"
            raise NotADirectoryError(errno.ENOTDIR, f"{what}, not a directory")

    def refuse_foreign(self, cluster_id: str, node_id: int) -> None:
        """Raise StorageFault if the directory is another cluster's or node's."""
        found, path = self.identity, f"{self.path}/{META_PROPERTIES}"
        if found.cluster_id is not None and found.cluster_id != cluster_id:
            raise StorageFault(
                f"log directory {self.path} belongs to cluster {found.cluster_id}, this node to {cluster_id} ({path} "
                f"against odradek.cluster.id): start it with that id, or with another directory (--data, log.dirs)"
            )
        if found.node_id is not None and found.node_id != node_id:
            raise StorageFault(
                f"log directory {self.path} belongs to node {found.node_id}, node.id is {node_id} ({path}): "
                f"start it with node.id={found.node_id}, or with another directory (--data, log.dirs)"
            )

    def lock(self) -> None:
        """Make the directory if need be, and lock it. Raises StorageFault if another process has it, OSError if it
        cannot be used."""
        self.files.make_directory(self.path)
        if not self.files.lock(f"{self.path}/{LOCK}"):
            raise StorageFault(
                f"log directory {self.path} is locked: another process uses it and holds {self.path}/{LOCK}; "
                "stop that one, or give this node another directory (--data, log.dirs)"
            )
        self._locked = True

    def settle_identity(self, cluster_id: str, node_id: int, chance: Random) -> None:
        """Write who the directory belongs to, unless it says so already. Raises OSError."""
        if self.identity.version != 1 or self.identity.directory_id is None:
            self.identity = MetaProperties(1, cluster_id, node_id, new_uuid(chance))
            write_meta_properties(self.files, self.path, self.identity)

    def unlock(self) -> None:
        """Let another process have it."""
        if self._locked:
            self.files.unlock(f"{self.path}/{LOCK}")
            self._locked = False

    # --- content --------------------------------------------------------------------------------

    def read_state(self) -> None:
        """Take the clean shutdown marker and the checkpoints. Raises OSError."""
        self.was_closed_cleanly, self.last_broker_epoch = take_clean_shutdown(self.files, self.path)
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS)
        self.log_start_offsets = self._read(checkpoints.LOG_START_OFFSETS)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARKS)
        self.cleaner_offsets = self._read(checkpoints.CLEANER_OFFSETS)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        """A corrupt checkpoint counts as none, as with Kafka: recovery is slower, nothing is lost by it. It goes,
        as the next one is only written when something has moved."""
        try:
            return checkpoints.read_offsets(self.files, f"{self.path}/{name}")
        except checkpoints.CorruptCheckpoint:
            self.files.delete(f"{self.path}/{name}")
            return {}

    def _find_partitions(self) -> None:
        for name in self.files.list(self.path):
            path = f"{self.path}/{name}"
            if name == REMOTE_INDEX_CACHE or not self.files.is_directory(path):
                continue
            if _LEAVING.fullmatch(name):
                if name.endswith(DELETE_SUFFIX):
                    self.to_delete.append(path)
                continue
            match = _PARTITION.fullmatch(name)
            if match is None:
                raise StorageFault(
                    f"found directory {path}, which is not in the form of topic-partition: a log directory holds "
                    "topic data only; move it away, or name another directory (--data, log.dirs)"
                )
            topic_partition = TopicPartition(match["topic"], int(match["partition"]))
            if topic_partition != METADATA_PARTITION:
                self.partitions[topic_partition] = path

    # --- checkpoints ----------------------------------------------------------------------------

    def write_recovery_points(self, logs: Iterable[Log], *, durable: bool) -> None:
        """Write if anything moved. Raises OSError.

        Between truncations recovery points only rise, so an old or empty file is safe and need not be synced.
        """
        offsets = {log.topic_partition: log.recovery_point for log in logs}
        if durable or offsets != self.recovery_points:
            self._write(checkpoints.RECOVERY_POINTS, offsets, durable)
            self.recovery_points = offsets

    def write_log_start_offsets(self, logs: Iterable[Log]) -> None:
        """Write if anything moved: only logs that start above their first segment. Raises OSError."""
        offsets = {
            log.topic_partition: log.log_start_offset
            for log in logs
            if log.log_start_offset > log.segments[0].base_offset
        }
        if offsets != self.log_start_offsets:
            self._write(checkpoints.LOG_START_OFFSETS, offsets, True)
            self.log_start_offsets = offsets

    def write_high_watermarks(self, logs: Iterable[Log], *, durable: bool) -> None:
        """Write if anything moved. Raises OSError."""
        offsets = {log.topic_partition: log.high_watermark for log in logs}
        if durable or offsets != self.high_watermarks:
            self._write(checkpoints.HIGH_WATERMARKS, offsets, durable)
            self.high_watermarks = offsets

    def write_cleaner_offsets(self, logs: Iterable[Log]) -> None:
        """Write if anything moved. Raises OSError. An old entry costs a second cleaning, nothing else."""
        offsets = {log.topic_partition: log.first_dirty_offset for log in logs if log.first_dirty_offset is not None}
        if offsets != self.cleaner_offsets:
            self._write(checkpoints.CLEANER_OFFSETS, offsets, False)
            self.cleaner_offsets = offsets

    def _write(self, name: str, offsets: Mapping[TopicPartition, int], durable: bool) -> None:
        checkpoints.write_offsets(self.files, f"{self.path}/{name}", offsets, durable=durable)

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        """The last act of a clean stop. Raises OSError."""
        write_clean_shutdown(self.files, self.path, broker_epoch)
