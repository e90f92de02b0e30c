"""What handlers of group requests have in common: the coordinator, and who asks it.

Not a handler: the bridge from a request's context to the values that deciding code takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from coordinator.group.context import GroupContext
from coordinator.metadata.features import GROUP_VERSION
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


def group_context(context: RequestContext) -> GroupContext:
    """Who asks, as the group machine wants to know it; the host is written as Java prints it."""
    node = context.node

    def may_describe(topic: str) -> bool:
        return context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic)

    return GroupContext(
        settings=node.groups.settings,
        api_version=context.api_version,
        client_id=context.client_id,
        client_host=f"/{context.client_host}",
        image=node.metadata.image,
        may_describe=may_describe,
    )


def require_consumer_groups(context: RequestContext) -> None:
    """Raises UNSUPPORTED_VERSION unless the cluster has finalized consumer groups and this broker speaks
    their protocol."""
    node = context.node
    if not node.groups.settings.consumer.is_enabled or node.metadata.image.features.level(GROUP_VERSION) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def require_group(operation: Operation, group_id: str, context: RequestContext) -> None:
    """Raises GROUP_AUTHORIZATION_FAILED unless the principal may do the operation on the group."""
    if not context.authorize(operation, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def require_topic(operation: Operation, topic: str, context: RequestContext) -> None:
    """Raises TOPIC_AUTHORIZATION_FAILED unless the principal may do the operation on the topic."""
    if not context.authorize(operation, ResourceType.TOPIC, topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
