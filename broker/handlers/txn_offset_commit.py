"""TxnOffsetCommit (key 28): commit offsets of a group as part of a producer's transaction.

Versions 0-6; flexible from 3. v2 leader epoch; v3 member, generation and instance (KIP-447), before any
producer may commit; v4 TRANSACTION_ABORTABLE; v5 the group's partition of `__consumer_offsets` is added
to the transaction implicitly (KIP-890); v6 topic ids instead of names (KIP-1319).

Behaviour: asked of the group's coordinator. Partitions that do not exist or may not be read are answered
each with its error, the others are committed. The transaction is verified with its coordinator first;
the offsets then wait for the transaction's marker (`coordinator.group.offset_commit` decides).

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.committable_offsets import OffsetCommitAnswer, committable_topics
from broker.handlers.group_context import group_context, require_group
from broker.handlers.transaction_requests import require_transactional_id_write
from broker.replication.transaction_verification import (
    TransactionalBatch,
    TransactionSupport,
    verify_transaction,
)
from broker.runtime.coordinator_shard import coordinator_error
from broker.runtime.group_coordinator import OFFSETS_TOPIC
from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext
    from broker.storage.producer_state import VerificationGuard

LOADING_FROM = 2
"""Clients below fail on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
ABORTABLE_FROM = 4
IMPLICIT_ADD_FROM = 5
TOPIC_IDS_FROM = 6
NO_SEQUENCE = -1
VERIFICATION_TIMEOUT_MS = 5_000


async def handle(request: TxnOffsetCommitRequest, context: RequestContext) -> TxnOffsetCommitResponse:
    """Authorise, sort out what cannot be committed, have the group commit the rest."""
    require_transactional_id_write(request.transactional_id, context)
    require_group(Operation.READ, request.group_id, context)
    by_id = context.api_version >= TOPIC_IDS_FROM
    response = TxnOffsetCommitResponse()
    answer = OffsetCommitAnswer(response, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition, by_id=by_id)
    request.topics = committable_topics(request.topics, answer, context, by_id=by_id)
    if not request.topics:
        return response
    try:
        answer.add_committed((await _commit(request, context)).topics)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.api_version < LOADING_FROM:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        answer.add_refused(request.topics, code)
    return response


async def _commit(request: TxnOffsetCommitRequest, context: RequestContext) -> TxnOffsetCommitResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "offsets are committed for a group, whose id may not be empty")
    guard = await _verify(request, context)
    committed: TxnOffsetCommitResponse = await context.node.groups.write(
        request.group_id, request, group_context(context), verification_guard=guard
    )
    return committed


async def _verify(request: TxnOffsetCommitRequest, context: RequestContext) -> VerificationGuard | None:
    """Let the transaction's coordinator confirm that the group's partition belongs to it (D.8)."""
    node = context.node
    partition = TopicPartition(OFFSETS_TOPIC, node.groups.partition_for(request.group_id))
    batch = TransactionalBatch(request.producer_id, request.producer_epoch, NO_SEQUENCE)
    verified = await verify_transaction(
        node.replica_manager,
        request.transactional_id,
        {partition: batch},
        support=_support(context.api_version),
        timeout_ms=VERIFICATION_TIMEOUT_MS,
    )
    if partition in verified.refused:
        raise coordinator_error(verified.refused[partition])
    return verified.guards[partition]


def _support(version: int) -> TransactionSupport:
    if version >= IMPLICIT_ADD_FROM:
        return TransactionSupport.IMPLICIT_ADD
    return TransactionSupport.ABORTABLE_ERROR if version >= ABORTABLE_FROM else TransactionSupport.DEFAULT
