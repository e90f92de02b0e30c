"""SyncGroup and Heartbeat of members of a classic group.

Source: Kafka's GroupMetadataManager (classicGroupSyncToClassicGroup, validateSyncGroup,
classicGroupHeartbeatToClassicGroup). KIP-559 for the protocol type and name from SyncGroup v5.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.classic_draft import ClassicDraft, sync_error
from coordinator.group.classic_group import ClassicGroup, ClassicGroupState, ClassicMember
from coordinator.group.classic_rebalance import drop_assignments, prepare_rebalance
from coordinator.group.classic_records import group_record
from coordinator.group.context import GroupContext
from coordinator.group.settlement import GroupDecision, IfRefused, counted_members
from coordinator.machine import Ticket
from wire.errors import ErrorCode, KafkaError
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(
    group: ClassicGroup | None,
    request: SyncGroupRequest,
    context: GroupContext,
    now_ms: int,
    ticket: Ticket,
) -> GroupDecision:
    """Decide a SyncGroup: wait for the leader's assignment, store it, or repeat it.

    Raises KafkaError if the request is refused.
    """
    if group is None or group.state is ClassicGroupState.EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    _validate(group, request)
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    draft = ClassicDraft(group, context.settings, now_ms)
    draft.group.pending_syncs -= {request.member_id}
    member = draft.group.members[request.member_id]
    if group.state is ClassicGroupState.STABLE:
        draft.replies.append((ticket, _assigned(draft.group, member)))
        return draft.decision()

    if member.sync_ticket is not None:
        # The member retries on another connection: nobody reads the answer to the first request.
        draft.replies.append((member.sync_ticket, sync_error(ErrorCode.REBALANCE_IN_PROGRESS)))
    draft.group.members[member.member_id] = replace(member, sync_ticket=ticket)
    if draft.group.leader_id != member.member_id:
        return draft.decision()
    return _assign(draft, request)


def _validate(group: ClassicGroup, request: SyncGroupRequest) -> None:
    group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differs(given: str | None, own: str | None) -> bool:
    """A value that was not given is not compared (below v5)."""
    return given is not None and own is not None and given != own


def _assigned(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def _assign(draft: ClassicDraft, request: SyncGroupRequest) -> GroupDecision:
    """The leader's assignment is stored, all waiting members are answered, the group is Stable."""
    before = draft.group.copy()
    group = draft.group
    assignments = {each.member_id: each.assignment for each in request.assignments}
    for member in list(group.members.values()):
        # Members the leader left out get empty bytes, not an error.
        assigned = replace(member, assignment=assignments.get(member.member_id, b""))
        group.members[member.member_id] = assigned
        draft.answer_sync(assigned, _assigned(group, assigned))
    draft.records.append(group_record(group))
    draft.transition_to(ClassicGroupState.STABLE)
    count = counted_members(group.members)
    draft.progress(f"generation {group.generation_id} is stable: leader {group.leader_id} assigned {count}")

    def refused(error: KafkaError) -> GroupDecision:
        """The assignment could not be stored: everybody has to join again."""
        retry = ClassicDraft(before, draft.settings, draft.now_ms)
        drop_assignments(retry, error.code)
        prepare_rebalance(retry, f"the assignment could not be stored: {error.code.name}")
        return retry.decision()

    decision = draft.decision()
    return replace(decision, volatile=(*decision.volatile, IfRefused(refused)))


def heartbeat(group: ClassicGroup | None, request: HeartbeatRequest, now_ms: int, ticket: Ticket) -> GroupDecision:
    """Decide a Heartbeat: the session of a valid member runs anew, in a rebalance too.

    Raises KafkaError if the request is refused.
    """
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    preparing = group.state is ClassicGroupState.PREPARING_REBALANCE
    code = ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE
    return GroupDecision(
        replies=((ticket, HeartbeatResponse(error_code=code)),),
        volatile=(group.session_refreshed(request.member_id, now_ms),),
    )
