"""DeleteAcls (key 31): refused, as there are no access rules to delete.

Versions 1-3; 2 is flexible, 3 knows the resource type USER.

Behaviour: there is no authorizer that could hold access rules, so every filter is answered with SECURITY_DISABLED, as
in Kafka without one. The code UNKNOWN closes the connection. Left out: authorizers and their rules.
Source: AclApis.handleDeleteAcls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.peer import CloseConnection
from broker.security.acl_codes import unknown_code
from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

NO_AUTHORIZER = "No Authorizer is configured: authorizer.class.name is empty."


async def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Refuse every filter."""
    for wanted in request.filters:
        unknown = unknown_code(
            wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation, wanted.permission_type
        )
        if unknown is not None:
            raise CloseConnection(f"DeleteAclsRequest cannot be read: {unknown}")
    if not context.authorize_cluster(Operation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ALTER on the cluster is needed.")
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.filters
        ]
    )
