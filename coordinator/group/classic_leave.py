"""LeaveGroup to a classic group: several members at once from v3 (KIP-345), reasons from v5.

Below v3 the handler turns the one member id into a list of one. Source: Kafka's
GroupMetadataManager.classicGroupLeaveToClassicGroup.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.classic_draft import ClassicDraft, join_error, sync_error
from coordinator.group.classic_group import ClassicGroup, ClassicGroupState
from coordinator.group.classic_rebalance import maybe_complete_join, prepare_rebalance
from coordinator.group.context import GroupContext
from coordinator.group.settlement import GroupDecision
from coordinator.machine import Ticket
from wire.errors import ErrorCode, KafkaError
from wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)


def leave(
    group: ClassicGroup | None,
    request: LeaveGroupRequest,
    context: GroupContext,
    now_ms: int,
    ticket: Ticket,
) -> GroupDecision:
    """Decide a LeaveGroup: every named member is answered for itself.

    Raises KafkaError UNKNOWN_MEMBER_ID if there is no such group; the handler spreads it over the
    members.
    """
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    draft = ClassicDraft(group, context.settings, now_ms)
    responses = []
    gone = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            gone.append(_remove(draft, identity))
        except KafkaError as error:
            code = error.code
        responses.append(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=code,
            )
        )
    if gone:
        _go_on_without(draft, ", ".join(gone))
    replies = (*draft.replies, (ticket, LeaveGroupResponse(members=responses)))
    return replace(draft.decision(), replies=replies)


def _remove(draft: ClassicDraft, identity: MemberIdentity) -> str:
    """Remove one member; returns the words for it. Raises KafkaError if it may not leave."""
    group = draft.group
    member_id = identity.member_id
    reason = f" ({identity.reason})" if identity.reason else ""
    if member_id in group.pending_joins:
        draft.remove_member(member_id)
        return f"{member_id} left before it joined{reason}"
    if not member_id:
        # An administrator names a static member by its instance id alone.
        instance_id = identity.group_instance_id
        if instance_id is None or instance_id not in group.static_members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member_id = group.static_members[instance_id]
    else:
        group.validate_member(member_id, identity.group_instance_id)
    member = draft.answer_join(group.members[member_id], join_error(ErrorCode.UNKNOWN_MEMBER_ID))
    # Kafka forgets a waiting SyncGroup here, and its client runs into a timeout.
    draft.answer_sync(member, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
    draft.remove_member(member_id)
    return f"member {member_id} left{reason}"


def _go_on_without(draft: ClassicDraft, reason: str) -> None:
    state = draft.group.state
    if state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
        prepare_rebalance(draft, reason)
    else:
        draft.event(reason)
        maybe_complete_join(draft)
