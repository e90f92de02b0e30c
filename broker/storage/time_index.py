"""The time index of a segment: the greatest timestamp up to an offset.

Entries are (int64 greatest timestamp so far, int32 last offset of the batch that brought it, minus the
base offset); timestamps rise strictly, offsets do not fall. Source: TimeIndex.
"""

from __future__ import annotations

from broker.storage.segment_index import SegmentIndex
from wire.log_files import TIME_INDEX_ENTRY

NO_TIMESTAMP = -1


class TimeIndex(SegmentIndex):
    """`<base>.timeindex`."""

    ENTRY = TIME_INDEX_ENTRY

    __slots__ = ()

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if the timestamp is above the last one's."""
        last_timestamp, last_offset = self.last()
        if timestamp_ms > last_timestamp and offset >= last_offset:
            self.add(timestamp_ms, offset - self.base_offset)

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) without one."""
        if not self.count:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self.entry(self.count - 1)
        return timestamp, self.base_offset + relative

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """(timestamp, offset) of the greatest entry at or below a timestamp; (-1, base offset) without one."""
        number = self.floor(timestamp_ms)
        if number < 0:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self.entry(number)
        return timestamp, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above ``offset``."""
        relative = offset - self.base_offset
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[1] < relative:
                low = middle + 1
            else:
                high = middle
        self.keep(low)

    def is_full(self) -> bool:
        """One slot stays free for the entry that a roll or close appends."""
        return self.count >= self.max_entries - 1
