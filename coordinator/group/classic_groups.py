"""The classic kind of group, as the shard sees it.

See classic_join, classic_sync, classic_leave for the requests, classic_rebalance for the rounds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordinator.group.classic_draft import ClassicDraft, join_error
from coordinator.group.classic_group import ClassicGroup
from coordinator.group.classic_join import join
from coordinator.group.classic_leave import leave
from coordinator.group.classic_rebalance import (
    join_deadline_passed,
    pending_join_ended,
    prepare_rebalance,
    session_ended,
    sync_deadline_passed,
)
from coordinator.group.classic_records import restore_group
from coordinator.group.classic_sync import heartbeat, sync
from coordinator.group.context import GroupContext
from coordinator.group.group import Group, GroupType
from coordinator.group.groups import Groups
from coordinator.group.settlement import GroupDecision, keep_if_refused
from coordinator.machine import Ids, Ticket
from wire.errors import ErrorCode
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest
from wire.messages.leave_group import LeaveGroupRequest
from wire.messages.records.consumer_offsets import GroupMetadataKey, GroupMetadataValue
from wire.messages.sync_group import SyncGroupRequest

GIVING_WAY = frozenset({GroupType.CONSUMER, GroupType.STREAMS})
"""An empty group of these kinds becomes a classic one when a member joins by the classic protocol."""


class ClassicGroups:
    """Classic groups among all groups of a shard."""

    group_type = GroupType.CLASSIC
    requests = frozenset({JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest})
    record_keys = frozenset({GroupMetadataKey})

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def decide(self, request: Any, context: GroupContext, now_ms: int, ids: Ids, ticket: Ticket) -> GroupDecision:
        """See GroupKind. A group of another kind is as good as none, but in the way of a join."""
        group = self._groups.get(request.group_id)
        classic = group if isinstance(group, ClassicGroup) else None
        if isinstance(request, HeartbeatRequest):
            return heartbeat(classic, request, now_ms, ticket)
        if isinstance(request, SyncGroupRequest):
            return sync(classic, request, context, now_ms, ticket)
        if isinstance(request, LeaveGroupRequest):
            return keep_if_refused(leave(classic, request, context, now_ms, ticket), ticket)
        if group is None or classic is not None:
            return join(classic, request, context, now_ms, ids, ticket)
        if not group.is_empty or group.group_type not in GIVING_WAY:
            return GroupDecision(replies=((ticket, join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)),))
        decision = join(None, request, context, now_ms, ids, ticket)
        if not decision.records:
            return decision
        return replace(decision, records=[*group.tombstones(), *decision.records])

    def replay(self, key: Any, value: Any | None, *, settled: bool) -> None:
        """See GroupKind."""
        group_id: str = key.group
        if value is None:
            if isinstance(self._groups.get(group_id), ClassicGroup):
                self._groups.remove(group_id)
        elif not settled:
            # Otherwise the group is in place, with waiting members that the record does not hold.
            stored: GroupMetadataValue = value
            self._groups.put(restore_group(group_id, stored))

    def due(self, group: Group, context: GroupContext, now_ms: int, ids: Ids) -> GroupDecision:
        """See GroupKind."""
        assert isinstance(group, ClassicGroup)
        draft = ClassicDraft(group, context.settings, now_ms)
        if not _apply_due(draft):
            return GroupDecision()
        # Timeouts hold even if an emptied group could not be stored: at worst its last generation
        # comes back after a fail-over, and times out again.
        return keep_if_refused(draft.decision())

    def loaded(self, group: Group, context: GroupContext, now_ms: int) -> GroupDecision:
        """See GroupKind. A group larger than a lowered limit rebalances, to lose members."""
        assert isinstance(group, ClassicGroup)
        draft = ClassicDraft(group, context.settings, now_ms)
        for member in group.members.values():
            draft.restart_session(member)
        limit = context.settings.group_max_size
        if len(group.members) > limit:
            prepare_rebalance(
                draft,
                f"the group was loaded with {len(group.members)} members, more than group.max.size {limit} allows",
            )
        return draft.decision()


def _apply_due(draft: ClassicDraft) -> bool:
    """Let one of the things that are due happen; False if nothing is due."""
    group, now_ms = draft.group, draft.now_ms
    pending_id = _first_due(group.pending_joins, now_ms)
    if pending_id is not None:
        pending_join_ended(draft, pending_id)
        return True
    for member_id, deadline_ms in group.session_deadlines.items():
        member = group.members[member_id]
        if deadline_ms <= now_ms and not member.is_alive_by_waiting:
            session_ended(draft, member)
            return True
    if group.join_deadline_ms is not None and group.join_deadline_ms <= now_ms:
        join_deadline_passed(draft)
        return True
    if group.sync_deadline_ms is not None and group.sync_deadline_ms <= now_ms:
        sync_deadline_passed(draft)
        return True
    return False


def _first_due(deadlines: dict[str, int], now_ms: int) -> str | None:
    return next((each for each, at_ms in deadlines.items() if at_ms <= now_ms), None)
