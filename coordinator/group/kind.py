"""What the shard asks of each kind of group: the seam between kinds, which do not know each other."""

from __future__ import annotations

from typing import Any, Protocol

from coordinator.group.context import GroupContext
from coordinator.group.group import Group, GroupType
from coordinator.group.settlement import GroupDecision
from coordinator.machine import Ids, Ticket


class GroupKind(Protocol):
    """A kind of group: its requests, its records, its deadlines."""

    @property
    def group_type(self) -> GroupType: ...

    @property
    def requests(self) -> frozenset[type]:
        """Request messages the kind takes. A request goes to the kind of the group it names if
        that takes it, otherwise to the first kind that does."""
        ...

    @property
    def record_keys(self) -> frozenset[type]:
        """Keys of the records that `replay` understands."""
        ...

    def decide(self, request: Any, context: GroupContext, now_ms: int, ids: Ids, ticket: Ticket) -> GroupDecision:
        """See Machine.decide."""
        ...

    def replay(self, key: Any, value: Any | None, *, settled: bool) -> None:
        """Apply one record of the kind.

        `settled`: the record is of a decision that this machine has just settled, so that the
        group's new value is in place already, with what is kept in memory only.
        """
        ...

    def due(self, group: Group, context: GroupContext, now_ms: int, ids: Ids) -> GroupDecision:
        """Decide what is due of a group of this kind at `now_ms`; one thing at a time, as each may
        change what is due next. A decision without any content if nothing is."""
        ...

    def loaded(self, group: Group, context: GroupContext, now_ms: int) -> GroupDecision:
        """Decide what a group needs after it was read from the log: sessions start anew."""
        ...
