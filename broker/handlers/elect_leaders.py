"""ElectLeaders (key 43): give partitions the leaders they should have (KIP-460).

Versions 0-2; 1 has the type of the election and a top-level error, 2 is flexible.

Behaviour: type 0 elects the preferred leader (the only type of version 0), type 1 elects from whatever is alive and
may lose records; every other type is INVALID_REQUEST. Named partitions are answered one by one; when all were asked
for (null), those that need no election are left out. The answer comes when the new leaders are published here.

Source: ControllerApis.handleElectLeaders, ReplicationControlManager.electLeaders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Authorise, and let the controller elect. Raises KafkaError where the request as a whole is refused."""
    if not context.authorize_cluster(Operation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ALTER on the cluster is needed.")
    if request.topic_partitions == []:
        return ElectLeadersResponse()  # whatever else it asks (QuorumController.electLeaders)
    response: ElectLeadersResponse = await context.node.controller.request(
        request, context, timeout_ms=request.timeout_ms
    )
    return response
