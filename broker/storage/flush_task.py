"""Syncing sealed segments off the loop: what a roll leaves to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.storage.files import File

if TYPE_CHECKING:
    from broker.storage.log import Log


class FlushTask:
    """Files to bring to the device: sealed segments, the producer snapshots of rolls, leader epochs that came up.

    `sync_files`, then `install`, then `sync_directory`, which raise OSError; the first and the last may be called in a
    thread: they sync and touch nothing else. `release` is the loop's: it lets the files go, whatever came before.
    """

    def __init__(self, log: Log, recovery_point: int) -> None:
        self.recovery_point = recovery_point
        self._log = log
        self._directory = log.directory
        self._files: list[File] = []

    def add(self, file: File) -> None:
        """Take over a reference to an open file, and pin it: its descriptor must not go while a thread uses it."""
        file.acquire()
        self._files.append(file)

    def sync_files(self) -> None:
        """Sync every file."""
        for file in self._files:
            file.sync()

    def install(self) -> None:
        """The files are on the device: let the leader epochs be those of the log."""
        self._log.leader_epochs.end_sync()

    def sync_directory(self) -> None:
        """Make the names of the files durable."""
        self._log.files.sync_directory(self._directory)

    @property
    def is_overtaken(self) -> bool:
        """Whether the directory has another name by now, as that of a deleted log has: what failed is no fault."""
        return self._log.directory != self._directory

    def run(self) -> None:
        """All of it at once, where nothing waits for the disk."""
        self.sync_files()
        self.install()
        self.sync_directory()

    def release(self) -> None:
        """Let the files go; no effect the second time."""
        files, self._files = self._files, []
        for file in files:
            file.release()
            file.release()


def start_flush(log: Log) -> FlushTask | None:
    """See ``Log.start_flush``. Raises KafkaError."""
    base = log.segments.active.base_offset
    if log.offline is not None or base <= log.recovery_point:
        return None
    task = FlushTask(log, base)
    try:
        for segment in log.segments.from_offset(log.recovery_point)[:-1]:
            for path in segment.durable_paths():
                task.add(log.files.open(path))
        for path in log.snapshots.take_unsynced():
            task.add(log.files.open(path))
        if (epochs := log.leader_epochs.begin_sync()) is not None:
            task.add(epochs)
    except OSError as error:
        task.release()
        raise log.fail(error) from error
    return task
