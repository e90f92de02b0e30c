"""What a broker keeps when it is killed, and whether a large backlog can be read. Each scenario runs its own broker.

    scenarios.py [--broker odradek|kafka] [--only SCENARIO]

The clients are confluent-kafka's with default settings, but for what a scenario is about.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from killable import Node, Scenario, main
from scenario import expect, unique, until

RECORDS = 100_000
PARTITIONS = 6
BACKLOG_RECORDS = 200_000
BACKLOG_RECORD_BYTES = 1024


class Member(threading.Thread):
    """A member of the group, polling in its own thread: what it read, by value, until told to end."""

    def __init__(self, address: str, group: str, topic: str, seen: Counter[bytes]) -> None:
        super().__init__(daemon=True)
        self.consumer = Consumer({"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"})
        self.consumer.subscribe([topic])
        self.seen = seen
        self.ending = threading.Event()

    def run(self) -> None:
        while not self.ending.is_set():
            for message in self.consumer.consume(500, 0.2):
                if message.error() is None:
                    self.seen[message.value()] += 1
        self.consumer.close()  # commits what was read


def make_topic(address: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(30)


def all_values(address: str, topic: str, partitions: int) -> Counter[bytes]:
    """Every record that stands in the log, by value, read from the beginning to the end of each partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": unique("check"), "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found: Counter[bytes] = Counter()
    ends: set[int] = set()

    def at_the_end() -> bool:
        for message in consumer.consume(1000, 0.5):
            if message.error() is None:
                found[message.value()] += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ends.add(message.partition())
        return len(ends) == partitions

    until(at_the_end, "the end of every partition", 120)
    consumer.close()
    return found


def a_killed_broker_keeps_what_it_acknowledged(node: Node) -> None:
    """100,000 records through a group of three, the broker killed with 9 when a good part is acknowledged."""
    address, topic, group = node.bootstrap_servers, unique("kill"), unique("kill")
    make_topic(address, topic, PARTITIONS)
    seen: Counter[bytes] = Counter()
    members = [Member(address, group, topic, seen) for _ in range(3)]
    for member in members:
        member.start()
    acknowledged: set[bytes] = set()
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: object) -> None:
        (refused.append(error) if error else acknowledged.add(message.value()))  # type: ignore[attr-defined]

    settings = {"enable.idempotence": True, "queue.buffering.max.messages": RECORDS}
    producer = Producer({"bootstrap.servers": address} | settings)
    killed = False
    for number in range(RECORDS):
        value = b"%08d" % number + b"x" * 92
        producer.produce(topic, value, on_delivery=delivered)
        producer.poll(0)
        if not killed and len(acknowledged) > RECORDS // 4:
            node.kill()
            killed = True
            node.start()
    if not killed:
        until(lambda: producer.poll(0.1) is not None and len(acknowledged) > RECORDS // 4, "a quarter acknowledged")
        node.kill()
        node.start()
    expect(producer.flush(120), 0, "records left unsent")
    expect(refused, [], "refused records")
    expect(len(acknowledged), RECORDS, "acknowledged records")

    def all_read() -> bool:
        time.sleep(0.1)
        return len(seen) >= RECORDS

    until(all_read, "every record came to the group", 120)
    for member in members:
        member.ending.set()
    for member in members:
        member.join(60)
    stored = all_values(address, topic, PARTITIONS)
    expect(set(stored) == acknowledged, True, "the log holds the acknowledged records and no others")
    expect(sum(stored.values()), RECORDS, "records in the log (more would be duplicates of an idempotent producer)")
    expect(committed(address, group, topic), RECORDS, "records committed by the group")
    print(f"       {sum(seen.values()) - RECORDS} records came twice to the group")


def committed(address: str, group: str, topic: str) -> int:
    """The sum of the group's committed offsets."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    found = consumer.committed([TopicPartition(topic, partition) for partition in range(PARTITIONS)], 30)
    consumer.close()
    return sum(partition.offset for partition in found)


def state_survives_one_kill_after_another(node: Node) -> None:
    """Topics, settings, records, and committed offsets, over three kills."""
    address, topic, group = node.bootstrap_servers, unique("again"), unique("again")
    make_topic(address, topic, 1)
    for round_number in range(3):
        producer = Producer({"bootstrap.servers": address})
        for number in range(1000):
            producer.produce(topic, b"%d-%d" % (round_number, number))
        expect(producer.flush(60), 0, "records left unsent")
        consumer = Consumer({"bootstrap.servers": address, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, (round_number + 1) * 1000)], asynchronous=False)
        consumer.close()
        node.kill()
        node.start()
        expect(len(all_values(address, topic, 1)), (round_number + 1) * 1000, "records after the kill")
        reader = Consumer({"bootstrap.servers": address, "group.id": group})
        (offset,) = reader.committed([TopicPartition(topic, 0)], 30)
        reader.close()
        expect(offset.offset, (round_number + 1) * 1000, "the committed offset after the kill")


def a_backlog_of_200_mb_is_read(node: Node) -> None:
    """Written before any consumer looks, then read from the beginning by one consumer with default settings."""
    address, topic = node.bootstrap_servers, unique("backlog")
    make_topic(address, topic, 1)
    producer = Producer({"bootstrap.servers": address})
    for number in range(BACKLOG_RECORDS):
        value = b"%08d" % number + b"x" * (BACKLOG_RECORD_BYTES - 8)
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.1)
    expect(producer.flush(120), 0, "records left unsent")
    began = time.monotonic()
    consumer = Consumer({"bootstrap.servers": address, "group.id": unique("backlog"), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    count = 0

    def all_read() -> bool:
        nonlocal count
        for message in consumer.consume(1000, 0.5):
            expect(message.error(), None, "an error among the records")
            expect(int(message.value()[:8]), count, "the next record")
            count += 1
        return count == BACKLOG_RECORDS

    until(all_read, f"{BACKLOG_RECORDS} records, of which {count} came", 180)
    consumer.close()
    print(f"       read in {time.monotonic() - began:.1f} s")


SCENARIOS: list[Scenario] = [
    a_killed_broker_keeps_what_it_acknowledged,
    state_survives_one_kill_after_another,
    a_backlog_of_200_mb_is_read,
]


if __name__ == "__main__":
    main(SCENARIOS, ["num.partitions=1"])
