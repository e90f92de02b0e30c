"""Sees transactions that have been decided to their end: markers to every partition, then completion.

One task a transaction. What may pass is tried again for ever, as the decision stands: the client has
been told. Source: Kafka's TransactionMarkerChannelManager and
TransactionMarkerRequestCompletionHandler (D8, D13).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from broker.runtime.marker_writer import TransactionMarker
from coordinator.transaction.requests import CompleteTransaction
from coordinator.transaction.states import TransactionState
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.clock import Clock
    from coordinator.metadata.image import MetadataImage
    from coordinator.transaction.metadata import TransactionMetadata
    from wire.primitives import TopicPartition

logger = logging.getLogger(__name__)

RETRY_BACKOFF_MS = 100

_PASSES = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_NEVER_HAD_RECORDS = frozenset({ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
"""The producer cannot have written to such a partition, so it needs no marker."""


class MarkerWriter(Protocol):
    """The way to one broker."""

    async def write(
        self, marker: TransactionMarker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Write the marker to partitions that this broker leads; an outcome for each."""


class _Abandoned(Exception):
    """Somebody else ends this transaction, or has ended it."""


class MarkerSender:
    """Ending transactions of all partitions of `__transaction_state` led here."""

    def __init__(
        self,
        *,
        clock: Clock,
        image: Callable[[], MetadataImage],
        writers: Mapping[int, MarkerWriter],
        coordinator_epoch: Callable[[int], int],
        complete: Callable[[int, CompleteTransaction], Awaitable[None]],
    ) -> None:
        """`writers` are the ways to brokers by their ids; `coordinator_epoch` is that of a partition of
        `__transaction_state`; `complete` stores that all markers of a transaction are written."""
        self._clock = clock
        self._image = image
        self._writers = writers
        self._coordinator_epoch = coordinator_epoch
        self._complete = complete
        self._tasks: dict[asyncio.Task[None], int] = {}

    def send(self, partition: int, metadata: TransactionMetadata) -> None:
        """End a transaction that has been decided; `partition` is that of the coordinator."""
        task = self._clock.loop.create_task(self._end(partition, metadata), name="transaction-markers")
        self._tasks[task] = partition
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def forget(self, partition: int) -> None:
        """The partition is coordinated elsewhere now: so are its transactions."""
        for task in [task for task, of in self._tasks.items() if of == partition]:
            task.cancel()

    async def close(self) -> None:
        """Stop; what is not ended is taken up when the log is read the next time."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end(self, partition: int, metadata: TransactionMetadata) -> None:
        try:
            await self._write_markers(partition, metadata)
            await self._write_completion(partition, metadata)
        except (_Abandoned, KafkaError) as reason:
            logger.warning("the transaction of '%s' is not ended here: %s", metadata.transactional_id, reason)
        except Exception:
            logger.exception("the transaction of '%s' cannot be ended", metadata.transactional_id)

    async def _write_markers(self, partition: int, metadata: TransactionMetadata) -> None:
        remaining = sorted(metadata.partitions)
        while remaining:
            marker = TransactionMarker(
                metadata.producer_id,
                metadata.producer_epoch,
                metadata.state is TransactionState.PREPARE_COMMIT,
                self._coordinator_epoch(partition),
                metadata.client_version,
            )
            again: list[TopicPartition] = []
            for broker_id, led in self._by_leader(remaining).items():
                writer = self._writers.get(broker_id)
                outcomes: Mapping[TopicPartition, ErrorCode] = (
                    dict.fromkeys(led, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    if writer is None
                    else await writer.write(marker, led)
                )
                again += [each for each in led if _must_repeat(each, outcomes[each])]
            remaining = again
            if remaining:
                await self._clock.sleep(RETRY_BACKOFF_MS)

    def _by_leader(self, partitions: Sequence[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Partitions by the broker that leads them; those that were deleted need no marker."""
        topics = self._image().topics
        led: dict[int, list[TopicPartition]] = {}
        for each in partitions:
            image = topics.partition(*each)
            if image is not None:
                led.setdefault(image.leader, []).append(each)
        return led

    async def _write_completion(self, partition: int, metadata: TransactionMetadata) -> None:
        request = CompleteTransaction(metadata.transactional_id, metadata.producer_id, metadata.producer_epoch)
        while True:
            try:
                await self._complete(partition, request)
                return
            except KafkaError as error:
                if error.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    raise _Abandoned(error) from error
            await self._clock.sleep(RETRY_BACKOFF_MS)


def _must_repeat(partition: TopicPartition, code: ErrorCode) -> bool:
    """Whether the marker is to be written once more. Raises _Abandoned where that must not be."""
    if code is ErrorCode.NONE or code in _NEVER_HAD_RECORDS:
        return False
    if code in _PASSES:
        logger.debug("a marker for %s was refused for now: %s", partition, code.name)
        return True
    raise _Abandoned(f"{partition} refuses the marker with {code.name}")
