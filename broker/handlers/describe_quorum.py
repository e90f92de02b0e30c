"""DescribeQuorum (key 55): the voters of the metadata log and how far each is (KIP-595, KIP-836, KIP-853).

Versions 0-2; 1 has the times of fetches, 2 directory ids and the voters' addresses.

Behaviour: `__cluster_metadata` partition 0 is answered by the leader, everything else is
UNKNOWN_TOPIC_OR_PARTITION. A leader's own fetch is always now. Directory ids are zero with kraft.version 0.

Left out: observers, since no other node follows this quorum. Source: KafkaRaftClient.handleDescribeQuorumRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation
from coordinator.controller.topic_names import CLUSTER_METADATA_TOPIC
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext
    from broker.runtime.quorum_runtime import QuorumRuntime

_NODES_FROM = 2


async def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    """Describe the one partition of the one topic."""
    if not context.authorize_cluster(Operation.DESCRIBE):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "DESCRIBE on the cluster is needed.")
    # What asks for more than the one partition is refused as a whole.
    named = [(topic.topic_name, asked.partition_index) for topic in request.topics for asked in topic.partitions]
    described = named == [(CLUSTER_METADATA_TOPIC, 0)] and len(request.topics) == 1
    topics = []
    for topic in request.topics:
        partitions = [
            _describe(context.node.quorum, context.node.clock.now_ms())
            if described
            else _unknown(topic.topic_name, asked.partition_index)
            for asked in topic.partitions
        ]
        topics.append(DescribeQuorumResponseTopicData(topic_name=topic.topic_name, partitions=partitions))
    response = DescribeQuorumResponse(error_message="", topics=topics)
    if described and context.api_version >= _NODES_FROM:
        response.nodes = _nodes(context)
    return response


def _unknown(topic: str, partition: int) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=partition,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=f"This server does not host {topic}-{partition} as a partition of a quorum.",
    )


def _describe(quorum: QuorumRuntime, now_ms: int) -> DescribeQuorumResponsePartitionData:
    raft = quorum.raft
    voters = [
        ReplicaState(
            replica_id=voter.voter_id,
            replica_directory_id=voter.directory_id,
            log_end_offset=quorum.log_end_offset,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )
        for voter in raft.quorum.voters
    ]
    return DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message="",
        leader_id=raft.state.leader_id,
        leader_epoch=raft.epoch,
        high_watermark=-1 if raft.high_watermark is None else raft.high_watermark,
        current_voters=voters,
    )


def _nodes(context: RequestContext) -> list[Node]:
    controllers = context.node.metadata.image.controllers
    nodes = []
    for voter in context.node.quorum.raft.quorum.voters:
        controller = controllers.get(voter.voter_id)
        endpoints = () if controller is None else controller.endpoints
        listeners = [
            Listener(name=endpoint.listener_name, host=endpoint.host, port=endpoint.port) for endpoint in endpoints
        ]
        nodes.append(Node(node_id=voter.voter_id, listeners=listeners))
    return nodes
