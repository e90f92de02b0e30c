"""At which offset each leader epoch of a partition began (`leader-epoch-checkpoint`).

Entries rise in epoch and in start offset. Source: LeaderEpochFileCache (KIP-101, KIP-279).
"""

from __future__ import annotations

from bisect import bisect_right

from broker.storage.checkpoints import LEADER_EPOCHS, CorruptCheckpoint, encode_epochs, read_epochs, write_epochs
from broker.storage.files import File, Files

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs:
    """The entries in memory and in their file.

    A new entry is written with the data that it is of, at the next flush: until then a recovery finds it in the
    batches, and one without data would be dropped on load. So a new partition has no file for it yet: to make one
    takes as long as all else of a partition. Truncations are written without syncing, as a stale entry is removed on
    load.
    """

    __slots__ = ("_begun", "_epochs", "_files", "_is_durable", "_start_offsets", "directory")

    def __init__(self, files: Files, directory: str) -> None:
        """Read the file; a corrupt one reads as empty, recovery fills it from the batches."""
        self._files = files
        self.directory = directory
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        self._is_durable = True
        self._begun: list[tuple[int, int]] | None = None
        try:
            entries = read_epochs(files, f"{directory}/{LEADER_EPOCHS}")
        except CorruptCheckpoint:
            entries = []
        for epoch, start_offset in entries:
            self._put(epoch, start_offset)

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._start_offsets, strict=True))

    @property
    def latest_epoch(self) -> int:
        """The newest epoch, -1 if none is known."""
        return self._epochs[-1] if self._epochs else NO_EPOCH

    @property
    def earliest_entry(self) -> tuple[int, int] | None:
        """The oldest (epoch, start offset)."""
        return (self._epochs[0], self._start_offsets[0]) if self._epochs else None

    def _put(self, epoch: int, start_offset: int) -> bool:
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._start_offsets[-1]:
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._start_offsets[-1] >= start_offset):
            self._epochs.pop()
            self._start_offsets.pop()
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)
        return True

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that ``epoch`` began at ``start_offset``; entries that contradict it go (J24).

        No effect if the epoch is the newest already and did not begin earlier.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset}")
        if self._put(epoch, start_offset):
            self._is_durable = False

    @property
    def _path(self) -> str:
        return f"{self.directory}/{LEADER_EPOCHS}"

    def _write(self, *, durable: bool) -> None:
        self._begun = None
        write_epochs(self._files, self._path, self.entries, durable=durable)
        self._is_durable = durable

    def sync(self) -> None:
        """Make what the file holds durable, if anything changed. Raises OSError."""
        if not self._is_durable:
            self._write(durable=True)

    def begin_sync(self) -> File | None:
        """Write a file that is to be synced off the loop, then to take the place of this one by `end_sync`; None if
        nothing changed. Raises OSError."""
        if self._is_durable:
            return None
        self._files.delete(self._path + ".tmp")
        file = self._files.open(self._path + ".tmp")
        self._begun = self.entries
        try:
            file.append([encode_epochs(self._begun)])
        except OSError:
            file.release()
            raise
        return file

    def end_sync(self) -> None:
        """What `begin_sync` wrote is on the device: let it be the file, unless that was written anew meanwhile; its
        name is durable once the directory is synced. Raises OSError."""
        begun, self._begun = self._begun, None
        if begun is not None:
            self._files.rename(self._path + ".tmp", self._path)
            self._is_durable = begun == self.entries

    def write(self) -> None:
        """Bring the file up to date; the caller sees to it that it reaches the device. Raises OSError."""
        if not self._is_durable:
            self._write(durable=False)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch (F8): the largest known epoch <= ``epoch`` and where it ended.

        (-1, -1) if ``epoch`` is -1 or above all known; (``epoch``, first start) if it is below all known.
        """
        if epoch == NO_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return NO_EPOCH, NO_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        higher = bisect_right(self._epochs, epoch)
        if higher == 0:
            return epoch, self._start_offsets[0]
        return self._epochs[higher - 1], self._start_offsets[higher]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch that wrote ``offset``, -1 if unknown."""
        place = bisect_right(self._start_offsets, offset)
        return self._epochs[place - 1] if place else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop entries that start at or above ``end_offset``."""
        removed = False
        while self._start_offsets and self._start_offsets[-1] >= end_offset:
            self._epochs.pop()
            self._start_offsets.pop()
            removed = True
        if removed:
            self._write(durable=False)

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop entries that ended before ``start_offset``; the last of them now starts there."""
        place = bisect_right(self._start_offsets, start_offset)
        if place == 0 or (place == 1 and self._start_offsets[0] == start_offset):
            return
        del self._epochs[: place - 1]
        del self._start_offsets[: place - 1]
        self._start_offsets[0] = start_offset
        self._write(durable=False)

    def clear(self) -> None:
        """Forget everything (full truncation)."""
        if self._epochs:
            self._epochs.clear()
            self._start_offsets.clear()
            self._write(durable=False)
