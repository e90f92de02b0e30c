"""`uniform` for members with equal subscriptions: loads differ by at most one.

First every member keeps what it has up to its quota, then those below theirs get what is left over.
Source: Kafka's UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from coordinator.group.assignors.specification import GroupAssignment, GroupSpecification
from coordinator.group.consumer_member import TopicPartitions
from coordinator.group.java_order import ids_in_hash_map_order

_Partition = tuple[bytes, int]


def assign_homogeneous(group: GroupSpecification) -> GroupAssignment:
    """Each member's partitions, in the order of member ids."""
    member_ids = sorted(group.members)
    topic_ids = group.members[member_ids[0]].topic_ids
    if not topic_ids:
        return {}
    left_over = _unassigned(group, topic_ids)
    total = sum(group.partition_counts[topic_id] for topic_id in topic_ids)
    quota, extra = divmod(total, len(member_ids))
    assignment: GroupAssignment = {}
    unfilled: list[tuple[str, int]] = []
    for place, member_id in enumerate(member_ids):
        room = quota + (1 if extra > 0 else 0)
        takes_extra = extra > 0
        kept, revoked = _keep(group.members[member_id].assigned, topic_ids, room)
        left_over.extend(revoked)
        room -= sum(len(partitions) for partitions in kept.values())
        if room > 0 and takes_extra and len(member_ids) - place > extra:
            # Another member may have something to keep there; the last ones have to take theirs.
            room -= 1
            takes_extra = False
        if room > 0:
            unfilled.append((member_id, room))
        if takes_extra:
            extra -= 1
        assignment[member_id] = kept
    _fill(assignment, unfilled, left_over)
    return assignment


def _unassigned(group: GroupSpecification, topic_ids: frozenset[bytes]) -> list[_Partition]:
    """Partitions that no member had, by topic, in the order of Kafka's hash set of them."""
    assigned: dict[bytes, set[int]] = {}
    for member in group.members.values():
        for topic_id, partitions in member.assigned.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    return [
        (topic_id, partition)
        for topic_id in ids_in_hash_map_order(topic_ids)
        for partition in range(group.partition_counts[topic_id])
        if partition not in assigned.get(topic_id, ())
    ]


def _keep(
    assigned: TopicPartitions, topic_ids: frozenset[bytes], room: int
) -> tuple[TopicPartitions, list[_Partition]]:
    """What a member may keep of what it has, and what is taken away for other members."""
    kept: dict[bytes, frozenset[int]] = {}
    revoked: list[_Partition] = []
    for topic_id in ids_in_hash_map_order(assigned):
        if topic_id not in topic_ids:
            continue
        partitions = assigned[topic_id]
        if len(partitions) > room:
            ordered = sorted(partitions)
            revoked.extend((topic_id, partition) for partition in ordered[room:])
            partitions = frozenset(ordered[:room])
        room -= len(partitions)
        if partitions:
            kept[topic_id] = partitions
    return kept, revoked


def _fill(assignment: GroupAssignment, unfilled: list[tuple[str, int]], left_over: list[_Partition]) -> None:
    """Give what is left over to the members with room, which is exactly as much."""
    start = 0
    for member_id, room in unfilled:
        filled = {topic_id: set(partitions) for topic_id, partitions in assignment[member_id].items()}
        for topic_id, partition in left_over[start : start + room]:
            filled.setdefault(topic_id, set()).add(partition)
        start += room
        assignment[member_id] = {topic_id: frozenset(partitions) for topic_id, partitions in filled.items()}
    assert start >= len(left_over), "partitions were left unassigned"
