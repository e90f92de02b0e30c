"""DeleteTopics (key 20): delete topics, by name or by id.

Versions 1-6; 4 is flexible, 5 has error texts, 6 takes names or ids.

Behaviour: a topic is gone, and its name free, when the answer comes. delete.topic.enable=false refuses all
(TOPIC_DELETION_DISABLED, below version 3 INVALID_REQUEST). Neither or both of name and id, and a topic that is
named twice in whatever way, are INVALID_REQUEST. What may not be described is not told apart from what does not
exist, and the name of an id is told only to who may describe it. The order of the answer is the request's;
Kafka shuffles it.

Left out: controller mutation quotas. Source: ControllerApis.deleteTopics.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from broker.runtime.controller_client import require_time
from broker.security.authorizer import CLUSTER_RESOURCE_NAME, Operation, ResourceType
from coordinator.controller.topics import DeleteTopics
from wire.errors import ErrorCode, KafkaError
from wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext
    from coordinator.metadata.image import TopicsImage

_IDS_FROM = 6
_DISABLED_FROM = 3


class _Asked(NamedTuple):
    """A topic as the request names it: by name, or by id."""

    name: str | None
    topic_id: bytes


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    """Resolve, authorise, delete."""
    if not context.node.config["delete.topic.enable"]:
        code = ErrorCode.TOPIC_DELETION_DISABLED
        if context.api_version < _DISABLED_FROM:
            code = ErrorCode.INVALID_REQUEST
        raise KafkaError(code, "Topic deletion is disabled: delete.topic.enable is false.")
    if context.api_version >= _IDS_FROM:
        asked = [_Asked(topic.name, topic.topic_id) for topic in request.topics]
    else:
        asked = [_Asked(name, ZERO_UUID) for name in request.topic_names]
    results: list[DeletableTopicResult] = []
    deletable: dict[bytes, DeletableTopicResult] = {}
    _resolve(asked, request.timeout_ms, context, results, deletable)
    if deletable:
        outcome = await context.node.controller.request(
            DeleteTopics(list(deletable)), context, timeout_ms=request.timeout_ms
        )
        for topic_id, error in outcome.errors.items():
            if error is not None:
                deletable[topic_id].error_code = error.code
                deletable[topic_id].error_message = error.message
    return DeleteTopicsResponse(responses=results)


def _resolve(
    asked: list[_Asked],
    timeout_ms: int,
    context: RequestContext,
    results: list[DeletableTopicResult],
    deletable: dict[bytes, DeletableTopicResult],
) -> None:
    """Answer what cannot be deleted; prepare the answer of what can, by topic id."""
    topics: TopicsImage = context.node.metadata.image.topics
    on_cluster = context.authorize(Operation.DELETE, ResourceType.CLUSTER, CLUSTER_RESOURCE_NAME)
    remaining = _named_once(asked, results)
    if remaining:
        require_time(timeout_ms)
    for topic in _different(remaining, topics, results):
        found = topics.by_id(topic.topic_id) if topic.name is None else topics.by_name(topic.name)
        name = found.name if found is not None else topic.name
        describes = name is not None and context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name)
        result = DeletableTopicResult(
            name=name if describes or topic.name is not None else None,
            topic_id=found.topic_id if found is not None and describes else topic.topic_id,
        )
        results.append(result)
        if name is not None and not describes:
            _refuse(result, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
        elif found is None:
            _refuse_unknown(result, topic)
        elif not on_cluster and not context.authorize(Operation.DELETE, ResourceType.TOPIC, found.name):
            _refuse(result, ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"DELETE on topic {found.name} is needed.")
        else:
            deletable[found.topic_id] = result


def _named_once(asked: list[_Asked], results: list[DeletableTopicResult]) -> list[_Asked]:
    """The topics that are named exactly once, and either by name or by id; the others are answered here."""
    names = Counter(topic.name for topic in asked if topic.name is not None)
    ids = Counter(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
    remaining = []
    unnamed = [topic for topic in asked if topic.name is None and topic.topic_id == ZERO_UUID]
    # What is named twice is answered once, what is not named at all each time.
    for topic in [*unnamed[1:], *dict.fromkeys(asked)]:
        text = None
        if topic.name is None and topic.topic_id == ZERO_UUID:
            text = "Neither topic name nor id were specified."
        elif topic.name is not None and topic.topic_id != ZERO_UUID:
            text = f"You may not specify both topic name and topic id: {topic.name} has both."
        elif topic.name is not None and names[topic.name] > 1:
            text = f"Duplicate topic name: {topic.name}."
        elif topic.name is None and ids[topic.topic_id] > 1:
            text = "Duplicate topic id."
        if text is None:
            remaining.append(topic)
        else:
            results.append(_ambiguous(topic.name, topic.topic_id, text))
    return remaining


def _different(asked: list[_Asked], topics: TopicsImage, results: list[DeletableTopicResult]) -> list[_Asked]:
    """Without the topics of which the request has the name and the id: one answer speaks for both."""
    ids = {topic.topic_id for topic in asked if topic.name is None}
    by_name = {topic: found for topic in asked if topic.name is not None and (found := topics.by_name(topic.name))}
    pairs = {found.topic_id for found in by_name.values() if found.topic_id in ids}
    remaining = []
    for topic in asked:
        found = by_name.get(topic)
        if found is not None and found.topic_id in pairs:
            text = f"The provided topic name {topic.name} maps to an ID that was already supplied."
            results.append(_ambiguous(topic.name, found.topic_id, text))
        elif topic.topic_id not in pairs:
            remaining.append(topic)
    return remaining


def _ambiguous(name: str | None, topic_id: bytes, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=message
    )


def _refuse(result: DeletableTopicResult, code: ErrorCode, message: str) -> None:
    result.error_code = code
    result.error_message = message


def _refuse_unknown(result: DeletableTopicResult, topic: _Asked) -> None:
    if topic.name is None:
        _refuse(result, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    else:
        text = f"This server does not host topic {topic.name}."
        _refuse(result, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
