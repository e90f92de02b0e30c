"""Syncing sealed segments off the loop: what a roll leaves to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.storage.files import File

if TYPE_CHECKING:
    from broker.storage.log import Log


class FlushTask:
    """Files of sealed segments to bring to the device.

    ``run`` may be called in a thread: it syncs and touches nothing else. ``release`` is the loop's: it lets
    the files go, whatever became of ``run``.
    """

    def __init__(self, recovery_point: int) -> None:
        self.recovery_point = recovery_point
        self._files: list[File] = []

    def add(self, file: File) -> None:
        """Take over a reference to an open file, and pin it: its descriptor must not go while a thread uses it."""
        file.acquire()
        self._files.append(file)

    def run(self) -> None:
        """Sync every file. Raises OSError."""
        for file in self._files:
            file.sync()

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
    task = FlushTask(base)
    try:
        for segment in log.segments.from_offset(log.recovery_point)[:-1]:
            for path in segment.durable_paths():
                task.add(log.files.open(path))
        log.leader_epochs.sync()
        log.snapshots.sync()
        log.files.sync_directory(log.directory)
    except OSError as error:
        task.release()
        raise log.fail(error) from error
    return task
