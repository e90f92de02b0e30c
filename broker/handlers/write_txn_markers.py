"""WriteTxnMarkers (key 27): end transactions on partitions led by this broker.

Versions 1-2, flexible. v2 says under which transaction.version the transaction ended (KIP-1228): from 2
on the marker's epoch must be above that of the data.

Behaviour: sent by coordinators, and by an operator who ends a hanging transaction (KIP-664). A marker
for a producer without an open transaction is written as well. A partition that is not hosted here gets
UNKNOWN_TOPIC_OR_PARTITION, a marker without partitions no result at all. In `__consumer_offsets` pending
offsets are committed or dropped.

Left out: quotas (Kafka has none here either).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.runtime.marker_writer import TransactionMarker
from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

Errors = dict[TopicPartition, ErrorCode]


async def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    """Write one marker after the other; each partition has its own outcome, by producer id."""
    if not context.authorize_cluster(Operation.ALTER) and not context.authorize_cluster(Operation.CLUSTER_ACTION):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results: dict[int, Errors] = {}
    for marker in request.markers:
        if outcomes := await _write(marker, context):
            results.setdefault(marker.producer_id, {}).update(outcomes)
    return WriteTxnMarkersResponse(markers=[_result(producer_id, errors) for producer_id, errors in results.items()])


async def _write(marker: WritableTxnMarker, context: RequestContext) -> Errors:
    partitions = [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    errors: Errors = await context.node.marker_writer.write(
        TransactionMarker(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        ),
        partitions,
    )
    return errors


def _result(producer_id: int, errors: Errors) -> WritableTxnMarkerResult:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (topic, index), code in errors.items():
        if topic not in topics:
            topics[topic] = WritableTxnMarkerTopicResult(name=topic)
        topics[topic].partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
    return WritableTxnMarkerResult(producer_id=producer_id, topics=list(topics.values()))
