"""JoinGroup to a classic group, versions 0 to 9.

The order of the checks is Kafka's (GroupMetadataManager.classicGroupJoinToClassicGroup); what is
refused before the coordinator is looked for (group id, session timeout) is in validation.py.
KIP-394 (MEMBER_ID_REQUIRED from v4), KIP-345 (static members from v5), KIP-814 (skip_assignment
from v9), KIP-800 (reason from v8).
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.classic_draft import ClassicDraft, join_error, sync_error
from coordinator.group.classic_group import (
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
    Protocols,
)
from coordinator.group.classic_rebalance import maybe_complete_join, prepare_rebalance, rebalance
from coordinator.group.classic_records import group_record
from coordinator.group.context import GroupContext
from coordinator.group.settlement import GroupDecision, IfRefused
from coordinator.machine import Ids, Ticket
from wire.errors import ErrorCode, KafkaError
from wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_FROM = 4
SKIP_ASSIGNMENT_FROM = 9


def join(
    group: ClassicGroup | None,
    request: JoinGroupRequest,
    context: GroupContext,
    now_ms: int,
    ids: Ids,
    ticket: Ticket,
) -> GroupDecision:
    """Decide a JoinGroup; `group` is None if there is none of that id.

    Only a request without a member id creates a group, which is stored at once as an empty one.
    """
    if group is None and request.member_id:
        return _answer(ticket, join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
    is_created = group is None
    draft = ClassicDraft(
        ClassicGroup(request.group_id, state_timestamp_ms=now_ms) if group is None else group,
        context.settings,
        now_ms,
    )
    refused: IfRefused | None = None
    if not _accepts(draft.group, request.member_id, context.settings.group_max_size):
        draft.remove_member(request.member_id)
        draft.replies.append((ticket, join_error(ErrorCode.GROUP_MAX_SIZE_REACHED)))
    elif not request.member_id:
        refused = _join_without_id(draft, request, context, ids, ticket)
    else:
        _join_with_id(draft, request, context, ticket)
    if is_created and not draft.records:
        draft.records.append(group_record(ClassicGroup(request.group_id, state_timestamp_ms=now_ms)))
    decision = draft.decision()
    if refused is not None:
        decision = replace(decision, volatile=(*decision.volatile, refused))
    return decision


def _answer(ticket: Ticket, response: JoinGroupResponse) -> GroupDecision:
    return GroupDecision(replies=((ticket, response),))


def _accepts(group: ClassicGroup, member_id: str, group_max_size: int) -> bool:
    """True if the member may (re)join a group of limited size."""
    if group.state is ClassicGroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        # Those who wait are counted, not the members: the last ones to rejoin are kept out of a
        # group that is larger than a lowered limit.
        if member is not None and member.join_ticket is not None:
            return True
        waiting = sum(1 for each in group.members.values() if each.join_ticket is not None)
        return waiting < group_max_size
    return member is not None or len(group.members) < group_max_size


def _join_without_id(
    draft: ClassicDraft, request: JoinGroupRequest, context: GroupContext, ids: Ids, ticket: Ticket
) -> IfRefused | None:
    group = draft.group
    if not group.supports(request.protocol_type, protocols_of(request)):
        draft.replies.append((ticket, join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)))
        return None
    instance_id = request.group_instance_id
    prefix = context.client_id if instance_id is None else instance_id
    member_id = f"{prefix}-{_hyphenated(ids.uuid())}"
    if instance_id is not None and instance_id in group.static_members:
        return _replace_static_member(draft, request, context, member_id, ticket)
    if instance_id is None and context.api_version >= MEMBER_ID_REQUIRED_FROM:
        group.pending_joins[member_id] = draft.now_ms + request.session_timeout_ms
        draft.replies.append((ticket, join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id)))
        return None
    _add_member(draft, request, context, member_id, ticket)
    return None


def _join_with_id(draft: ClassicDraft, request: JoinGroupRequest, context: GroupContext, ticket: Ticket) -> None:
    group = draft.group
    member_id = request.member_id
    if not group.supports(request.protocol_type, protocols_of(request)):
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        draft.replies.append((ticket, join_error(code, member_id)))
        return
    if member_id in group.pending_joins:
        if request.group_instance_id is not None:
            # Ids are given out to dynamic members only; Kafka fails with an illegal state here.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        _add_member(draft, request, context, member_id, ticket)
        return
    try:
        group.validate_member(member_id, request.group_instance_id)
    except KafkaError as error:
        draft.replies.append((ticket, join_error(error.code, member_id)))
        return
    _rejoin(draft, request, group.members[member_id], ticket)


def _rejoin(draft: ClassicDraft, request: JoinGroupRequest, member: ClassicMember, ticket: Ticket) -> None:
    """A known member joins again; whether that means a rebalance depends on the state."""
    group = draft.group
    member_id = member.member_id
    state = group.state
    is_same = member.protocols == protocols_of(request)
    if state is ClassicGroupState.EMPTY:
        draft.replies.append((ticket, join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id)))
    elif state is ClassicGroupState.PREPARING_REBALANCE:
        _update_member(draft, request, member, ticket)
        maybe_complete_join(draft)
    elif is_same and (state is ClassicGroupState.COMPLETING_REBALANCE or group.leader_id != member_id):
        # The member may have missed the answer to its first join, or a follower asks for what it
        # knows: the present generation. A leader that joins when Stable wants a new assignment.
        draft.replies.append((ticket, draft.joined(member_id)))
    else:
        if is_same:
            reason = f"leader {member_id} rejoined, as leaders do when topics or partitions have changed"
        else:
            reason = f"member {member_id} rejoined with changed protocols"
        _update_member(draft, request, member, ticket)
        prepare_rebalance(draft, reason + _client_reason(request))


def _update_member(draft: ClassicDraft, request: JoinGroupRequest, member: ClassicMember, ticket: Ticket) -> None:
    if member.join_ticket is not None:
        # The member retries on another connection: nobody reads the answer to the first request.
        response = join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        draft.replies.append((member.join_ticket, response))
    draft.put_member(
        replace(
            member,
            protocols=protocols_of(request),
            rebalance_timeout_ms=rebalance_timeout_ms(request),
            session_timeout_ms=request.session_timeout_ms,
            join_ticket=ticket,
        )
    )


def _add_member(
    draft: ClassicDraft,
    request: JoinGroupRequest,
    context: GroupContext,
    member_id: str,
    ticket: Ticket,
) -> None:
    group = draft.group
    if group.state is ClassicGroupState.PREPARING_REBALANCE and group.previous_state is ClassicGroupState.EMPTY:
        group.new_member_added = True
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        context.client_id,
        context.client_host,
        rebalance_timeout_ms(request),
        request.session_timeout_ms,
        request.protocol_type,
        protocols_of(request),
        join_ticket=ticket,
        is_new=True,
    )
    draft.add_member(member)
    # A new member does not know its id yet and cannot send heartbeats. A client that gave up its
    # waiting join retries it as another member: the abandoned one must not stay for ever.
    draft.restart_session(member, draft.settings.new_member_join_timeout_ms)
    who = member_id if member.group_instance_id is None else f"{member_id} (static)"
    rebalance(draft, f"member {who} joined{_client_reason(request)}")


def _replace_static_member(
    draft: ClassicDraft,
    request: JoinGroupRequest,
    context: GroupContext,
    member_id: str,
    ticket: Ticket,
) -> IfRefused | None:
    """A static member came back without its member id: it gets a new one and the old is fenced."""
    group = draft.group
    old_leader_id = group.leader_id or ""
    generation_id = group.generation_id
    protocol_type, protocol_name = group.protocol_type, group.protocol_name
    instance_id = request.group_instance_id
    assert instance_id is not None
    member = _fence_and_rename(draft, instance_id, member_id)
    draft.restart_session(member)
    _update_member(draft, request, member, ticket)

    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # The leader may assign to the old id, which would leave the new one without partitions.
        reason = f"static member {instance_id} came back as {member_id} before the assignment"
        prepare_rebalance(draft, reason + _client_reason(request))
        return None
    if group.state is not ClassicGroupState.STABLE:
        maybe_complete_join(draft)
        return None
    if group.select_protocol() != group.protocol_name:
        reason = f"static member {instance_id} came back as {member_id} and changes the protocol"
        rebalance(draft, reason + _client_reason(request))
        return None

    draft.event(f"static member {instance_id} came back as {member_id}; no rebalance is needed")
    draft.records.append(group_record(group))
    if context.api_version >= SKIP_ASSIGNMENT_FROM:
        answer = draft.joined(member_id, skip_assignment=group.leader_id == member_id)
    else:
        # A client that does not know skip_assignment must not think it leads, or it would assign.
        answer = draft.joined(member_id, leader_id=old_leader_id)
    draft.answer_join(group.members[member_id], answer)

    def refused(error: KafkaError) -> GroupDecision:
        response = JoinGroupResponse(
            error_code=error.code,
            generation_id=generation_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            leader=old_leader_id,
        )
        return _answer(ticket, response)

    return IfRefused(refused)


def _fence_and_rename(draft: ClassicDraft, instance_id: str, member_id: str) -> ClassicMember:
    """Give the static member a new id in its old place; waiting requests of the old id end."""
    group = draft.group
    old_id = group.static_members[instance_id]
    old = group.members[old_id]
    if old.join_ticket is not None:
        response = join_error(ErrorCode.FENCED_INSTANCE_ID, old_id)
        draft.replies.append((old.join_ticket, response))
    if old.sync_ticket is not None:
        draft.replies.append((old.sync_ticket, sync_error(ErrorCode.FENCED_INSTANCE_ID)))
    member = replace(old, member_id=member_id, join_ticket=None, sync_ticket=None, is_new=False)
    group.members = {
        (member_id if each == old_id else each): (member if each == old_id else value)
        for each, value in group.members.items()
    }
    group.static_members[instance_id] = member_id
    group.session_deadlines.pop(old_id, None)
    group.pending_syncs -= {old_id}
    if group.leader_id == old_id:
        group.leader_id = member_id
    return member


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """The request's protocols as values."""
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """v0 has none: the session timeout serves."""
    timeout_ms = request.rebalance_timeout_ms
    return timeout_ms if timeout_ms != -1 else request.session_timeout_ms


def _client_reason(request: JoinGroupRequest) -> str:
    return f"; client reason: {request.reason}" if request.reason else ""


def _hyphenated(uuid: bytes) -> str:
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
