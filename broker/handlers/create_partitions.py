"""CreatePartitions (key 37): give topics more partitions.

Versions 0-3; 2 is flexible.

Behaviour: `count` is the new total. A topic that is named twice is INVALID_REQUEST, one that may not be altered
TOPIC_AUTHORIZATION_FAILED; the controller decides the rest (semantics I19). Old partitions keep their places and
their records. The answer comes when the new ones are usable on this broker.

Left out: controller mutation quotas. Source: ControllerApis.createPartitions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    """Refuse what depends on the client, let the controller decide the rest."""
    counts = Counter(topic.name for topic in request.topics)
    results = {
        name: _result(name, ErrorCode.INVALID_REQUEST, f"Duplicate topic name: {name} is named {count} times.")
        for name, count in counts.items()
        if count > 1
    }
    wanted = []
    for topic in request.topics:
        name = topic.name
        if name in results:
            continue
        if context.authorize(Operation.ALTER, ResourceType.TOPIC, name):
            wanted.append(topic)
        else:
            text = f"Authorization failed: ALTER on topic {name} is needed."
            results[name] = _result(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, text)
    if wanted:
        effective = CreatePartitionsRequest(
            topics=wanted, timeout_ms=request.timeout_ms, validate_only=request.validate_only
        )
        response = await context.node.controller.request(effective, context, timeout_ms=request.timeout_ms)
        results.update((result.name, result) for result in response.results)
    return CreatePartitionsResponse(results=list(results.values()))


def _result(name: str, code: ErrorCode, message: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
