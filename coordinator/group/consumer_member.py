"""A member of a consumer group (KIP-848): who it is, what it wants, what it has.

Members are values: replaced, never edited. Everything here is durable; sessions and other deadlines
are kept by the group. Source: Kafka's ConsumerGroupMember, MemberState.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

TopicPartitions = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; topics without partitions are left out."""
EpochedPartitions = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the epoch at which the member was given it."""

NOTHING: Mapping[bytes, frozenset[int]] = {}
NO_EPOCHED: Mapping[bytes, Mapping[int, int]] = {}

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""A static member that left for a while: its place and its partitions are kept for its instance id."""

NO_TIMEOUT_MS = -1


class MemberState(IntEnum):
    """How far a member is on its way to the target assignment, by its number in records.

    STABLE                 has what the target gives it.
    UNREVOKED_PARTITIONS   keeps its old epoch until it no longer owns what was taken from it.
    UNRELEASED_PARTITIONS  is at the target epoch and waits for partitions that others still own.
    UNKNOWN                a state of a newer release: the member has to begin anew.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of_record(cls, number: int) -> MemberState:
        """The state with this number, UNKNOWN if there is none."""
        try:
            return cls(number)
        except ValueError:
            return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassicProtocolUse:
    """What a member that speaks the classic protocol has said when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """(name, metadata) in the member's order of preference; the first is the one that counts."""


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. `classic` is None for a member that speaks the consumer protocol."""

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    group_instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT_MS
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: EpochedPartitions = field(default_factory=lambda: NO_EPOCHED)
    pending_revocation: EpochedPartitions = field(default_factory=lambda: NO_EPOCHED)
    """No longer the member's by the target, but it has not said yet that it gave them up."""
    classic: ClassicProtocolUse | None = None

    @property
    def regex(self) -> str | None:
        """The subscribed regular expression; None for none (records write "" as well)."""
        return self.subscribed_topic_regex or None

    @property
    def known_as(self) -> str:
        """For sentences: `member JqV0 (client till, static i)`. An id that begins with the client's says it already."""
        named = bool(self.client_id) and not self.member_id.startswith(self.client_id)
        parts = [f"client {self.client_id}"] * named
        if self.group_instance_id is not None:
            parts.append(f"static {self.group_instance_id}")
        return f"member {self.member_id}" + (f" ({', '.join(parts)})" if parts else "")

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """True if the member has what the target of this epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch at which the member was given the partition, if it still holds it."""
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def with_epoch(partitions: TopicPartitions, epoch: int) -> EpochedPartitions:
    """The partitions as given out at `epoch`."""
    return {topic_id: dict.fromkeys(sorted(indexes), epoch) for topic_id, indexes in partitions.items() if indexes}


def without_epochs(partitions: EpochedPartitions) -> TopicPartitions:
    """The partitions alone."""
    return {topic_id: frozenset(epochs) for topic_id, epochs in partitions.items() if epochs}
