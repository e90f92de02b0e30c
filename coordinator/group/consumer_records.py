"""The records that store a consumer group: built here, as Kafka 4.4 writes them.

    3  group epoch             6  target assignment epoch      8   member's current assignment
    4  (Kafka 4.0) topics      7  member's target assignment   16  resolved regular expression
    5  member

Source: Kafka's GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.group.consumer_member import ConsumerMember, EpochedPartitions, TopicPartitions
from coordinator.group.consumer_subscriptions import ResolvedRegex
from coordinator.machine import CoordinatorRecord
from wire.messages.records.consumer_offsets import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMemberValueTopicPartition,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def group_epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group's epoch, with the hash of the topics for which it rose."""
    value = ConsumerGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Who a member is and what it wants."""
    classic = None
    if member.classic is not None:
        protocols = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols]
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms, supported_protocols=protocols
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.group_instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """For which epoch the target assignment was computed, and when."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, partitions: TopicPartitions) -> CoordinatorRecord:
    """A member's target assignment."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ConsumerGroupTargetAssignmentMemberValueTopicPartition(
                topic_id=topic_id, partitions=sorted(partitions[topic_id])
            )
            for topic_id in sorted(partitions)
        ]
    )
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_assignment_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """How far a member has followed the target, and what it has."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=int(member.state),
        assigned_partitions=_topic_partitions(member.assigned),
        partitions_pending_revocation=_topic_partitions(member.pending_revocation),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def _topic_partitions(
    partitions: EpochedPartitions,
) -> list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions]:
    topics = []
    for topic_id in sorted(partitions):
        epochs = sorted(partitions[topic_id].items())
        topics.append(
            ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(
                topic_id=topic_id,
                partitions=[partition for partition, _ in epochs],
                assignment_epochs=[epoch for _, epoch in epochs],
            )
        )
    return topics


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """The topics that a regular expression matched."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Nobody is subscribed to the regular expression any more."""
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Deletes what Kafka 4.0 stored about the group's topics."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Delete a member, in the order in which Kafka reads them back."""
    return [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[CoordinatorRecord]:
    """Delete a group with all its members, in the order in which Kafka reads them back."""
    ids = list(member_ids)
    keys = [
        *(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=each) for each in ids),
        *(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=each) for each in ids),
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        *(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=each) for each in ids),
        *(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=each) for each in regexes),
        ConsumerGroupPartitionMetadataKey(group_id=group_id),
        ConsumerGroupMetadataKey(group_id=group_id),
    ]
    return [CoordinatorRecord(key, None) for key in keys]
