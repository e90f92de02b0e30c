"""Members with kafka-python, each in a thread of its own."""

from __future__ import annotations

import sys
from typing import Any

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import CommitFailedError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata
from speaking import Arguments, ThreadedMember, follow_commands, listed, one_line, say

POLL_MS = 2000  # a poll that ends while the group is being joined may lose its assignment (../../FINDINGS.md)
OUTSIDE = (CommitFailedError, RebalanceInProgressError)
"""Why a commit of one is refused that is no longer, or not now, a member; the listener hears of it in the next poll."""
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Member(ThreadedMember, AsyncConsumerRebalanceListener):
    """The listener is called by the client's own thread, while this one waits in its poll; it may not block there."""

    def settings(self) -> dict[str, Any]:
        arguments = self.arguments
        return {
            "bootstrap_servers": arguments.address,
            "client_id": self.name,
            "group_id": arguments.group,
            "group_instance_id": self.instance,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "partition_assignment_strategy": [ASSIGNORS[arguments.options["assignor"]]],
            "session_timeout_ms": arguments.milliseconds("session_ms"),
            "heartbeat_interval_ms": arguments.milliseconds("heartbeat_ms"),
            "metadata_max_age_ms": 1000,
        }

    def consume(self) -> None:
        self.consumer = KafkaConsumer(**self.settings())
        self.consumer.subscribe([self.arguments.topic], listener=self)
        while not self.ending.is_set():
            for partition, records in self.consumer.poll(POLL_MS).items():
                for record in records:
                    self.handled.add(partition.partition, record.offset)
            self.handled.tell()
            due = self.handled.due()
            try:
                self.commit(due)
            except OUTSIDE:
                self.handled.keep(due)
        self.consumer.close(autocommit=False)

    def commit(self, positions: dict[int, int]) -> None:
        if positions:
            self.consumer.commit(self.offsets(positions))

    def offsets(self, positions: dict[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        topic = self.arguments.topic
        return {TopicPartition(topic, each): OffsetAndMetadata(offset, "", -1) for each, offset in positions.items()}

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        say(self.name, "assigned", listed(each.partition for each in assigned))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        numbers = [each.partition for each in revoked]
        positions = self.handled.taken(numbers)
        try:
            if positions:
                await self.consumer.commit_async(self.offsets(positions))
        except OUTSIDE as fault:
            say(self.name, "lost", listed(numbers), one_line(fault))
        else:
            say(self.name, "revoked", listed(numbers))

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        numbers = [each.partition for each in lost]
        self.handled.taken(numbers)
        say(self.name, "lost", listed(numbers))

    def epoch(self) -> int:
        return int(self.consumer._coordinator._generation.generation_id)


if __name__ == "__main__":
    follow_commands(Arguments.read(sys.argv[1:]), Member)
