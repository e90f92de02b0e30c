"""DeleteGroups (key 42): delete groups without members, with their offsets.

Versions 0-3; flexible from 2. v3 has a message per group (KIP-1043).

Behaviour: each group is answered for itself: GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND,
NON_EMPTY_GROUP. A group that is named twice is answered once.
`coordinator.group.offset_deletion` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_group
from broker.security.authorizer import Operation
from wire.errors import KafkaError
from wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    """Authorise each group, then delete those of each partition together."""
    results: dict[str, DeletableGroupResult] = {}
    by_partition: dict[int, list[str]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        results[group_id] = DeletableGroupResult(group_id=group_id)
        try:
            require_group(Operation.DELETE, group_id, context)
            by_partition.setdefault(context.node.groups.partition_for(group_id), []).append(group_id)
        except KafkaError as error:
            results[group_id].error_code = error.code
    for partition, group_ids in by_partition.items():
        part = DeleteGroupsRequest(groups_names=group_ids)
        try:
            done: DeleteGroupsResponse = await context.node.groups.write_to_partition(
                partition, part, group_context(context)
            )
        except KafkaError as error:
            for group_id in group_ids:
                results[group_id].error_code = error.code
        else:
            results.update({result.group_id: result for result in done.results})
    return DeleteGroupsResponse(results=list(results.values()))
