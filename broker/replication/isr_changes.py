"""Sends wished in-sync sets to the controller: one AlterPartition at a time, one change per partition in flight.

Source: KIP-497; Kafka's `DefaultAlterPartitionManager`. What an answer means is decided in `isr.reaction_to`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from broker.replication.isr import Reaction, reaction_to
from wire.errors import ErrorCode, KafkaError
from wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerState,
)

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.replication.partition import Partition, Surroundings

logger = logging.getLogger(__name__)

RETRY_BACKOFF_MS = 50


class IsrController(Protocol):
    """Whoever decides in-sync sets: the active controller, in process or over the wire."""

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Answer one AlterPartition request. Raises KafkaError or OSError if it cannot be asked now."""


class IsrChanges:
    """The queue of wished in-sync sets of a node."""

    def __init__(
        self,
        controller: IsrController,
        clock: Clock,
        surroundings: Surroundings,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._clock = clock
        self._surroundings = surroundings
        self._broker_epoch = broker_epoch
        self._waiting: dict[Partition, frozenset[int]] = {}
        self._task: asyncio.Task[None] | None = None

    def propose(self, partition: Partition, isr: frozenset[int]) -> None:
        """Send this wish with the next request; `partition.isr_confirmed` or `isr_refused` follows."""
        self._waiting[partition] = isr
        if self._task is None:
            self._task = self._clock.loop.create_task(self._send_all(), name="isr-changes")

    async def close(self) -> None:
        """Stop sending; wishes still waiting are dropped."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                # All that was wished in this turn of the loop goes in one request.
                await asyncio.sleep(0)
                sent, self._waiting = self._waiting, {}
                retry = await self._send(sent)
                if retry:
                    self._waiting = {**retry, **self._waiting}
                    await self._clock.sleep(RETRY_BACKOFF_MS)
        finally:
            self._task = None

    async def _send(self, sent: dict[Partition, frozenset[int]]) -> dict[Partition, frozenset[int]]:
        """Send one request and act on its answer; returns what to send again."""
        try:
            response = await self._controller.alter_partition(self._request(sent))
        except (KafkaError, OSError) as error:
            logger.warning("in-sync sets of %d partitions could not be sent to the controller: %s", len(sent), error)
            return sent
        if response.error_code:
            logger.warning("the controller refused in-sync sets: %s", ErrorCode(response.error_code).name)
            return sent
        answers = {
            (topic.topic_id, answer.partition_index): answer for topic in response.topics for answer in topic.partitions
        }
        retry = {}
        for partition, isr in sent.items():
            if partition.isr_state.proposed != isr:
                continue  # metadata or a new leader epoch overtook it
            answer = answers.get((partition.topic_id, partition.topic_partition.partition))
            if answer is None:
                retry[partition] = isr
            elif not answer.error_code:
                partition.isr_confirmed(frozenset(answer.isr), answer.partition_epoch, self._clock.now_ms())
            else:
                reaction = reaction_to(ErrorCode(answer.error_code))
                if reaction is Reaction.GO_BACK:
                    partition.isr_refused()
                elif reaction is Reaction.RETRY:
                    retry[partition] = isr
        return retry

    def _request(self, sent: dict[Partition, frozenset[int]]) -> AlterPartitionRequest:
        epochs = self._surroundings.registered_epochs
        topics: dict[bytes, AlterPartitionRequestTopicData] = {}
        for partition, isr in sent.items():
            topic = topics.setdefault(
                partition.topic_id, AlterPartitionRequestTopicData(topic_id=partition.topic_id, partitions=[])
            )
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.topic_partition.partition,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=broker_id, broker_epoch=epochs.get(broker_id, -1))
                        for broker_id in sorted(isr)
                    ],
                    partition_epoch=partition.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._surroundings.broker_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )
