"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Such a member takes the same steps as any other, but by joining: its JoinGroup is answered at once, with
its member epoch as the generation, and SyncGroup brings what it is assigned. It is told to join again
whenever there is a step to take. What it sends as an assignment is not looked at.
Source: Kafka's GroupMetadataManager (classicGroup…ToConsumerGroup).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from coordinator.group.consumer_draft import ConsumerDraft
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_heartbeat import step
from coordinator.group.consumer_joining import static_member_for
from coordinator.group.consumer_leave import remove_members
from coordinator.group.consumer_member import NO_TIMEOUT_MS, ClassicProtocolUse, ConsumerMember, MemberState
from coordinator.group.consumer_migration import downgraded, may_downgrade_replacing
from coordinator.group.consumer_protocol import by_topic_id, read_subscription, write_assignment
from coordinator.group.consumer_subscribing import update_epoch, update_member
from coordinator.group.consumer_target import update_target
from coordinator.group.consumer_validation import check_instance, check_size
from coordinator.group.context import GroupContext
from coordinator.group.settlement import GroupDecision
from coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE
from coordinator.group.topic_hash import TopicHashes
from coordinator.machine import Ids, Ticket
from coordinator.metadata.image import TopicsImage
from wire.errors import ErrorCode, KafkaError, MalformedMessage
from wire.messages.embedded import ConsumerProtocolSubscription
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from wire.primitives import uuid_text

MEMBER_ID_REQUIRED_FROM = 4


# --- join ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Joining:
    """A JoinGroup, taken apart."""

    request: JoinGroupRequest
    member_id: str
    is_unknown: bool
    subscription: ConsumerProtocolSubscription


def join(
    group: ConsumerGroup,
    request: JoinGroupRequest,
    context: GroupContext,
    now_ms: int,
    ids: Ids,
    ticket: Ticket,
    hashes: TopicHashes,
) -> GroupDecision:
    """Decide a JoinGroup to a consumer group with members. Raises KafkaError if it is refused."""
    settings = context.settings.consumer
    if not settings.upgrade_enabled and not settings.downgrade_enabled:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group"
            " migration is disabled (group.consumer.migration.policy).",
        )
    is_unknown = not request.member_id
    member_id = uuid_text(ids.uuid()) if is_unknown else request.member_id
    check_size(group, member_id, request.group_instance_id, settings)
    _check_protocols(group, request, member_id)
    if is_unknown and request.group_instance_id is None and context.api_version >= MEMBER_ID_REQUIRED_FROM:
        response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None)
        return GroupDecision(replies=((ticket, response),))
    instance_id = request.group_instance_id
    if instance_id is not None and not is_unknown:
        # Who the member is counts before what it wants.
        check_instance(group, group.static_member(instance_id), member_id, instance_id)
    draft = ConsumerDraft(group, now_ms)
    joining = _Joining(request, member_id, is_unknown, _subscription(request))
    return _join(draft, joining, context, ticket, hashes)


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
    """One of the member's protocols has to be known to all members that speak the classic protocol."""
    offered = {protocol.name for protocol in request.protocols}
    for member in group.members.values():
        if member.classic is not None:
            offered &= {name for name, _ in member.classic.protocols}
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not offered:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedMessage as error:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Malformed embedded consumer protocol in subscription deserialization: {error}.",
        ) from error


def _join(
    draft: ConsumerDraft, joining: _Joining, context: GroupContext, ticket: Ticket, hashes: TopicHashes
) -> GroupDecision:
    request = joining.request
    replaced = draft.group.static_member(request.group_instance_id)
    goes_down = replaced is not None and may_downgrade_replacing(draft.group, replaced, context)
    member = _member(draft, joining)
    is_new = member.member_id not in draft.group.members
    updated = _updated(member, joining, context)
    change = update_member(draft, member, updated, context)
    reason = f"{updated.known_as} {'joined' if is_new else 'changed its subscription'} by the classic protocol"
    update_epoch(draft, context, hashes, is_due=change.subscription, reason=reason)
    owned = by_topic_id(joining.subscription.owned_partitions, context.image.topics)
    is_stale = draft.group.assignment_epoch < draft.group.group_epoch
    if not goes_down:
        update_target(draft, context)
    if not (goes_down and is_stale):
        updated = step(draft, updated, context, owned, subscription_changed=change.subscription)
    assert updated.classic is not None
    response = JoinGroupResponse(
        member_id=updated.member_id,
        generation_id=updated.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=updated.classic.protocols[0][0],
    )
    draft.replies.append((ticket, response))
    if goes_down:
        why = f"group {draft.group.group_id} became classic with a stale assignment" if is_stale else None
        return downgraded(draft, context, without=frozenset(), rebalance_reason=why)
    group = draft.group
    group.join_deadlines.pop(updated.member_id, None)
    group.session_deadlines[updated.member_id] = draft.now_ms + request.session_timeout_ms
    group.sync_deadlines[updated.member_id] = draft.now_ms + _rebalance_timeout_ms(request)
    return draft.decision()


