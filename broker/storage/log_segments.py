"""The segments of a log in the order of their offsets, and those on their way out.

A removed segment's files carry `.deleted` until `file.delete.delay.ms` is over. Source: LogSegments,
LocalLog.deleteSegmentFiles.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from broker.storage.segment import Segment
from wire.log_files import DELETED_SUFFIX


class LogSegments:
    """At least one segment once a log is loaded; the last is the active one."""

    __slots__ = ("_bases", "_leaving", "_segments", "size_of_sealed")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[Segment] = []
        self._leaving: list[tuple[int, Segment]] = []
        self.size_of_sealed = 0
        """Bytes of all segments but the active one."""

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, place: int) -> Segment:
        return self._segments[place]

    @property
    def active(self) -> Segment:
        """The one that takes appends."""
        return self._segments[-1]

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self.size_of_sealed + self._segments[-1].size_bytes

    @property
    def base_offsets(self) -> list[int]:
        """Base offsets in order."""
        return list(self._bases)

    def add(self, segment: Segment) -> None:
        """Put a segment in its place, over one of the same base offset."""
        place = bisect_left(self._bases, segment.base_offset)
        if place < len(self._bases) and self._bases[place] == segment.base_offset:
            self._segments[place] = segment
        else:
            self._bases.insert(place, segment.base_offset)
            self._segments.insert(place, segment)
        self.recount()

    def remove(self, segment: Segment) -> None:
        """Take a segment out; its files are the caller's."""
        place = bisect_left(self._bases, segment.base_offset)
        del self._bases[place]
        del self._segments[place]
        self.recount()

    def recount(self) -> None:
        """After sealed segments changed in size."""
        self.size_of_sealed = sum(segment.size_bytes for segment in self._segments[:-1])

    def floor_place(self, offset: int) -> int:
        """Place of the segment that holds ``offset`` or would; the first for offsets below it."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def floor(self, offset: int) -> Segment:
        """The segment that holds ``offset`` or would."""
        return self._segments[self.floor_place(offset)]

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that holds ``offset``, and all after it."""
        return self._segments[self.floor_place(offset) :]

    def base_after(self, segment: Segment) -> int | None:
        """Base offset of the segment after ``segment``."""
        place = bisect_right(self._bases, segment.base_offset)
        return self._bases[place] if place < len(self._bases) else None

    # --- leaving --------------------------------------------------------------------------------

    def retire(self, segments: list[Segment], *, delete_at_ms: int) -> None:
        """Take segments out and name their files `.deleted`. Raises OSError."""
        for segment in segments:
            self.remove(segment)
            segment.rename(DELETED_SUFFIX)
            self._leaving.append((delete_at_ms, segment))

    @property
    def next_deletion_ms(self) -> int | None:
        """When ``delete_due`` has something to do."""
        return min((deadline for deadline, _ in self._leaving), default=None)

    def delete_due(self, now_ms: int) -> None:
        """Remove the files of segments retired long enough ago. Raises OSError."""
        due = [segment for deadline, segment in self._leaving if deadline <= now_ms]
        if due:
            self._leaving = [entry for entry in self._leaving if entry[0] > now_ms]
            for segment in due:
                segment.delete()

    def moved(self, directory: str) -> None:
        """The directory has another name now."""
        for segment in self._segments:
            segment.moved(directory)
        for _, segment in self._leaving:
            segment.moved(directory)

    def close_files(self) -> None:
        """Let all files go, nothing is written."""
        for segment in self._segments:
            segment.close_files()
        for _, segment in self._leaving:
            segment.close_files()
        self._leaving = []
