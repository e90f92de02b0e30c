"""CreateAcls (key 30): refused, as there is no authorizer to keep access rules.

Versions 1-3; 2 is flexible, 3 knows the resource type USER.

Behaviour: there is no authorizer that could keep access rules, so every one is answered with SECURITY_DISABLED, as in
Kafka without one. The code UNKNOWN closes the connection. Left out: authorizers and their rules.
Source: AclApis.handleCreateAcls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.peer import CloseConnection
from broker.security.acl_codes import unknown_code
from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

NO_AUTHORIZER = "No Authorizer is configured: authorizer.class.name is empty."


async def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Refuse every rule."""
    for creation in request.creations:
        unknown = unknown_code(
            creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type
        )
        if unknown is not None:
            raise CloseConnection(f"CreateAclsRequest cannot be read: {unknown}")
    if not context.authorize_cluster(Operation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ALTER on the cluster is needed.")
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.creations
        ]
    )
