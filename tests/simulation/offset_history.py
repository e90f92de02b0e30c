"""Committed offsets as registers: what a fetch may see, given when commits were sent and answered."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

Partition = tuple[str, int]
NONE = -1


@dataclass(slots=True)
class Write:
    """One commit or deletion."""

    value: int
    sent_ms: float
    done_ms: float = math.inf
    is_certain: bool = False
    """It was carried out; else it may have been."""


@dataclass(slots=True)
class Register:
    """All that was written for one partition of one group; at first there is nothing."""

    writes: list[Write] = field(default_factory=lambda: [Write(NONE, -math.inf, -math.inf, is_certain=True)])

    def values_at(self, sent_ms: float, now_ms: float) -> set[int]:
        """What a fetch may see that was sent and answered at these moments."""
        before = [each.sent_ms for each in self.writes if each.is_certain and each.done_ms < sent_ms]
        newest_ms = max(before, default=-math.inf)
        return {each.value for each in self.writes if each.sent_ms <= now_ms and each.done_ms >= newest_ms}

    @property
    def newest_commit_ms(self) -> float:
        """When the last offset was sent that is certainly committed."""
        return max((each.sent_ms for each in self.writes if each.value != NONE and each.is_certain), default=-math.inf)

    def expired(self, now_ms: float) -> None:
        """What was there is gone, and does not come back."""
        since_ms = max(each.done_ms for each in self.writes if each.done_ms < math.inf)
        self.writes.append(Write(NONE, max(since_ms, 0) + 0.001, now_ms, is_certain=True))

    def forget_old(self, now_ms: float) -> None:
        """Writes that certain later ones have replaced do not matter any more."""
        before = [each.sent_ms for each in self.writes if each.is_certain and each.done_ms < now_ms]
        newest_ms = max(before, default=-math.inf)
        self.writes = [each for each in self.writes if each.done_ms >= newest_ms]


class OffsetHistory:
    """The registers of all groups."""

    def __init__(self) -> None:
        self._registers: dict[tuple[str, Partition], Register] = {}

    def register(self, group: str, partition: Partition) -> Register:
        """That of a partition."""
        return self._registers.setdefault((group, partition), Register())

    def writing(self, group: str, partition: Partition, value: int, now_ms: float) -> Write:
        """A commit is about to be sent."""
        write = Write(value, now_ms)
        self.register(group, partition).writes.append(write)
        return write

    def done(self, group: str, partition: Partition, write: Write, now_ms: float) -> None:
        """It was answered well."""
        write.done_ms, write.is_certain = now_ms, True
        self.register(group, partition).forget_old(now_ms)

    def lost(self, write: Write, now_ms: float) -> None:
        """No answer came: it was carried out by now, or never will be."""
        write.done_ms = now_ms

    def refused(self, group: str, partition: Partition, write: Write) -> None:
        """It was answered with an error: nothing was written."""
        self.register(group, partition).writes.remove(write)

    def of_group(self, group: str) -> list[Partition]:
        """Partitions that were ever written."""
        return [partition for name, partition in self._registers if name == group]

    def read(
        self, group: str, partition: Partition, value: int, sent_ms: float, now_ms: float, *, may_expire: bool
    ) -> None:
        """A fetch has seen this."""
        register = self.register(group, partition)
        allowed = register.values_at(sent_ms, now_ms)
        if value == NONE and value not in allowed and may_expire:
            register.expired(now_ms)
            return
        assert value in allowed, (
            f"OffsetsKept: {group} {partition[0]}-{partition[1]} is fetched as {value}, it can be {sorted(allowed)}"
        )
