"""Syncing sealed segments off the loop: what a roll leaves to do."""

from __future__ import annotations

from broker.storage.files import File


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
