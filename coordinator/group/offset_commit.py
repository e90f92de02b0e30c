"""OffsetCommit and TxnOffsetCommit: what a group may commit, and the records of it.

The handler has resolved topic ids and checked that the partitions exist. Source: Kafka's
OffsetMetadataManager (commitOffset, commitTransactionalOffset).
"""

from __future__ import annotations

from coordinator.group.context import GroupContext
from coordinator.group.group import Group, PartitionCheck, SessionRefreshed
from coordinator.group.records import NO_TIMESTAMP, CommittedOffset, offset_commit_record
from coordinator.group.settlement import GroupDecision
from coordinator.machine import CoordinatorRecord, Ticket
from wire.errors import ErrorCode, KafkaError
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from wire.primitives import ZERO_UUID

NO_RETENTION = -1
GROUP_ID_NOT_FOUND_FROM = 9
TRANSACTIONAL_GROUP_ID_NOT_FOUND_FROM = 6


def commit_offsets(
    group: Group | None,
    request: OffsetCommitRequest,
    context: GroupContext,
    now_ms: int,
    ticket: Ticket,
) -> GroupDecision:
    """Decide an OffsetCommit. Raises KafkaError if the whole request is refused.

    A group that does not exist comes into being by the records, if the commit is not a member's.
    """
    generation_id = request.generation_id_or_member_epoch
    sessions: tuple[SessionRefreshed, ...] = ()
    check: PartitionCheck | None = None
    if group is not None:
        check = group.validate_offset_commit(
            request.member_id,
            request.group_instance_id,
            generation_id,
            transactional=False,
            api_version=context.api_version,
        )
        sessions = group.sessions_kept_alive(request.member_id, now_ms)
    elif generation_id >= 0:
        raise _unknown_group(request.group_id, context, GROUP_ID_NOT_FOUND_FROM)
    retention_ms = request.retention_time_ms
    expire_timestamp_ms = NO_TIMESTAMP if retention_ms == NO_RETENTION else now_ms + retention_ms
    records: list[CoordinatorRecord] = []
    topics = []
    for topic in request.topics:
        answered = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        topics.append(answered)
        for partition in topic.partitions:
            code = _check_metadata(partition.committed_metadata, context)
            answered.partitions.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
            if code is ErrorCode.NONE:
                if check is not None:
                    check(topic.name, topic.topic_id, partition.partition_index)
                offset = _committed(partition, now_ms, expire_timestamp_ms, topic.topic_id)
                records.append(offset_commit_record(request.group_id, topic.name, partition.partition_index, offset))
    return GroupDecision(
        records=records,
        replies=((ticket, OffsetCommitResponse(topics=topics)),),
        volatile=sessions,
    )


def commit_transactional_offsets(
    group: Group | None,
    request: TxnOffsetCommitRequest,
    context: GroupContext,
    now_ms: int,
    ticket: Ticket,
) -> GroupDecision:
    """Decide a TxnOffsetCommit. Raises KafkaError if the whole request is refused.

    The records belong to the producer's transaction: they are pending until its marker.
    """
    generation_id = request.generation_id_or_member_epoch
    check: PartitionCheck | None = None
    if group is not None:
        check = _validate_transactional(group, request, context)
    elif generation_id >= 0:
        raise _unknown_group(request.group_id, context, TRANSACTIONAL_GROUP_ID_NOT_FOUND_FROM)
    records: list[CoordinatorRecord] = []
    topics = []
    for topic in request.topics:
        answered = TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        topics.append(answered)
        for partition in topic.partitions:
            code = _check_metadata(partition.committed_metadata, context)
            answered.partitions.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
            if code is ErrorCode.NONE:
                if check is not None:
                    check(topic.name, _topic_id(topic, context), partition.partition_index)
                offset = _committed(partition, now_ms, NO_TIMESTAMP, topic.topic_id)
                records.append(offset_commit_record(request.group_id, topic.name, partition.partition_index, offset))
    return GroupDecision(
        records=records,
        replies=((ticket, TxnOffsetCommitResponse(topics=topics)),),
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
    )


def _validate_transactional(
    group: Group, request: TxnOffsetCommitRequest, context: GroupContext
) -> PartitionCheck | None:
    """As Group.validate_offset_commit; older clients know another code for a stale epoch."""
    try:
        check = group.validate_offset_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            transactional=True,
            api_version=context.api_version,
        )
    except KafkaError as error:
        raise _transactional_error(error, context) from error
    if check is None:
        return None

    def check_partition(topic: str, topic_id: bytes, partition: int) -> None:
        try:
            check(topic, topic_id, partition)
        except KafkaError as error:
            raise _transactional_error(error, context) from error

    return check_partition


def _transactional_error(error: KafkaError, context: GroupContext) -> KafkaError:
    knows_stale_epoch = context.api_version >= TRANSACTIONAL_GROUP_ID_NOT_FOUND_FROM
    if error.code is ErrorCode.STALE_MEMBER_EPOCH and not knows_stale_epoch:
        return KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message)
    return error


def _topic_id(topic: TxnOffsetCommitRequestTopic, context: GroupContext) -> bytes:
    """Below v6 the request names topics only."""
    if topic.topic_id != ZERO_UUID:
        return topic.topic_id
    found = context.image.topics.by_name(topic.name)
    return ZERO_UUID if found is None else found.topic_id


def _unknown_group(group_id: str, context: GroupContext, since_version: int) -> KafkaError:
    """A member's commit to a group that does not exist; older clients know another code only."""
    if context.api_version >= since_version:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return KafkaError(ErrorCode.ILLEGAL_GENERATION)


def _check_metadata(metadata: str | None, context: GroupContext) -> ErrorCode:
    if metadata is not None and java_length(metadata) > context.settings.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def java_length(text: str) -> int:
    """Length as Java counts it, in UTF-16 units: Kafka compares this with a limit in bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _committed(
    partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    now_ms: int,
    expire_timestamp_ms: int,
    topic_id: bytes,
) -> CommittedOffset:
    return CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms,
        expire_timestamp_ms,
        topic_id,
    )
