"""InitProducerId (key 22): give a producer its id and epoch.

Versions 0-5; 6 (KIP-939) is unstable in Apache Kafka 4.4 and not served.

Behaviour: without a transactional id any broker answers with a fresh id and epoch 0, whatever id and epoch the request
names: the client bumps its epoch by itself (KIP-360). Ids come in blocks from the controller and are never given twice.

v2  flexible
v3  producer id and epoch of the request: both or neither (KIP-360)
v4  PRODUCER_FENCED (KIP-588)
v5  TRANSACTION_ABORTABLE (KIP-890)

Left out: transactional ids. Such a request is checked and authorised, then answered COORDINATOR_NOT_AVAILABLE, as by a
cluster whose transaction coordinator is not there. Quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """Answer with a fresh id, or with an error at the top."""
    try:
        _authorize(request, context)
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "producer id and epoch are given together or not at all")
        if request.transactional_id is not None:
            raise _transactional_error(request.transactional_id)
        producer_id = await context.node.producer_ids.next_id()
    except KafkaError as error:
        return InitProducerIdResponse(
            error_code=int(error.code), producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)


def _authorize(request: InitProducerIdRequest, context: RequestContext) -> None:
    if request.transactional_id is not None:
        if not context.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not context.authorize_cluster(Operation.IDEMPOTENT_WRITE) and not _may_write_some_topic(context):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _may_write_some_topic(context: RequestContext) -> bool:
    return any(
        context.authorize(Operation.WRITE, ResourceType.TOPIC, name)
        for name in context.node.metadata.image.topics.names()
    )


def _transactional_error(transactional_id: str) -> KafkaError:
    if not transactional_id:
        return KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id may not be empty")
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"'{transactional_id}' has no transaction coordinator")
