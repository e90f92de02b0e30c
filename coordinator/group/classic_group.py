"""A classic group: its states, members and what can be asked of it.

The group is a value: deciding code works on a copy (see classic_draft.py), and settling a decision
puts the copy in place. What a GroupMetadata record holds is durable (see classic_records.py), the
rest (who waits, deadlines, pending ids) is not. Source: Kafka's ClassicGroup, ClassicGroupMember.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from coordinator.group.group import GroupType, OffsetExpiry, SessionRefreshed
from coordinator.group.java_order import in_hash_map_order
from coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE, topics_of_all
from coordinator.machine import CoordinatorRecord, Ticket
from wire.errors import ErrorCode, KafkaError
from wire.messages.list_groups import ListedGroup
from wire.messages.records.consumer_offsets import GroupMetadataKey

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) in the member's order of preference."""


class ClassicGroupState(Enum):
    """States by their names on the wire. A deleted group is no group here: it reads as `DEAD`."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS_STATES: dict[ClassicGroupState, frozenset[ClassicGroupState]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {
            ClassicGroupState.EMPTY,
            ClassicGroupState.COMPLETING_REBALANCE,
            ClassicGroupState.STABLE,
        }
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
}
"""The state table: what may become what. Deletion is possible from every state without members."""


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member; replaced, never edited. Timeouts are in milliseconds."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    join_ticket: Ticket | None = None
    """The JoinGroup request that waits for the end of the join phase."""
    sync_ticket: Ticket | None = None
    """The SyncGroup request that waits for the leader's assignment."""
    is_new: bool = False
    """Has not completed a join phase yet: its first JoinGroup may be given up by the client."""

    @property
    def is_alive_by_waiting(self) -> bool:
        """A request of the member waits here, which counts as a heartbeat; not the first join."""
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's metadata for a protocol; empty if it does not have the protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def protocol_names(self) -> frozenset[str]:
        """Names of the protocols the member supports."""
        return frozenset(name for name, _ in self.protocols)


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """How long the first rebalance of a group still waits for more members."""

    delay_ms: int
    remaining_ms: int


