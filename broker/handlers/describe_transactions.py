"""DescribeTransactions (key 65): state, producer and partitions of transactional ids (KIP-664).

Version 0, flexible.

Behaviour: each id has its own error: not authorised, empty, not coordinated here, or not known. Topics
without DESCRIBE are left out.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: DescribeTransactionsRequest, context: RequestContext) -> DescribeTransactionsResponse:
    """Describe one id after the other."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(transactional_id, context) for transactional_id in request.transactional_ids]
    )


def _describe(transactional_id: str, context: RequestContext) -> TransactionState:
    try:
        if not context.authorize(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        described: TransactionState = context.node.transactions.describe(transactional_id)
    except KafkaError as error:
        return TransactionState(error_code=error.code, transactional_id=transactional_id)
    described.topics = [
        topic for topic in described.topics if context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
    ]
    return described
