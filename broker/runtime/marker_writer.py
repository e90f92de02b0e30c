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

        UNKNOWN_TOPIC_OR_PARTITION stands for a partition that is not hosted here as well.
        """
        batch = end_transaction_marker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            is_commit=marker.is_commit,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=self._clock.now_ms(),
        )
        outcomes = dict.fromkeys(partitions, ErrorCode.NONE)
        required: dict[TopicPartition, int] = {}
        for partition in outcomes:
            try:
                self._require_hosted(partition)
                if partition.topic != OFFSETS_TOPIC:
                    required[partition] = 1 + self._replica_manager.append_records(
                        partition,
                        batch,
                        origin=AppendOrigin.COORDINATOR,
                        transaction_version=marker.transaction_version,
                    )
            except KafkaError as error:
                outcomes[partition] = error.code
        for partition, code in outcomes.items():
            if code:
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

    def _require_hosted(self, partition: TopicPartition) -> None:
        try:
            self._replica_manager.partition(partition)
        except KafkaError as error:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error.message) from error

    async def _write_to_groups(self, marker: TransactionMarker, partition: int) -> None:
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
