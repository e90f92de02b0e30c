"""Syncing sealed segments off the loop: what a roll leaves to do."""

from __future__ import annotations

from broker.storage.files import File


class FlushTask:
    """Files of sealed segments to bring to the device, off the loop: ``run`` touches nothing else."""

    def __init__(self, files: list[File], recovery_point: int) -> None:
        self._files = files
        self.recovery_point = recovery_point

    def run(self) -> None:
        """Sync and let go of the files. Raises OSError."""
        try:
            for file in self._files:
                file.sync()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files."""
        files, self._files = self._files, []
        for file in files:
            file.release()
