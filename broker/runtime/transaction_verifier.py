"""How a partition's leader asks the coordinator about a transaction, where both are on this node (KIP-890).

See broker.replication.transaction_verification for when it asks and what becomes of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coordinator.transaction.requests import AddPartitions
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.runtime.transaction_coordinator import TransactionCoordinator
    from wire.primitives import TopicPartition

IMPLICIT_ADD_VERSION = 2
"""Who lets the leader add partitions speaks transaction.version 2."""


class LocalTransactionVerifier:
    """Asks the coordinator of this node, in process."""

    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """See TransactionVerifier."""
        try:
            if not adds:
                return self._coordinator.verify_partitions(transactional_id, producer_id, producer_epoch, partitions)
            await self._coordinator.add_partitions(
                AddPartitions(
                    transactional_id, producer_id, producer_epoch, frozenset(partitions), IMPLICIT_ADD_VERSION
                )
            )
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        return dict.fromkeys(partitions, ErrorCode.NONE)
