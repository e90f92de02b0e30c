"""ConsumerGroupHeartbeat (key 68): join a consumer group, stay in it, leave it (KIP-848).

Versions 0-1; flexible from 0. v1 subscription by a regular expression, and member ids made up by the
client (KIP-1082).

Behaviour: UNSUPPORTED_VERSION unless group.version is finalized and `group.coordinator.rebalance.protocols`
has consumer. A topic by name that may not be described refuses the whole request; topics that a regular
expression matches are left out silently. `coordinator.group.consumer_heartbeat` and `consumer_leave`
decide.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_consumer_groups, require_group, require_topic
from broker.security.authorizer import Operation
from coordinator.group.consumer_validation import check_request
from wire.errors import KafkaError
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> ConsumerGroupHeartbeatResponse:
    """Authorise, check what needs no coordinator, then have the group decide."""
    group_id = request.group_id
    try:
        require_consumer_groups(context)
        require_group(Operation.READ, group_id, context)
        for topic in request.subscribed_topic_names or ():
            require_topic(Operation.DESCRIBE, topic, context)
        decided_by = group_context(context)
        check_request(request, context.api_version, decided_by.settings.consumer)
        response: ConsumerGroupHeartbeatResponse = await context.node.groups.write(group_id, request, decided_by)
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    return response
