"""What a handler is given beside the request: the request's context and the node.

A handler is `async def handle(request, context: RequestContext) -> response | None`. It reaches
the parts of the node through `context.node`, and asks `context.authorize(...)` in Kafka's order.
Source: `org.apache.kafka.common.requests.RequestContext`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.security.authorizer import (
    CLUSTER_RESOURCE_NAME,
    SUPPORTED_OPERATIONS,
    Operation,
    ResourceType,
    authorized_operations_bits,
)

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.handlers.dispatch import Dispatcher
    from broker.network.peer import Peer
    from broker.principal import Principal
    from broker.security.authorizer import Authorizer
    from wire.frames import RequestHeader


class Node:
    """The running parts of one node, put together by `broker.server` in the order of start.

    A part is an attribute; handlers use the attributes they need and nothing else of the server.
    """

    # The parts below `handlers` are declared with the classes their packages publish; those that
    # are imported late (to start fast) are named in the comment.
    def __init__(self, *, clock: Clock, authorizer: Authorizer, broker_id: int, cluster_id: str) -> None:
        self.clock = clock
        self.authorizer = authorizer
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.dispatcher: Dispatcher
        # broker.config: effective broker settings, static and dynamic.
        self.config: Any = None
        # broker.storage.log_manager.LogManager
        self.log_manager: Any = None
        # broker.runtime.metadata_publisher.MetadataCache: `.image` is the newest published image.
        self.metadata: Any = None
        # ControllerClient: `await controller.request(message, context)`.
        self.controller: Any = None
        # broker.replication.replica_manager.ReplicaManager
        self.replica_manager: Any = None
        # broker.replication.producer_ids: `await producer_ids.next_id()`.
        self.producer_ids: Any = None
        # broker.replication.fetch_session: cache of incremental fetch sessions.
        self.fetch_sessions: Any = None
        # broker.runtime.auto_topics.AutoTopics: topics created because somebody asked for them.
        self.auto_topics: Any = None
        # broker.runtime.group_coordinator.GroupCoordinator: groups and committed offsets.
        self.groups: Any = None
        # broker.runtime.transaction_coordinator.TransactionCoordinator: transactional ids.
        self.transactions: Any = None
        # broker.runtime.marker_writer.LocalMarkerWriter: ends transactions on partitions led here.
        self.marker_writer: Any = None
        # broker.runtime.quorum_runtime.QuorumRuntime: for DescribeQuorum.
        self.quorum: Any = None
        # broker.network.listener.ListenerSet: advertised addresses by listener name.
        self.listeners: Any = None


class RequestContext:
    """One request as its handler sees it: header, client, node. Made by dispatch, once a request."""

    __slots__ = ("api_version", "header", "node", "peer")

    def __init__(self, header: RequestHeader, peer: Peer, node: Node) -> None:
        self.header = header
        self.api_version = header.api_version
        self.peer = peer
        self.node = node

    @property
    def client_id(self) -> str:
        """The header's client id; a null one reads as the empty string."""
        return self.header.client_id

    @property
    def principal(self) -> Principal:
        """Who the connection is authenticated as; `User:ANONYMOUS` without authentication."""
        return self.peer.principal

    @property
    def listener_name(self) -> str:
        """The listener the request came in on; answers name its advertised addresses."""
        return self.peer.listener_name

    @property
    def client_host(self) -> str:
        """The client's address, numeric and without a port."""
        return self.peer.client_host

    @property
    def client_software_name(self) -> str:
        """As the connection's ApiVersions request said; empty if it said nothing."""
        return self.peer.client_software_name

    @property
    def client_software_version(self) -> str:
        """As the connection's ApiVersions request said; empty if it said nothing."""
        return self.peer.client_software_version

    def authorize(self, operation: Operation, resource_type: ResourceType, resource_name: str) -> bool:
        """True if the request's principal may do the operation on the named resource."""
        peer = self.peer
        return self.node.authorizer.authorize(peer.principal, peer.client_host, operation, resource_type, resource_name)

    def authorize_cluster(self, operation: Operation) -> bool:
        """`authorize` on the one cluster resource."""
        return self.authorize(operation, ResourceType.CLUSTER, CLUSTER_RESOURCE_NAME)

    def authorized_operations(self, resource_type: ResourceType, resource_name: str) -> int:
        """The bit field of operations allowed on a resource (`AuthHelper.authorizedOperations`)."""
        return authorized_operations_bits(
            tuple(
                operation
                for operation in SUPPORTED_OPERATIONS[resource_type]
                if self.authorize(operation, resource_type, resource_name)
            )
        )
