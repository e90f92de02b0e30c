"""UnregisterBroker (key 64): forget a broker that will not come back.

Version 0.

Behaviour: its registration goes, and with it its places in ISRs; BROKER_ID_NOT_REGISTERED if there is none. A broker
that still runs registers again with its next start. Source: ControllerApis.handleUnregisterBroker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse:
    """Authorise, and let the controller decide."""
    if not context.authorize_cluster(Operation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ALTER on the cluster is needed.")
    response: UnregisterBrokerResponse = await context.node.controller.request(request, context)
    return response
