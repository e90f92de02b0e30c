"""The assignor `uniform`: equal loads first, then as few moves as possible.

Source: Kafka's UniformAssignor.
"""

from __future__ import annotations

from coordinator.group.assignors.specification import GroupAssignment, GroupSpecification
from coordinator.group.assignors.uniform_heterogeneous import assign_heterogeneous
from coordinator.group.assignors.uniform_homogeneous import assign_homogeneous


def assign_uniform(group: GroupSpecification) -> GroupAssignment:
    """See Assignor."""
    if not group.members:
        return {}
    return assign_homogeneous(group) if group.is_homogeneous else assign_heterogeneous(group)
