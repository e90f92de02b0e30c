"""The group coordinator of a node: group shards over `__consumer_offsets`, addressed by group id.

Source: Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from broker.runtime.coordinator_runtime import CoordinatorRuntime
from broker.runtime.rebalance_log import RebalanceLog
from coordinator.group.context import GroupContext, GroupSettings
from coordinator.group.requests import DeletePartitionOffsets
from coordinator.group.shard import GroupShard
from coordinator.record_codec import RecordCodec
from wire.compression import Compression
from wire.errors import ErrorCode, KafkaError
from wire.messages.records import consumer_offsets
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.replication.replica_manager import LeadershipChange, ReplicaManager
    from broker.storage.producer_state import VerificationGuard
    from coordinator.machine import Ids
    from coordinator.metadata.delta import MetadataDelta
    from coordinator.metadata.image import MetadataImage

logger = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"

ValueT = TypeVar("ValueT")


class GroupCoordinator:
    """Groups and committed offsets whose partitions of `__consumer_offsets` this node leads.

    To be connected by whoever makes it: `leadership_changed` to the replica manager's listeners,
    `metadata_changed` to the metadata cache, behind the replica manager.
    """

    def __init__(
        self,
        settings: GroupSettings,
        *,
        replica_manager: ReplicaManager,
        clock: Clock,
        ids: Ids,
        commit_timeout_ms: int = 5000,
        compression: Compression = Compression.NONE,
    ) -> None:
        """`commit_timeout_ms` is `offsets.commit.timeout.ms`, `compression` is
        `offsets.topic.compression.codec`. `settings` may be replaced while the node runs."""
        self.settings = settings
        self._rebalance_log = RebalanceLog(clock)
        self._cleaning: set[asyncio.Task[None]] = set()
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            OFFSETS_TOPIC,
            replica_manager=replica_manager,
            clock=clock,
            codec=RecordCodec(consumer_offsets),
            ids=ids,
            make_machine=lambda: GroupShard(self.settings),
            make_context=lambda: GroupContext(self.settings, image=replica_manager.image),
            write_timeout_ms=lambda: commit_timeout_ms,
            compression=lambda: compression,
            tell=self._rebalance_log.note,
        )

    def leadership_changed(self, change: LeadershipChange) -> None:
        """See CoordinatorRuntime.leadership_changed."""
        self._runtime.leadership_changed(change)

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that holds the group. Raises NOT_COORDINATOR."""
        return self._runtime.partition_for(group_id)

    def write(
        self,
        group_id: str,
        request: Any,
        context: GroupContext,
        *,
        verification_guard: VerificationGuard | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Have the group's machine decide a request; to be awaited at once. See CoordinatorRuntime.write."""
        partition = self._runtime.partition_for(group_id)
        return self._runtime.write(partition, request, context, verification_guard=verification_guard)

    async def write_to_partition(self, partition: int, request: Any, context: GroupContext) -> Any:
        """Have one partition's machine decide a request about groups that it holds."""
        return await self._runtime.write(partition, request, context)

    async def write_marker(self, partition: int, producer_id: int, producer_epoch: int, **marker: Any) -> None:
        """End a transaction that committed offsets here. See CoordinatorRuntime.write_marker."""
        await self._runtime.write_marker(partition, producer_id, producer_epoch, **marker)

    def read(self, group_id: str, question: Callable[[GroupShard], ValueT]) -> ValueT:
        """Ask the group's machine something that changes nothing. Raises KafkaError."""
        return self._runtime.read(self._runtime.partition_for(group_id), question)

    def shards(self) -> Iterator[GroupShard]:
        """All machines here. Raises COORDINATOR_LOAD_IN_PROGRESS while one loads."""
        return (machine for _, machine in self._runtime.machines())

    def metadata_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Topics were deleted: their offsets go too, in all groups here (KIP-496's counterpart).

        Done in the background: nobody waits for it, and a re-created topic has another id.
        """
        partitions = frozenset(
            TopicPartition(topic.name, index) for topic in delta.deleted_topics.values() for index in topic.partitions
        )
        if not partitions:
            return
        task = asyncio.get_running_loop().create_task(self._delete_offsets(partitions))
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)

    async def _delete_offsets(self, partitions: frozenset[TopicPartition]) -> None:
        request, context = DeletePartitionOffsets(partitions), GroupContext(self.settings)
        for partition in self._runtime.active_partitions():
            try:
                has_more = True
                while has_more:
                    has_more = await self._runtime.write(partition, request, context)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    where = TopicPartition(OFFSETS_TOPIC, partition)
                    logger.warning("offsets of deleted topics stay in %s: %s", where, error)

    def close(self) -> None:
        """The node stops: waiting requests get COORDINATOR_NOT_AVAILABLE."""
        for task in self._cleaning:
            task.cancel()
        self._runtime.close()
        self._rebalance_log.close()
