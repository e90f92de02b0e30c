"""FindCoordinator (key 10): which broker coordinates a group, a transactional id, a share partition.

Versions 0-6; flexible from 3. v1 key types; v4 several keys at once (KIP-699); v6 share partitions
(KIP-932), keyed `group:topicId:partition`.

Behaviour: the coordinator is the leader of the key's partition in the internal topic. A missing
topic is created, and the answer waits for it (Kafka answers COORDINATOR_NOT_AVAILABLE until it is
there). Share coordinators are off: INVALID_REQUEST, as Kafka answers then and for unknown types.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.handlers.group_context import require_group
from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from wire.primitives import coordinator_partition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

SEVERAL_KEYS_FROM = 4
GROUP_KEY, TRANSACTION_KEY = 0, 1
TOPIC_OF_KEY_TYPE = {GROUP_KEY: "__consumer_offsets", TRANSACTION_KEY: "__transaction_state"}


class Endpoint(NamedTuple):
    """Where a coordinator is reached on the listener that the request came in on."""

    node_id: int
    host: str
    port: int


async def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    """Answer one key (below v4) or each of several."""
    if context.api_version < SEVERAL_KEYS_FROM:
        found = await _find(request.key, request.key_type, context)
        # Kafka writes the error's name here, also when there is none.
        return FindCoordinatorResponse(
            error_message=ErrorCode.NONE.name, node_id=found.node_id, host=found.host, port=found.port
        )
    return FindCoordinatorResponse(
        coordinators=[await _answer(key, request.key_type, context) for key in request.coordinator_keys]
    )


async def _answer(key: str, key_type: int, context: RequestContext) -> Coordinator:
    try:
        found = await _find(key, key_type, context)
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message or ""
        )
    return Coordinator(key=key, node_id=found.node_id, host=found.host, port=found.port, error_message="")


async def _find(key: str, key_type: int, context: RequestContext) -> Endpoint:
    """Raises KafkaError: not authorised, an unknown key type, or no coordinator at present."""
    if key_type == GROUP_KEY:
        require_group(Operation.DESCRIBE, key, context)
    elif key_type == TRANSACTION_KEY:
        if not context.authorize(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"key type {key_type} is none of 0 (group) and 1 (transaction)")
    name = TOPIC_OF_KEY_TYPE[key_type]
    node = context.node
    refusal = (await node.auto_topics.ensure([name])).get(name)
    topic = node.metadata.image.topics.by_name(name)
    if topic is None:
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"topic {name} does not exist and cannot be created: {refusal or 'it was deleted at once'}",
        )
    partition = topic.partitions[coordinator_partition(key, len(topic.partitions))]
    broker = node.metadata.image.brokers.get(partition.leader)
    endpoint = None if broker is None or broker.fenced else broker.endpoint(context.listener_name)
    if endpoint is None:
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"the partition of {name} that holds {key} has no leader with a listener {context.listener_name}",
        )
    return Endpoint(broker.broker_id, endpoint.host, endpoint.port)
