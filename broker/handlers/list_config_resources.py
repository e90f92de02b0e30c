"""ListConfigResources (key 74): which resources have settings to describe (KIP-1000, KIP-1142).

Versions 0-1; 0 lists client metrics subscriptions only, 1 any types, empty for all.

Behaviour: topics and brokers are listed as they exist, groups and client metrics subscriptions by having
settings. An unsupported type among those asked for answers UNSUPPORTED_VERSION and nothing else.

Source: KafkaApis.handleListConfigResources.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.security.authorizer import Operation
from coordinator.settings import resources
from wire.errors import ErrorCode
from wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext
    from coordinator.metadata.image import MetadataImage

SUPPORTED = (resources.GROUP, resources.CLIENT_METRICS, resources.BROKER_LOGGER, resources.BROKER, resources.TOPIC)
"""In the order in which they are listed."""


async def handle(request: ListConfigResourcesRequest, context: RequestContext) -> ListConfigResourcesResponse:
    """The names by type."""
    if not context.authorize_cluster(Operation.DESCRIBE_CONFIGS):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, config_resources=[])
    if context.api_version == 0:
        wanted = {resources.CLIENT_METRICS}
    else:
        wanted = set(request.resource_types) or set(SUPPORTED)
    if not wanted <= set(SUPPORTED):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    image = context.node.metadata.image
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in SUPPORTED
            if kind in wanted
            for name in _names(kind, image)
        ]
    )


def _names(kind: int, image: MetadataImage) -> Iterable[str]:
    if kind == resources.TOPIC:
        return sorted(image.topics.names())
    if kind in (resources.BROKER, resources.BROKER_LOGGER):
        return [str(broker.broker_id) for broker in image.alive_brokers()]
    return sorted(name for (type_, name), configs in image.configs.resources.items() if type_ == kind and configs)
