"""EndTxn (key 26): commit or abort a producer's transaction.

Versions 0-5; flexible from 3. v2 PRODUCER_FENCED (KIP-588), INVALID_PRODUCER_EPOCH before; v4
TRANSACTION_ABORTABLE; v5 the producer goes on with the id and epoch of the answer, as every end of a
transaction bumps the epoch (KIP-890).

Behaviour: answered as soon as the decision is replicated; markers are written afterwards, and until
then the next transaction gets CONCURRENT_TRANSACTIONS. `coordinator.transaction.ending` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.transaction_requests import require_transactional_id_write, transaction_error
from coordinator.transaction.requests import NO_IDENTITY, EndTransaction
from wire.errors import ErrorCode, KafkaError
from wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

EPOCH_BUMPS_FROM = 5


async def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    """Have the coordinator decide, which is for good."""
    identity, code = NO_IDENTITY, ErrorCode.NONE
    try:
        require_transactional_id_write(request.transactional_id, context)
        identity = await context.node.transactions.end_transaction(
            EndTransaction(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                is_commit=request.committed,
                client_version=2 if context.api_version >= EPOCH_BUMPS_FROM else 0,
            )
        )
    except KafkaError as error:
        code = transaction_error(error, context)
    return EndTxnResponse(error_code=code, producer_id=identity.producer_id, producer_epoch=identity.producer_epoch)
