"""Following the metadata log: records in, (delta, image) pairs out, transactions whole or not at all.

The controller follows at append, every other reader at commit; both through this class, so that
there is one replay. Source: Kafka's MetadataBatchLoader and the transaction rules of KIP-868.
"""

from __future__ import annotations

from typing import Any

from coordinator.metadata.delta import MetadataDelta
from coordinator.metadata.features import refusal
from coordinator.metadata.image import EMPTY_IMAGE, MetadataImage
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.messages.records import cluster_metadata as records

_TRANSACTION_BOUNDS = (
    records.BeginTransactionRecord,
    records.EndTransactionRecord,
    records.AbortTransactionRecord,
)


class MetadataReplay:
    """The newest image and the records since.

    `replay` every record in order, then `take_change` at the end of a batch.
    """

    def __init__(self, image: MetadataImage = EMPTY_IMAGE) -> None:
        self._image = image
        self._delta = MetadataDelta(image)
        # What has been replayed since the last take: kept to go back to when a transaction aborts.
        self._untaken: list[Any] = []
        self._before_transaction: list[Any] | None = None
        self._offset = image.offset

    @property
    def image(self) -> MetadataImage:
        """The image without the records that are not taken yet."""
        return self._image

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open: its records show only when it ends."""
        return self._before_transaction is not None

    def replay(self, message: Any, offset: int) -> None:
        """Add one record, found at `offset`. Raises MetadataReplayError."""
        if type(message) in _TRANSACTION_BOUNDS:
            self._bound_transaction(type(message))
        self._delta.replay(message)
        self._untaken.append(message)
        self._offset = offset

    def _bound_transaction(self, kind: type) -> None:
        before = self._before_transaction
        if kind is records.BeginTransactionRecord:
            if before is not None:
                raise MetadataReplayError("a metadata transaction begins inside another one")
            self._before_transaction = self._untaken.copy()
            return
        if before is None:
            raise MetadataReplayError("a metadata transaction ends that never began")
        self._before_transaction = None
        if kind is records.AbortTransactionRecord:
            self._delta = MetadataDelta(self._image)
            for message in before:
                self._delta.replay(message)
            self._untaken = before

    def take_change(self, epoch: int, timestamp_ms: int = -1) -> tuple[MetadataDelta, MetadataImage] | None:
        """End a batch written in the quorum epoch `epoch`: the changes since the last call and the
        image they lead to. None while a transaction is open or when no record came.

        Raises MetadataReplayError for a feature finalized at a level that is not served: to go on would
        break what clients and other nodes rely on. One that has been lowered since is no fault.
        """
        delta = self._delta
        if self.in_transaction or not delta.record_count:
            return None
        for name, level in delta.features.items():
            problem = refusal(name, level)
            if problem is not None:
                raise MetadataReplayError(problem)
        self._image = delta.apply(self._offset, epoch, timestamp_ms)
        self._delta = MetadataDelta(self._image)
        self._untaken = []
        return delta, self._image
