"""ListGroups (key 16): the groups that this broker coordinates.

Versions 0-5; flexible from 3. v4 filter by state (KIP-518); v5 filter by type (KIP-848).

Behaviour: without DESCRIBE on the cluster only groups with DESCRIBE are shown, the others are left
out silently. While any partition of `__consumer_offsets` loads: COORDINATOR_LOAD_IN_PROGRESS.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """Ask every shard, leave out what may not be seen."""
    groups: list[ListedGroup] = []
    for shard in context.node.groups.shards():
        groups.extend(shard.list_groups(request.states_filter, request.types_filter))
    if not context.authorize_cluster(Operation.DESCRIBE):
        groups = [
            group for group in groups if context.authorize(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        ]
    return ListGroupsResponse(groups=groups)
