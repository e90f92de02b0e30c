"""The machine behind one partition of `__consumer_offsets`: routes, and replays.

Kinds of groups are added by putting them in the list of kinds; the shard itself knows only that
commits without a group make an empty classic one. Offsets belong to groups of every kind.
Source: Kafka's GroupCoordinatorShard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from coordinator.group.classic_group import ClassicGroup
from coordinator.group.classic_groups import ClassicGroups
from coordinator.group.consumer_groups import ConsumerGroups
from coordinator.group.context import GroupContext, GroupSettings
from coordinator.group.descriptions import describe_classic_group, list_groups
from coordinator.group.group import Group, SessionRefreshed
from coordinator.group.groups import Groups
from coordinator.group.kind import GroupKind
from coordinator.group.offset_commit import commit_offsets, commit_transactional_offsets
from coordinator.group.offset_deletion import (
    clean_up,
    delete_groups,
    delete_offsets,
    delete_partition_offsets,
)
from coordinator.group.offset_fetch import fetch_offsets
from coordinator.group.offset_store import OffsetStore
from coordinator.group.requests import DeletePartitionOffsets, FetchStableOffsets
from coordinator.group.settlement import (
    Asked,
    CleanupScheduled,
    DeadlineMoved,
    GroupDecision,
    GroupEvent,
    GroupReplaced,
    IfRefused,
)
from coordinator.machine import CoordinatorRecord, Ids, ReplayAt, Ticket
from wire.errors import KafkaError
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribedGroup
from wire.messages.list_groups import ListedGroup
from wire.messages.offset_commit import OffsetCommitRequest
from wire.messages.offset_delete import OffsetDeleteRequest
from wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from wire.messages.records.consumer_offsets import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from wire.messages.txn_offset_commit import TxnOffsetCommitRequest

_Decide = Callable[[Any, GroupContext, int, Ticket], GroupDecision]


class GroupShard:
    """Groups and committed offsets of one partition of `__consumer_offsets`."""

    replay_at = ReplayAt.APPEND

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._groups = Groups()
        self._offsets = OffsetStore()
        self._kinds: tuple[GroupKind, ...] = (ClassicGroups(self._groups), ConsumerGroups(self._groups))
        self._takers: dict[type, list[GroupKind]] = {
            request: [kind for kind in self._kinds if request in kind.requests]
            for request in frozenset[type]().union(*(kind.requests for kind in self._kinds))
        }
        self._own_requests: dict[type, _Decide] = {
            OffsetCommitRequest: self._commit,
            TxnOffsetCommitRequest: self._commit_transactional,
            FetchStableOffsets: self._fetch_stable,
            OffsetDeleteRequest: self._delete_offsets,
            DeleteGroupsRequest: self._delete_groups,
            DeletePartitionOffsets: self._delete_partition_offsets,
        }
        self._cleanup: CleanupScheduled | None = None
        # Records of the decision that was settled last and whose replay is to come.
        self._settled: deque[CoordinatorRecord] = deque()

    # --- decide ----------------------------------------------------------------------------

    def decide(self, request: Any, context: GroupContext, now_ms: int, ids: Ids, ticket: Ticket) -> GroupDecision:
        """See Machine. Requests are messages of the protocol, or those of requests.py."""
        own = self._own_requests.get(type(request))
        if own is not None:
            decision = own(request, context, now_ms, ticket)
        else:
            kind = self._kind_of(request)
            decision = kind.decide(request, context, now_ms, ids, ticket)
        if decision.records:
            decision = replace(decision, volatile=(*decision.volatile, Asked(ticket)))
        return decision

    def _kind_of(self, request: Any) -> GroupKind:
        """The kind of the named group if it takes the request, else the first that does. A group without
        members has nobody to answer for, so it gives way to the kind that is asked for."""
        group = self._groups.get(request.group_id)
        takers = self._takers[type(request)]
        if group is not None and not group.is_empty:
            for kind in takers:
                if kind.group_type is group.group_type:
                    return kind
        return takers[0]

    def _commit(
        self, request: OffsetCommitRequest, context: GroupContext, now_ms: int, ticket: Ticket
    ) -> GroupDecision:
        group = self._groups.get(request.group_id)
        return commit_offsets(group, request, context, now_ms, ticket)

    def _commit_transactional(
        self, request: TxnOffsetCommitRequest, context: GroupContext, now_ms: int, ticket: Ticket
    ) -> GroupDecision:
        group = self._groups.get(request.group_id)
        return commit_transactional_offsets(group, request, context, now_ms, ticket)

    def _fetch_stable(
        self, request: FetchStableOffsets, context: GroupContext, now_ms: int, ticket: Ticket
    ) -> GroupDecision:
        group = self._groups.get(request.group.group_id)
        response = fetch_offsets(self._offsets, group, request.group, require_stable=True)
        return GroupDecision(replies=((ticket, response),))

    def _delete_offsets(
        self, request: OffsetDeleteRequest, context: GroupContext, now_ms: int, ticket: Ticket
    ) -> GroupDecision:
        group = self._groups.get(request.group_id)
        return delete_offsets(self._offsets, group, request, ticket)

    def _delete_groups(
        self, request: DeleteGroupsRequest, context: GroupContext, now_ms: int, ticket: Ticket
    ) -> GroupDecision:
        return delete_groups(self._offsets, self._groups, request, ticket)

    def _delete_partition_offsets(
        self, request: DeletePartitionOffsets, context: GroupContext, now_ms: int, ticket: Ticket
    ) -> GroupDecision:
        return delete_partition_offsets(self._offsets, request.partitions, ticket)

    # --- settle ----------------------------------------------------------------------------

    def settle(self, decision: GroupDecision) -> None:
        """See Machine."""
        for change in decision.volatile:
            if isinstance(change, SessionRefreshed):
                group = self._groups.get(change.group_id)
                if group is not None:
                    group.refresh_session(change.member_id, change.deadline_ms)
            elif isinstance(change, GroupReplaced):
                self._groups.put(change.group)
            elif isinstance(change, DeadlineMoved):
                self._groups.rearm(change.group_id)
            elif isinstance(change, CleanupScheduled):
                self._cleanup = change
        for event in decision.events:
            if isinstance(event, GroupEvent):
                self._groups.note(event)
        self._settled = deque(decision.records)

    def unsettle(self, decision: GroupDecision, error: KafkaError) -> GroupDecision:
        """See Machine. What was decided for this case holds; else the request gets the error and
        nothing has happened."""
        replies: Sequence[tuple[Ticket, object]] = ()
        scheduled: Sequence[CleanupScheduled] = ()
        for change in decision.volatile:
            if isinstance(change, IfRefused):
                return change.decide(error)
            if isinstance(change, Asked):
                replies = ((change.ticket, error),)
            elif isinstance(change, CleanupScheduled):
                # Not at once again, so that a log that refuses is not asked without end.
                retry_ms = change.at_ms
                if change.after:
                    retry_ms += self._settings.offsets_retention_check_interval_ms
                scheduled = (CleanupScheduled(retry_ms),)
        return GroupDecision(replies=replies, volatile=scheduled)

    # --- replay ----------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """See Machine. Records of kinds that are not known here are passed over."""
        settled = bool(self._settled) and self._settled[0] is record
        if settled:
            self._settled.popleft()
        key, value = record.key, record.value
        if isinstance(key, LegacyOffsetCommitKey):
            key, value = _modernized(key, value)
        if isinstance(key, OffsetCommitKey):
            if value is None:
                self._offsets.replay_tombstone(key, offset)
            else:
                self._ensure_group(key.group)
                self._offsets.replay_commit(key, value, offset)
            return
        for kind in self._kinds:
            if type(key) in kind.record_keys:
                kind.replay(key, value, settled=settled)

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, producer_id: int, producer_epoch: int
    ) -> None:
        """See TransactionalMachine: an offset that waits for its transaction's end."""
        key, value = record.key, record.value
        if not isinstance(key, OffsetCommitKey) or value is None:
            self.replay(record, offset)
            return
        if self._settled and self._settled[0] is record:
            self._settled.popleft()
        self._ensure_group(key.group)
        self._offsets.replay_pending(key, value, offset, producer_id)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """See TransactionalMachine."""
        self._offsets.replay_marker(producer_id, committed, offset)

    def committed(self, high_watermark: int) -> None:
        """Everything below `high_watermark` is replicated: reads without `require_stable` see it."""
        self._offsets.advance(high_watermark)

    def loaded(self, context: GroupContext, now_ms: int, ids: Ids) -> GroupDecision:
        """The log has been read: sessions start anew, timers begin."""
        interval_ms = self._settings.offsets_retention_check_interval_ms
        decisions = [
            kind.loaded(group, context, now_ms)
            for group in self._groups
            for kind in self._kinds
            if kind.group_type is group.group_type
        ]
        return GroupDecision(
            records=[record for each in decisions for record in each.records],
            replies=[reply for each in decisions for reply in each.replies],
            events=[event for each in decisions for event in each.events],
            volatile=[
                *(change for each in decisions for change in each.volatile),
                CleanupScheduled(now_ms + interval_ms),
            ],
        )

    def _ensure_group(self, group_id: str) -> None:
        if self._groups.get(group_id) is None:
            self._groups.put(ClassicGroup(group_id))

    # --- deadlines -------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """See Machine. A shard without groups has nothing to expire and so no timer."""
        deadline_ms = self._groups.next_deadline_ms()
        if self._cleanup is not None and len(self._groups):
            at_ms = self._cleanup.at_ms
            return at_ms if deadline_ms is None else min(at_ms, deadline_ms)
        return deadline_ms

    def expire(self, context: GroupContext, now_ms: int, ids: Ids) -> GroupDecision:
        """See Machine. One group at a time, then the look for expired offsets."""
        moved: list[DeadlineMoved] = []
        for group_id in self._groups.due(now_ms):
            group = self._groups.get(group_id)
            decision = GroupDecision() if group is None else self._due(group, context, now_ms, ids)
            if decision.volatile:
                return replace(decision, volatile=(*decision.volatile, *moved))
            moved.append(DeadlineMoved(group_id))
        cleanup = self._cleanup
        if moved or cleanup is None or cleanup.at_ms > now_ms:
            return GroupDecision(volatile=moved)
        return clean_up(self._offsets, self._groups, self._settings, now_ms, cleanup.after)

    def _due(self, group: Group, context: GroupContext, now_ms: int, ids: Ids) -> GroupDecision:
        for kind in self._kinds:
            if kind.group_type is group.group_type:
                return kind.due(group, context, now_ms, ids)
        return GroupDecision()

    # --- reads -----------------------------------------------------------------------------

    def fetch_offsets(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        """OffsetFetch without `require_stable`: replicated offsets only."""
        group = self._groups.get(request.group_id)
        return fetch_offsets(self._offsets, group, request, require_stable=False)

    def list_groups(self, states_filter: Sequence[str], types_filter: Sequence[str]) -> list[ListedGroup]:
        """See descriptions.list_groups."""
        return list_groups(self._groups, states_filter, types_filter)

    def describe_group(self, group_id: str, api_version: int) -> DescribedGroup:
        """See descriptions.describe_classic_group."""
        return describe_classic_group(self._groups.get(group_id), group_id, api_version)

    def group(self, group_id: str) -> Group | None:
        """The group of any kind, for reading."""
        return self._groups.get(group_id)

    def group_events(self, group_id: str) -> tuple[GroupEvent, ...]:
        """Why the group rebalanced lately, oldest first; for display."""
        return self._groups.events(group_id)


def _modernized(key: Any, value: Any | None) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    """A record of type 0 as one of type 1: they say the same."""
    modern = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    if value is None:
        return modern, None
    return modern, OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )
