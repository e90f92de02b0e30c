"""Heartbeat (key 12): a member of a classic group is alive, and learns whether to rejoin.

Versions 0-4; flexible from 4. v3 static members (KIP-345).

Behaviour: answers NONE while the coordinator loads, so that members keep calm. Otherwise
`coordinator.group.classic_sync` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_group
from broker.security.authorizer import Operation
from coordinator.group.validation import check_group_id
from wire.errors import ErrorCode, KafkaError
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """Authorise, then have the group hear of its member."""
    group_id = request.group_id
    require_group(Operation.READ, group_id, context)
    check_group_id(group_id)
    try:
        response: HeartbeatResponse = await context.node.groups.write(group_id, request, group_context(context))
    except KafkaError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        raise
    return response
