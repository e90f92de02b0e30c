"""DescribeGroups (key 15): state and members of classic groups.

Versions 0-6; flexible from 5. v3 authorized operations (KIP-430); v4 static members; v6
GROUP_ID_NOT_FOUND with a message for groups that do not exist (KIP-1043).

Behaviour: each group is answered for itself. An unknown group, or one of another kind, is Dead;
below v6 without an error.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import require_group
from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

AUTHORIZED_OPERATIONS_FROM = 3


async def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    """Describe every named group."""
    with_operations = request.include_authorized_operations and context.api_version >= AUTHORIZED_OPERATIONS_FROM
    groups = []
    for group_id in request.groups:
        described = _describe(group_id, context)
        if with_operations and described.error_code == ErrorCode.NONE:
            described.authorized_operations = context.authorized_operations(ResourceType.GROUP, group_id)
        groups.append(described)
    return DescribeGroupsResponse(groups=groups)


def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        require_group(Operation.DESCRIBE, group_id, context)
        described: DescribedGroup = context.node.groups.read(
            group_id, lambda shard: shard.describe_group(group_id, context.api_version)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    return described
