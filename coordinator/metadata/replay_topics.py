"""Replay of the records about topics, partitions and settings. Source: Kafka's TopicsDelta,
TopicDelta, ConfigurationsDelta and PartitionRegistration.merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.metadata.image import (
    DIRECTORY_UNASSIGNED,
    RESOURCE_TOPIC,
    PartitionImage,
)
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.messages.records import cluster_metadata as records
from wire.primitives import uuid_text

if TYPE_CHECKING:
    from coordinator.metadata.delta import MetadataDelta, TopicDelta

NO_LEADER_CHANGE = -2
NO_RECOVERY_STATE_CHANGE = -1


def topic(delta: MetadataDelta, record: records.TopicRecord) -> None:
    """A topic has been created; its partitions follow."""
    if delta.topic_id(record.name) is not None:
        raise MetadataReplayError(f"TopicRecord creates {record.name}, which exists already")
    other = delta.topic(record.topic_id)
    if other is not None:
        raise MetadataReplayError(
            f"TopicRecord creates {record.name} with id {uuid_text(record.topic_id)}, which is that of {other.name}"
        )
    delta.create_topic(record.name, record.topic_id)


def remove_topic(delta: MetadataDelta, record: records.RemoveTopicRecord) -> None:
    """A topic has been deleted, and its settings with it."""
    removed = _topic(delta, record.topic_id, "RemoveTopicRecord")
    delta.delete_topic(removed)
    resource = (RESOURCE_TOPIC, removed.name)
    changes: dict[str, str | None] = dict.fromkeys(delta.base.configs.of(*resource))
    changes.update(dict.fromkeys(delta.config_changes.get(resource, ())))
    if changes:
        delta.config_changes[resource] = changes


def _topic(delta: MetadataDelta, topic_id: bytes, what: str) -> TopicDelta:
    found = delta.topic(topic_id)
    if found is None:
        raise MetadataReplayError(f"{what} names topic id {uuid_text(topic_id)}, which is unknown")
    return found


def partition(delta: MetadataDelta, record: records.PartitionRecord) -> None:
    """A partition has been created (or, in a snapshot, is described as it is)."""
    topic_delta = _topic(delta, record.topic_id, "PartitionRecord")
    replicas = tuple(record.replicas)
    directories = tuple(record.directories) or (DIRECTORY_UNASSIGNED,) * len(replicas)
    if len(directories) != len(replicas):
        raise MetadataReplayError(
            f"PartitionRecord of {topic_delta.name}-{record.partition_id} names "
            f"{len(replicas)} replicas and {len(directories)} directories"
        )
    topic_delta.changed[record.partition_id] = PartitionImage(
        replicas,
        tuple(record.isr),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
        tuple(record.adding_replicas),
        tuple(record.removing_replicas),
        directories,
        record.leader_recovery_state,
    )


def partition_change(delta: MetadataDelta, record: records.PartitionChangeRecord) -> None:
    """A partition has changed; what the record leaves out stays."""
    topic_delta = _topic(delta, record.topic_id, "PartitionChangeRecord")
    before = topic_delta.partition(record.partition_id)
    if before is None:
        raise MetadataReplayError(
            f"PartitionChangeRecord names {topic_delta.name}-{record.partition_id}, which is unknown"
        )
    topic_delta.changed[record.partition_id] = merged(before, record)


def _kept(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)


def merged(before: PartitionImage, record: records.PartitionChangeRecord) -> PartitionImage:
    """The partition after the change. The partition epoch grows with every change, the leader epoch
    with every record that names a leader, also the same one (PartitionRegistration.merge)."""
    replicas = _kept(record.replicas, before.replicas)
    if record.directories is not None:
        directories = tuple(record.directories)
    elif record.replicas is not None:
        directories = tuple(before.directory_of(broker_id) for broker_id in replicas)
    else:
        directories = before.directories
    leader_named = record.leader != NO_LEADER_CHANGE
    recovery_state = record.leader_recovery_state
    return PartitionImage(
        replicas=replicas,
        isr=_kept(record.isr, before.isr),
        leader=record.leader if leader_named else before.leader,
        leader_epoch=before.leader_epoch + leader_named,
        partition_epoch=before.partition_epoch + 1,
        elr=_kept(record.eligible_leader_replicas, before.elr),
        last_known_elr=_kept(record.last_known_elr, before.last_known_elr),
        adding_replicas=_kept(record.adding_replicas, before.adding_replicas),
        removing_replicas=_kept(record.removing_replicas, before.removing_replicas),
        directories=directories,
        leader_recovery_state=(
            before.leader_recovery_state if recovery_state == NO_RECOVERY_STATE_CHANGE else recovery_state
        ),
    )


def clear_elr(delta: MetadataDelta, record: records.ClearElrRecord) -> None:
    """The eligible leader replicas of one topic, or of all when the name is empty, are forgotten."""
    if record.topic_name:
        topic_id = delta.topic_id(record.topic_name)
        if topic_id is None:
            raise MetadataReplayError(f"ClearElrRecord names topic {record.topic_name}, which is unknown")
        topic_ids = [topic_id]
    else:
        topic_ids = [t for t in delta.base.topics.topics if t not in delta.deleted_topics]
        topic_ids += [t for t, change in delta.topics.items() if change.created]
    for topic_id in topic_ids:
        topic_delta = _topic(delta, topic_id, "ClearElrRecord")
        partitions = dict(topic_delta.before.partitions) if topic_delta.before else {}
        partitions.update(topic_delta.changed)
        for index, image in partitions.items():
            if image.elr or image.last_known_elr:
                topic_delta.changed[index] = image._replace(elr=(), last_known_elr=())


def config(delta: MetadataDelta, record: records.ConfigRecord) -> None:
    """A setting of a resource has been set, or removed when the value is null."""
    resource = (record.resource_type, record.resource_name)
    delta.config_changes.setdefault(resource, {})[record.name] = record.value


def partition_record(
    topic_id: bytes, partition_id: int, image: PartitionImage, version: int
) -> records.PartitionRecord:
    """The record that creates or describes this partition, at PartitionRecord `version`."""
    return records.PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=list(image.replicas),
        isr=list(image.isr),
        removing_replicas=list(image.removing_replicas),
        adding_replicas=list(image.adding_replicas),
        leader=image.leader,
        leader_recovery_state=image.leader_recovery_state,
        leader_epoch=image.leader_epoch,
        partition_epoch=image.partition_epoch,
        directories=list(image.directories) if version >= 1 else [],
        eligible_leader_replicas=list(image.elr) if version >= 2 and image.elr else None,
        last_known_elr=list(image.last_known_elr) if version >= 2 and image.last_known_elr else None,
    )
