"""When the metadata log gets a snapshot, and what older ones make superfluous.

After metadata.log.max.record.bytes.between.snapshots of new records, or
metadata.log.max.snapshot.interval.ms after the first of them, and at a clean stop when it saves the
next start work. Old snapshots go by metadata.max.retention.bytes and .ms, and with them the part of
the log below the oldest that stays; the newest always stays. Source: Kafka's SnapshotGenerator and
KafkaMetadataLog; KIP-630.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from broker.clock import Clock, Timer
from broker.runtime.metadata_snapshots import BOOTSTRAP_ID, SnapshotId, Snapshots
from broker.storage.log import Log
from coordinator.metadata.image import MetadataImage
from coordinator.metadata.snapshot import snapshot_records
from coordinator.quorum.voters import Quorum
from wire.errors import KafkaError

logger = logging.getLogger(__name__)

_STOP_BYTES = 256 * 1024
"""Log bytes after the newest snapshot from which on a clean stop writes one: some tens of
milliseconds of the next start."""


class SnapshotSettings(NamedTuple):
    """Under Kafka's names: metadata.log.max.record.bytes.between.snapshots,
    metadata.log.max.snapshot.interval.ms (0: never by time), metadata.max.retention.*."""

    max_record_bytes_between_snapshots: int = 20 * 1024 * 1024
    max_snapshot_interval_ms: int = 3_600_000
    max_retention_bytes: int = 100 * 1024 * 1024
    max_retention_ms: int = 604_800_000


class SnapshotSchedule:
    """Counts what is new since the newest snapshot, and writes the next one in a thread."""

    def __init__(self, snapshots: Snapshots, log: Log, clock: Clock, settings: SnapshotSettings) -> None:
        self._snapshots = snapshots
        self._log = log
        self._clock = clock
        self._settings = settings
        self._newest = BOOTSTRAP_ID
        self._bytes_since = 0
        self._latest: tuple[MetadataImage, Quorum] | None = None
        self._timer: Timer | None = None
        self._writing: asyncio.Task[None] | None = None
        self._closed = False

    def loaded(self, newest: SnapshotId) -> None:
        """The log has been loaded from this snapshot on."""
        self._newest = newest

    def appended(self, size_bytes: int) -> None:
        """The log has grown."""
        self._bytes_since += size_bytes

    def committed(self, image: MetadataImage, quorum: Quorum) -> None:
        """The image has changed: begin a snapshot if it is due, else see that it will be."""
        self._latest = (image, quorum)
        self._see_to_the_next()

    def _see_to_the_next(self) -> None:
        if self._writing is not None:
            return
        if self._bytes_since >= self._settings.max_record_bytes_between_snapshots:
            self._begin()
        elif self._timer is None and self._settings.max_snapshot_interval_ms > 0:
            self._timer = self._clock.call_later(self._settings.max_snapshot_interval_ms, self._interval_over)

    def _interval_over(self) -> None:
        self._timer = None
        if self._writing is None:
            self._begin()

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        assert self._latest is not None
        image, quorum = self._latest
        if image.offset + 1 > self._newest.end_offset:
            self._writing = self._clock.loop.create_task(self._write(image, quorum), name="metadata-snapshot")

    async def _write(self, image: MetadataImage, quorum: Quorum) -> None:
        """Write in a thread, then publish and clean up on the loop."""
        snapshot = SnapshotId(image.offset + 1, image.epoch)
        covered_bytes = self._bytes_since
        now_ms = self._clock.now_ms()

        def write() -> None:
            self._snapshots.write(
                snapshot,
                list(snapshot_records(image)),
                quorum,
                last_timestamp_ms=image.timestamp_ms,
                now_ms=now_ms,
            )

        try:
            await self._clock.loop.run_in_executor(None, write)
            self._snapshots.publish(snapshot)
            self._newest = snapshot
            self._bytes_since -= covered_bytes
            self._clean_up(now_ms)
        except (OSError, KafkaError) as error:
            # The log is whole without it; the next commit tries again.
            logger.warning("metadata snapshot %s was not written: %s", snapshot.file_name, error)
            self._writing = None
        else:
            self._writing = None
            if not self._closed:
                self._see_to_the_next()

    def _clean_up(self, now_ms: int) -> None:
        """Remove the oldest snapshots while there is too much, never the newest."""
        ids = self._snapshots.ids()
        size_bytes = self._log.size_bytes + sum(map(self._snapshots.size_bytes, ids))
        for snapshot in ids[:-1]:
            is_old = now_ms - self._snapshots.modified_ms(snapshot) > self._settings.max_retention_ms
            if not is_old and size_bytes <= self._settings.max_retention_bytes:
                break
            size_bytes -= self._snapshots.size_bytes(snapshot)
            self._snapshots.remove(snapshot)
        oldest = min(self._snapshots.ids())
        if oldest.end_offset > self._log.log_start_offset:
            self._log.delete_records_before(oldest.end_offset)
            covered = sum(1 for base in self._log.segments.base_offsets[1:] if base <= oldest.end_offset)
            self._log.retire_segments(covered, now_ms=now_ms)

    async def close(self, image: MetadataImage, quorum: Quorum) -> None:
        """Let a snapshot in writing finish, or write one now if the next start gains by it."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is not None:
            await self._writing
        if self._bytes_since >= _STOP_BYTES and image.offset + 1 > self._newest.end_offset:
            await self._write(image, quorum)
