"""Tells the controller in which log directory each replica of this node lies, where metadata says otherwise.

With one directory the controller knows from the start; of several the broker chooses one when it makes the
log. Only then can a failed directory's replicas be told from others (J25). Source: Kafka's
AssignmentsManager; KIP-858.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.storage.log_manager import LogManager
    from coordinator.metadata.delta import MetadataDelta
    from coordinator.metadata.image import MetadataImage

logger = logging.getLogger(__name__)

ASSIGNMENTS_PER_REQUEST_MAX = 2250
"""As many as Kafka's request holds (AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST)."""


class AssigningController(Protocol):
    """Whoever keeps the assignments: the active controller, in process or over the wire."""

    async def request(self, message: Any) -> Any:
        """Answer one AssignReplicasToDirs request. Raises KafkaError."""


class Replica(NamedTuple):
    """A replica by topic id and partition."""

    topic_id: bytes
    partition: int


class DirectoryAssignments:
    """What is to be told; one request at a time says all that came up meanwhile."""

    def __init__(
        self,
        log_manager: LogManager,
        controller: AssigningController,
        clock: Clock,
        broker_id: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._log_manager = log_manager
        self._controller = controller
        self._clock = clock
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._untold: dict[Replica, bytes] = {}
        self._task: asyncio.Task[None] | None = None

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Find the replicas whose directory metadata does not know; to be called once their logs are there."""
        for topic_id, topic_delta in delta.topics.items():
            for index, partition in topic_delta.changed.items():
                if self._broker_id not in partition.replicas:
                    continue
                directory_id = self._log_manager.directory_id_of(TopicPartition(topic_delta.name, index))
                if directory_id is not None and directory_id != partition.directory_of(self._broker_id):
                    self._untold[Replica(topic_id, index)] = directory_id
        if self._untold and self._task is None:
            self._task = self._clock.loop.create_task(self._tell_all(), name="directory-assignments")

    async def _tell_all(self) -> None:
        try:
            while self._untold:
                # All that came up in this turn of the loop goes into one request.
                await asyncio.sleep(0)
                told = dict(list(self._untold.items())[:ASSIGNMENTS_PER_REQUEST_MAX])
                for replica in told:
                    del self._untold[replica]
                await self._tell(told)
        except KafkaError as error:
            logger.error("the controller was not told the log directories of %d replicas: %s", len(told), error)
        finally:
            self._task = None

    async def _tell(self, told: dict[Replica, bytes]) -> None:
        """Send one request; a replica that is gone meanwhile is no fault."""
        response = await self._controller.request(self._request(told))
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))

    def _request(self, told: dict[Replica, bytes]) -> Any:
        # Imported here: a node with one directory never needs it.
        from wire.messages.assign_replicas_to_dirs import (
            AssignReplicasToDirsRequest,
            AssignReplicasToDirsRequestDirectoryData,
            AssignReplicasToDirsRequestPartitionData,
            AssignReplicasToDirsRequestTopicData,
        )

        directories: dict[bytes, dict[bytes, list[int]]] = {}
        for replica, directory_id in told.items():
            directories.setdefault(directory_id, {}).setdefault(replica.topic_id, []).append(replica.partition)
        return AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                AssignReplicasToDirsRequestDirectoryData(
                    id=directory_id,
                    topics=[
                        AssignReplicasToDirsRequestTopicData(
                            topic_id=topic_id,
                            partitions=[
                                AssignReplicasToDirsRequestPartitionData(partition_index=index) for index in indexes
                            ],
                        )
                        for topic_id, indexes in topics.items()
                    ],
                )
                for directory_id, topics in directories.items()
            ],
        )

    async def close(self) -> None:
        """Stop telling."""
        self._untold.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
