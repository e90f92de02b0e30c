"""The consumer kind of group (KIP-848), as the shard sees it.

See consumer_heartbeat, consumer_leave for the requests, consumer_classic_members for members that
speak the classic protocol, consumer_migration for groups that change their kind.
"""

from __future__ import annotations

from typing import Any

from coordinator.group import consumer_classic_members as classic_members
from coordinator.group.classic_group import ClassicGroup
from coordinator.group.consumer_draft import ConsumerDraft, retry_if_refused
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_heartbeat import heartbeat, unchanged
from coordinator.group.consumer_leave import leave
from coordinator.group.consumer_member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator.group.consumer_migration import check_upgrade, refused_upgrade, upgraded
from coordinator.group.consumer_replay import RECORD_KEYS, apply_record
from coordinator.group.consumer_timeouts import decide_due, started
from coordinator.group.context import GroupContext
from coordinator.group.group import Group, GroupType
from coordinator.group.groups import Groups
from coordinator.group.settlement import GroupDecision
from coordinator.group.topic_hash import TopicHashes
from coordinator.machine import Ids, Ticket
from wire.errors import ErrorCode, KafkaError
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest
from wire.messages.leave_group import LeaveGroupRequest
from wire.messages.records.consumer_offsets import ConsumerGroupMetadataKey
from wire.messages.sync_group import SyncGroupRequest


class ConsumerGroups:
    """Consumer groups among all groups of a shard."""

    group_type = GroupType.CONSUMER
    requests = frozenset(
        {ConsumerGroupHeartbeatRequest, JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest}
    )
    record_keys = RECORD_KEYS

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._hashes = TopicHashes()

    def decide(self, request: Any, context: GroupContext, now_ms: int, ids: Ids, ticket: Ticket) -> GroupDecision:
        """See GroupKind. Requests of the classic protocol come here for groups with members only."""
        group = self._groups.get(request.group_id)
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            return self._heartbeat(group, request, context, now_ms, ids, ticket)
        assert isinstance(group, ConsumerGroup)
        if isinstance(request, HeartbeatRequest):
            return classic_members.heartbeat(group, request, now_ms, ticket)
        if isinstance(request, SyncGroupRequest):
            return classic_members.sync(group, request, context, now_ms, ticket)
        if isinstance(request, LeaveGroupRequest):
            return classic_members.leave(group, request, context, now_ms, ticket, self._hashes)
        return classic_members.join(group, request, context, now_ms, ids, ticket, self._hashes)

    def _heartbeat(
        self,
        group: Group | None,
        request: ConsumerGroupHeartbeatRequest,
        context: GroupContext,
        now_ms: int,
        ids: Ids,
        ticket: Ticket,
    ) -> GroupDecision:
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return leave(_require(group, request.group_id), request, context, now_ms, ticket, self._hashes)
        if isinstance(group, ConsumerGroup):
            decision = unchanged(group, request, context, now_ms, ticket)
            if decision is not None:
                return decision
            draft = ConsumerDraft(group, now_ms)
        elif request.member_epoch == JOIN_EPOCH:
            return self._joining(group, request, context, now_ms, ids, ticket)
        else:
            draft = ConsumerDraft(_require(group, request.group_id), now_ms)
        return heartbeat(draft, request, context, ids, ticket, self._hashes)

    def _joining(
        self,
        group: Group | None,
        request: ConsumerGroupHeartbeatRequest,
        context: GroupContext,
        now_ms: int,
        ids: Ids,
        ticket: Ticket,
    ) -> GroupDecision:
        """The first heartbeat in a new group, in place of a classic one if there is one."""
        group_id = request.group_id
        if group is not None and not isinstance(group, ClassicGroup):
            raise _not_of_this_kind(group_id)
        if group is None or group.is_empty:
            before = () if group is None else group.tombstones()
            draft = ConsumerDraft(ConsumerGroup(group_id), now_ms, before=before)
            return heartbeat(draft, request, context, ids, ticket, self._hashes)
        check_upgrade(group, context)
        try:
            draft = upgraded(group, context, now_ms, self._hashes)
            return heartbeat(draft, request, context, ids, ticket, self._hashes)
        except KafkaError as error:
            return refused_upgrade(group, error, ticket)

    def replay(self, key: Any, value: Any | None, *, settled: bool) -> None:
        """See GroupKind."""
        group_id: str = key.group_id
        group = self._groups.get(group_id)
        if type(key) is ConsumerGroupMetadataKey and value is None:
            if isinstance(group, ConsumerGroup):
                self._groups.remove(group_id)
            return
        if settled:
            # The group is in place, with deadlines that the records do not hold.
            return
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            # What stood here is gone by an earlier record, or is nothing but committed offsets.
            group = ConsumerGroup(group_id)
            self._groups.put(group)
        apply_record(group, key, value)

    def due(self, group: Group, context: GroupContext, now_ms: int, ids: Ids) -> GroupDecision:
        """See GroupKind."""
        assert isinstance(group, ConsumerGroup)
        return retry_if_refused(decide_due(group, context, now_ms, self._hashes), group, now_ms)

    def loaded(self, group: Group, context: GroupContext, now_ms: int) -> GroupDecision:
        """See GroupKind."""
        assert isinstance(group, ConsumerGroup)
        return started(group, context, now_ms)


def _require(group: Group | None, group_id: str) -> ConsumerGroup:
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise _not_of_this_kind(group_id)
    return group


def _not_of_this_kind(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
