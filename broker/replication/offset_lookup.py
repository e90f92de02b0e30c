"""Offsets by timestamp and by special name, as ListOffsets asks for them.

Source: KIP-79, KIP-734, KIP-1005, KIP-1023; Kafka's `Partition.fetchOffsetForTimestamp`,
`UnifiedLog.fetchOffsetByTimestamp`. Without tiered storage the local log is the whole log.
"""

from __future__ import annotations

from typing import NamedTuple

from broker.replication.partition import Partition
from broker.replication.waits import FetchIsolation
from wire.errors import ErrorCode, KafkaError

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

SPECIAL_MIN_VERSIONS = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""From which version of ListOffsets each special timestamp is known."""


class FoundOffset(NamedTuple):
    """An offset, the timestamp of its record (-1 for the specials), the epoch of its batch (-1 unknown)."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


NOT_FOUND = FoundOffset(-1, -1, -1)


def find_offset(
    partition: Partition,
    timestamp_ms: int,
    *,
    isolation: FetchIsolation,
    current_leader_epoch: int = -1,
    leader_only: bool = True,
) -> FoundOffset:
    """The offset for a timestamp or one of the specials (F.1).

    `isolation` is LOG_END for everyone but clients. Raises FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER, and OFFSET_NOT_AVAILABLE from a new leader that does not yet know how far its
    partition is committed (F2).
    """
    partition.check_leader_epoch(current_leader_epoch)
    if leader_only:
        partition.require_leader()
    log = partition.log
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(log.log_start_offset, -1, log.earliest_leader_epoch())
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    limit = partition.fetch_limit(isolation)
    may_lag = isolation != FetchIsolation.LOG_END and partition.is_leader
    is_lagging = may_lag and partition.leader_epoch_start_offset > log.high_watermark
    if timestamp_ms == LATEST:
        if is_lagging:
            raise _not_available(partition)
        return FoundOffset(limit, -1, partition.leader_epoch)
    found = log.offset_of_max_timestamp() if timestamp_ms == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp_ms)
    if found is None:
        return NOT_FOUND
    if found.offset < limit:
        return FoundOffset(found.offset, found.timestamp_ms, found.leader_epoch)
    if is_lagging:
        raise _not_available(partition)
    # Not committed yet: as if it were not there (F1).
    return NOT_FOUND


def _not_available(partition: Partition) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"the high watermark of {partition.topic_partition} ({partition.log.high_watermark}) is still below the start"
        f" of leader epoch {partition.leader_epoch} ({partition.leader_epoch_start_offset})",
    )
