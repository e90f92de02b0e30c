"""Topics for what is measured."""

from __future__ import annotations

import time
import uuid

from brokers import TIMEOUT_S, NotStarted
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec


def make_topic(address: str, settings: dict[str, str] | None = None) -> str:
    """A new topic of one partition that takes records; returns its name."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    for future in admin.create_topics([NewTopic(topic, 1, 1, config=settings or {})]).values():
        future.result(30)
    wait_for_leader(admin, topic)
    return topic


def wait_for_leader(admin: AdminClient, topic: str) -> None:
    """Return when the partition answers: Apache Kafka says that a topic is made before its leader knows."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        (future,) = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()}).values()
        try:
            future.result(30)
            return
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise NotStarted(f"The partition of a new topic has no leader: {error}.") from error
            time.sleep(0.05)
