"""What a principal may do.

Handlers ask in Kafka's order through `RequestContext.authorize`; the authorizer answers.
Source: `org.apache.kafka.server.authorizer.Authorizer`, `AclOperation`, `ResourceType`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from broker.principal import Principal


class Operation(IntEnum):
    """`org.apache.kafka.common.acl.AclOperation`, with its codes on the wire."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """`org.apache.kafka.common.resource.ResourceType`, with its codes on the wire."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_RESOURCE_NAME = "kafka-cluster"
"""The only resource of type CLUSTER (`Resource.CLUSTER_NAME`)."""

SUPPORTED_OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.DESCRIBE,
        Operation.WRITE,
        Operation.TWO_PHASE_COMMIT,
    ),
}
"""Operations that exist on a resource type (`AclEntry.supportedOperations`), for the
`authorized_operations` bit fields of Metadata, DescribeCluster and DescribeGroups."""


class Authorizer(Protocol):
    """Answers whether an action is allowed; never raises for an unknown resource."""

    enabled: bool
    """False where `authorizer.class.name` is empty: ACL requests answer SECURITY_DISABLED."""

    def authorize(
        self,
        principal: Principal,
        client_host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        """True if the principal may do the operation on the named resource from this host."""


class AllowAllAuthorizer:
    """The answer of a broker whose `authorizer.class.name` is empty: everything is allowed."""

    enabled = False

    def authorize(
        self,
        principal: Principal,
        client_host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        """Always true."""
        return True


def authorized_operations_bits(operations: tuple[Operation, ...]) -> int:
    """The int32 bit field of authorized operations (`Utils.to32BitField`)."""
    return sum(1 << operation for operation in operations)
