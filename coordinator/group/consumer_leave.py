"""How members go: they leave, or are fenced because a deadline passed.

Source: Kafka's GroupMetadataManager (consumerGroupLeave, consumerGroupStaticMemberGroupLeave,
consumerGroupFenceMembers).
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.consumer_draft import ConsumerDraft
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_member import NO_EPOCHED, STATIC_LEAVE_EPOCH
from coordinator.group.consumer_migration import downgraded, may_downgrade
from coordinator.group.consumer_records import (
    current_assignment_record,
    member_tombstones,
    regex_tombstone,
    target_epoch_record,
)
from coordinator.group.consumer_subscribing import raise_epoch
from coordinator.group.consumer_validation import check_instance
from coordinator.group.context import GroupContext
from coordinator.group.settlement import GroupDecision
from coordinator.group.topic_hash import TopicHashes
from coordinator.machine import Ticket
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def leave(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    context: GroupContext,
    now_ms: int,
    ticket: Ticket,
    hashes: TopicHashes,
) -> GroupDecision:
    """Decide a heartbeat with epoch -1 (gone) or -2 (a static member is gone for a while).

    Raises UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    draft = ConsumerDraft(group, now_ms)
    instance_id = request.instance_id
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    draft.replies.append((ticket, response))
    if instance_id is None:
        member = group.member(request.member_id)
    else:
        member = check_instance(group, group.static_member(instance_id), request.member_id, instance_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            return _leave_for_a_while(draft, member.member_id)
    return remove_members(draft, [member.member_id], f"{member.known_as} left", context, hashes)


def _leave_for_a_while(draft: ConsumerDraft, member_id: str) -> GroupDecision:
    """Its place is kept, and so are its partitions, which count as given to whoever comes back at epoch 0."""
    member = draft.group.members[member_id]
    away = replace(
        member,
        member_epoch=STATIC_LEAVE_EPOCH,
        pending_revocation=NO_EPOCHED,
        assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()},
    )
    draft.add(current_assignment_record(draft.group.group_id, away))
    draft.event(
        f"static member {member.group_instance_id} ({member_id}) left for a while;"
        " its partitions are kept for it until its session ends"
    )
    return draft.decision()


def remove_members(
    draft: ConsumerDraft,
    member_ids: list[str],
    reason: str,
    context: GroupContext,
    hashes: TopicHashes,
) -> GroupDecision:
    """Decide that members are gone: the target is computed anew without them, or, if all who stay speak
    the classic protocol, the group becomes a classic one."""
    group = draft.group
    if not member_ids:
        return draft.decision()
    gone = frozenset(member_ids)
    if may_downgrade(group, context, without=gone):
        return downgraded(draft, context, without=gone, rebalance_reason=reason)
    regexes = {member.regex for member_id in gone if (member := group.members[member_id]).regex is not None}
    for member_id in member_ids:
        draft.add(*member_tombstones(group.group_id, member_id))
    for regex in sorted(regex for regex in regexes if regex is not None):
        if regex not in group.subscriptions.by_regex:
            draft.add(regex_tombstone(group.group_id, regex))
    raise_epoch(draft, hashes.of_group(group.subscriptions.topics(), context.image), reason)
    if not group.members:
        # Nobody is left to compute a target for; time 0, so that the next member does not wait.
        draft.add(target_epoch_record(group.group_id, group.group_epoch, 0))
    return draft.decision()
