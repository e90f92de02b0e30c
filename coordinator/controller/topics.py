"""CreateTopics, DeleteTopics and CreatePartitions, decided in Kafka's order of errors (I.2, I.3).

The handlers have already refused what depends on the client (authorisation, doubled names). Source:
ReplicationControlManager.createTopics, deleteTopics, createPartitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.controller.assignments import check_replicas, new_partition
from coordinator.controller.placement import place_replicas
from coordinator.controller.topic_names import (
    has_collision_characters,
    name_problem,
    unified,
)
from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import Event, MetadataRecord
from coordinator.metadata import features
from coordinator.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC, PartitionImage, TopicImage
from coordinator.metadata.replay_topics import partition_record
from wire.errors import ErrorCode, KafkaError
from wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.messages.records.cluster_metadata import ConfigRecord, RemoveTopicRecord, TopicRecord

PARTITIONS_PER_REQUEST_MAX = 10_000
"""Kafka's MAX_PARTITIONS_PER_BATCH: the records of one request are one atomic batch."""


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Delete these topics; the handler has resolved and authorised names and ids."""

    topic_ids: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class DeleteTopicsResult:
    """Per topic id: None when it is deleted, else why not."""

    errors: dict[bytes, KafkaError | None]


def create_topics(request: CreateTopicsRequest, view: ControllerView) -> Outcome:
    """Every topic is decided on its own: one that is refused does not hold up the others."""
    _check_total(request, view)
    taken = _taken_names(request, view)
    results: list[CreatableTopicResult] = []
    records: list[MetadataRecord] = []
    events: list[Event] = []
    for topic in request.topics:
        try:
            result, topic_records = _create_topic(topic, taken, view)
        except KafkaError as error:
            results.append(CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message))
            continue
        results.append(result)
        records.extend(topic_records)
        events.append(
            Event(
                f"Topic {topic.name} is created with {result.num_partitions} partition(s) and "
                f"replication factor {result.replication_factor}."
            )
        )
    response = CreateTopicsResponse(topics=results)
    if request.validate_only:
        return Outcome(response)
    return Outcome(response, records, events)


def _check_total(request: CreateTopicsRequest, view: ControllerView) -> None:
    default = view.settings.num_partitions
    total = sum(
        len(topic.assignments) or (default if topic.num_partitions == -1 else topic.num_partitions)
        for topic in request.topics
    )
    if total > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {total} are asked for, the limit "
            f"is {PARTITIONS_PER_REQUEST_MAX}.",
        )


def _taken_names(request: CreateTopicsRequest, view: ControllerView) -> dict[str, str]:
    """Existing names by what they look like to metrics, if a name of the request can collide."""
    if not any(has_collision_characters(topic.name) for topic in request.topics):
        return {}
    return {unified(name): name for name in view.image.topics.names() if has_collision_characters(name)}


def _create_topic(
    topic: CreatableTopic, taken: dict[str, str], view: ControllerView
) -> tuple[CreatableTopicResult, list[MetadataRecord]]:
    _check_name(topic.name, taken, view)
    configs = _checked_configs(topic, view)
    partitions = _assigned_partitions(topic, view) if topic.assignments else _placed_partitions(topic, view)
    topic_id = view.ids.uuid()
    version = features.partition_version(view.metadata_version)
    records = [MetadataRecord(TopicRecord(name=topic.name, topic_id=topic_id))]
    # Settings come before partitions, so that a reader opens the logs with them.
    records += [
        MetadataRecord(ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name=topic.name, name=name, value=value))
        for name, value in configs.items()
    ]
    records += [
        MetadataRecord(partition_record(topic_id, index, partition, version), version)
        for index, partition in enumerate(partitions)
    ]
    cluster_default = view.image.configs.of(RESOURCE_BROKER, "")
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(
                name=setting.name,
                value=None if setting.is_sensitive else setting.value,
                read_only=setting.read_only,
                config_source=setting.source,
                is_sensitive=setting.is_sensitive,
            )
            for setting in view.settings.topic_settings.effective(configs, cluster_default)
        ],
    )
    return result, records


def _check_name(name: str, taken: dict[str, str], view: ControllerView) -> None:
    """An existing name wins over the other complaints, as in Kafka."""
    if view.image.topics.by_name(name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    other = taken.get(unified(name))
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )


def _checked_configs(topic: CreatableTopic, view: ControllerView) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    if configs:
        view.settings.topic_settings.check(configs)
    return configs


def _assigned_partitions(topic: CreatableTopic, view: ControllerView) -> list[PartitionImage]:
    """The partitions of a manual assignment."""
    for given, what in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if given != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified for topic {topic.name}, but "
                f"{what} was {given}: it must be -1.",
            )
    by_index: dict[int, PartitionImage] = {}
    replication_factor = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in by_index:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        replicas = tuple(assignment.broker_ids)
        check_replicas(replicas, replication_factor, view)
        replication_factor = len(replicas)
        by_index[index] = new_partition(
            replicas,
            view,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} "
            f"are fenced or in controlled shutdown.",
        )
    missing = next((index for index in range(len(by_index)) if index not in by_index), None)
    if missing is not None:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"partitions should be a consecutive 0-based integer sequence, but partition "
            f"{missing} of topic {topic.name} is not assigned",
        )
    return [by_index[index] for index in range(len(by_index))]


def _placed_partitions(topic: CreatableTopic, view: ControllerView) -> list[PartitionImage]:
    """The partitions as the controller places them."""
    replication_factor = topic.replication_factor
    if replication_factor < -1 or replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor of topic {topic.name} is {replication_factor}: it must be larger "
            f"than 0, or -1 to use default.replication.factor.",
        )
    partition_count = topic.num_partitions
    if partition_count < -1 or partition_count == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Number of partitions of topic {topic.name} is {partition_count}: it must be larger "
            f"than 0, or -1 to use num.partitions.",
        )
    settings = view.settings
    if partition_count == -1:
        partition_count = settings.num_partitions
    if replication_factor == -1:
        replication_factor = settings.default_replication_factor
    return _place(partition_count, replication_factor, view)


def _place(partition_count: int, replication_factor: int, view: ControllerView) -> list[PartitionImage]:
    brokers = view.image.brokers.values()
    return [
        new_partition(
            replicas,
            view,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): All brokers are "
            f"currently fenced or in controlled shutdown.",
        )
        for replicas in place_replicas(brokers, partition_count, replication_factor, view.ids)
    ]


def delete_topics(request: DeleteTopics, view: ControllerView) -> Outcome:
    """Delete the topics that exist; their logs go when the brokers learn of it."""
    errors: dict[bytes, KafkaError | None] = {}
    records: list[MetadataRecord] = []
    events: list[Event] = []
    for topic_id in request.topic_ids:
        topic = view.image.topics.by_id(topic_id)
        if topic is None:
            errors[topic_id] = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        errors[topic_id] = None
        records.append(MetadataRecord(RemoveTopicRecord(topic_id=topic_id)))
        events.append(Event(f"Topic {topic.name} is deleted."))
    return Outcome(DeleteTopicsResult(errors), records, events)


def create_partitions(request: CreatePartitionsRequest, view: ControllerView) -> Outcome:
    """Give topics more partitions; the old ones stay where they are."""
    _check_total_additions(request, view)
    results: list[CreatePartitionsTopicResult] = []
    records: list[MetadataRecord] = []
    events: list[Event] = []
    for topic in request.topics:
        code, message = ErrorCode.NONE, None
        try:
            records.extend(_more_partitions(topic, view))
        except KafkaError as error:
            code, message = error.code, error.message
        else:
            events.append(Event(f"Topic {topic.name} has {topic.count} partitions now."))
        results.append(CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message))
    response = CreatePartitionsResponse(results=results)
    if request.validate_only:
        return Outcome(response)
    return Outcome(response, records, events)


def _check_total_additions(request: CreatePartitionsRequest, view: ControllerView) -> None:
    additional = 0
    for topic in request.topics:
        existing = view.image.topics.by_name(topic.name)
        if existing is not None:
            additional += max(topic.count - len(existing.partitions), 0)
    if additional > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of additional partitions per request: {additional} are asked for, the "
            f"limit is {PARTITIONS_PER_REQUEST_MAX}.",
        )


def _more_partitions(topic: CreatePartitionsTopic, view: ControllerView) -> list[MetadataRecord]:
    existing = view.image.topics.by_name(topic.name)
    if existing is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{topic.name}' does not exist.")
    current = len(existing.partitions)
    _check_count(topic, current)
    replication_factor = len(existing.partitions[0].replicas)
    if topic.assignments is None:
        partitions = _place(topic.count - current, replication_factor, view)
    else:
        partitions = _assigned_additions(topic, existing, replication_factor, view)
    version = features.partition_version(view.metadata_version)
    return [
        MetadataRecord(partition_record(existing.topic_id, index, partition, version), version)
        for index, partition in enumerate(partitions, current)
    ]


def _check_count(topic: CreatePartitionsTopic, current: int) -> None:
    if topic.count == current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name} already has {current} partition(s).",
        )
    if topic.count < current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); {topic.count} would not be an increase.",
        )
    additional = topic.count - current
    if topic.assignments is not None and len(topic.assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s) to topic {topic.name}, but "
            f"only {len(topic.assignments)} assignment(s) were specified.",
        )


def _assigned_additions(
    topic: CreatePartitionsTopic,
    existing: TopicImage,
    replication_factor: int,
    view: ControllerView,
) -> list[PartitionImage]:
    partitions = []
    for index, assignment in enumerate(topic.assignments or (), len(existing.partitions)):
        replicas = tuple(assignment.broker_ids)
        check_replicas(replicas, replication_factor, view)
        partitions.append(
            new_partition(
                replicas,
                view,
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers specified in the manual partition assignment for partition {index} "
                f"are fenced or in controlled shutdown.",
            )
        )
    return partitions
