"""DescribeProducers (key 61): what partitions know of the producer ids that write to them (KIP-664).

Version 0, flexible.

Behaviour: one entry per producer id with state, also those with an open transaction, which is how hanging
transactions are found. Any replica answers, not only the leader. Fields that are not known are -1.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from coordinator.controller.topic_names import name_problem
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    """Answer every partition, each with its own error."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _answer(topic, index, _topic_error(topic.name, context), context)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _topic_error(name: str, context: RequestContext) -> KafkaError | None:
    reason = name_problem(name)
    if reason is not None:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if not context.authorize(Operation.READ, ResourceType.TOPIC, name):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if context.node.metadata.image.topics.by_name(name) is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
    return None


def _answer(topic: TopicRequest, index: int, error: KafkaError | None, context: RequestContext) -> PartitionResponse:
    try:
        if error is not None:
            raise error
        partition = context.node.replica_manager.partition(TopicPartition(topic.name, index))
    except KafkaError as refused:
        return PartitionResponse(
            partition_index=index, error_code=int(refused.code), error_message=refused.message, active_producers=[]
        )
    return PartitionResponse(
        partition_index=index,
        error_code=0,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp_ms,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_transaction_first_offset,
            )
            for producer_id, entry in partition.log.producer_state.entries.items()
        ],
    )