@dataclass(slots=True)
class ClassicGroup:
    """A classic group. Changed only on a copy that nobody else has seen yet."""

    group_id: str
    state: ClassicGroupState = ClassicGroupState.EMPTY
    previous_state: ClassicGroupState = ClassicGroupState.DEAD
    generation_id: int = 0
    protocol_type: str | None = None
    """None for a group that only ever committed offsets (Kafka: simple group)."""
    protocol_name: str | None = None
    leader_id: str | None = None
    state_timestamp_ms: int = -1
    subscribed_topics: frozenset[str] | None = None
    """Topics of the members of a "consumer" group; None if unknown."""

    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """group_instance_id → member_id"""
    protocol_counts: dict[str, int] = field(default_factory=dict)
    """protocol name → number of members that support it"""

    pending_joins: dict[str, int] = field(default_factory=dict)
    """Ids given out with MEMBER_ID_REQUIRED and not used yet → deadline in ms"""
    pending_syncs: frozenset[str] = frozenset()
    """Members that have joined the generation and not asked for their assignment yet"""
    session_deadlines: dict[str, int] = field(default_factory=dict)
    """member_id → when its session ends, in ms"""
    join_deadline_ms: int | None = None
    """End of the join phase, or of the initial delay"""
    initial_delay: InitialDelay | None = None
    """Set during the first rebalance of a group that was empty"""
    new_member_added: bool = False
    """Somebody joined during the initial delay, which may then be prolonged"""
    sync_deadline_ms: int | None = None
    """End of the sync phase: members that have not synced are removed then"""

    # --- questions -------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicGroupState.EMPTY

    @property
    def is_consumer_protocol(self) -> bool:
        """The members speak the consumer's embedded protocol."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def all_members_joined(self) -> bool:
        """Every member waits in the join phase and no given-out id is outstanding."""
        return not self.pending_joins and all(member.join_ticket is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest one of the members: how long a join phase lasts at most."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """True if a member with these protocols fits in: one of them is known to all members."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.protocol_counts.get(name, 0) == size for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The protocol all members know that most of them prefer.

        Of several the one wins that comes first in Kafka's hash map of votes.
        """
        size = len(self.members)
        candidates = {name for name, count in self.protocol_counts.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(name for name, _ in member.protocols if name in candidates)
            votes[vote] = votes.get(vote, 0) + 1
        return max(in_hash_map_order(votes), key=votes.__getitem__)

    def validate_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Raises KafkaError UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID unless it is a member."""
        if group_instance_id is not None:
            holder = self.static_members.get(group_instance_id)
            if holder is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if holder != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> None:
        """See Group; order as in ClassicGroup.validateOffsetCommit."""
        if generation_id < 0 and self.state is ClassicGroupState.EMPTY:
            # An admin client, or a consumer that assigns its partitions itself.
            return
        if generation_id >= 0 or member_id or group_instance_id is not None:
            self.validate_member(member_id, group_instance_id)
            if generation_id != self.generation_id:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and self.state is not ClassicGroupState.EMPTY:
            # TxnOffsetCommit below v3 has no member fields, so it may be anonymous.
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is ClassicGroupState.COMPLETING_REBALANCE:
            # The member knows the generation, so it has joined and will know of its assignment
            # soon: it has to give up the old one, not to commit for it.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """See Group; members of classic groups carry no epoch, so anybody may fetch."""

    def validate_offset_delete(self) -> None:
        """See Group; a group whose subscriptions are unreadable must be empty."""
        if not self.is_consumer_protocol and self.state is not ClassicGroupState.EMPTY:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self.group_id} of protocol type {self.protocol_type} is {self.state_name},"
                " and only the consumer protocol tells which topics its members use",
            )

    def validate_delete(self) -> None:
        """See Group."""
        if self.state is not ClassicGroupState.EMPTY:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self.group_id} is {self.state_name} and has {len(self.members)} members",
            )

    def is_subscribed_to(self, topic: str) -> bool:
        """See Group; a consumer group with an unreadable subscription counts as using everything."""
        if self.subscribed_topics is None:
            return self.is_consumer_protocol
        return topic in self.subscribed_topics

    def offset_expiry(self) -> OffsetExpiry | None:
        """See Group; order as in ClassicGroup.offsetExpirationCondition."""
        if self.protocol_type is None:
            return OffsetExpiry()
        if self.state is ClassicGroupState.EMPTY:
            idle_since = self.state_timestamp_ms
            # Records below version 2 have no time: age then counts from each commit.
            return OffsetExpiry(idle_since if idle_since >= 0 else None)
        if self.is_consumer_protocol and self.subscribed_topics is not None and self.state is ClassicGroupState.STABLE:
            return OffsetExpiry()
        return None

    def as_listed(self) -> ListedGroup:
        """See Group."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            group_state=self.state_name,
            group_type=self.group_type.value,
        )

    def session_refreshed(self, member_id: str, now_ms: int) -> SessionRefreshed:
        """The change that the member was heard of at `now_ms`."""
        timeout_ms = self.members[member_id].session_timeout_ms
        return SessionRefreshed(self.group_id, member_id, now_ms + timeout_ms)

    def sessions_kept_alive(self, member_id: str, now_ms: int) -> tuple[SessionRefreshed, ...]:
        """See Group."""
        states = (ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE)
        if self.state not in states or member_id not in self.members:
            return ()
        return (self.session_refreshed(member_id, now_ms),)

    def refresh_session(self, member_id: str, deadline_ms: int) -> None:
        """See Group."""
        self.session_deadlines[member_id] = deadline_ms

    def earliest_deadline_ms(self) -> int | None:
        """See Group. A member that is alive by waiting gets a new session when its wait ends."""
        deadlines = [
            deadline
            for member_id, deadline in self.session_deadlines.items()
            if not self.members[member_id].is_alive_by_waiting
        ]
        deadlines.extend(self.pending_joins.values())
        if self.join_deadline_ms is not None:
            deadlines.append(self.join_deadline_ms)
        if self.sync_deadline_ms is not None:
            deadlines.append(self.sync_deadline_ms)
        return min(deadlines, default=None)

    # --- copies ----------------------------------------------------------------------------

    def copy(self) -> ClassicGroup:
        """A copy to work on; members are shared, as they are never edited."""
        return replace(
            self,
            members=dict(self.members),
            static_members=dict(self.static_members),
            protocol_counts=dict(self.protocol_counts),
            pending_joins=dict(self.pending_joins),
            session_deadlines=dict(self.session_deadlines),
        )

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """Topics of all members by the chosen protocol; None if not a readable consumer group."""
        if not self.is_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        return topics_of_all(member.metadata(self.protocol_name) for member in self.members.values())

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]
