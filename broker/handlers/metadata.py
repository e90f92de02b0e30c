"""Metadata (key 3): brokers, topics, partitions and their leaders, as one listener sees them.

Versions 0-13; 4 says whether asking may create topics, 9 is flexible, 10 has topic ids, 12 asks by them.

Behaviour: the published image answers. No topics named means all (null from version 1, an empty list in
version 0); an empty list from version 1 asks for brokers only. Brokers and leaders have the endpoints of the
listener the request came in on; fenced brokers are left out. A leader without an endpoint there is
LISTENER_NOT_FOUND (below version 6 LEADER_NOT_AVAILABLE). Version 0 leaves dead replicas out and says
REPLICA_NOT_AVAILABLE. `controller_id` is a live broker, since any of them takes controller requests.

Kinder than Kafka: a topic that asking creates (auto.create.topics.enable) is in the answer with its leader
and no error; Kafka answers UNKNOWN_TOPIC_OR_PARTITION and has the topic a moment later.

Left out: the top-level error of version 13 (KIP-1102 defines it for proxies), as in Kafka.
Source: KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache.getTopicMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import CLUSTER_RESOURCE_NAME, Operation, ResourceType
from coordinator.controller.topic_names import is_internal, name_problem
from coordinator.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from wire.errors import ErrorCode, KafkaError
from wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

NO_LEADER = -1
_IDS_ASKED_FROM = 12
_LISTENER_ERROR_FROM = 6


async def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """Create what may be created, then answer from one image."""
    try:
        return await _answer(request, context)
    except KafkaError as error:
        # Names may be null in the request where they may not in the answer (versions 10 and 11).
        topics = [_refused(topic.name or "", error.code, internal=False) for topic in request.topics or ()]
        for result, topic in zip(topics, request.topics or (), strict=True):
            result.topic_id = topic.topic_id
        return MetadataResponse(topics=topics)


async def _answer(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    version = context.api_version
    topics = request.topics
    everything = topics is None or (version == 0 and not topics)
    if everything or topics is None:
        asked_ids: list[bytes] = []
        asked_names: list[str] = []
    else:
        _check_identities(request, version)
        asked_ids = list(dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_UUID))
        asked_names = [] if asked_ids else list(dict.fromkeys(_name(topic) for topic in topics))
    results = await _named(asked_names, request.allow_auto_topic_creation, context) if asked_names else []
    view = _View(context)
    if everything:
        results = [
            view.topic(topic)
            for topic in view.image.topics
            if context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
    elif asked_ids:
        results = [_by_id(topic_id, view, context) for topic_id in asked_ids]
    if request.include_topic_authorized_operations:
        for result in results:
            if result.name is not None:
                result.topic_authorized_operations = context.authorized_operations(ResourceType.TOPIC, result.name)
    return _response(request, results, view, context)


def _check_identities(request: MetadataRequest, version: int) -> None:
    if version >= _IDS_ASKED_FROM:
        return
    for topic in request.topics or ():
        if topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}")
        if topic.topic_id != ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported for version {version}")


def _name(topic: MetadataRequestTopic) -> str:
    if topic.name is None:
        # Kafka trips over this one, and answers so.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "A topic has neither a name nor an id.")
    return topic.name


async def _named(names: list[str], may_create: bool, context: RequestContext) -> list[MetadataResponseTopic]:
    """The topics of these names, created first where they are missing and may be."""
    allowed = {name: context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names}
    errors: dict[str, KafkaError] = {}
    node = context.node
    if may_create and node.config["auto.create.topics.enable"]:
        topics = node.metadata.image.topics
        missing = [name for name in names if allowed[name] and topics.by_name(name) is None]
        if missing:
            errors = await _create(missing, context)
    view = _View(context)
    results = []
    for name in names:
        topic = view.image.topics.by_name(name)
        if not allowed[name]:
            # Nothing is said about whether it exists.
            results.append(_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, internal=False))
        elif topic is not None:
            results.append(view.topic(topic))
        elif name in errors:
            results.append(_refused(name, errors[name].code))
        elif name_problem(name) is not None:
            results.append(_refused(name, ErrorCode.INVALID_TOPIC_EXCEPTION))
        else:
            results.append(_refused(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return results


async def _create(names: list[str], context: RequestContext) -> dict[str, KafkaError]:
    """Create missing topics; why not, for those that are still missing."""
    errors: dict[str, KafkaError] = {}
    creatable = []
    on_cluster = context.authorize(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_RESOURCE_NAME)
    for name in names:
        if not on_cluster and not context.authorize(Operation.CREATE, ResourceType.TOPIC, name):
            errors[name] = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif name_problem(name) is None:
            creatable.append(name)
    for name, error in (await context.node.auto_topics.ensure(creatable)).items():
        # What stops a creation here (too few brokers, a colliding name) is not a code that clients of
        # Metadata know how to take; Kafka answers with the first, and retries with the next request.
        code = error.code
        if code not in (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        errors[name] = KafkaError(code, error.message)
    return errors


def _refused(name: str, code: ErrorCode, *, internal: bool | None = None) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=is_internal(name) if internal is None else internal,
        partitions=[],
    )


def _by_id(topic_id: bytes, view: _View, context: RequestContext) -> MetadataResponseTopic:
    topic = view.image.topics.by_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    if not context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        # Topic ids are no secret, names are.
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=topic_id)
    return view.topic(topic)


class _View:
    """One image as the request's listener and version see it."""

    def __init__(self, context: RequestContext) -> None:
        self.image: MetadataImage = context.node.metadata.image
        self.alive: dict[int, BrokerImage] = {
            broker.broker_id: broker
            for broker in self.image.alive_brokers()
            if broker.endpoint(context.listener_name) is not None
        }
        # The directories in which a replica of each live broker can be read.
        self._online = {broker_id: broker.online_directories() for broker_id, broker in self.alive.items()}
        self._hides_dead = context.api_version == 0
        self._no_listener = (
            ErrorCode.LISTENER_NOT_FOUND
            if context.api_version >= _LISTENER_ERROR_FROM
            else ErrorCode.LEADER_NOT_AVAILABLE
        )

    def topic(self, topic: TopicImage) -> MetadataResponseTopic:
        """A topic with all its partitions."""
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=is_internal(topic.name),
            partitions=[self._partition(index, partition) for index, partition in topic.in_order()],
        )

    def _partition(self, index: int, partition: PartitionImage) -> MetadataResponsePartition:
        replicas, isr = list(partition.replicas), list(partition.isr)
        if self._hides_dead:
            replicas = [replica for replica in replicas if replica in self.alive]
            isr = [replica for replica in isr if replica in self.alive]
        leader, code = partition.leader, ErrorCode.NONE
        if leader not in self.alive:
            code = self._no_listener if leader in self.image.brokers else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_LEADER
        elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            code = ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=code,
            partition_index=index,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=[
                replica
                for replica, directory in zip(partition.replicas, partition.directories, strict=True)
                if replica not in self._online or directory not in self._online[replica]
            ],
        )


def _response(
    request: MetadataRequest, topics: list[MetadataResponseTopic], view: _View, context: RequestContext
) -> MetadataResponse:
    brokers = []
    for broker in view.alive.values():
        endpoint = broker.endpoint(context.listener_name)
        assert endpoint is not None
        brokers.append(
            MetadataResponseBroker(node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        )
    response = MetadataResponse(
        brokers=brokers,
        cluster_id=context.node.cluster_id,
        controller_id=min(view.alive, default=-1),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        describes = context.authorize_cluster(Operation.DESCRIBE)
        response.cluster_authorized_operations = (
            context.authorized_operations(ResourceType.CLUSTER, CLUSTER_RESOURCE_NAME) if describes else 0
        )
    return response
