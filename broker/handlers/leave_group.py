"""LeaveGroup (key 13): members leave a classic group, or are removed by an administrator.

Versions 0-5; flexible from 4. v3 several members, each with its own error, static ones by instance
id alone (KIP-345); v5 reasons (KIP-800).

Behaviour: an unknown group is an error of every member; below v3 the one member's error stands at
the top. `coordinator.group.classic_leave` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_group
from broker.security.authorizer import Operation
from coordinator.group.validation import check_group_id
from wire.errors import ErrorCode, KafkaError
from wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

SEVERAL_MEMBERS_FROM = 3


async def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Authorise, then let the members go."""
    group_id = request.group_id
    require_group(Operation.READ, group_id, context)
    check_group_id(group_id)
    has_one_member = context.api_version < SEVERAL_MEMBERS_FROM
    if has_one_member:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        response: LeaveGroupResponse = await context.node.groups.write(group_id, request, group_context(context))
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        response = LeaveGroupResponse(members=[_unknown(member) for member in request.members])
    if has_one_member:
        return LeaveGroupResponse(error_code=response.members[0].error_code)
    return response


def _unknown(member: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
    )
