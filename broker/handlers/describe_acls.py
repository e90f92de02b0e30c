"""DescribeAcls (key 29): refused, as there are no access rules to describe.

Versions 1-3; 2 is flexible, 3 knows the resource type USER.

Behaviour: there is no authorizer (authorizer.class.name is empty), so there are no access rules: the answer is
SECURITY_DISABLED, as in Kafka without one. Tools take that as "no ACLs". The code UNKNOWN closes the
connection. Left out: authorizers and their rules. Source: AclApis.handleDescribeAcls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.peer import CloseConnection
from broker.security.acl_codes import unknown_code
from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

NO_AUTHORIZER = "No Authorizer is configured on the broker: authorizer.class.name is empty."


async def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Say that there are none because there can be none."""
    unknown = unknown_code(
        request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type
    )
    if unknown is not None:
        raise CloseConnection(f"DescribeAclsRequest cannot be read: {unknown}")
    if not context.authorize_cluster(Operation.DESCRIBE):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "DESCRIBE on the cluster is needed.")
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
