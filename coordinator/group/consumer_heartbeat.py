"""ConsumerGroupHeartbeat of a member that joins or stays; versions 0 and 1.

Everything happens in heartbeats: a member's wishes are stored, the group's epoch rises if they changed,
the target assignment is computed for the new epoch, and the member that asks takes its next step towards
it. Source: Kafka's GroupMetadataManager.consumerGroupHeartbeat. KIP-848; KIP-1082 for member ids made
by clients, KIP-1043 for regular expressions (v1).
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.consumer_draft import ConsumerDraft
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_joining import static_member_for
from coordinator.group.consumer_member import (
    JOIN_EPOCH,
    NO_TIMEOUT_MS,
    ConsumerMember,
    EpochedPartitions,
    MemberState,
    TopicPartitions,
)
from coordinator.group.consumer_reconciliation import Circumstances, reconcile
from coordinator.group.consumer_records import current_assignment_record
from coordinator.group.consumer_subscribing import Change, update_epoch, update_member
from coordinator.group.consumer_target import update_target
from coordinator.group.consumer_validation import check_epoch, check_size, owned_partitions
from coordinator.group.context import GroupContext
from coordinator.group.group import SessionRefreshed
from coordinator.group.settlement import GroupDecision
from coordinator.group.topic_hash import TopicHashes
from coordinator.machine import Ids, Ticket
from coordinator.metadata.image import RESOURCE_GROUP
from wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from wire.primitives import uuid_text


def unchanged(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    context: GroupContext,
    now_ms: int,
    ticket: Ticket,
) -> GroupDecision | None:
    """The decision on a heartbeat that only says "I am still here", in a group at rest: its session runs
    anew. None if there is more to it; then `heartbeat` decides. (Nearly all heartbeats are of this kind,
    and the whole way costs too much for them.)"""
    member = group.members.get(request.member_id)
    if (
        member is None
        or request.member_epoch != member.member_epoch
        or request.subscribed_topic_names is not None
        or request.rebalance_timeout_ms != NO_TIMEOUT_MS
        or request.subscribed_topic_regex is not None
        or request.server_assignor is not None
        or request.rack_id is not None
        or request.instance_id != member.group_instance_id
        or member.state is not MemberState.STABLE
        or member.member_epoch != group.assignment_epoch
        or group.assignment_epoch < group.group_epoch
        or group.seen_topics is not context.image.topics
        or member.classic is not None
        or member.client_id != context.client_id
        or member.client_host != context.client_host
        or not _regexes_are_fresh(group, context, now_ms)
    ):
        return None
    overrides = context.image.configs.of(RESOURCE_GROUP, group.group_id)
    settings = context.settings.consumer
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_of(overrides),
    )
    deadline_ms = now_ms + settings.session_timeout_of(overrides)
    return GroupDecision(
        replies=((ticket, response),),
        volatile=(SessionRefreshed(group.group_id, member.member_id, deadline_ms),),
    )


def _regexes_are_fresh(group: ConsumerGroup, context: GroupContext, now_ms: int) -> bool:
    subscriptions = group.subscriptions
    if not subscriptions.by_regex:
        return True
    return (
        len(subscriptions.by_regex) == len(subscriptions.resolved)
        and group.resolved_topic_ids is context.image.topics.ids
        and now_ms <= subscriptions.refreshed_at_ms + context.settings.consumer.regex_refresh_interval_ms
    )


def heartbeat(
    draft: ConsumerDraft,
    request: ConsumerGroupHeartbeatRequest,
    context: GroupContext,
    ids: Ids,
    ticket: Ticket,
    hashes: TopicHashes,
) -> GroupDecision:
    """Decide a heartbeat in the draft of its group, which may be a new one. Raises KafkaError if it is refused."""
    check_size(draft.group, request.member_id, request.instance_id, context.settings.consumer)
    owned = owned_partitions(request.topic_partitions)
    member = _member(draft, request, ids, owned)
    is_new = member.member_id not in draft.group.members
    updated = _updated(member, request, context)
    change = update_member(draft, member, updated, context)
    update_epoch(
        draft,
        context,
        hashes,
        is_due=change.names or change.regex_resolved or change.assignor,
        reason=_reason(updated, change, is_new=is_new),
    )
    update_target(draft, context)
    updated = step(draft, updated, context, owned, subscription_changed=change.subscription)
    overrides = context.image.configs.of(RESOURCE_GROUP, draft.group.group_id)
    settings = context.settings.consumer
    draft.group.session_deadlines[updated.member_id] = draft.now_ms + settings.session_timeout_of(overrides)
    response = ConsumerGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_of(overrides),
    )
    if _is_full(request) or updated.assigned != member.assigned:
        response.assignment = _assignment(updated.assigned)
    draft.replies.append((ticket, response))
    return draft.decision()


def _member(
    draft: ConsumerDraft, request: ConsumerGroupHeartbeatRequest, ids: Ids, owned: TopicPartitions | None
) -> ConsumerMember:
    """The member that asks, as it is known, or a new one. Raises KafkaError."""
    joins = request.member_epoch == JOIN_EPOCH
    member_id = request.member_id or uuid_text(ids.uuid())
    if request.instance_id is not None:
        member = static_member_for(draft, member_id, request.instance_id, joins=joins, uses_classic=False)
    elif joins:
        member = draft.group.members.get(member_id) or ConsumerMember(member_id)
    else:
        member = draft.group.member(member_id)
    check_epoch(member, request.member_epoch, owned)
    return member


def _updated(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, context: GroupContext) -> ConsumerMember:
    """The member with what the request says of it; null means as before."""
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        group_instance_id=member.group_instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT_MS else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=context.client_id,
        client_host=context.client_host,
        classic=None,
    )


def _reason(member: ConsumerMember, change: Change, *, is_new: bool) -> str:
    who = member.known_as
    if is_new:
        return f"{who} joined"
    if change.subscription:
        return f"{who} changed its subscription"
    return f"{who} changed the preferred assignor"


def step(
    draft: ConsumerDraft,
    member: ConsumerMember,
    context: GroupContext,
    owned: TopicPartitions | None,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """Let the member take its next step towards the target; returns it as it is then."""
    group = draft.group
    if not subscription_changed and member.is_reconciled_to(group.assignment_epoch):
        return member
    names = group.subscriptions.topics_of(member)
    topics = context.image.topics

    def is_subscribed(topic_id: bytes) -> bool:
        topic = topics.by_id(topic_id)
        return topic is not None and topic.name in names

    def is_free(topic_id: bytes, partition: int) -> bool:
        return group.is_free_for(member.member_id, topic_id, partition)

    target = group.target_of(member.member_id)
    instance_id = member.group_instance_id
    if instance_id is not None and instance_id not in draft.before.static_members and not draft.has_new_target:
        # Kafka finds the target of a static member by its instance: one that names it only now has none yet.
        target = {}
    circumstances = Circumstances(group.assignment_epoch, target, subscription_changed, is_subscribed, is_free, owned)
    stepped = reconcile(member, circumstances)
    if stepped == member:
        return member
    draft.add(current_assignment_record(group.group_id, stepped))
    if stepped.classic is None:
        # Members by the classic protocol are timed by join and sync instead.
        if stepped.state is MemberState.UNREVOKED_PARTITIONS:
            deadline_ms = draft.now_ms + stepped.rebalance_timeout_ms
            group.rebalance_deadlines[stepped.member_id] = deadline_ms, stepped.member_epoch
        else:
            group.rebalance_deadlines.pop(stepped.member_id, None)
    return stepped


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A member sends everything when it joins, and when it does not know whether it was heard."""
    if request.member_epoch == JOIN_EPOCH:
        return True
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != NO_TIMEOUT_MS and has_subscription and request.topic_partitions is not None


def _assignment(partitions: EpochedPartitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions[topic_id]))
            for topic_id in sorted(partitions)
        ]
    )
