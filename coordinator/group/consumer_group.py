"""A consumer group: its members, epochs, target assignment, and what can be asked of it.

Three epochs: the group's rises when the target has to be computed anew, the assignment's says for
which of them it was computed, and each member's says how far it has followed. The group is a value:
decisions are made on a copy (consumer_draft.py), and settling puts the copy in place. What records hold
is durable (consumer_records.py); deadlines and what was last seen of the topics are not.
Source: Kafka's ConsumerGroup, ModernGroup.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from immutables import Map

from coordinator.group.consumer_member import NOTHING, ConsumerMember, EpochedPartitions, TopicPartitions
from coordinator.group.consumer_records import group_tombstones
from coordinator.group.consumer_subscriptions import RegexRefresh, Subscriptions
from coordinator.group.group import GroupType, OffsetExpiry, PartitionCheck, SessionRefreshed
from coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE
from coordinator.machine import CoordinatorRecord
from coordinator.metadata.image import TopicsImage
from wire.errors import ErrorCode, KafkaError
from wire.messages.list_groups import ListedGroup

FIRST_GROUP_EPOCH = 1
MEMBER_COMMITS_FROM = 9
"""OffsetCommit carries a member epoch from this version."""
PartitionKey = tuple[bytes, int]


class ConsumerGroupState(Enum):
    """States by their names on the wire. They follow from members and epochs and are not kept."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(slots=True)
