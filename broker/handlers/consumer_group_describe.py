"""ConsumerGroupDescribe (key 69): epochs, members and assignments of consumer groups (KIP-848).

Versions 0-1; flexible from 0. v1 says which protocol each member speaks.

Behaviour: UNSUPPORTED_VERSION unless consumer groups are enabled (see ConsumerGroupHeartbeat). Each group
is answered for itself; groups of other kinds are GROUP_ID_NOT_FOUND, with a message. A group that has a
topic in an assignment which may not be described is answered TOPIC_AUTHORIZATION_FAILED.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import require_consumer_groups, require_group
from broker.security.authorizer import Operation, ResourceType
from coordinator.group.consumer_describe import describe_consumer_group
from wire.errors import ErrorCode, KafkaError
from wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: ConsumerGroupDescribeRequest, context: RequestContext) -> ConsumerGroupDescribeResponse:
    """Describe every named group; those that may not be described first, as Kafka does."""
    require_consumer_groups(context)
    refused: list[DescribedGroup] = []
    described: list[DescribedGroup] = []
    for group_id in request.group_ids:
        try:
            require_group(Operation.DESCRIBE, group_id, context)
        except KafkaError as error:
            refused.append(DescribedGroup(group_id=group_id, error_code=error.code))
            continue
        group = _describe(group_id, context)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = context.authorized_operations(ResourceType.GROUP, group_id)
        described.append(group if _may_be_shown(group, context) else _hidden(group_id))
    return ConsumerGroupDescribeResponse(groups=[*refused, *described])


def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    node = context.node
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    assignors, topics = node.groups.settings.consumer.assignors, node.metadata.image.topics
    try:
        described: DescribedGroup = node.groups.read(
            group_id, lambda shard: describe_consumer_group(shard.group(group_id), group_id, assignors, topics)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    return described


def _may_be_shown(group: DescribedGroup, context: RequestContext) -> bool:
    topics = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    return all(context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic) for topic in topics)


def _hidden(group_id: str) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has described topic(s) that the client is not authorized to describe.",
    )
