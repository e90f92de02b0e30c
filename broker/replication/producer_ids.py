"""Producer ids of this broker: blocks of 1000 from the controller, the next one fetched before the last runs out.

Source: KIP-730; Kafka's `RPCProducerIdManager` (C1).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.clock import Clock

logger = logging.getLogger(__name__)

PREFETCH_AT = 0.9
"""Share of a block that is used when the next one is asked for."""
RETRY_BACKOFF_MS = 50
"""How long a refused allocation is not repeated."""
BLOCK_WAIT_MS = 1_000
"""How long `next_id` waits for a block that was asked for: the controller is mostly in this process."""


class ProducerIdBlock(NamedTuple):
    """Ids first_id .. first_id + size - 1, recorded in metadata as this broker's."""

    first_id: int
    size: int


class ProducerIdSource(Protocol):
    """Whoever allocates blocks: the active controller, in process or over the wire."""

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """A new block, committed to the metadata log. Raises KafkaError or OSError if it is not to be had now."""


class ProducerIds:
    """Gives each caller an id that no one got before."""

    def __init__(self, source: ProducerIdSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._next_id = 0
        self._left = 0
        self._prefetch_below = 0
        self._next_block: ProducerIdBlock | None = None
        self._allocation: asyncio.Task[None] | None = None
        self._not_before_ms = 0.0

    async def next_id(self) -> int:
        """A fresh id. Raises COORDINATOR_LOAD_IN_PROGRESS if none is to be had within a second; the client retries."""
        if not self._left and self._next_block is None:
            self._ask()
            if self._allocation is not None:
                await self._clock.wait_for(self._allocation, BLOCK_WAIT_MS)
        if not self._left:
            self._take_next_block()
        producer_id = self._next_id
        self._next_id += 1
        self._left -= 1
        if self._left <= self._prefetch_below and self._next_block is None:
            self._ask()
        return producer_id

    def _take_next_block(self) -> None:
        block = self._next_block
        if block is None:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the controller has not yet given this broker producer ids"
            )
        self._next_block = None
        self._next_id, self._left = block
        self._prefetch_below = block.size - int(block.size * PREFETCH_AT)

    def _ask(self) -> None:
        if self._allocation is None and self._clock.monotonic_ms() >= self._not_before_ms:
            self._allocation = self._clock.loop.create_task(self._allocate(), name="producer-ids")

    async def _allocate(self) -> None:
        try:
            self._next_block = await self._source.allocate_producer_ids()
        except (KafkaError, OSError) as error:
            self._not_before_ms = self._clock.monotonic_ms() + RETRY_BACKOFF_MS
            logger.warning("the controller gave no producer ids: %s", error)
        finally:
            self._allocation = None

    async def close(self) -> None:
        """Give up an allocation that is under way."""
        if self._allocation is not None:
            self._allocation.cancel()
            await asyncio.gather(self._allocation, return_exceptions=True)
