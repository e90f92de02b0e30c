"""What leaders of classic groups do: give partitions by range, in turn, or cooperatively; and the bytes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wire.messages.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from wire.primitives import pack_int16

Partition = tuple[str, int]
SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 3
VERSION_BYTES = 2
COOPERATIVE = "cooperative-sticky"


@dataclass(frozen=True, slots=True)
class Wish:
    """A member's subscription, and what it has."""

    topics: frozenset[str]
    owned: frozenset[Partition] = frozenset()


def by_topic(partitions: frozenset[Partition] | set[Partition] | list[Partition]) -> dict[str, list[int]]:
    """Partition numbers of each topic, in order."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


def subscription_bytes(wish: Wish, generation_id: int) -> bytes:
    """As a consumer writes its subscription."""
    owned = [
        ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(wish.owned).items()
    ]
    subscription = ConsumerProtocolSubscription(
        topics=sorted(wish.topics), owned_partitions=owned, generation_id=generation_id
    )
    return pack_int16(SUBSCRIPTION_VERSION) + subscription.encode(SUBSCRIPTION_VERSION)


def read_wish(data: bytes) -> Wish:
    """A subscription, read."""
    version = int.from_bytes(data[:VERSION_BYTES], "big")
    read = ConsumerProtocolSubscription.decode(data[VERSION_BYTES:], version)
    owned = frozenset((each.topic, index) for each in read.owned_partitions for index in each.partitions)
    return Wish(frozenset(read.topics), owned)


def assignment_bytes(partitions: frozenset[Partition] | set[Partition]) -> bytes:
    """As a leader writes what a member gets."""
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(partitions).items()
    ]
    assignment = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return pack_int16(ASSIGNMENT_VERSION) + assignment.encode(ASSIGNMENT_VERSION)


def read_assigned(data: bytes) -> set[Partition]:
    """What a member gets; no bytes are nothing."""
    if not data:
        return set()
    version = int.from_bytes(data[:VERSION_BYTES], "big")
    read = ConsumerProtocolAssignment.decode(data[VERSION_BYTES:], version)
    return {(each.topic, index) for each in read.assigned_partitions for index in each.partitions}


def assign(protocol: str, wishes: Mapping[str, Wish], counts: Mapping[str, int]) -> dict[str, set[Partition]]:
    """What every member gets; `counts`: how many partitions the topics that exist have."""
    wanted = {topic for wish in wishes.values() for topic in wish.topics if topic in counts}
    if protocol == "range":
        return _by_range(wishes, {topic: counts[topic] for topic in sorted(wanted)})
    partitions = [(topic, index) for topic in sorted(wanted) for index in range(counts[topic])]
    if protocol == COOPERATIVE:
        return _cooperatively(wishes, partitions)
    return _to_the_least(wishes, partitions, {member: set() for member in wishes})


def _by_range(wishes: Mapping[str, Wish], counts: Mapping[str, int]) -> dict[str, set[Partition]]:
    given: dict[str, set[Partition]] = {member: set() for member in wishes}
    for topic, count in counts.items():
        members = sorted(member for member, wish in wishes.items() if topic in wish.topics)
        quota, extra = divmod(count, len(members))
        start = 0
        for place, member in enumerate(members):
            end = start + quota + (place < extra)
            given[member] |= {(topic, index) for index in range(start, end)}
            start = end
    return given


def _to_the_least(
    wishes: Mapping[str, Wish], partitions: list[Partition], given: dict[str, set[Partition]]
) -> dict[str, set[Partition]]:
    for partition in partitions:
        takers = [member for member in sorted(wishes) if partition[0] in wishes[member].topics]
        given[min(takers, key=lambda member: len(given[member]))].add(partition)
    return given


def _cooperatively(wishes: Mapping[str, Wish], partitions: list[Partition]) -> dict[str, set[Partition]]:
    """As even as can be with what members have; what has to move is given to nobody in this generation."""
    owner = {partition: member for member, wish in wishes.items() for partition in wish.owned}
    target: dict[str, set[Partition]] = {member: set() for member in wishes}
    quota = -(-len(partitions) // max(len(wishes), 1))
    left_over = []
    for partition in partitions:
        member = owner.get(partition)
        if member is not None and partition[0] in wishes[member].topics and len(target[member]) < quota:
            target[member].add(partition)
        else:
            left_over.append(partition)
    _to_the_least(wishes, left_over, target)
    _even_out(wishes, target)
    return {member: {each for each in given if owner.get(each, member) == member} for member, given in target.items()}


def _even_out(wishes: Mapping[str, Wish], target: dict[str, set[Partition]]) -> None:
    """Move from the most to the least loaded as long as that makes it more even."""
    while True:
        least, most = min(target, key=lambda m: len(target[m])), max(target, key=lambda m: len(target[m]))
        movable = sorted(each for each in target[most] if each[0] in wishes[least].topics)
        if len(target[most]) - len(target[least]) < 2 or not movable:
            return
        target[most].remove(movable[-1])
        target[least].add(movable[-1])
