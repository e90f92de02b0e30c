"""AllocateProducerIds: blocks of producer ids for brokers to hand out (C.1).

Source: ProducerIdControlManager, ProducerIdsBlock; KIP-730.
"""

from __future__ import annotations

from coordinator.controller.brokers import registered_broker
from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import MetadataRecord
from wire.errors import ErrorCode, KafkaError
from wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from wire.messages.records.cluster_metadata import ProducerIdsRecord

BLOCK_SIZE = 1_000
LAST_PRODUCER_ID = 2**63 - 1


def allocate_producer_ids(request: AllocateProducerIdsRequest, view: ControllerView) -> Outcome:
    """The next block, which nobody else will get. Raises KafkaError STALE_BROKER_EPOCH, and
    UNKNOWN_SERVER_ERROR when no block is left."""
    registered_broker(view, request.broker_id, request.broker_epoch)
    start = view.image.next_producer_id
    if start > LAST_PRODUCER_ID - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Exhausted all producer ids: the next block would start at {start}.",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=start + BLOCK_SIZE,
    )
    response = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    return Outcome(response, [MetadataRecord(record)])
