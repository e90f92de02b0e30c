"""JoinGroup (key 11): become a member of a classic group, or rejoin it.

Versions 0-9; flexible from 6. v1 rebalance timeout; v4 MEMBER_ID_REQUIRED for new dynamic members
(KIP-394); v5 static members (KIP-345); v7 protocol type in the answer and a null protocol name on
errors (KIP-559); v8 reason (KIP-800); v9 skip_assignment (KIP-814).

Behaviour: the answer waits until the join phase ends. `coordinator.group.classic_join` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_group
from broker.security.authorizer import Operation
from coordinator.group.validation import check_group_id, check_session_timeout
from wire.errors import KafkaError
from wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

NULL_PROTOCOL_NAME_FROM = 7


async def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    """Authorise, check what needs no coordinator, then join."""
    response = await _join(request, context)
    # Where there is a null it stands for the empty name too.
    response.protocol_name = response.protocol_name or (None if context.api_version >= NULL_PROTOCOL_NAME_FROM else "")
    return response


async def _join(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    group_id = request.group_id
    # What the coordinator refuses is answered without a member id, what is checked before with it.
    member_id = ""
    try:
        require_group(Operation.READ, group_id, context)
        member_id = request.member_id
        decided_by = group_context(context)
        check_group_id(group_id)
        check_session_timeout(request.session_timeout_ms, decided_by.settings)
        member_id = ""
        response: JoinGroupResponse = await context.node.groups.write(group_id, request, decided_by)
    except KafkaError as error:
        return JoinGroupResponse(error_code=error.code, member_id=member_id, protocol_name=None)
    return response
