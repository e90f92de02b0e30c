"""AlterPartition: a leader reports who is in sync (K11). Checked in Kafka's order.

Source: ReplicationControlManager.alterPartition and validateAlterPartitionData; KIP-497, KIP-903.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.controller.brokers import registered_broker
from coordinator.controller.partition_change import PartitionTarget, partition_change
from coordinator.controller.partition_rules import TopicRules
from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import MetadataRecord
from coordinator.metadata.image import RECOVERED, RECOVERING, PartitionImage, TopicImage
from coordinator.metadata.replay_topics import NO_LEADER_CHANGE, merged
from wire.errors import ErrorCode
from wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)

ISR_WITH_EPOCHS_VERSION = 3
ANY_BROKER_EPOCH = -1


def alter_partition(request: AlterPartitionRequest, view: ControllerView) -> Outcome:
    """Change ISRs as their leaders ask. Raises KafkaError STALE_BROKER_EPOCH for the whole request."""
    registered_broker(view, request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    topics: list[AlterPartitionResponseTopicData] = []
    for topic_data in request.topics:
        topic = view.image.topics.by_id(topic_data.topic_id)
        results = []
        for data in topic_data.partitions:
            if topic is None:
                results.append(_refused(data, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            result, record = _alter(request.broker_id, topic, data, view)
            results.append(result)
            if record is not None:
                records.append(record)
        topics.append(AlterPartitionResponseTopicData(topic_id=topic_data.topic_id, partitions=results))
    return Outcome(AlterPartitionResponse(topics=topics), records)


def _refused(data: AlterPartitionRequestPartitionData, code: ErrorCode) -> AlterPartitionResponsePartitionData:
    return AlterPartitionResponsePartitionData(partition_index=data.partition_index, error_code=code)


def _new_isr(data: AlterPartitionRequestPartitionData, view: ControllerView) -> list[BrokerState]:
    if view.context.api_version >= ISR_WITH_EPOCHS_VERSION or data.new_isr_with_epochs:
        return list(data.new_isr_with_epochs)
    return [BrokerState(broker_id=broker_id) for broker_id in data.new_isr]


def _alter(
    sender: int,
    topic: TopicImage,
    data: AlterPartitionRequestPartitionData,
    view: ControllerView,
) -> tuple[AlterPartitionResponsePartitionData, MetadataRecord | None]:
    partition = topic.partitions.get(data.partition_index)
    new_isr = _new_isr(data, view)
    if partition is None:
        return _refused(data, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
    problem = _problem(sender, partition, data, new_isr, view)
    if problem is not None:
        return _refused(data, problem), None
    rules = TopicRules(view, topic.name)
    target = PartitionTarget(
        isr=tuple(broker.broker_id for broker in new_isr),
        leader_recovery_state=data.leader_recovery_state,
        election=rules.election,
    )
    record = partition_change(topic.topic_id, data.partition_index, partition, target, rules.of(partition))
    if record is not None:
        if record.message.leader not in (sender, NO_LEADER_CHANGE):
            # The change completed a reassignment that takes the leadership from the sender: both
            # an error and a record, so that the sender waits for the metadata.
            return _refused(data, ErrorCode.NEW_LEADER_ELECTED), record
        partition = merged(partition, record.message)
    result = AlterPartitionResponsePartitionData(
        partition_index=data.partition_index,
        error_code=ErrorCode.NONE,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
    return result, record


def _problem(
    sender: int,
    partition: PartitionImage,
    data: AlterPartitionRequestPartitionData,
    new_isr: Sequence[BrokerState],
    view: ControllerView,
) -> ErrorCode | None:
    """Why the change is refused; None if it is not."""
    # A leader that knows more than this controller talks to one that is no longer active.
    if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = [broker.broker_id for broker in new_isr]
    if not isr or len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        return ErrorCode.INVALID_REQUEST
    if partition.leader not in isr:
        return ErrorCode.INVALID_REQUEST
    if data.leader_recovery_state not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if data.leader_recovery_state == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not all(_may_be_in_sync(broker, view) for broker in new_isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return None


def _may_be_in_sync(broker: BrokerState, view: ControllerView) -> bool:
    registered = view.image.brokers.get(broker.broker_id)
    return (
        registered is not None
        and registered.active
        and broker.broker_epoch in (ANY_BROKER_EPOCH, registered.broker_epoch)
    )
