"""`uniform` for members with different subscriptions: what is fair topic by topic, as evenly as can be.

Members keep what they are still subscribed to; what is left over goes topic by topic to whoever has
least; then partitions move from the most to the least loaded subscribers of a topic, again and again
until no move gains anything, or long enough. Source: Kafka's UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.group.assignors.load_balance import LoadBalance
from coordinator.group.assignors.specification import GroupAssignment, GroupSpecification
from coordinator.group.java_order import java_uuid_key

ROUNDS_MAX = 16
"""Each round about halves what is uneven. Where all subscribers of a topic have equal subscriptions
the second one changes nothing any more."""
NOBODY = -1


def assign_heterogeneous(group: GroupSpecification) -> GroupAssignment:
    """Each member's partitions."""
    assignment = _Assignment(group)
    if not assignment.owners:
        return {}
    assignment.assign_left_over()
    assignment.balance()
    return assignment.result()


class _Assignment:
    """The assignment under construction. Members are numbered in the order of their ids."""

    def __init__(self, group: GroupSpecification) -> None:
        self._counts = group.partition_counts
        self._member_ids = sorted(group.members)
        self._loads = [0] * len(self._member_ids)
        self._subscribers: dict[bytes, list[int]] = {}
        self.owners: dict[bytes, list[int]] = {}
        """Of every topic, the member of each partition"""
        for member, member_id in enumerate(self._member_ids):
            for topic_id in group.members[member_id].topic_ids:
                self._subscribers.setdefault(topic_id, []).append(member)
        for topic_id in self._subscribers:
            self.owners[topic_id] = [NOBODY] * self._counts[topic_id]
        for member, member_id in enumerate(self._member_ids):
            specification = group.members[member_id]
            for topic_id, partitions in specification.assigned.items():
                if topic_id in specification.topic_ids:
                    for partition in partitions:
                        self._give(topic_id, partition, member)

    def _give(self, topic_id: bytes, partition: int, member: int) -> None:
        owners = self.owners[topic_id]
        if owners[partition] != NOBODY:
            self._loads[owners[partition]] -= 1
        owners[partition] = member
        self._loads[member] += 1

    def _ordered(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Topics with most partitions for each subscriber first, then those with fewest subscribers."""

        def order(topic_id: bytes) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self._subscribers[topic_id])
            return -self._counts[topic_id] / subscribers, subscribers, java_uuid_key(topic_id)

        return sorted(topic_ids, key=order)

    def assign_left_over(self) -> None:
        """Give every partition that nobody has to the subscriber with the least load."""
        left_over = {
            topic_id: [partition for partition, owner in enumerate(owners) if owner == NOBODY]
            for topic_id, owners in self.owners.items()
        }
        for topic_id in self._ordered(topic_id for topic_id, partitions in left_over.items() if partitions):
            balance = LoadBalance(self._subscribers[topic_id], self._loads)
            for partition in left_over[topic_id]:
                self._give(topic_id, partition, balance.next_taker())

    def balance(self) -> None:
        """Move partitions until a whole round over the topics has moved none."""
        topic_ids = self._ordered(topic_id for topic_id, members in self._subscribers.items() if len(members) > 1)
        last_moved: bytes | None = None
        for _ in range(ROUNDS_MAX):
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Move partitions of one topic; True if any moved."""
        balance = LoadBalance(self._subscribers[topic_id], self._loads)
        if balance.spread <= 1:
            return False
        # What each member can give: its partitions of this topic as they are now, the last one first.
        givable: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            givable.setdefault(owner, []).append(partition)
        has_moved = False
        while True:
            giver = balance.next_giver()
            while giver is not None and not givable.get(giver):
                balance.set_aside()
                giver = balance.next_giver()
            if giver is None:
                return has_moved
            partition = givable[giver].pop()
            taker = balance.next_taker()
            if balance.is_balanced:
                return has_moved
            self._give(topic_id, partition, taker)
            has_moved = True

    def result(self) -> GroupAssignment:
        """Each member's partitions by topic."""
        sets: list[dict[bytes, set[int]]] = [{} for _ in self._member_ids]
        for topic_id in sorted(self.owners):
            for partition, owner in enumerate(self.owners[topic_id]):
                sets[owner].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in sets[member].items()}
            for member, member_id in enumerate(self._member_ids)
        }
