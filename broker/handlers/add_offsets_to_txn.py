"""AddOffsetsToTxn (key 25): announce that a transaction will commit a group's offsets.

Versions 0-4; flexible from 3. v2 PRODUCER_FENCED (KIP-588), INVALID_PRODUCER_EPOCH before; v4
TRANSACTION_ABORTABLE (KIP-890).

Behaviour: puts the group's partition of `__consumer_offsets` into the transaction, so that it gets a
marker at the end. With transaction.version 2 producers do not send this: TxnOffsetCommit v5 adds the
partition. `coordinator.transaction.partitions` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import require_group
from broker.handlers.transaction_requests import require_transactional_id_write, transaction_error
from broker.runtime.group_coordinator import OFFSETS_TOPIC
from broker.security.authorizer import Operation
from coordinator.transaction.requests import AddPartitions
from wire.errors import ErrorCode, KafkaError
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
    """Add the group's partition; the topic is created if nobody has used a group yet."""
    code = ErrorCode.NONE
    try:
        require_transactional_id_write(request.transactional_id, context)
        require_group(Operation.READ, request.group_id, context)
        node = context.node
        await node.auto_topics.ensure([OFFSETS_TOPIC])
        partition = TopicPartition(OFFSETS_TOPIC, node.groups.partition_for(request.group_id))
        await node.transactions.add_partitions(
            AddPartitions(request.transactional_id, request.producer_id, request.producer_epoch, frozenset({partition}))
        )
    except KafkaError as error:
        code = transaction_error(error, context)
    return AddOffsetsToTxnResponse(error_code=code)
