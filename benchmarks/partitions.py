"""Many partitions on one node: `python3 dev.py bench partitions`.

Makes topics until there are so many partitions, writes a record into each, reads one, stops, starts over the same
directory (after a clean stop, and after a kill), rests, and deletes all topics. Everything should grow with the number
of partitions no more than linearly, and a node's open files not beyond half of what its process may open.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable

from brokers import TIMEOUT_S, Kafka, NotStarted, Odradek, descriptors, memory_mb, prepared, processor_s
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 10_000
PARTITIONS_PER_TOPIC = 100
TOPICS_PER_REQUEST = 10
IDLE_S = 10.0
SETTLE_S = 15.0
DESCRIPTORS_MAX = 4096

# (name, unit, whether more is better)
MEASURES = {
    "create": ("create the topics", "s", False),
    "write": ("write a record into each partition", "s", False),
    "memory": ("memory after that", "MB", False),
    "descriptors": ("open files after that", "", False),
    "read": ("read one partition", "ms", False),
    "stop": ("clean stop", "s", False),
    "start_clean": ("start after a clean stop", "s", False),
    "memory_started": ("memory after that", "MB", False),
    "idle": ("processor when idle", "%", False),
    "start_killed": ("start after a kill", "s", False),
    "delete": ("delete the topics", "s", False),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help=f"how many ({PARTITIONS})")


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def new_topics(partitions: int) -> list[NewTopic]:
    """Topics of a hundred partitions each, so many in all."""
    size = min(PARTITIONS_PER_TOPIC, partitions)
    return [NewTopic(f"many-{number}", size, 1) for number in range(partitions // size)]


def create(address: str, topics: list[NewTopic]) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    for place in range(0, len(topics), TOPICS_PER_REQUEST):
        some = topics[place : place + TOPICS_PER_REQUEST]
        for future in admin.create_topics(some, operation_timeout=60, request_timeout=120).values():
            future.result(TIMEOUT_S)
    wait_for_leaders(admin, sum(topic.num_partitions for topic in topics))


def wait_for_leaders(admin: AdminClient, partitions: int) -> None:
    """Return when clients are told of all: Apache Kafka says that a topic is made before its brokers know."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        told = admin.list_topics(timeout=60).topics
        led = sum(partition.leader >= 0 for topic in told.values() for partition in topic.partitions.values())
        if led >= partitions:
            return
        if time.monotonic() > deadline:
            raise NotStarted(f"Of {partitions} partitions {led} have a leader.")
        time.sleep(0.1)


def write(address: str, topics: list[NewTopic]) -> None:
    """A record into every partition."""
    producer = Producer({"bootstrap.servers": address, "message.timeout.ms": int(TIMEOUT_S * 1000)})
    failed: list[object] = []
    for topic in topics:
        for partition in range(topic.num_partitions):
            producer.produce(
                topic.topic, b"x" * 100, partition=partition, on_delivery=lambda e, m: failed.append(e) if e else None
            )
        producer.poll(0)
    left = producer.flush(TIMEOUT_S)
    if left or failed:
        producer.purge()
        raise NotStarted(f"{left} records were not acknowledged, {len(failed)} refused: {failed[:1]}")


def read(address: str, topics: list[NewTopic]) -> None:
    """The record of one partition in the middle, by a new consumer."""
    topic = topics[len(topics) // 2]
    consumer = Consumer({"bootstrap.servers": address, "group.id": "nobody"})
    consumer.assign([TopicPartition(topic.topic, topic.num_partitions // 2, 0)])
    if consumer.poll(TIMEOUT_S) is None:
        raise NotStarted("The record of one partition did not come in time.")
    consumer.close()


def delete(address: str, topics: list[NewTopic]) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    names = [topic.topic for topic in topics]
    for future in admin.delete_topics(names, operation_timeout=60, request_timeout=120).values():
        future.result(TIMEOUT_S)


def idle_percent(broker: Odradek | Kafka) -> float:
    """Processor time at rest, after what a start leaves to do."""
    time.sleep(SETTLE_S)
    before = processor_s(broker.pid)
    time.sleep(IDLE_S)
    return 100 * (processor_s(broker.pid) - before) / IDLE_S


def measure(kind: str, options: argparse.Namespace) -> dict[str, float]:
    """Every measure of one broker. The node may open so many files only that it must close some."""
    topics = new_topics(options.partitions)
    broker = prepared(kind, descriptors_max=DESCRIPTORS_MAX)
    results: dict[str, float] = {}
    try:
        broker.start()
        address = broker.bootstrap_servers
        results["create"] = timed(lambda: create(address, topics))
        results["write"] = timed(lambda: write(address, topics))
        results["memory"], results["descriptors"] = memory_mb(broker.pid), descriptors(broker.pid)
        results["read"] = timed(lambda: read(address, topics)) * 1000
        results["stop"] = timed(broker.end)
        results["start_clean"] = timed(broker.start)
        results["memory_started"] = memory_mb(broker.pid)
        results["idle"] = idle_percent(broker)
        broker.end(signal.SIGKILL)
        results["start_killed"] = timed(broker.start)
        results["delete"] = timed(lambda: delete(address, topics))
        return results
    finally:
        broker.remove()
