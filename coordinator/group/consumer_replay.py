"""What each record of a consumer group changes: on load, on a follower, and in a decision's draft.

Source: Kafka's GroupMetadataManager.replay, of the records of consumer groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_member import (
    LEAVE_EPOCH,
    NO_EPOCHED,
    ClassicProtocolUse,
    ConsumerMember,
    EpochedPartitions,
    MemberState,
)
from coordinator.group.consumer_subscriptions import ResolvedRegex
from wire.messages.records.consumer_offsets import (
    ClassicMemberMetadata,
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
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

NO_ASSIGNMENT_EPOCH = -1


def apply_record(group: ConsumerGroup, key: Any, value: Any | None) -> None:
    """Apply one record of the group. The tombstone of the group itself is not among them: it takes the
    group away as a whole."""
    _APPLY[type(key)](group, key, value)


def _member(group: ConsumerGroup, key: Any, value: ConsumerGroupMemberMetadataValue | None) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    old = group.members.get(key.member_id) or ConsumerMember(key.member_id)
    names = frozenset(value.subscribed_topic_names)
    group.put_member(
        replace(
            old,
            group_instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=old.subscribed_topic_names if names == old.subscribed_topic_names else names,
            subscribed_topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=_classic(value.classic_member_metadata),
        )
    )


def _classic(stored: ClassicMemberMetadata | None) -> ClassicProtocolUse | None:
    if stored is None:
        return None
    protocols = tuple((protocol.name, protocol.metadata) for protocol in stored.supported_protocols)
    return ClassicProtocolUse(stored.session_timeout_ms, protocols)


def _group_epoch(group: ConsumerGroup, key: Any, value: ConsumerGroupMetadataValue | None) -> None:
    if value is not None:
        group.group_epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _partition_metadata(group: ConsumerGroup, key: Any, value: Any | None) -> None:
    group.has_partition_metadata_record = value is not None


def _target(group: ConsumerGroup, key: Any, value: ConsumerGroupTargetAssignmentMemberValue | None) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions if topic.partitions
        }


def _target_epoch(group: ConsumerGroup, key: Any, value: ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
    group.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _current_assignment(
    group: ConsumerGroup, key: Any, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> None:
    old = group.members.get(key.member_id)
    if value is None:
        if old is not None:
            group.put_member(
                replace(
                    old,
                    member_epoch=LEAVE_EPOCH,
                    previous_member_epoch=LEAVE_EPOCH,
                    assigned=NO_EPOCHED,
                    pending_revocation=NO_EPOCHED,
                )
            )
        return
    group.put_member(
        replace(
            old or ConsumerMember(key.member_id),
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of_record(value.state),
            assigned=_epoched(value.assigned_partitions, value.member_epoch),
            pending_revocation=_epoched(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _epoched(
    topics: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions], member_epoch: int
) -> EpochedPartitions:
    """Partitions with their epochs. Kafka before 4.3 wrote none: the member's own counts then, or 0 for a
    static member that is away."""
    epoched = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        if topic.partitions:
            epoched[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return epoched


def _regex(group: ConsumerGroup, key: Any, value: ConsumerGroupRegularExpressionValue | None) -> None:
    if value is None:
        group.subscriptions.resolved.pop(key.regular_expression, None)
    else:
        group.subscriptions.resolved[key.regular_expression] = ResolvedRegex(
            frozenset(value.topics), value.version, value.timestamp
        )


_APPLY: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _group_epoch,
    ConsumerGroupPartitionMetadataKey: _partition_metadata,
    ConsumerGroupMemberMetadataKey: _member,
    ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupCurrentMemberAssignmentKey: _current_assignment,
    ConsumerGroupRegularExpressionKey: _regex,
}
RECORD_KEYS = frozenset(_APPLY)
