"""OffsetCommit (key 8): store how far a group has got.

Versions 2-10; flexible from 8. v2-4 may give the commit its own retention (KIP-211 ended that); v6
leader epoch; v7 static members; v9 members of consumer groups, and GROUP_ID_NOT_FOUND; v10 topic
ids instead of names (KIP-848).

Behaviour: partitions that do not exist or may not be read are answered each with its error, the
others are committed; errors stand before them in the answer, as in Kafka. Offsets are not compared
with the log. An error of the group is repeated on every partition that was sent on.
`coordinator.group.offset_commit` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_group, require_topic
from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

TOPIC_IDS_FROM = 10


class _Answer:
    """The response under construction: one entry per topic, errors first."""

    def __init__(self, *, by_id: bool) -> None:
        self.response = OffsetCommitResponse()
        self._by_id = by_id
        self._topics: dict[str | bytes, OffsetCommitResponseTopic] = {}

    def add(self, topic: OffsetCommitRequestTopic, partition_index: int, code: ErrorCode) -> None:
        key = topic.topic_id if self._by_id else topic.name
        answered = self._topics.get(key)
        if answered is None:
            answered = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
            self._topics[key] = answered
            self.response.topics.append(answered)
        answered.partitions.append(OffsetCommitResponsePartition(partition_index=partition_index, error_code=code))


async def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    """Authorise, sort out what cannot be committed, have the group commit the rest."""
    group_id = request.group_id
    require_group(Operation.READ, group_id, context)
    by_id = context.api_version >= TOPIC_IDS_FROM
    answer = _Answer(by_id=by_id)
    valid = []
    for topic in request.topics:
        partitions = _committable(topic, answer, context, by_id=by_id)
        if partitions:
            valid.append(OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    if not valid:
        return answer.response
    request.topics = valid
    code = ErrorCode.NONE
    try:
        committed: OffsetCommitResponse = await context.node.groups.write(group_id, request, group_context(context))
    except KafkaError as error:
        code = error.code
        for topic in valid:
            for partition in topic.partitions:
                answer.add(topic, partition.partition_index, code)
        return answer.response
    for topic, done in zip(valid, committed.topics, strict=True):
        for each in done.partitions:
            answer.add(topic, each.partition_index, ErrorCode(each.error_code))
    return answer.response


def _committable(
    topic: OffsetCommitRequestTopic, answer: _Answer, context: RequestContext, *, by_id: bool
) -> list[OffsetCommitRequestPartition]:
    """Fill in the topic's name and id; answer what may not be committed and return the rest."""
    topics = context.node.metadata.image.topics
    found = topics.by_id(topic.topic_id) if by_id else topics.by_name(topic.name)
    try:
        if by_id and found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = topic.name if found is None else found.name
        require_topic(Operation.READ, name, context)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except KafkaError as error:
        for partition in topic.partitions:
            answer.add(topic, partition.partition_index, error.code)
        return []
    # Below v10 the id is stored too: it tells a later topic of the same name apart.
    topic.name, topic.topic_id = name, found.topic_id
    committable = []
    for partition in topic.partitions:
        if partition.partition_index in found.partitions:
            committable.append(partition)
        else:
            answer.add(topic, partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return committable
