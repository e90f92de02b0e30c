"""How committed offsets go: by request, with their group, with their topic, by age.

Source: Kafka's OffsetMetadataManager (deleteOffsets, deleteAllOffsets, cleanupExpiredOffsets,
onPartitionsDeleted) and GroupCoordinatorShard.
"""

from __future__ import annotations

from coordinator.group.context import GroupSettings
from coordinator.group.group import Group, OffsetExpiry
from coordinator.group.groups import Groups
from coordinator.group.offset_store import OffsetStore
from coordinator.group.records import NO_TIMESTAMP, CommittedOffset, offset_tombstone
from coordinator.group.settlement import CleanupScheduled, GroupDecision
from coordinator.machine import CoordinatorRecord, Ticket
from wire.errors import ErrorCode, KafkaError
from wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from wire.primitives import TopicPartition

RECORDS_PER_APPEND = 4096
"""Deletions of any number are cut into appends of about this many records, far below a batch's
size limit."""


def delete_offsets(
    store: OffsetStore, group: Group | None, request: OffsetDeleteRequest, ticket: Ticket
) -> GroupDecision:
    """Decide an OffsetDelete. Raises KafkaError if the whole request is refused."""
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    group.validate_offset_delete()
    offsets = store.of_group(request.group_id)
    records: list[CoordinatorRecord] = []
    topics = []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        answered = OffsetDeleteResponseTopic(name=topic.name)
        topics.append(answered)
        for each in topic.partitions:
            answered.partitions.append(
                OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            )
            partition = TopicPartition(topic.name, each.partition_index)
            stored = partition in offsets or store.has_pending(request.group_id, partition)
            if stored and not subscribed:
                records.append(offset_tombstone(request.group_id, *partition))
    return GroupDecision(records=records, replies=((ticket, OffsetDeleteResponse(topics=topics)),))


def delete_groups(store: OffsetStore, groups: Groups, request: DeleteGroupsRequest, ticket: Ticket) -> GroupDecision:
    """Decide a DeleteGroups: each group is answered for itself."""
    records: list[CoordinatorRecord] = []
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        result = DeletableGroupResult(group_id=group_id)
        results.append(result)
        try:
            group = groups.get(group_id)
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
            group.validate_delete()
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
            continue
        partitions = {*store.of_group(group_id), *store.pending_of_group(group_id)}
        records.extend(offset_tombstone(group_id, *partition) for partition in sorted(partitions))
        records.extend(group.tombstones())
    return GroupDecision(records=records, replies=((ticket, DeleteGroupsResponse(results=results)),))


def delete_partition_offsets(
    store: OffsetStore, partitions: frozenset[TopicPartition], ticket: Ticket
) -> GroupDecision:
    """Decide what to delete of partitions that are no more; answers True if there is more."""
    records: list[CoordinatorRecord] = []
    for group_id in store.groups_with_offsets():
        stored = {*store.of_group(group_id), *store.pending_of_group(group_id)} & partitions
        records.extend(offset_tombstone(group_id, *partition) for partition in sorted(stored))
        if len(records) >= RECORDS_PER_APPEND:
            return GroupDecision(records=records, replies=((ticket, True),))
    return GroupDecision(records=records, replies=((ticket, False),))


def clean_up(store: OffsetStore, groups: Groups, settings: GroupSettings, now_ms: int, after: str) -> GroupDecision:
    """Decide what has expired, in groups with ids behind `after`.

    An empty group whose last offset goes, or that has none, is deleted. Stops after enough records
    for one append and then goes on at once.
    """
    records: list[CoordinatorRecord] = []
    for group in groups:
        if group.group_id <= after and after:
            continue
        expired, is_all = _expired(store, group, settings, now_ms)
        records.extend(offset_tombstone(group.group_id, *partition) for partition in expired)
        if is_all and group.is_empty:
            records.extend(group.tombstones())
        if len(records) >= RECORDS_PER_APPEND:
            scheduled = CleanupScheduled(now_ms, group.group_id)
            return GroupDecision(records=records, volatile=(scheduled,))
    next_ms = now_ms + settings.offsets_retention_check_interval_ms
    return GroupDecision(records=records, volatile=(CleanupScheduled(next_ms),))


def _expired(
    store: OffsetStore, group: Group, settings: GroupSettings, now_ms: int
) -> tuple[list[TopicPartition], bool]:
    """Partitions whose offset has expired; and whether that leaves the group without offsets."""
    offsets = store.of_group(group.group_id)
    is_open = store.has_open_transactions(group.group_id)
    if not offsets:
        return [], not is_open
    expiry = group.offset_expiry()
    if expiry is None:
        return [], False
    expired = [
        partition
        for partition in sorted(offsets)
        if not group.is_subscribed_to(partition.topic)
        and _is_expired(offsets[partition], expiry, settings.offsets_retention_ms, now_ms)
        and not store.has_pending(group.group_id, partition)
    ]
    return expired, len(expired) == len(offsets) and not is_open


def _is_expired(offset: CommittedOffset, expiry: OffsetExpiry, retention_ms: int, now_ms: int) -> bool:
    if offset.expire_timestamp_ms != NO_TIMESTAMP:
        # The commit said itself how long it is to be kept (OffsetCommit v2-4).
        return now_ms >= offset.expire_timestamp_ms
    since_ms = expiry.idle_since_ms
    return now_ms - (offset.commit_timestamp_ms if since_ms is None else since_ms) >= retention_ms
