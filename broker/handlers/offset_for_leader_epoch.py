"""OffsetForLeaderEpoch (key 23): where a leader epoch ends in the leader's log.

Versions 2-4.

Behaviour: consumers find with it whether the log was truncated under them (KIP-320), followers where to truncate. The
answer is the largest known epoch not above the one asked for, with the offset where the next epoch starts; for the
newest epoch that is the log end. An epoch above all known, or -1, is (-1, -1) without an error. Only the leader
answers.

v2  current_leader_epoch, fencing (KIP-320)
v3  replica_id
v4  flexible

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: OffsetForLeaderEpochRequest, context: RequestContext) -> OffsetForLeaderEpochResponse:
    """Answer every partition, each with its own error; topics that may not be described come last."""
    may_all = context.authorize_cluster(Operation.CLUSTER_ACTION)
    allowed: list[OffsetForLeaderTopicResult] = []
    refused: list[OffsetForLeaderTopicResult] = []
    for topic in request.topics:
        if may_all or context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic):
            partitions = [
                _answer(TopicPartition(topic.topic, asked.partition), asked, context) for asked in topic.partitions
            ]
            allowed.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
        else:
            partitions = [_refusal(asked.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for asked in topic.partitions]
            refused.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
    return OffsetForLeaderEpochResponse(topics=allowed + refused)


def _answer(
    topic_partition: TopicPartition, asked: OffsetForLeaderPartition, context: RequestContext
) -> EpochEndOffset:
    try:
        partition = context.node.replica_manager.partition(topic_partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
        partition.require_leader()
    except KafkaError as error:
        return _refusal(asked.partition, error.code)
    end = partition.end_of_epoch(asked.leader_epoch)
    return EpochEndOffset(
        partition=asked.partition, error_code=0, leader_epoch=end.leader_epoch, end_offset=end.end_offset
    )


def _refusal(partition: int, error: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(partition=partition, error_code=int(error), leader_epoch=-1, end_offset=-1)
