"""The consumer's embedded protocol between bytes and values, as far as migration of groups needs it.

Members of classic groups exchange subscriptions and assignments as bytes: an int16 version, then the
fields. Bytes of a newer version are read, and written, as the newest that is known.
Source: Kafka's ConsumerProtocol.
"""

from __future__ import annotations

from coordinator.group.consumer_member import TopicPartitions
from coordinator.metadata.image import TopicsImage
from wire.errors import MalformedMessage
from wire.messages.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from wire.primitives import pack_int16

VERSION_BYTES = 2


def _version(data: bytes, newest: int) -> int:
    version = int.from_bytes(data[:VERSION_BYTES], "big", signed=True)
    if len(data) < VERSION_BYTES or version < 0:
        raise MalformedMessage("the consumer protocol begins with a version that is not negative")
    return min(version, newest)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription. Raises MalformedMessage."""
    version = _version(data, ConsumerProtocolSubscription.MAX_VERSION)
    return ConsumerProtocolSubscription.decode(data, version, position=VERSION_BYTES)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """A member's assignment. Raises MalformedMessage."""
    version = _version(data, ConsumerProtocolAssignment.MAX_VERSION)
    return ConsumerProtocolAssignment.decode(data, version, position=VERSION_BYTES)


def write_assignment(partitions: TopicPartitions, subscription: bytes, topics: TopicsImage) -> bytes:
    """An assignment in the version of the member's subscription; topics that are no more are left out.

    Raises MalformedMessage if the subscription is not readable.
    """
    version = _version(subscription, ConsumerProtocolAssignment.MAX_VERSION)
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic.name, partitions=sorted(partitions[topic_id]))
        for topic_id in sorted(partitions)
        if (topic := topics.by_id(topic_id)) is not None
    ]
    return pack_int16(version) + ConsumerProtocolAssignment(assigned_partitions=assigned).encode(version)


def by_topic_id(
    assigned: list[ConsumerProtocolAssignmentTopicPartition] | list[ConsumerProtocolSubscriptionTopicPartition],
    topics: TopicsImage,
) -> TopicPartitions:
    """Partitions by topic id; what does not exist is left out (a topic may have come anew, and smaller)."""
    partitions: dict[bytes, frozenset[int]] = {}
    for each in assigned:
        topic = topics.by_name(each.topic)
        if topic is not None:
            existing = frozenset(index for index in each.partitions if index in topic.partitions)
            partitions[topic.topic_id] = partitions.get(topic.topic_id, frozenset()) | existing
    return partitions
