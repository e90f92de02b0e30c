"""Requests to the shard that are no messages of the protocol of their own."""

from __future__ import annotations

from dataclasses import dataclass

from wire.messages.offset_fetch import OffsetFetchRequestGroup
from wire.primitives import TopicPartition


@dataclass(frozen=True, slots=True)
class FetchStableOffsets:
    """OffsetFetch with `require_stable`: answered once all that is stored now is replicated.

    Answered by an OffsetFetchResponseGroup. (Without `require_stable` it is a read, see
    GroupShard.fetch_offsets.)
    """

    group: OffsetFetchRequestGroup


@dataclass(frozen=True, slots=True)
class DeletePartitionOffsets:
    """The partitions were deleted: so are their offsets in all groups, pending ones too.

    Answered by True if there is more to delete than fits one append: ask again.
    """

    partitions: frozenset[TopicPartition]
