"""UpdateFeatures (key 57): finalize features at other levels (KIP-584).

Versions 0-2; 1 has upgrade types and validate_only (KIP-778), 2 answers at the top only (KIP-1022).

Behaviour: all features of the request or none; what cannot be is INVALID_UPDATE_VERSION for the whole, with a text
that names the feature. Only served levels can be finalized. metadata.version goes down only over levels that did not
change records.

Left out: changing kraft.version, which is that of the directory's format. Source: FeatureControlManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    """Authorise, and let the controller decide."""
    if not context.authorize_cluster(Operation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ALTER on the cluster is needed.")
    response: UpdateFeaturesResponse = await context.node.controller.request(
        request, context, timeout_ms=request.timeout_ms
    )
    return response
