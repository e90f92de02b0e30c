"""Members with confluent-kafka (librdkafka)."""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from speaking import Arguments, ThreadedMember, follow_commands, listed, one_line, say

POLL_S = 0.1
STATISTICS_MS = 500
OUTSIDE = (
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError._ASSIGNMENT_LOST,
)
"""Why a commit of one is refused that is no longer, or not now, a member; the listener hears of it in the next poll."""

TOLD = (KafkaError._PARTITION_EOF, *OUTSIDE)
"""What a poll may tell of; the client goes on by itself."""


class Member(ThreadedMember):
    rebalances = -1

    def settings(self) -> dict[str, Any]:
        arguments = self.arguments
        settings: dict[str, Any] = {
            "bootstrap.servers": arguments.address,
            "client.id": self.name,
            "group.id": arguments.group,
            "group.protocol": arguments.options["protocol"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "statistics.interval.ms": STATISTICS_MS,
            "stats_cb": self.note_statistics,
            "topic.metadata.refresh.interval.ms": 1000,
        }
        if arguments.is_consumer:
            settings["group.remote.assignor"] = arguments.options["assignor"]
        else:
            settings["partition.assignment.strategy"] = arguments.options["assignor"]
            settings["session.timeout.ms"] = arguments.milliseconds("session_ms")
            settings["heartbeat.interval.ms"] = arguments.milliseconds("heartbeat_ms")
        if self.instance:
            settings["group.instance.id"] = self.instance
        return settings

    def consume(self) -> None:
        self.consumer = Consumer(self.settings())
        self.consumer.subscribe([self.arguments.topic], self.assigned, self.revoked, self.lost)
        while not self.ending.is_set():
            self.handle(POLL_S)
            self.commit_or_keep(self.handled.due())
        self.consumer.close()

    def handle(self, wait_s: float) -> None:
        """Handle what is here; a listener may be called in every poll, and finds all that was handled before."""
        for _ in range(500):
            message = self.consumer.poll(wait_s)
            if message is None:
                break
            if message.error() is None:
                self.handled.add(message.partition(), message.offset())
            elif message.error().code() not in TOLD:
                raise KafkaException(message.error())
            wait_s = 0

    def commit(self, positions: dict[int, int]) -> None:
        if positions:
            topic = self.arguments.topic
            offsets = [TopicPartition(topic, partition, offset) for partition, offset in positions.items()]
            for each in self.consumer.commit(offsets=offsets, asynchronous=False):
                if each.error is not None:
                    raise KafkaException(each.error)

    def commit_or_keep(self, positions: dict[int, int]) -> None:
        try:
            self.commit(positions)
        except KafkaException as fault:
            if fault.args[0].code() not in OUTSIDE:
                raise
            self.handled.keep(positions)

    def assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        say(self.name, "assigned", listed(each.partition for each in partitions))

    def revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = [each.partition for each in partitions]
        try:
            self.commit(self.handled.taken(numbers))
        except KafkaException as fault:
            if fault.args[0].code() not in OUTSIDE:
                raise
            say(self.name, "lost", listed(numbers), one_line(fault))
        else:
            say(self.name, "revoked", listed(numbers))

    def lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = [each.partition for each in partitions]
        self.handled.taken(numbers)
        say(self.name, "lost", listed(numbers))

    def note_statistics(self, text: str) -> None:
        self.rebalances = json.loads(text).get("cgrp", {}).get("rebalance_cnt", -1)

    def epoch(self) -> int:
        return self.rebalances


if __name__ == "__main__":
    follow_commands(Arguments.read(sys.argv[1:]), Member)
