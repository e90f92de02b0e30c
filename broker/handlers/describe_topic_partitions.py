"""DescribeTopicPartitions (key 75): topics page by page, with eligible leader replicas (KIP-966).

Version 0.

Behaviour: topics by name, no topics named means all; at most min(`response_partition_limit`,
max.request.partition.size.limit) partitions an answer, `next_cursor` says where the next page begins and is sent
back as `cursor`. A topic that may not be described is TOPIC_AUTHORIZATION_FAILED if it was named, and left out if
not. A cursor with a partition below 0, or with a topic that is not among the named ones, is INVALID_REQUEST.

Source: DescribeTopicPartitionsRequestHandler, KRaftMetadataCache.describeTopicResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from coordinator.controller.topic_names import is_internal, name_problem
from coordinator.metadata.image import MetadataImage, PartitionImage, TopicImage
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

NO_LEADER = -1


async def handle(request: DescribeTopicPartitionsRequest, context: RequestContext) -> DescribeTopicPartitionsResponse:
    """One page."""
    image = context.node.metadata.image
    named = bool(request.topics)
    names = {topic.name for topic in request.topics} if named else set(image.topics.names())
    first_name, first_partition = "", 0
    if request.cursor is not None:
        first_name, first_partition = request.cursor.topic_name, request.cursor.partition_index
        _check_cursor(first_name, first_partition, names, named)
    allowed, refused = [], []
    for name in sorted(names):
        if name < first_name:
            continue
        if context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name):
            allowed.append(name)
        elif named:
            refused.append(_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, internal=False))
    limit = min(request.response_partition_limit, context.node.config["max.request.partition.size.limit"])
    response = DescribeTopicPartitionsResponse()
    _fill(response, allowed, first_name, first_partition, max(limit, 1), image, context)
    for result in response.topics:
        result.topic_authorized_operations = context.authorized_operations(ResourceType.TOPIC, result.name or "")
    response.topics.extend(refused)
    return response


def _check_cursor(name: str, partition: int, names: set[str], named: bool) -> None:
    if partition < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"DescribeTopicPartitionsRequest cursor partition must be valid: {partition}"
        )
    if named and name not in names:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {name}",
        )


def _fill(
    response: DescribeTopicPartitionsResponse,
    names: list[str],
    first_name: str,
    first_partition: int,
    limit: int,
    image: MetadataImage,
    context: RequestContext,
) -> None:
    """Topics in order until the page is full."""
    for name in names:
        if limit == 0:
            # Whether the topic exists is not looked at.
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=0)
            return
        topic = image.topics.by_name(name)
        if topic is None:
            problem = name_problem(name)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if problem is None else ErrorCode.INVALID_TOPIC_EXCEPTION
            response.topics.append(_refused(name, code))
            continue
        start = first_partition if name == first_name else 0
        end = min(len(topic.partitions), start + limit)
        response.topics.append(_topic(topic, start, end, image, context.listener_name))
        limit -= max(end - start, 0)
        if end < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=end)
            return


def _refused(name: str, code: ErrorCode, *, internal: bool | None = None) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=is_internal(name) if internal is None else internal,
    )


def _topic(
    topic: TopicImage, start: int, end: int, image: MetadataImage, listener_name: str
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(index, topic.partitions[index], image, listener_name) for index in range(start, end)],
    )


def _partition(
    index: int, partition: PartitionImage, image: MetadataImage, listener_name: str
) -> DescribeTopicPartitionsResponsePartition:
    leader = image.brokers.get(partition.leader)
    code = ErrorCode.NONE
    if leader is None:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    elif leader.fenced or leader.endpoint(listener_name) is None:
        code = ErrorCode.LISTENER_NOT_FOUND
    return DescribeTopicPartitionsResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=partition.leader if code is ErrorCode.NONE else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=[
            replica for replica in partition.replicas if not _is_online(replica, partition, image, listener_name)
        ],
    )


def _is_online(replica: int, partition: PartitionImage, image: MetadataImage, listener_name: str) -> bool:
    broker = image.brokers.get(replica)
    return (
        broker is not None
        and not broker.fenced
        and broker.endpoint(listener_name) is not None
        and broker.is_online(partition.directory_of(replica))
    )
