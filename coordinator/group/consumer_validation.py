"""What a ConsumerGroupHeartbeat is refused for, in Kafka's order.

First what needs no group (`check_request`), then size, member, instance and epoch.
Source: Kafka's GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid and
GroupMetadataManager.throwIf….
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_TIMEOUT_MS,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    EpochedPartitions,
    TopicPartitions,
)
from coordinator.group.consumer_settings import ConsumerGroupSettings
from wire.errors import ErrorCode, KafkaError
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

MEMBER_ID_BY_CLIENT_FROM = 1
"""From this version on the client makes up its member id itself (KIP-1082)."""


def check_request(request: ConsumerGroupHeartbeatRequest, api_version: int, settings: ConsumerGroupSettings) -> None:
    """Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR for what is wrong whatever the group is."""
    epoch = request.member_epoch
    if api_version >= MEMBER_ID_BY_CLIENT_FROM or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _require_text(request.member_id, "MemberId")
    _require_text(request.group_id, "GroupId")
    _require_text(request.instance_id, "InstanceId")
    _require_text(request.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == NO_TIMEOUT_MS:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid(f"MemberEpoch {epoch} is invalid: the lowest is {STATIC_LEAVE_EPOCH}.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in settings.assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors (group.consumer.assignors):"
            f" {', '.join(settings.assignors)}.",
        )


def _require_text(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def check_size(
    group: ConsumerGroup, member_id: str, group_instance_id: str | None, settings: ConsumerGroupSettings
) -> None:
    """Raises GROUP_MAX_SIZE_REACHED for one member more than may be. Whoever has the instance id already
    will be replaced, or be in the way for another reason."""
    if group_instance_id is not None and group_instance_id in group.static_members:
        return
    if len(group.members) >= settings.group_max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group {group.group_id} has reached its maximum capacity of {settings.group_max_size}"
            " members (group.consumer.max.size).",
        )


def check_epoch(member: ConsumerMember, received: int, owned: TopicPartitions | None) -> None:
    """Raises FENCED_MEMBER_EPOCH unless the member is at this epoch. 0 is always right: it begins anew.

    The epoch before is right too if the member owns nothing but what it is assigned: the answer that
    told it of the newer one may have been lost.
    """
    known = member.member_epoch
    if received in (JOIN_EPOCH, known):
        return
    if received < known and received == member.previous_member_epoch and _is_within(owned, member.assigned):
        return
    how = "greater" if received > known else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member {member.member_id} has a {how} member epoch ({received}) than the one known"
        f" by the group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: TopicPartitions | None, assigned: EpochedPartitions) -> bool:
    if owned is None:
        return False
    return all(
        topic_id in assigned and all(partition in assigned[topic_id] for partition in partitions)
        for topic_id, partitions in owned.items()
    )


def check_instance(
    group: ConsumerGroup, member: ConsumerMember | None, member_id: str, group_instance_id: str
) -> ConsumerMember:
    """The static member. Raises UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID unless it has this member id."""
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {group_instance_id} is unknown in group {group.group_id}."
        )
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {group_instance_id} was fenced by member {member.member_id}.",
        )
    return member


def check_instance_is_free(member: ConsumerMember, member_id: str, group_instance_id: str) -> None:
    """Raises UNRELEASED_INSTANCE_ID unless the static member has left for a while."""
    if member.member_epoch != STATIC_LEAVE_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {group_instance_id} cannot join the group because the"
            f" instance id is owned by {member.member_id} member.",
        )


def owned_partitions(
    topics: Iterable[ConsumerGroupHeartbeatRequestTopicPartitions] | None,
) -> TopicPartitions | None:
    """What the member says it owns; None if it says nothing."""
    if topics is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return owned
