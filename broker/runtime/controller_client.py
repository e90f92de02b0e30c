"""How a broker asks the active controller. Here the controller is in the same process.

An answer means that the change is committed and that this node has published it: what a request
created is usable as soon as it is answered. Source: Kafka's ForwardingManager, NodeToControllerChannelManager.
"""

from __future__ import annotations

from typing import Any, Protocol

from broker.clock import Clock
from broker.replication.producer_ids import ProducerIdBlock
from broker.runtime.metadata_publisher import MetadataCache
from broker.runtime.quorum_runtime import QuorumRuntime
from wire.errors import ErrorCode, KafkaError
from wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


def require_time(timeout_ms: int) -> None:
    """Raise KafkaError REQUEST_TIMED_OUT for a request whose deadline has passed before the controller
    sees it: nothing of it is done, not even its refusals."""
    if timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"A timeout of {timeout_ms} ms leaves no time.")


class Versioned(Protocol):
    """The part of a request's context that the controller sees."""

    api_version: int


class ControllerClient:
    """Asks the controller of this process on behalf of the broker `broker_id`."""

    def __init__(self, quorum: QuorumRuntime, metadata: MetadataCache, clock: Clock, broker_id: int) -> None:
        self._quorum = quorum
        self._metadata = metadata
        self._clock = clock
        self._broker_id = broker_id

    async def request(self, message: Any, context: Versioned | None = None, *, timeout_ms: int | None = None) -> Any:
        """The controller's response to a request of `coordinator.controller.controller.DECIDERS`.

        Raises KafkaError when it is refused as a whole, and REQUEST_TIMED_OUT when it is not committed
        after `timeout_ms` (it may still be, later: I16).
        """
        if timeout_ms is not None:
            require_time(timeout_ms)
        future = self._quorum.submit(message, -1 if context is None else context.api_version)
        if timeout_ms is not None and not await self._clock.wait_for(future, timeout_ms):
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"The controller has not answered within {timeout_ms} ms.")
        return await future

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Report in-sync sets; raises KafkaError."""
        response: AlterPartitionResponse = await self._quorum.submit(request, AlterPartitionRequest.MAX_VERSION)
        return response

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """A new block of producer ids for this broker; raises KafkaError."""
        broker = self._metadata.image.brokers.get(self._broker_id)
        response = await self._quorum.submit(
            AllocateProducerIdsRequest(
                broker_id=self._broker_id,
                broker_epoch=-1 if broker is None else broker.broker_epoch,
            )
        )
        return ProducerIdBlock(response.producer_id_start, response.producer_id_len)
