"""AddPartitionsToTxn (key 24): put partitions into a producer's transaction.

Versions 0-5; flexible from 3. 0-3 come from producers, one transaction each; 4 and 5 from the leaders
of partitions, for several transactions at once, and may only ask whether the partitions are in
(`verify_only`, KIP-890).

Behaviour: if one partition may not be written or does not exist, nothing is added, and the others get
OPERATION_NOT_ATTEMPTED. An internal topic counts as not authorised. `coordinator.transaction.partitions`
decides.

v2  PRODUCER_FENCED (KIP-588), INVALID_PRODUCER_EPOCH before
v5  TRANSACTION_ABORTABLE where the client is told

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.handlers.transaction_requests import transaction_error
from broker.security.authorizer import Operation, ResourceType
from coordinator.controller.topic_names import is_internal
from coordinator.transaction.requests import AddPartitions
from wire.errors import ErrorCode, KafkaError
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

BATCHED_FROM = 4
"""From here on brokers ask, who speak transaction.version 2."""

Errors = Mapping[TopicPartition, ErrorCode]


async def handle(request: AddPartitionsToTxnRequest, context: RequestContext) -> AddPartitionsToTxnResponse:
    """Answer every partition of every transaction."""
    if context.api_version >= BATCHED_FROM:
        if not context.authorize_cluster(Operation.CLUSTER_ACTION):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        results = await asyncio.gather(*(_result(transaction, context) for transaction in request.transactions))
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    result = await _result(transaction, context)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


async def _result(transaction: AddPartitionsToTxnTransaction, context: RequestContext) -> AddPartitionsToTxnResult:
    partitions = _partitions(transaction.topics)
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=_topic_results(transaction.topics, await _answer(transaction, partitions, context)),
    )


async def _answer(
    transaction: AddPartitionsToTxnTransaction, partitions: list[TopicPartition], context: RequestContext
) -> Errors | ErrorCode:
    """What each partition came to, or what the transaction did."""
    is_client = context.api_version < BATCHED_FROM
    transactional_id = transaction.transactional_id
    if is_client and not context.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    refused = _refused(partitions, context, is_client=is_client)
    if refused:
        return {each: refused.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED) for each in partitions}
    producer = (transactional_id, transaction.producer_id, transaction.producer_epoch)
    transactions = context.node.transactions
    try:
        if transaction.verify_only:
            verified: Errors = transactions.verify_partitions(*producer, partitions)
            return verified
        await transactions.add_partitions(
            AddPartitions(*producer, frozenset(partitions), client_version=0 if is_client else 2)
        )
    except KafkaError as error:
        code = transaction_error(error, context)
        return dict.fromkeys(partitions, code) if transaction.verify_only else code
    return ErrorCode.NONE


def _refused(partitions: list[TopicPartition], context: RequestContext, *, is_client: bool) -> Errors:
    """Partitions that may not be written, or do not exist. Brokers have asked that before they ask us."""
    refused: dict[TopicPartition, ErrorCode] = {}
    may_write = {
        topic: not is_client
        or (not is_internal(topic) and context.authorize(Operation.WRITE, ResourceType.TOPIC, topic))
        for topic in dict.fromkeys(topic for topic, _ in partitions)
    }
    topics = context.node.metadata.image.topics
    for each in partitions:
        if not may_write[each.topic]:
            refused[each] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topics.partition(*each) is None:
            refused[each] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    """In the order of the request; naming one twice counts once."""
    return list(dict.fromkeys(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions))


def _topic_results(
    topics: Iterable[AddPartitionsToTxnTopic], errors: Errors | ErrorCode
) -> list[AddPartitionsToTxnTopicResult]:
    """By partition, or the transaction's outcome for everything as the request names it, twice where it does."""
    if isinstance(errors, ErrorCode):
        return [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=errors)
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    results: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, index), code in errors.items():
        if topic not in results:
            results[topic] = AddPartitionsToTxnTopicResult(name=topic)
        results[topic].results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return list(results.values())
