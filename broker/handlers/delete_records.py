"""DeleteRecords (key 21): move the start of partitions up to an offset.

Versions 0-2; 2 is flexible.

Behaviour: only the log start offset moves, and never back; files go at the next retention pass (KIP-107). Offset -1 is
the high watermark; beyond it is OFFSET_OUT_OF_RANGE. Internal topics are INVALID_TOPIC_EXCEPTION, topics that are only
compacted POLICY_VIOLATION. The answer's low watermark is the smallest log start of all alive replicas; the request
waits until that has reached the offset, else REQUEST_TIMED_OUT with -1.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.replication.waits import OffsetWait
from broker.security.authorizer import Operation, ResourceType
from coordinator.controller.topic_names import is_internal
from wire.errors import ErrorCode, KafkaError
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

NO_LOW_WATERMARK = -1

_Results = dict[TopicPartition, DeleteRecordsPartitionResult]


async def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    """Delete, wait for the followers that are alive, answer every partition with its own error."""
    results: _Results = {}
    wait: OffsetWait[TopicPartition] = OffsetWait(context.node.clock)
    for topic in _merged(request.topics):
        _delete(topic, context, results, wait)
    waiting = wait.keys()
    if waiting:
        await wait.wait(request.timeout_ms)
        for topic_partition in waiting:
            _conclude(topic_partition, results[topic_partition], wait, context)
    topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for topic_partition, result in results.items():
        topics.setdefault(topic_partition.topic, []).append(result)
    return DeleteRecordsResponse(
        topics=[DeleteRecordsTopicResult(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


def _merged(topics: list[DeleteRecordsTopic]) -> list[DeleteRecordsTopic]:
    """Each topic once and each partition once: of one that is named twice the last offset counts."""
    merged: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in topics:
        merged.setdefault(topic.name, {}).update((asked.partition_index, asked) for asked in topic.partitions)
    return [DeleteRecordsTopic(name=name, partitions=list(partitions.values())) for name, partitions in merged.items()]


def _delete(
    topic: DeleteRecordsTopic, context: RequestContext, results: _Results, wait: OffsetWait[TopicPartition]
) -> None:
    replicas = context.node.replica_manager
    allowed = context.authorize(Operation.DELETE, ResourceType.TOPIC, topic.name)
    for asked in topic.partitions:
        topic_partition = TopicPartition(topic.name, asked.partition_index)
        result = results[topic_partition] = DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=NO_LOW_WATERMARK
        )
        try:
            _check(topic_partition, allowed, context)
            partition = replicas.partition(topic_partition)
            wanted = partition.delete_records_before(asked.offset)
        except KafkaError as error:
            result.error_code = int(error.code)
            continue
        if partition.low_watermark < wanted:
            wait.expect(partition.low_watermark_waits, wanted, topic_partition)
        else:
            result.low_watermark = partition.low_watermark


def _check(topic_partition: TopicPartition, allowed: bool, context: RequestContext) -> None:
    if not allowed:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if context.node.metadata.image.topics.partition(*topic_partition) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal(topic_partition.topic):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)


def _conclude(
    topic_partition: TopicPartition,
    result: DeleteRecordsPartitionResult,
    wait: OffsetWait[TopicPartition],
    context: RequestContext,
) -> None:
    error = wait.outcomes.get(topic_partition, ErrorCode.REQUEST_TIMED_OUT)
    result.error_code = int(error)
    partition = context.node.replica_manager.partitions.get(topic_partition)
    if not error and partition is not None:
        result.low_watermark = partition.low_watermark
