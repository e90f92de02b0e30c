"""What an assignor is given, and what it gives back. Source: Kafka's GroupSpec, GroupAssignment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coordinator.group.consumer_member import TopicPartitions


class MemberSpecification(NamedTuple):
    """One member: its topics (by id, existing ones only) and what the last target gave it."""

    topic_ids: frozenset[bytes]
    assigned: TopicPartitions
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpecification:
    """All members by id.

    is_homogeneous    all members have the same topics.
    partition_counts  of every topic that a member has.
    """

    members: Mapping[str, MemberSpecification]
    is_homogeneous: bool
    partition_counts: Mapping[bytes, int]


GroupAssignment = dict[str, TopicPartitions]
"""Each member's partitions; members with nothing may be left out."""
Assignor = Callable[[GroupSpecification], GroupAssignment]
