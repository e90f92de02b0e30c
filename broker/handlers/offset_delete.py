"""OffsetDelete (key 47): forget committed offsets of partitions that a group does not use (KIP-496).

Version 0.

Behaviour: partitions that may not be read or do not exist have their own error; a subscribed
topic's are GROUP_SUBSCRIBED_TO_TOPIC. An error of the group stands alone at the top.
`coordinator.group.offset_deletion` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_group, require_topic
from broker.security.authorizer import Operation
from coordinator.group.validation import check_group_id
from wire.errors import ErrorCode, KafkaError
from wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

_Answers = dict[str, OffsetDeleteResponseTopic]


async def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    """Authorise, sort out what cannot be deleted, have the group forget the rest."""
    group_id = request.group_id
    require_group(Operation.DELETE, group_id, context)
    answers: _Answers = {}
    valid = [topic for topic in request.topics if _is_deletable(topic, answers, context)]
    # Kafka asks the coordinator also when nothing is left, and its error stands alone.
    check_group_id(group_id)
    request.topics = valid
    done: OffsetDeleteResponse = await context.node.groups.write(group_id, request, group_context(context))
    if not answers:
        # A topic named twice is there twice.
        return done
    for topic in done.topics:
        answers.setdefault(topic.name, OffsetDeleteResponseTopic(name=topic.name)).partitions.extend(topic.partitions)
    return OffsetDeleteResponse(topics=list(answers.values()))


def _is_deletable(topic: OffsetDeleteRequestTopic, answers: _Answers, context: RequestContext) -> bool:
    """Leave the partitions that may be deleted in `topic`; answer the others."""
    found = context.node.metadata.image.topics.by_name(topic.name)
    known = {} if found is None else found.partitions
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        require_topic(Operation.READ, topic.name, context)
    except KafkaError as error:
        known, code = {}, error.code
    if not known:
        answers.setdefault(topic.name, OffsetDeleteResponseTopic(name=topic.name))
    valid = []
    for partition in topic.partitions:
        if partition.partition_index in known:
            valid.append(partition)
        else:
            _add(answers, topic.name, partition.partition_index, code)
    topic.partitions = valid
    return bool(valid)


def _add(answers: _Answers, topic: str, index: int, code: ErrorCode) -> None:
    answered = answers.setdefault(topic, OffsetDeleteResponseTopic(name=topic))
    answered.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