class ConsumerGroup:
    """A consumer group. Changed only on a copy that nobody else has seen yet, or by replay on load."""

    group_id: str
    group_epoch: int = FIRST_GROUP_EPOCH
    metadata_hash: int = 0
    """Of the subscribed topics as they were when the epoch last rose."""
    assignment_epoch: int = FIRST_GROUP_EPOCH
    assignment_timestamp_ms: int = 0
    """When the target was computed; 0 if that does not matter."""
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """group_instance_id → member_id"""
    target: dict[str, TopicPartitions] = field(default_factory=dict)
    """The target assignment by member_id"""
    owners: dict[PartitionKey, str] = field(default_factory=dict)
    """Who has a partition assigned or has not given it up yet"""
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    has_partition_metadata_record: bool = False
    """A record of type 4, which Kafka 4.0 wrote, is still to be tombstoned."""

    session_deadlines: dict[str, int] = field(default_factory=dict)
    """member_id → when its session ends, in ms"""
    rebalance_deadlines: dict[str, tuple[int, int]] = field(default_factory=dict)
    """member_id → until when it has to leave which epoch: (ms, member epoch)"""
    join_deadlines: dict[str, int] = field(default_factory=dict)
    """A member by the classic protocol was told to join again → until when, in ms"""
    sync_deadlines: dict[str, int] = field(default_factory=dict)
    """A member by the classic protocol has joined → until when it has to sync, in ms"""
    seen_topics: TopicsImage | None = None
    """The topics with which `metadata_hash` was last compared"""
    regex_refresh: RegexRefresh | None = None
    """The regular expressions are about to be resolved anew"""
    resolved_topic_ids: Map[str, bytes] | None = None
    """The topics among which regular expressions were last looked for"""

    # --- questions -------------------------------------------------------------------------

    @property
    def group_type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def state(self) -> ConsumerGroupState:
        """What ListGroups and describe show."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> ConsumerMember:
        """The member. Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, group_instance_id: str | None) -> ConsumerMember | None:
        """The member with this instance id, if there is one."""
        if group_instance_id is None:
            return None
        member_id = self.static_members.get(group_instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member_id: str) -> TopicPartitions:
        """The member's target assignment; nothing if there is none yet."""
        return self.target.get(member_id, NOTHING)

    def is_free_for(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        """True if no other member has the partition or is yet to give it up."""
        return self.owners.get((topic_id, partition), member_id) == member_id

    def classic_member_count(self, *, without: frozenset[str] = frozenset()) -> int:
        """Members that speak the classic protocol, some left out."""
        return sum(
            1 for member in self.members.values() if member.classic is not None and member.member_id not in without
        )

    # --- what every kind of group offers -----------------------------------------------------

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:
        """See Group; order as in ConsumerGroup.validateOffsetCommit. KIP-1251: an older epoch may still
        commit what the member has held since then."""
        if generation_id < 0 and not self.members:
            return None
        if transactional and generation_id == -1 and not member_id and group_instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and api_version < MEMBER_COMMITS_FROM:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"OffsetCommit version {MEMBER_COMMITS_FROM} or above must be used by members using the"
                " consumer group protocol",
            )
        if generation_id == member.member_epoch:
            return None
        if generation_id > member.member_epoch:
            raise _stale(member, f"epoch {generation_id} is newer than the member's epoch {member.member_epoch}")

        def check(topic: str, topic_id: bytes, partition: int) -> None:
            epoch = member.assignment_epoch(topic_id, partition)
            if epoch is None:
                raise _stale(member, f"partition {topic}-{partition} is not the member's")
            if generation_id < epoch:
                raise _stale(
                    member,
                    f"epoch {generation_id} is older than epoch {epoch}, at which the member was given"
                    f" partition {topic}-{partition}",
                )

        return check

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """See Group."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(member, f"epoch {member_epoch} is not the member's epoch {member.member_epoch}")

    def validate_offset_delete(self) -> None:
        """See Group; each topic is looked at for itself."""

    def validate_delete(self) -> None:
        """See Group."""
        if self.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self.group_id} is {self.state_name} and has {len(self.members)} members",
            )

    def is_subscribed_to(self, topic: str) -> bool:
        """See Group."""
        return self.subscriptions.includes(topic)

    def offset_expiry(self) -> OffsetExpiry | None:
        """See Group."""
        return OffsetExpiry()

    def tombstones(self) -> list[CoordinatorRecord]:
        """See Group."""
        return group_tombstones(self.group_id, list(self.members), list(self.subscriptions.resolved))

    def as_listed(self) -> ListedGroup:
        """See Group."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            group_state=self.state_name,
            group_type=self.group_type.value,
        )

    def sessions_kept_alive(self, member_id: str, now_ms: int) -> tuple[SessionRefreshed, ...]:
        """See Group; commits do not count as heartbeats here."""
        return ()

    def refresh_session(self, member_id: str, deadline_ms: int) -> None:
        """See Group."""
        self.session_deadlines[member_id] = deadline_ms

    def earliest_deadline_ms(self) -> int | None:
        """See Group."""
        deadlines = [*self.session_deadlines.values(), *self.join_deadlines.values(), *self.sync_deadlines.values()]
        deadlines.extend(deadline_ms for deadline_ms, _ in self.rebalance_deadlines.values())
        if self.regex_refresh is not None:
            deadlines.append(self.regex_refresh.at_ms)
        return min(deadlines, default=None)

    # --- changes, to a copy or by replay -----------------------------------------------------

    def copy(self) -> ConsumerGroup:
        """A copy to work on; members and assignments are shared, as they are never edited."""
        return replace(
            self,
            members=dict(self.members),
            static_members=dict(self.static_members),
            target=dict(self.target),
            owners=dict(self.owners),
            subscriptions=self.subscriptions.copy(),
            session_deadlines=dict(self.session_deadlines),
            rebalance_deadlines=dict(self.rebalance_deadlines),
            join_deadlines=dict(self.join_deadlines),
            sync_deadlines=dict(self.sync_deadlines),
        )

    def put_member(self, member: ConsumerMember) -> None:
        """Add a member or replace the one of the same id."""
        member_id = member.member_id
        old = self.members.get(member_id)
        self.members[member_id] = member
        self.subscriptions.replace_member(old, member)
        if old is not None and old.group_instance_id is not None:
            self.static_members.pop(old.group_instance_id, None)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member_id
        if old is not None:
            if old.assigned is member.assigned and old.pending_revocation is member.pending_revocation:
                return
            self._disown(old)
        for partitions in (member.assigned, member.pending_revocation):
            self._own(member_id, partitions)

    def remove_member(self, member_id: str) -> None:
        """Remove a member with all that is known of it; does nothing for an unknown id."""
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self.subscriptions.replace_member(old, None)
        if old.group_instance_id is not None and self.static_members.get(old.group_instance_id) == member_id:
            del self.static_members[old.group_instance_id]
        self._disown(old)
        for deadlines in (
            self.session_deadlines,
            self.rebalance_deadlines,
            self.join_deadlines,
            self.sync_deadlines,
        ):
            deadlines.pop(member_id, None)

    def _own(self, member_id: str, partitions: EpochedPartitions) -> None:
        for topic_id, epochs in partitions.items():
            for partition in epochs:
                self.owners[topic_id, partition] = member_id

    def _disown(self, member: ConsumerMember) -> None:
        """Where another member already owns a partition (a compacted log may tell it in that order), it stays."""
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                for partition in epochs:
                    if self.owners.get((topic_id, partition)) == member.member_id:
                        del self.owners[topic_id, partition]


def _stale(member: ConsumerMember, why: str) -> KafkaError:
    """A wrong epoch, as the member's protocol calls it."""
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return KafkaError(code, f"member {member.member_id}: {why}")