def _member(draft: ConsumerDraft, joining: _Joining) -> ConsumerMember:
    instance_id = joining.request.group_instance_id
    if instance_id is None:
        return draft.group.members.get(joining.member_id) or ConsumerMember(joining.member_id)
    return static_member_for(draft, joining.member_id, instance_id, joins=joining.is_unknown, uses_classic=True)


def _updated(member: ConsumerMember, joining: _Joining, context: GroupContext) -> ConsumerMember:
    request, subscription = joining.request, joining.subscription
    timeout_ms = request.rebalance_timeout_ms
    protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
    return replace(
        member,
        group_instance_id=member.group_instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT_MS else timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=context.client_id,
        client_host=context.client_host,
        classic=ClassicProtocolUse(request.session_timeout_ms, protocols),
    )


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """v0 has none: the session timeout serves."""
    timeout_ms = request.rebalance_timeout_ms
    return timeout_ms if timeout_ms != NO_TIMEOUT_MS else request.session_timeout_ms


# --- sync and heartbeat ----------------------------------------------------------------------------


def sync(
    group: ConsumerGroup, request: SyncGroupRequest, context: GroupContext, now_ms: int, ticket: Ticket
) -> GroupDecision:
    """Decide a SyncGroup: what the member is assigned. Raises KafkaError if it is refused."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    protocol_name = classic.protocols[0][0]
    is_same_type = request.protocol_type in (None, CONSUMER_PROTOCOL_TYPE)
    if not is_same_type or request.protocol_name not in (None, protocol_name):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol {request.protocol_type} {request.protocol_name} from member {member.member_id} request"
            f" is not the group's protocol {CONSUMER_PROTOCOL_TYPE} {protocol_name}.",
        )
    draft = ConsumerDraft(group, now_ms)
    if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        # (A member that is to give partitions up has joined already, and joins again once it has.)
        draft.group.join_deadlines.setdefault(member.member_id, now_ms + member.rebalance_timeout_ms)
        error = KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} should rejoin"
            " to catch up.",
        )
        draft.replies.append((ticket, error))
        return draft.decision()
    draft.group.sync_deadlines.pop(member.member_id, None)
    draft.group.session_deadlines[member.member_id] = now_ms + classic.session_timeout_ms
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=_assignment(member, classic, context.image.topics),
    )
    draft.replies.append((ticket, response))
    return draft.decision()


def _assignment(member: ConsumerMember, classic: ClassicProtocolUse, topics: TopicsImage) -> bytes:
    partitions = {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
    return write_assignment(partitions, classic.protocols[0][1], topics)


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, now_ms: int, ticket: Ticket) -> GroupDecision:
    """Decide a Heartbeat: REBALANCE_IN_PROGRESS if the member has a step to take, and so has to join.

    Raises KafkaError if it is refused.
    """
    member, classic = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    code = ErrorCode.NONE
    draft = ConsumerDraft(group, now_ms)
    draft.group.session_deadlines[member.member_id] = now_ms + classic.session_timeout_ms
    if (
        member.member_epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and _all_are_released(group, member))
    ):
        code = ErrorCode.REBALANCE_IN_PROGRESS
        draft.group.join_deadlines.setdefault(member.member_id, now_ms + member.rebalance_timeout_ms)
    draft.replies.append((ticket, HeartbeatResponse(error_code=code)))
    return draft.decision()


def _all_are_released(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """True if nobody else has what the member still waits for."""
    return all(
        group.is_free_for(member.member_id, topic_id, partition)
        for topic_id, partitions in group.target_of(member.member_id).items()
        for partition in partitions
        if partition not in member.assigned.get(topic_id, {})
    )


def _classic_member(
    group: ConsumerGroup, member_id: str, group_instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicProtocolUse]:
    """The member that asks. Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION."""
    if group_instance_id is None:
        member = group.member(member_id)
    else:
        member = check_instance(group, group.static_member(group_instance_id), member_id, group_instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
    if generation_id != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch {member.member_epoch} of"
            f" member {member.member_id}.",
        )
    return member, member.classic


# --- leave -----------------------------------------------------------------------------------------


def leave(
    group: ConsumerGroup,
    request: LeaveGroupRequest,
    context: GroupContext,
    now_ms: int,
    ticket: Ticket,
    hashes: TopicHashes,
) -> GroupDecision:
    """Decide a LeaveGroup: every named member is answered for itself, whatever protocol it speaks."""
    gone: list[str] = []
    responses = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            member_id = _leaving(group, identity)
        except KafkaError as error:
            code = error.code
        else:
            if member_id not in gone:
                gone.append(member_id)
        responses.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    draft = ConsumerDraft(group, now_ms)
    draft.replies.append((ticket, LeaveGroupResponse(members=responses)))
    return remove_members(draft, gone, f"member{'s'[: len(gone) > 1]} {', '.join(gone)} left", context, hashes)


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> str:
    """The id of the member that leaves. An administrator may name a static member by its instance id alone."""
    instance_id = identity.group_instance_id
    if instance_id is None:
        return group.member(identity.member_id).member_id
    member = group.static_member(instance_id)
    member_id = identity.member_id or (member.member_id if member is not None else "")
    return check_instance(group, member, member_id, instance_id).member_id
