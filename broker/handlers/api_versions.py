"""ApiVersions (18), versions 0-5: what this node serves, and which features are finalized.

A version above (or below) those is answered all the same, in the layout of version 0, with
UNSUPPORTED_VERSION and the one entry that tells the client which version to come back with
(KIP-511); its body is not read. v3 adds the client's software name, which is checked and kept
with the connection, and the features (KIP-584). v4 lists supported features with minimum 0, which
older clients cannot read (KAFKA-17011). v5 carries the cluster and node the client believes it
speaks to (KIP-1242): a stranger is told to bootstrap again.
The response header is always version 0 (`wire.frames`).
Left out: the answer while throttled by the request quota, and the intersection with a controller
of another version, which needs a controller in another process.
Source: `KafkaApis.handleApiVersionsRequest`, `ApiVersionsRequest.isValid`, `ApiVersionsResponse`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coordinator.metadata.features import SERVED_FEATURES
from wire.errors import ErrorCode
from wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

API_VERSIONS_KEY = ApiVersionsRequest.API_KEY
SOFTWARE_NAME_PATTERN = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


async def handle(request: ApiVersionsRequest | None, context: RequestContext) -> ApiVersionsResponse:
    """Answer in Kafka's order of checks; `request` is None for a version that is not served."""
    if request is None:
        return _unsupported_version(context)
    version = context.api_version
    if version >= 3:
        name, software_version = request.client_software_name, request.client_software_version
        if not SOFTWARE_NAME_PATTERN.fullmatch(name) or not SOFTWARE_NAME_PATTERN.fullmatch(software_version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.peer.client_software_name = name
        context.peer.client_software_version = software_version
    if version >= 5:
        if (request.cluster_id is None) != (request.node_id == -1):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        if request.cluster_id is not None and (request.cluster_id, request.node_id) != (
            context.node.cluster_id,
            context.node.broker_id,
        ):
            return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=min_version, max_version=max_version)
            for key, min_version, max_version in context.node.dispatcher.versions()
        ]
    )
    if version >= 3:
        _add_features(response, context, version)
    return response


def _unsupported_version(context: RequestContext) -> ApiVersionsResponse:
    served = context.node.dispatcher.version_range(API_VERSIONS_KEY)
    assert served is not None, "dispatch came here by the row of ApiVersions"
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=API_VERSIONS_KEY, min_version=served.min_version, max_version=served.max_version)],
    )


def _add_features(response: ApiVersionsResponse, context: RequestContext, version: int) -> None:
    image, unknown = context.node.metadata.image, context.node.dispatcher.unknown_features
    response.supported_features = [
        SupportedFeatureKey(name=feature.name, min_version=feature.min_level, max_version=feature.max_level)
        for feature in SERVED_FEATURES
        if feature.name not in unknown and feature.max_level > 0 and (version >= 4 or feature.min_level > 0)
    ]
    response.finalized_features_epoch = image.offset
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(image.features.levels.items())
        if level > 0 and name not in unknown
    ]
