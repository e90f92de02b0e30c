"""Records of `__consumer_offsets` about offsets: built here, read back here.

Versions are those that Kafka 4.4 writes: OffsetCommitValue 4 (it carries the topic id), or 1 where
the commit set its own retention, because that version alone has an expiry time.
Source: Kafka's GroupCoordinatorRecordHelpers and OffsetAndMetadata.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.machine import CoordinatorRecord
from wire.messages.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from wire.primitives import ZERO_UUID

NO_TIMESTAMP = -1
OFFSET_COMMIT_VERSION = 4
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1


class CommittedOffset(NamedTuple):
    """What a group committed for one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Set by OffsetCommit v2-4 with a retention; -1 otherwise."""
    topic_id: bytes = ZERO_UUID
    """All zero if the record or the request did not know it."""
    record_offset: int = -1
    """Where the record stands in `__consumer_offsets`: decides between a commit and a transaction."""


def offset_commit_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> CoordinatorRecord:
    """The record that stores a committed offset."""
    expires = committed.expire_timestamp_ms != NO_TIMESTAMP
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
            topic_id=committed.topic_id,
        ),
        OFFSET_COMMIT_VERSION_WITH_EXPIRY if expires else OFFSET_COMMIT_VERSION,
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """The record that deletes a committed offset, and pending ones of open transactions."""
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def committed_offset(value: OffsetCommitValue, record_offset: int) -> CommittedOffset:
    """The committed offset that a record at `record_offset` stores."""
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        record_offset,
    )
