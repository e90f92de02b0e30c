"""What every kind of group offers to the rest of the coordinator: offsets, list, describe, delete.

A kind of group (classic, consumer, share, streams) is a package of modules of its own that knows
nothing of the others. Everything that is asked of "a group" whatever its kind is asked through
this protocol. Source: Kafka's `Group` interface.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from coordinator.machine import CoordinatorRecord
from wire.messages.list_groups import ListedGroup


class GroupType(Enum):
    """Kinds of groups, by their names on the wire (KIP-848, KIP-932, KIP-1071)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class OffsetExpiry:
    """From when the age of a group's committed offsets counts.

    idle_since_ms   the group's members are gone since then; None: from each offset's own commit.
    """

    idle_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SessionRefreshed:
    """A member was heard of: its session now ends at `deadline_ms`, later than before."""

    group_id: str
    member_id: str
    deadline_ms: int


PartitionCheck = Callable[[str, bytes, int], None]
"""Raises KafkaError if a member's commit for (topic, topic id, partition) is refused, and with it the
whole request."""


class Group(Protocol):
    """A group of any kind. All questions are about the present in-memory state."""

    @property
    def group_id(self) -> str: ...

    @property
    def group_type(self) -> GroupType: ...

    @property
    def state_name(self) -> str:
        """State as ListGroups and DescribeGroups write it, for example "PreparingRebalance"."""
        ...

    @property
    def is_empty(self) -> bool:
        """No members."""
        ...

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:
        """Raises KafkaError if the sender may not commit offsets (semantics of OffsetCommit). What it
        returns, if anything, is asked for every partition as well."""
        ...

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError if the sender may not fetch offsets."""
        ...

    def validate_offset_delete(self) -> None:
        """Raises KafkaError if no offset of the group may be deleted now."""
        ...

    def validate_delete(self) -> None:
        """Raises KafkaError NON_EMPTY_GROUP if the group may not be deleted now."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """True if offsets of the topic are in use: they neither expire nor may be deleted."""
        ...

    def offset_expiry(self) -> OffsetExpiry | None:
        """How the group's offsets age; None: nothing expires now."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """Records that delete the group (not its offsets)."""
        ...

    def as_listed(self) -> ListedGroup:
        """The group's line in ListGroups."""
        ...

    def sessions_kept_alive(self, member_id: str, now_ms: int) -> tuple[SessionRefreshed, ...]:
        """In-memory changes because the member was heard of by an OffsetCommit at `now_ms`."""
        ...

    def refresh_session(self, member_id: str, deadline_ms: int) -> None:
        """Settle such a change: the one in-memory value that is edited in place."""
        ...

    def earliest_deadline_ms(self) -> int | None:
        """Earliest time at which something of the group is due; None for never."""
        ...
