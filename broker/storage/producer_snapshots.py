"""The producer snapshot files of a partition directory: taken, loaded, removed.

Source: ProducerStateManager (takeSnapshot, truncateAndReload, removeStraySnapshots).
"""

from __future__ import annotations

from bisect import insort

from broker.storage.files import Files
from broker.storage.producer_state import ProducerState
from wire.producer_snapshot import (
    SUFFIX,
    CorruptSnapshot,
    decode_snapshot,
    encode_snapshot,
    file_name,
)


class ProducerSnapshots:
    """Offsets for which a snapshot file exists, in order."""

    __slots__ = ("_files", "_nothing_below", "_unsynced", "directory", "offsets")

    def __init__(self, files: Files, directory: str, names: list[str]) -> None:
        """``names`` are the names in the directory."""
        self._files = files
        self.directory = directory
        self.offsets = sorted(
            int(name[: -len(SUFFIX)]) for name in names if name.endswith(SUFFIX) and name[: -len(SUFFIX)].isdigit()
        )
        self._unsynced: set[int] = set()
        self._nothing_below = 0

    def path(self, offset: int) -> str:
        """Path of the snapshot for ``offset``."""
        return f"{self.directory}/{file_name(offset)}"

    def take(self, state: ProducerState) -> None:
        """Write a snapshot at the state's end offset, unless there is one. Raises OSError.

        It reaches the device with ``sync``; until then its CRC tells a torn one.
        """
        offset = state.end_offset
        if offset <= (self.offsets[-1] if self.offsets else self._nothing_below):
            return
        self._files.delete(self.path(offset))
        file = self._files.open(self.path(offset))
        try:
            file.append([encode_snapshot(state.snapshot())])
        finally:
            file.release()
        insort(self.offsets, offset)
        self._unsynced.add(offset)

    def sync(self) -> None:
        """Bring the snapshots taken since to the device. Raises OSError."""
        for offset in sorted(self._unsynced):
            file = self._files.open(self.path(offset))
            try:
                file.sync()
            finally:
                file.release()
        self._unsynced.clear()

    def take_unsynced(self) -> list[str]:
        """Paths of the snapshots taken since, in order; whoever takes them brings them to the device."""
        unsynced, self._unsynced = self._unsynced, set()
        return [self.path(offset) for offset in sorted(unsynced)]

    def delete(self, offset: int) -> None:
        """Remove a snapshot. Raises OSError."""
        if offset in self.offsets:
            self.offsets.remove(offset)
            self._unsynced.discard(offset)
            self._files.delete(self.path(offset))

    def delete_outside(self, above: int, up_to: int) -> None:
        """Remove the snapshots that are not in (above, up_to]. Raises OSError."""
        for offset in list(self.offsets):
            if offset > up_to or offset <= above:
                self.delete(offset)

    def delete_all(self) -> None:
        """Remove every snapshot. Raises OSError."""
        for offset in list(self.offsets):
            self.delete(offset)

    def delete_stray(self, base_offsets: list[int]) -> None:
        """Remove those without a segment, save the newest if it lies above the last base (a clean stop's)."""
        stray = [offset for offset in self.offsets if offset not in set(base_offsets)]
        if stray and (not base_offsets or stray[-1] > base_offsets[-1]):
            stray.pop()
        for offset in stray:
            self.delete(offset)

    def restore_latest(self, state: ProducerState, *, log_start_offset: int, now_ms: int) -> None:
        """Set the state to the newest readable snapshot; corrupt ones are removed. Without one it is empty
        and ends at the log start (C13)."""
        while self.offsets:
            offset = self.offsets[-1]
            try:
                rows = decode_snapshot(self._files.read(self.path(offset)))
            except (CorruptSnapshot, FileNotFoundError):
                self.delete(offset)
                continue
            state.restore(rows, offset, now_ms)
            return
        self._nothing_below = log_start_offset
        state.clear(log_start_offset)
