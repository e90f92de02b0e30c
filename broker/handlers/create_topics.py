"""CreateTopics (key 19): make topics, with their partitions and settings.

Versions 2-7; 4 allows -1 for the defaults, 5 is flexible and answers counts and settings, 7 answers topic ids.

Behaviour: what depends on the client is refused here, the rest is decided by the controller, each topic on its
own, in the order of semantics I.2. `validate_only` does everything but the write. The answer comes when the topics
are committed and usable on this broker. Without DESCRIBE_CONFIGS on a topic its counts and settings are hidden.

Left out: create.topic.policy.class.name (no Java here), controller mutation quotas.
Source: ControllerApis.createTopics, ReplicationControlManager.createTopics.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker.security.authorizer import CLUSTER_RESOURCE_NAME, Operation, ResourceType
from coordinator.controller.topic_names import CLUSTER_METADATA_TOPIC
from wire.errors import ErrorCode
from wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Refuse here, let the controller decide the rest; refused topics come last, as Kafka answers."""
    counts = Counter(topic.name for topic in request.topics)
    on_cluster = context.authorize(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_RESOURCE_NAME)
    refused: dict[str, CreatableTopicResult] = {}
    wanted = []
    for topic in request.topics:
        name = topic.name
        if name in refused:
            continue
        if name == CLUSTER_METADATA_TOPIC:
            text = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            refused[name] = _result(name, ErrorCode.INVALID_REQUEST, text)
        elif counts[name] > 1:
            text = f"Duplicate topic name: {name} is named {counts[name]} times in the request."
            refused[name] = _result(name, ErrorCode.INVALID_REQUEST, text)
        elif not on_cluster and not context.authorize(Operation.CREATE, ResourceType.TOPIC, name):
            text = f"Authorization failed: CREATE on the cluster or on topic {name} is needed."
            refused[name] = _result(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, text)
        else:
            wanted.append(topic)
    response = CreateTopicsResponse(topics=[])
    if wanted:
        effective = CreateTopicsRequest(
            topics=wanted, timeout_ms=request.timeout_ms, validate_only=request.validate_only
        )
        response = await context.node.controller.request(effective, context, timeout_ms=request.timeout_ms)
    for result in response.topics:
        if result.error_code == ErrorCode.NONE:
            _hide_settings(result, context)
    response.topics.extend(refused.values())
    return response


def _result(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _hide_settings(result: CreatableTopicResult, context: RequestContext) -> None:
    if context.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, result.name):
        return
    result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    result.num_partitions = -1
    result.replication_factor = -1
    result.configs = None
