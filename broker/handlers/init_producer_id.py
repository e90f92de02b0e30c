"""InitProducerId (key 22): give a producer its id and epoch.

Versions 0-5; 6 (KIP-939) is unstable in Apache Kafka 4.4 and not served.

Behaviour: without a transactional id any broker answers with a fresh id and epoch 0, whatever id and epoch the request
names: the client bumps its epoch by itself (KIP-360). Ids come in blocks from the controller and are never given twice.
With a transactional id its coordinator answers; a transaction that is still open is aborted first, and the client asks
again until that is done (CONCURRENT_TRANSACTIONS). `coordinator.transaction.initialization` decides.

v2  flexible
v3  producer id and epoch of the request: both or neither (KIP-360)
v4  PRODUCER_FENCED (KIP-588), INVALID_PRODUCER_EPOCH before
v5  TRANSACTION_ABORTABLE (KIP-890)

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.transaction_requests import require_transactional_id_write, transaction_error
from broker.security.authorizer import Operation, ResourceType
from coordinator.machine import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from coordinator.transaction.metadata import ProducerIdentity
from coordinator.transaction.requests import NO_IDENTITY, InitTransactionalId
from wire.errors import ErrorCode, KafkaError
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

PRODUCER_FENCED_FROM = 4


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """Answer with the producer's identity, or with an error at the top."""
    identity, code = NO_IDENTITY, ErrorCode.NONE
    try:
        _authorize(request, context)
        held = _held(request)
        if request.transactional_id is None:
            identity = ProducerIdentity(await context.node.producer_ids.next_id(), 0)
        else:
            identity = await context.node.transactions.init_producer_id(
                InitTransactionalId(request.transactional_id, request.transaction_timeout_ms, held)
            )
    except KafkaError as error:
        code = transaction_error(error, context, PRODUCER_FENCED_FROM)
    return InitProducerIdResponse(
        error_code=code, producer_id=identity.producer_id, producer_epoch=identity.producer_epoch
    )


def _held(request: InitProducerIdRequest) -> ProducerIdentity | None:
    """What the producer says it has. Raises INVALID_REQUEST for half of it."""
    held = ProducerIdentity(request.producer_id, request.producer_epoch)
    if held == NO_IDENTITY:
        return None
    if held.producer_id == NO_PRODUCER_ID or held.producer_epoch == NO_PRODUCER_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "producer id and epoch are given together or not at all")
    return held


def _authorize(request: InitProducerIdRequest, context: RequestContext) -> None:
    if request.transactional_id is not None:
        require_transactional_id_write(request.transactional_id, context)
    elif not context.authorize_cluster(Operation.IDEMPOTENT_WRITE) and not _may_write_some_topic(context):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _may_write_some_topic(context: RequestContext) -> bool:
    return any(
        context.authorize(Operation.WRITE, ResourceType.TOPIC, name)
        for name in context.node.metadata.image.topics.names()
    )
