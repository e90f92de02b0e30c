"""What becomes due in a consumer group without anybody asking.

Sessions and rebalance timeouts fence members (their next heartbeat is UNKNOWN_MEMBER_ID), join and sync
timeouts those that speak the classic protocol; regular expressions are resolved.
Source: the timers of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.group.consumer_draft import ConsumerDraft
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_leave import remove_members
from coordinator.group.consumer_member import MemberState
from coordinator.group.consumer_subscribing import resolve_regexes
from coordinator.group.context import GroupContext
from coordinator.group.settlement import GroupDecision
from coordinator.group.topic_hash import TopicHashes
from coordinator.metadata.image import RESOURCE_GROUP


def decide_due(group: ConsumerGroup, context: GroupContext, now_ms: int, hashes: TopicHashes) -> GroupDecision:
    """Let one of the things that are due happen; a decision without any content if nothing is."""
    fenced = _fenced(group, context, now_ms)
    if fenced is not None:
        member_id, why = fenced
        draft = ConsumerDraft(group, now_ms)
        return remove_members(
            draft, [member_id], f"{group.members[member_id].known_as} was removed: {why}", context, hashes
        )
    outdated = [
        member_id
        for member_id, (due_ms, epoch) in group.rebalance_deadlines.items()
        if due_ms <= now_ms and group.members[member_id].member_epoch != epoch
    ]
    if not outdated and (group.regex_refresh is None or group.regex_refresh.at_ms > now_ms):
        return GroupDecision()
    draft = ConsumerDraft(group, now_ms)
    for member_id in outdated:
        del draft.group.rebalance_deadlines[member_id]
    if not outdated:
        resolve_regexes(draft, context, hashes)
    return draft.decision()


def _fenced(group: ConsumerGroup, context: GroupContext, now_ms: int) -> tuple[str, str] | None:
    """The first member whose time is over, and why."""
    member_id = _first_due(group.session_deadlines, now_ms)
    if member_id is not None:
        return member_id, f"session timeout after {_session_ms(group, context, member_id)} ms without a heartbeat"
    for member_id, (due_ms, epoch) in group.rebalance_deadlines.items():
        member = group.members[member_id]
        if due_ms <= now_ms and member.member_epoch == epoch:
            return member_id, f"it failed to leave epoch {epoch} within {member.rebalance_timeout_ms} ms"
    member_id = _first_due(group.join_deadlines, now_ms)
    if member_id is not None:
        return member_id, "the classic member failed to join within the rebalance timeout"
    member_id = _first_due(group.sync_deadlines, now_ms)
    if member_id is not None:
        return member_id, "the classic member failed to sync within the rebalance timeout"
    return None


def _session_ms(group: ConsumerGroup, context: GroupContext, member_id: str) -> int:
    """The session timeout of a member: its own, if it speaks the classic protocol, else the group's."""
    classic = group.members[member_id].classic
    if classic is not None:
        return classic.session_timeout_ms
    return context.settings.consumer.session_timeout_of(context.image.configs.of(RESOURCE_GROUP, group.group_id))


def _first_due(deadlines: Mapping[str, int], now_ms: int) -> str | None:
    return next((each for each, at_ms in deadlines.items() if at_ms <= now_ms), None)


def started(group: ConsumerGroup, context: GroupContext, now_ms: int) -> GroupDecision:
    """The group was read from the log: sessions begin anew, and so does the time for members that are to
    give partitions up."""
    draft = ConsumerDraft(group, now_ms)
    overrides = context.image.configs.of(RESOURCE_GROUP, group.group_id)
    deadline_ms = now_ms + context.settings.consumer.session_timeout_of(overrides)
    draft.group.session_deadlines = dict.fromkeys(group.members, deadline_ms)
    draft.group.rebalance_deadlines = {
        member_id: (now_ms + member.rebalance_timeout_ms, member.member_epoch)
        for member_id, member in group.members.items()
        if member.state is MemberState.UNREVOKED_PARTITIONS
    }
    return draft.decision()
