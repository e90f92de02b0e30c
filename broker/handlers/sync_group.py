"""SyncGroup (key 14): the leader hands in the assignment, every member gets its own part.

Versions 0-5; flexible from 4. v3 static members (KIP-345); v5 protocol type and name, which then
must be given (KIP-559).

Behaviour: followers wait for the leader. `coordinator.group.classic_sync` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_group
from broker.security.authorizer import Operation
from coordinator.group.validation import check_group_id
from wire.errors import ErrorCode, KafkaError
from wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

PROTOCOL_REQUIRED_FROM = 5


async def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    """Check the mandatory fields before authorisation, as Kafka does; then sync."""
    is_named = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= PROTOCOL_REQUIRED_FROM and not is_named:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    group_id = request.group_id
    require_group(Operation.READ, group_id, context)
    check_group_id(group_id)
    response: SyncGroupResponse = await context.node.groups.write(group_id, request, group_context(context))
    return response
