"""Committed offsets of all groups of one shard, and those still pending in open transactions.

Everything here is durable: it changes by replayed records only. Committed offsets are kept in
persistent maps, so that a reader can be given the state as it was when the high watermark stood at
some offset, at no cost. Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import immutables

from coordinator.group.records import CommittedOffset, committed_offset
from wire.messages.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from wire.primitives import TopicPartition

GroupOffsets = immutables.Map[TopicPartition, CommittedOffset]
OffsetsRoot = immutables.Map[str, GroupOffsets]

NO_OFFSETS: GroupOffsets = immutables.Map()
EMPTY_ROOT: OffsetsRoot = immutables.Map()


@dataclass(slots=True)
class PendingTransaction:
    """Offsets that one producer's open transaction will commit, by group and partition."""

    offsets: dict[str, dict[TopicPartition, CommittedOffset]] = field(default_factory=dict)


class OffsetStore:
    """The offsets of one shard.

    newest      every offset whose record is in the local log
    committed   every offset whose record is below the high watermark
    """

    def __init__(self) -> None:
        self.newest: OffsetsRoot = EMPTY_ROOT
        self.committed: OffsetsRoot = EMPTY_ROOT
        self._transactions: dict[int, PendingTransaction] = {}
        self._open_by_group: dict[str, set[int]] = {}
        # States that wait for the high watermark to pass their last record, oldest first.
        self._uncommitted: deque[tuple[int, OffsetsRoot]] = deque()

    # --- questions -------------------------------------------------------------------------

    def of_group(self, group_id: str, *, committed: bool = False) -> GroupOffsets:
        """Offsets of a group; `committed` leaves out those not yet replicated."""
        root = self.committed if committed else self.newest
        return root.get(group_id, NO_OFFSETS)

    def has_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """True while an open transaction is about to commit an offset of the partition."""
        return any(
            partition in self._transactions[producer_id].offsets.get(group_id, ())
            for producer_id in self._open_by_group.get(group_id, ())
        )

    def has_open_transactions(self, group_id: str) -> bool:
        """True while any open transaction holds offsets of the group."""
        return group_id in self._open_by_group

    def pending_of_group(self, group_id: str) -> set[TopicPartition]:
        """Partitions of the group with a pending offset."""
        return {
            partition
            for producer_id in self._open_by_group.get(group_id, ())
            for partition in self._transactions[producer_id].offsets.get(group_id, ())
        }

    def groups_with_offsets(self) -> Iterator[str]:
        """Ids of all groups that have committed or pending offsets, in order."""
        return iter(sorted({*self.newest, *self._open_by_group}))

    # --- replay ----------------------------------------------------------------------------

    def replay_commit(self, key: OffsetCommitKey, value: OffsetCommitValue, record_offset: int) -> None:
        """An offset committed outside of transactions."""
        partition = TopicPartition(key.topic, key.partition)
        self._put(key.group, partition, committed_offset(value, record_offset))
        self._changed_at(record_offset)

    def replay_tombstone(self, key: OffsetCommitKey, record_offset: int) -> None:
        """An offset deleted; pending ones of the same partition go with it."""
        partition = TopicPartition(key.topic, key.partition)
        offsets = self.newest.get(key.group, NO_OFFSETS)
        if partition in offsets:
            offsets = offsets.delete(partition)
            self.newest = self.newest.set(key.group, offsets) if offsets else self.newest.delete(key.group)
        for producer_id in tuple(self._open_by_group.get(key.group, ())):
            self._drop_pending(producer_id, key.group, partition)
        self._changed_at(record_offset)

    def replay_pending(
        self, key: OffsetCommitKey, value: OffsetCommitValue, record_offset: int, producer_id: int
    ) -> None:
        """An offset that counts once the producer's transaction has committed."""
        transaction = self._transactions.setdefault(producer_id, PendingTransaction())
        offsets = transaction.offsets.setdefault(key.group, {})
        offsets[TopicPartition(key.topic, key.partition)] = committed_offset(value, record_offset)
        self._open_by_group.setdefault(key.group, set()).add(producer_id)

    def replay_marker(self, producer_id: int, committed: bool, record_offset: int) -> None:
        """The end of a producer's transaction: its offsets become visible, or are dropped.

        A plain commit made after the pending one stays: the record further in the log wins.
        """
        transaction = self._transactions.pop(producer_id, None)
        if transaction is None:
            return
        for group_id, offsets in transaction.offsets.items():
            self._close_transaction(group_id, producer_id)
            if not committed:
                continue
            for partition, pending in offsets.items():
                existing = self.newest.get(group_id, NO_OFFSETS).get(partition)
                if existing is None or pending.record_offset > existing.record_offset:
                    self._put(group_id, partition, pending)
        self._changed_at(record_offset)

    def advance(self, high_watermark: int) -> None:
        """The high watermark has reached `high_watermark`."""
        waiting = self._uncommitted
        while waiting and waiting[0][0] <= high_watermark:
            self.committed = waiting.popleft()[1]

    # --- parts -----------------------------------------------------------------------------

    def _changed_at(self, record_offset: int) -> None:
        self._uncommitted.append((record_offset + 1, self.newest))

    def _put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset) -> None:
        offsets = self.newest.get(group_id, NO_OFFSETS)
        self.newest = self.newest.set(group_id, offsets.set(partition, offset))

    def _drop_pending(self, producer_id: int, group_id: str, partition: TopicPartition) -> None:
        groups = self._transactions[producer_id].offsets
        offsets = groups[group_id]
        offsets.pop(partition, None)
        if not offsets:
            del groups[group_id]
            self._close_transaction(group_id, producer_id)
            if not groups:
                del self._transactions[producer_id]

    def _close_transaction(self, group_id: str, producer_id: int) -> None:
        producers = self._open_by_group[group_id]
        producers.discard(producer_id)
        if not producers:
            del self._open_by_group[group_id]
