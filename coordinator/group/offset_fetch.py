"""OffsetFetch of one group. Source: Kafka's OffsetMetadataManager (fetchOffsets, fetchAllOffsets)."""

from __future__ import annotations

from coordinator.group.group import Group
from coordinator.group.offset_store import OffsetStore
from coordinator.group.records import CommittedOffset
from wire.errors import ErrorCode
from wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from wire.primitives import ZERO_UUID, TopicPartition

NO_OFFSET = CommittedOffset(-1)


def fetch_offsets(
    store: OffsetStore,
    group: Group | None,
    request: OffsetFetchRequestGroup,
    *,
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    """Offsets of the asked partitions, or of all that have one if the topics are null.

    An unknown group or partition has offset -1 and no error. `require_stable` looks at everything
    stored, also what is not replicated yet, and answers UNSTABLE_OFFSET_COMMIT where an open
    transaction is about to commit; otherwise only replicated offsets are seen. Raises KafkaError
    if a member of a modern group is not who it says (OffsetFetch v9).
    """
    if group is not None:
        group.validate_offset_fetch(request.member_id, request.member_epoch)
    offsets = store.of_group(request.group_id, committed=not require_stable)
    wanted = [(topic.name, topic.topic_id, topic.partition_indexes) for topic in request.topics or ()]
    if request.topics is None:
        by_topic: dict[str, list[int]] = {}
        for topic, index in sorted(offsets):
            by_topic.setdefault(topic, []).append(index)
        wanted = [(topic, ZERO_UUID, partitions) for topic, partitions in by_topic.items()]
    topics = []
    for name, topic_id, partitions in wanted:
        answered = OffsetFetchResponseTopics(name=name, topic_id=topic_id)
        topics.append(answered)
        for index in partitions:
            partition = TopicPartition(name, index)
            if require_stable and store.has_pending(request.group_id, partition):
                answer = _answer(index, NO_OFFSET, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            else:
                found = offsets.get(partition, NO_OFFSET)
                answer = _answer(index, NO_OFFSET if _is_other(topic_id, found) else found)
            answered.partitions.append(answer)
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def _is_other(topic_id: bytes, found: CommittedOffset) -> bool:
    """The offset was committed for another topic that had the same name."""
    return ZERO_UUID not in (topic_id, found.topic_id) and topic_id != found.topic_id


def _answer(index: int, offset: CommittedOffset, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=code,
    )
