"""The offset index of a segment: which file position to start scanning from for an offset.

Entries are (int32 last offset of a batch minus the base offset, int32 position of that batch), strictly
rising, one about every `index.interval.bytes`. Source: OffsetIndex.
"""

from __future__ import annotations

from broker.storage.segment_index import SegmentIndex
from wire.log_files import OFFSET_INDEX_ENTRY

RELATIVE_OFFSET_MAX = 0x7FFFFFFF


class OffsetIndex(SegmentIndex):
    """`<base>.index`."""

    ENTRY = OFFSET_INDEX_ENTRY

    __slots__ = ()

    def append(self, last_offset: int, position: int) -> None:
        """Remember that the batch ending with ``last_offset`` starts at ``position``."""
        self.add(last_offset - self.base_offset, position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the greatest entry at or below ``offset``; (base offset, 0) without one."""
        number = self.floor(offset - self.base_offset)
        if number < 0:
            return self.base_offset, 0
        relative, position = self.entry(number)
        return self.base_offset + relative, position

    def last(self) -> tuple[int, int]:
        """(offset, position) of the last entry; (base offset, 0) without one."""
        if not self.count:
            return self.base_offset, 0
        relative, position = self.entry(self.count - 1)
        return self.base_offset + relative, position

    def first_at_or_after_position(self, position: int) -> int | None:
        """Offset of the first entry whose batch starts at or after ``position``; None without one.

        Positions rise with offsets, so an entry found this way bounds the offsets of a slice that
        ends at ``position``.
        """
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[1] < position:
                low = middle + 1
            else:
                high = middle
        return self.base_offset + self.entry(low)[0] if low < self.count else None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above ``offset``."""
        self.keep(self.floor(offset - self.base_offset - 1) + 1)
