"""Runs the machines behind one internal topic: a shard per partition that this node leads.

    write(partition, request) ─ machine decides ─ records appended as one batch ─ settled, replayed
        ─ high watermark passes ─ replies released

Leadership of a partition is gained: its log is read from disk and replayed, and until that is done
requests get COORDINATOR_LOAD_IN_PROGRESS. It is lost: waiting requests get NOT_COORDINATOR and the
machine is dropped. One timer serves all shards, armed for the earliest deadline of any machine;
nothing runs periodically. Knows nothing of groups or transactions.
Source: Kafka's CoordinatorRuntime and CoordinatorLoaderImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from broker.runtime.coordinator_shard import CoordinatorShard, RunningMachine, ShardEnvironment, ShardState, log_events
from wire.compression import Compression
from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition, coordinator_partition

if TYPE_CHECKING:
    from broker.clock import Clock, Timer
    from broker.replication.replica_manager import LeadershipChange, ReplicaManager
    from broker.storage.producer_state import VerificationGuard
    from coordinator.machine import Event, Ids
    from coordinator.record_codec import RecordCodec

MachineT = TypeVar("MachineT", bound=RunningMachine)
ValueT = TypeVar("ValueT")


class CoordinatorRuntime(Generic[MachineT]):
    """All shards of one internal topic on this node.

    `leadership_changed` is to be among the replica manager's listeners before metadata is applied.
    """

    def __init__(
        self,
        topic: str,
        *,
        replica_manager: ReplicaManager,
        clock: Clock,
        codec: RecordCodec,
        ids: Ids,
        make_machine: Callable[[], MachineT],
        make_context: Callable[[], Any],
        write_timeout_ms: Callable[[], int] = lambda: 5000,
        compression: Callable[[], Compression] = lambda: Compression.NONE,
        base_sequence: int = 0,
        changed: Callable[[int, MachineT], None] | None = None,
        tell: Callable[[Sequence[Event]], None] = log_events,
    ) -> None:
        """`make_context` makes the context of what no request asks for (`loaded`, `expire`);
        `write_timeout_ms` limits the wait for replication; `compression` and `base_sequence` are of
        appended batches (Kafka's coordinator of groups writes 0, that of transactions -1). `changed` is
        told of a partition whose machine has settled or replayed something, before replies are given;
        `tell` gets the events of every decision."""
        self.topic = topic
        self._replica_manager = replica_manager
        self._clock = clock
        self._make_machine = make_machine
        self._environment = ShardEnvironment(
            replica_manager,
            clock,
            codec,
            ids,
            make_context,
            write_timeout_ms,
            compression,
            base_sequence,
            self._changed,
            tell,
        )
        self._on_change = changed
        self._shards: dict[int, CoordinatorShard] = {}
        self._is_closed = False
        self._timer: Timer | None = None
        self._timer_ms = 0

    # --- which partition -----------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        """The partition that coordinates a group id or transactional id.

        Raises NOT_COORDINATOR while the topic does not exist: nobody coordinates anything then.
        """
        topic = self._replica_manager.image.topics.by_name(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"topic {self.topic} does not exist yet")
        return coordinator_partition(key, len(topic.partitions))

    def leadership_changed(self, change: LeadershipChange) -> None:
        """A partition is now led here, or no more: load its machine, or drop it."""
        topic, partition = change.topic_partition
        if topic != self.topic or self._is_closed:
            return
        shard = self._shards.get(partition)
        if change.is_leader:
            if shard is not None and shard.state is not ShardState.FAILED:
                # Still the leader, in a new epoch: nobody else wrote in between.
                return
            shard = CoordinatorShard(change.topic_partition, self._make_machine(), self._environment)
            self._shards[partition] = shard
            shard.load()
        elif shard is not None:
            del self._shards[partition]
            shard.close(ErrorCode.NOT_COORDINATOR)

    def close(self) -> None:
        """The node stops: waiting requests get COORDINATOR_NOT_AVAILABLE, as new ones do."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.close(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # --- requests ------------------------------------------------------------------------------

    def write(
        self, partition: int, request: Any, context: Any, *, verification_guard: VerificationGuard | None = None
    ) -> Coroutine[Any, Any, Any]:
        """Have the machine of a partition decide a request; to be awaited at once, gives the reply.

        Waits until the reply may be told: records of the decision, and of all decisions before it, are
        replicated, and for a request that the machine lets wait, until a later decision answers it.
        Raises KafkaError: of the machine, of the log (as `coordinator_error` words it), or because this
        node does not coordinate the partition. `verification_guard` is of a request that writes within a
        producer's transaction: proof that the transaction is real.
        """
        return self._shard(partition).write(request, context, verification_guard)

    async def write_marker(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int = -1,
    ) -> None:
        """Append the marker that ends a producer's transaction on the partition, and let it take effect.

        Raises KafkaError; INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED come from the log.
        """
        await self._shard(partition).write_marker(
            producer_id,
            producer_epoch,
            is_commit=is_commit,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )

    def read(self, partition: int, question: Callable[[MachineT], ValueT]) -> ValueT:
        """Ask the machine of a partition something that changes nothing. Raises KafkaError."""
        shard = self._shard(partition)
        shard.require_active()
        machine: Any = shard.machine
        return question(machine)

    def machines(self) -> Iterator[tuple[int, MachineT]]:
        """Partition and machine of every shard here. Raises COORDINATOR_LOAD_IN_PROGRESS while one loads."""
        self._require_open()
        for partition, shard in sorted(self._shards.items()):
            if shard.state is ShardState.LOADING:
                shard.require_active()
            if shard.state is ShardState.ACTIVE:
                machine: Any = shard.machine
                yield partition, machine

    def active_partitions(self) -> list[int]:
        """Partitions that are led here and loaded."""
        return [partition for partition, shard in sorted(self._shards.items()) if shard.state is ShardState.ACTIVE]

    def _shard(self, partition: int) -> CoordinatorShard:
        self._require_open()
        shard = self._shards.get(partition)
        if shard is None:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"this broker does not lead {TopicPartition(self.topic, partition)}"
            )
        return shard

    def _require_open(self) -> None:
        if self._is_closed:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker is shutting down")

    # --- time ----------------------------------------------------------------------------------

    def _changed(self, shard: CoordinatorShard) -> None:
        if self._on_change is not None:
            machine: Any = shard.machine
            self._on_change(shard.topic_partition.partition, machine)
        deadline_ms = shard.machine.next_deadline_ms()
        if deadline_ms is not None and not self._is_closed:
            self._arm(deadline_ms)

    def _arm(self, deadline_ms: int) -> None:
        """Have the timer fire at the deadline or earlier. A deadline that moved later is found out then."""
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = self._clock.call_at(deadline_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now_ms = self._clock.now_ms()
        for shard in list(self._shards.values()):
            shard.expire(now_ms)
        deadlines = [
            deadline_ms
            for shard in self._shards.values()
            if shard.state is ShardState.ACTIVE and (deadline_ms := shard.machine.next_deadline_ms()) is not None
        ]
        if deadlines and not self._is_closed:
            self._arm(min(deadlines))
