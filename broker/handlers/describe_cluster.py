"""DescribeCluster (key 60): the cluster's id, brokers and controller (KIP-700).

Versions 0-2; 1 asks a broker or a controller (KIP-919), 2 may include fenced brokers.

Behaviour: endpoints are those of the listener the request came in on. Nobody is refused; without DESCRIBE on the
cluster the authorized operations are 0. A broker that is asked for the endpoints of controllers answers
MISMATCHED_ENDPOINT_TYPE, an unknown type is UNSUPPORTED_ENDPOINT_TYPE.

Source: AuthHelper.computeDescribeClusterResponse, KafkaApis.handleDescribeCluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import CLUSTER_RESOURCE_NAME, Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

BROKERS = 1
CONTROLLERS = 2


async def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """The brokers of the published image."""
    _check_endpoint_type(request.endpoint_type)
    image = context.node.metadata.image
    brokers = []
    for broker in sorted(image.brokers.values(), key=lambda broker: broker.broker_id):
        endpoint = broker.endpoint(context.listener_name)
        if endpoint is None or (broker.fenced and not request.include_fenced_brokers):
            continue
        brokers.append(
            DescribeClusterBroker(
                broker_id=broker.broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
        )
    response = DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=context.node.cluster_id,
        controller_id=min((broker.broker_id for broker in image.alive_brokers()), default=-1),
        brokers=brokers,
    )
    if request.include_cluster_authorized_operations:
        describes = context.authorize_cluster(Operation.DESCRIBE)
        response.cluster_authorized_operations = (
            context.authorized_operations(ResourceType.CLUSTER, CLUSTER_RESOURCE_NAME) if describes else 0
        )
    return response


def _check_endpoint_type(endpoint_type: int) -> None:
    if endpoint_type == CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of the wrong type: this is a broker listener, "
            "the endpoint type asked for is 2 (controllers).",
        )
    if endpoint_type != BROKERS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {endpoint_type}: 1 is brokers, 2 is controllers.",
        )
