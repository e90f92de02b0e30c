"""AssignReplicasToDirs: a broker tells in which of its log directories its replicas lie.

Source: ReplicationControlManager.handleAssignReplicasToDirs; KIP-858.
"""

from __future__ import annotations

from coordinator.controller.brokers import registered_broker
from coordinator.controller.partition_change import PartitionTarget, partition_change
from coordinator.controller.partition_rules import TopicRules
from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import MetadataRecord
from coordinator.metadata.image import BrokerImage, TopicImage
from wire.errors import ErrorCode
from wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)


def assign_replicas_to_dirs(request: AssignReplicasToDirsRequest, view: ControllerView) -> Outcome:
    """Note the directories. A replica in a directory that is offline is offline from now on.

    Raises KafkaError STALE_BROKER_EPOCH for the whole request.
    """
    broker = registered_broker(view, request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    directories = []
    for directory in request.directories:
        topics = []
        for topic_data in directory.topics:
            topic = view.image.topics.by_id(topic_data.topic_id)
            partitions = []
            for data in topic_data.partitions:
                code, record = _assign(broker, directory.id, topic, data.partition_index, view)
                partitions.append(
                    AssignReplicasToDirsResponsePartitionData(partition_index=data.partition_index, error_code=code)
                )
                if record is not None:
                    records.append(record)
            topics.append(AssignReplicasToDirsResponseTopicData(topic_id=topic_data.topic_id, partitions=partitions))
        directories.append(AssignReplicasToDirsResponseDirectoryData(id=directory.id, topics=topics))
    return Outcome(AssignReplicasToDirsResponse(directories=directories), records)


def _assign(
    broker: BrokerImage, directory_id: bytes, topic: TopicImage | None, index: int, view: ControllerView
) -> tuple[ErrorCode, MetadataRecord | None]:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, None
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if broker.broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
    goes_offline = not broker.is_online(directory_id) and broker.broker_id in partition.isr
    rules = TopicRules(view, topic.name, removed=broker.broker_id) if goes_offline else TopicRules(view, topic.name)
    target = PartitionTarget(
        directories={broker.broker_id: directory_id},
        isr=tuple(each for each in partition.isr if each != broker.broker_id) if goes_offline else None,
        election=rules.election,
    )
    return ErrorCode.NONE, partition_change(topic.topic_id, index, partition, target, rules.of(partition))
