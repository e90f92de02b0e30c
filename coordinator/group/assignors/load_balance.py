"""The members of one topic by load: who gets the next partition, who gives one away.

Members stand in a row by load. Those that get are the low end of the row, and everyone there gets one
before the end grows; those that give are the high end, likewise. A member at the high end that has
nothing of the topic to give is set aside. Takes and gives are counted here, so that the row is sorted
once. Source: Kafka's UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer.
"""

from __future__ import annotations

from collections.abc import Sequence


class LoadBalance:
    """One topic's members, numbered as in `loads`, which the caller keeps up to date."""

    def __init__(self, members: Sequence[int], loads: Sequence[int]) -> None:
        """`members` is not empty and in ascending order."""
        self._loads = loads
        self._row = sorted(members, key=lambda member: (loads[member], member))
        # The low end is row[:low_end]: each had `low_level` partitions before this turn.
        self._low_end = 0
        self._low_next = 0
        self._low_level = loads[self._row[0]] - 1
        # The high end is row[high_start:high_end]; behind it are those that were set aside.
        self._high_start = self._high_end = len(self._row)
        self._high_next = len(self._row) - 1
        self._high_level = loads[self._row[-1]] + 1

    @property
    def spread(self) -> int:
        """How far the loads were apart at the beginning."""
        return self._loads[self._row[-1]] - self._loads[self._row[0]]

    @property
    def is_balanced(self) -> bool:
        """True once a move from the high end to the low end would gain nothing."""
        return self._high_level - self._low_level <= 1

    def next_taker(self) -> int:
        """The member to get a partition next."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._row) and self._loads[self._row[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        member = self._row[self._low_next]
        self._low_next += 1
        return member

    def next_giver(self) -> int | None:
        """The member to give a partition away next; None if all were set aside."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                # All at this level were set aside: go down to whoever comes next.
                self._high_level = self._loads[self._row[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start > 0 and self._loads[self._row[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        member = self._row[self._high_next]
        self._high_next -= 1
        return member

    def set_aside(self) -> None:
        """The giver that was named last has nothing to give."""
        place, last = self._high_next + 1, self._high_end - 1
        self._row[place], self._row[last] = self._row[last], self._row[place]
        self._high_end = last
