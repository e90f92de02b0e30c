"""Writes the markers that end transactions into partitions led by this node.

A marker is a control batch. In `__consumer_offsets` it also decides about pending offsets, so there the
group coordinator writes it. Source: Kafka's KafkaApis.handleWriteTxnMarkersRequest (D9 to D12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.runtime.group_coordinator import OFFSETS_TOPIC
from broker.storage.log import AppendOrigin
from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition
from wire.records import end_transaction_marker

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.replication.replica_manager import ReplicaManager
    from broker.runtime.group_coordinator import GroupCoordinator

_COORDINATOR_IS_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


class TransactionMarker(NamedTuple):
    """The end of one producer's transaction, as each of its partitions is told.

    `coordinator_epoch` is the leader epoch of the coordinator's log; `transaction_version` the one under
    which the transaction ended: from 2 on the epoch was bumped, and is checked more strictly (D11).
    """

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0

    def require_identity(self) -> None:
        """Raises KafkaError where no batch can be made of it: Kafka fails on it in the same way."""
        if self.producer_id < 0 or self.producer_epoch < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a marker needs a producer id and epoch of 0 or more")


class LocalMarkerWriter:
    """Markers for partitions of this node."""

    def __init__(
        self, replica_manager: ReplicaManager, groups: GroupCoordinator, clock: Clock, *, timeout_ms: int = 30_000
    ) -> None:
        """`timeout_ms` (`request.timeout.ms`) limits the wait until a marker is replicated."""
        self._replica_manager = replica_manager
        self._groups = groups
        self._clock = clock
        self._timeout_ms = timeout_ms

    async def write(
        self, marker: TransactionMarker, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Append the marker to every partition and wait until it is replicated; each has its own outcome.

        UNKNOWN_TOPIC_OR_PARTITION stands for a partition that is not hosted here as well. Raises KafkaError where
        no batch can be made of the marker and a partition would get one.
        """
        outcomes = {partition: self._hosted(partition) for partition in partitions}
        hosted = [partition for partition, code in outcomes.items() if not code]
        appended = [partition for partition in hosted if partition.topic != OFFSETS_TOPIC]
        batch = self._batch(marker) if appended else b""
        required: dict[TopicPartition, int] = {}
        for partition in appended:
            try:
                required[partition] = 1 + self._replica_manager.append_records(
                    partition,
                    batch,
                    origin=AppendOrigin.COORDINATOR,
                    transaction_version=marker.transaction_version,
                )
            except KafkaError as error:
                outcomes[partition] = error.code
        for partition in hosted:
            if outcomes[partition]:
                continue
            try:
                if partition.topic == OFFSETS_TOPIC:
                    await self._write_to_groups(marker, partition.partition)
                else:
                    await self._replica_manager.wait_for_high_watermark(
                        partition, required[partition], self._timeout_ms
                    )
            except KafkaError as error:
                outcomes[partition] = error.code
        return outcomes

    def _hosted(self, partition: TopicPartition) -> ErrorCode:
        try:
            self._replica_manager.partition(partition)
        except KafkaError:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def _batch(self, marker: TransactionMarker) -> bytes:
        marker.require_identity()
        return end_transaction_marker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            is_commit=marker.is_commit,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=self._clock.now_ms(),
        )

    async def _write_to_groups(self, marker: TransactionMarker, partition: int) -> None:
        marker.require_identity()
        try:
            await self._groups.write_marker(
                partition,
                marker.producer_id,
                marker.producer_epoch,
                is_commit=marker.is_commit,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        except KafkaError as error:
            if error.code in _COORDINATOR_IS_NOT_READY:
                # A coordinator of transactions knows how to wait for a leader, not for a coordinator.
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message) from error
            raise
