"""What the offset index and the time index of a segment share: sorted entries of one size in a file.

The active segment's entries are all in memory and reach the file at a flush, a roll or a close: after an
unclean stop the segment is scanned and its indexes rebuilt anyway. A sealed segment's entries stay in the
file and are searched there. The file grows with its entries; Kafka preallocates it with zeros, which are
recognised here as no entries (AbstractIndex).
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from broker.storage.files import File, Files


class SegmentIndex:
    """Entries ordered by their first field. Subclasses name the fields."""

    ENTRY: ClassVar[Struct]

    __slots__ = ("_entries", "_file", "_files", "_written", "base_offset", "count", "max_entries", "path")

    def __init__(self, files: Files, path: str, base_offset: int, max_bytes: int) -> None:
        """A new, empty index; ``load`` takes what a file holds."""
        self.path = path
        self.base_offset = base_offset
        self.count = 0
        self.max_entries = max_bytes // self.ENTRY.size
        self._files = files
        # None while sealed: then the file holds everything.
        self._entries: bytearray | None = bytearray()
        self._written = 0
        self._file: File | None = None

    def load(self, *, sealed: bool) -> None:
        """Take the entries of the file. Raises FileNotFoundError without one, and ValueError if its size
        is not one of whole entries."""
        content = self._files.read(self.path) if not sealed else b""
        size = self._files.size(self.path) if sealed else len(content)
        if size % self.ENTRY.size:
            raise ValueError(f"{self.path} has {size} bytes, not a multiple of {self.ENTRY.size}")
        self._entries = None if sealed else bytearray(content)
        self._written = size
        self.count = size // self.ENTRY.size
        self._drop_preallocated_zeros()

    def _drop_preallocated_zeros(self) -> None:
        """Entries of zeros only are room that Kafka preallocated; one first entry may be zeros in earnest."""
        least = 0 if self.ENTRY.size == 8 else 1
        zeros = bytes(self.ENTRY.size)
        if self.count <= least or self._raw(self.count - 1) != zeros:
            return
        # Zeros are at the end only, so the first of them is found by halving.
        low, high = 1, self.count
        while low < high:
            middle = (low + high) // 2
            if self._raw(middle) == zeros:
                high = middle
            else:
                low = middle + 1
        self.count = 0 if low == 1 and self._raw(0) == zeros else low
        if self._entries is not None:
            del self._entries[self.count * self.ENTRY.size :]

    def _raw(self, number: int) -> bytes:
        size = self.ENTRY.size
        if self._entries is not None:
            return bytes(self._entries[number * size : number * size + size])
        if self._file is None:
            self._file = self._files.open(self.path)
        return self._file.read_at(number * size, size)

    def entry(self, number: int) -> tuple[int, int]:
        """The fields of an entry, as stored."""
        if self._entries is not None:
            first, second = self.ENTRY.unpack_from(self._entries, number * self.ENTRY.size)
        else:
            first, second = self.ENTRY.unpack(self._raw(number))
        return first, second

    def floor(self, target: int) -> int:
        """Number of the greatest entry whose first field is at most ``target``, -1 if there is none."""
        if not self.count or self.entry(0)[0] > target:
            return -1
        low, high = 0, self.count - 1
        if self.entry(high)[0] <= target:  # Most look-ups are near the end.
            return high
        entries, size = self._entries, self.ENTRY.size
        while high - low > 1:
            middle = (low + high) // 2
            if entries is None:
                first = self.entry(middle)[0]
            else:
                first = self.ENTRY.unpack_from(entries, middle * size)[0]
            if first <= target:
                low = middle
            else:
                high = middle
        return low

    def add(self, first: int, second: int) -> None:
        """Append an entry; the caller keeps the order. Entries of a sealed index are taken up first."""
        if self._entries is None:
            self.unseal()
        assert self._entries is not None
        self._entries += self.ENTRY.pack(first, second)
        self.count += 1

    def reset(self) -> None:
        """Forget all entries, whatever the file holds, as if it had just been made."""
        self.count = 0
        self._entries = bytearray()
        self._written = 0
        if self._files.exists(self.path):
            self._open_file().truncate(0)

    def keep(self, count: int) -> None:
        """Drop all entries but the first ``count``."""
        if count == self.count:
            return
        if self._entries is None:
            self.unseal()
        assert self._entries is not None
        self.count = count
        del self._entries[count * self.ENTRY.size :]
        if self._written > len(self._entries):
            file = self._open_file()
            file.truncate(len(self._entries))
            self._written = len(self._entries)

    def _open_file(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path)
        return self._file

    def write(self) -> None:
        """Bring the file up to date (made, if there is none)."""
        if self._entries is None:
            return
        file = self._open_file()
        if file.size != self._written or self._written > len(self._entries):
            file.truncate(0)
            self._written = 0
        if self._written < len(self._entries):
            file.append([self._entries[self._written :]])
            self._written = len(self._entries)

    def sync(self) -> None:
        """Bring the file up to date and to the device."""
        self.write()
        self._open_file().sync()

    def seal(self) -> None:
        """The segment is full: keep the entries in the file only."""
        self.write()
        self._entries = None

    def unseal(self) -> None:
        """The segment takes appends again: hold the entries in memory."""
        if self._entries is None:
            count = self.count
            self._entries = bytearray(self._files.read(self.path)[: count * self.ENTRY.size])
            self._written = len(self._entries)

    def is_full(self) -> bool:
        """Whether the next append must go to a new segment."""
        return self.count >= self.max_entries

    def pin(self) -> None:
        """Open the file (made, if missing) and hold it open."""
        self._open_file().acquire()

    def unpin(self) -> None:
        """Hold it no longer."""
        self._open_file().release()

    def close(self) -> None:
        """Let the file go; nothing is written."""
        if self._file is not None:
            self._file.release()
            self._file = None
