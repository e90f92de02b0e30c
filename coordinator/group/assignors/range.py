"""The assignor `range`: of each topic, every member gets a contiguous range.

Members come in the order of their instance ids, then those without one in the order of their member
ids. Topics with equal numbers of partitions and the same members are co-partitioned: a member has the
same numbers in each. Nothing is kept for the sake of stickiness: static members stay in their place by
their order. Source: Kafka's RangeAssignor.
"""

from __future__ import annotations

from coordinator.group.assignors.specification import GroupAssignment, GroupSpecification
from coordinator.group.java_order import java_key


def assign_range(group: GroupSpecification) -> GroupAssignment:
    """See Assignor."""
    members = group.members
    ordered = sorted(members, key=lambda member_id: _place(member_id, members[member_id].group_instance_id))
    subscribers: dict[bytes, list[str]] = {}
    for member_id in ordered:
        for topic_id in members[member_id].topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in ordered}
    for topic_id in sorted(subscribers):
        member_ids = subscribers[topic_id]
        quota, extra = divmod(group.partition_counts[topic_id], len(member_ids))
        start = 0
        for place, member_id in enumerate(member_ids):
            end = start + quota + (1 if place < extra else 0)
            if start < end:
                assignment[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assignment)


def _place(member_id: str, group_instance_id: str | None) -> tuple[bool, bytes]:
    if group_instance_id is None:
        return True, java_key(member_id)
    return False, java_key(group_instance_id)
