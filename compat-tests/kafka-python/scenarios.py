"""kafka-python as people use it, with its default settings; 2.0.2 is what many still run, and Debian 12 has."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import transactions  # noqa: F401 (its scenarios register themselves)
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError
from kafka.structs import OffsetAndMetadata
from scenario import Lacking, expect, main, scenario, unique, until

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
# What versions before 2.1 lack.
IDEMPOTENCE = "enable_idempotence" in KafkaProducer.DEFAULT_CONFIG
LEADER_EPOCHS = "leader_epoch" in OffsetAndMetadata._fields


def admin_of(address: str) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=address)


def method_of(admin: KafkaAdminClient, name: str) -> Callable[..., object]:
    """A method on groups, which earlier versions call one on consumer groups."""
    return getattr(admin, name, None) or getattr(admin, name.replace("group", "consumer_group"))


def make_topic(address: str, topic: str, partitions: int = 1) -> None:
    admin = admin_of(address)
    admin.create_topics([NewTopic(topic, partitions, 1)])
    admin.close()


def write(address: str, topic: str, count: int, **settings: object) -> None:
    producer = KafkaProducer(bootstrap_servers=address, **settings)
    sent = [producer.send(topic, key=b"k%d" % n, value=b"v%d" % n) for n in range(count)]
    for future in sent:
        future.get(timeout=30)
    producer.close()


def read(consumer: KafkaConsumer, count: int) -> list:
    """Poll until that many records came; more would be seen too."""
    records: list = []

    def enough() -> bool:
        for polled in consumer.poll(timeout_ms=500).values():
            records.extend(polled)
        return len(records) >= count

    until(enough, f"{count} records")
    return records


@scenario
def topics_are_made_described_grown_and_deleted(address: str) -> None:
    topic, admin = unique("topic"), admin_of(address)
    admin.create_topics([NewTopic(topic, 3, 1, topic_configs={"retention.ms": "123456"})])
    try:
        admin.create_topics([NewTopic(topic, 3, 1)])
        raise AssertionError("a second topic of the same name was made")
    except TopicAlreadyExistsError:
        pass
    expect(topic in admin.list_topics(), True, "the topic is listed")
    (described,) = admin.describe_topics([topic])
    expect(len(described["partitions"]), 3, "partitions")
    admin.create_partitions({topic: NewPartitions(5)})
    (described,) = admin.describe_topics([topic])
    expect(len(described["partitions"]), 5, "partitions after growing")
    admin.delete_topics([topic])
    expect(topic in admin.list_topics(), False, "the topic is listed after its end")
    try:
        admin.delete_topics([topic])
        raise AssertionError("a topic was deleted twice")
    except UnknownTopicOrPartitionError:
        pass
    admin.close()


@scenario
def topic_settings_are_altered(address: str) -> None:
    topic, admin = unique("settings"), admin_of(address)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "7654321"})])
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    until(lambda: "7654321" in repr(admin.describe_configs([resource])), "the new value is described")
    admin.close()


@scenario
def every_codec_comes_back(address: str) -> None:
    for codec in CODECS:
        topic = unique(codec or "plain")
        write(address, topic, 500, compression_type=codec)
        consumer = KafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
        records = read(consumer, 500)
        expect([r.value for r in records], [b"v%d" % n for n in range(500)], f"values written with {codec}")
        expect([r.offset for r in records], list(range(500)), f"offsets written with {codec}")
        consumer.close()


@scenario
def keys_headers_and_times_come_back(address: str) -> None:
    topic = unique("headers")
    producer = KafkaProducer(bootstrap_servers=address)
    meta = producer.send(topic, value=None, key=b"k", headers=[("a", b"1"), ("b", b"")], timestamp_ms=1_700_000_000_123)
    expect(meta.get(timeout=30).offset, 0, "the first offset")
    producer.close()
    consumer = KafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    (record,) = read(consumer, 1)
    expect((record.key, record.value, record.timestamp), (b"k", None, 1_700_000_000_123), "key, value, time")
    expect([tuple(header) for header in record.headers], [("a", b"1"), ("b", b"")], "headers")
    consumer.close()


@scenario
def acks_of_every_kind_write(address: str) -> None:
    for acks in (0, 1, "all"):
        topic = unique(f"acks-{acks}")
        make_topic(address, topic)
        idempotence = {"enable_idempotence": acks == "all"} if IDEMPOTENCE else {}
        producer = KafkaProducer(bootstrap_servers=address, acks=acks, **idempotence)
        for n in range(100):
            producer.send(topic, b"v%d" % n)
        producer.flush(30)
        producer.close()
        consumer = KafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
        expect([r.value for r in read(consumer, 100)], [b"v%d" % n for n in range(100)], f"values with acks={acks}")
        consumer.close()


class Member(threading.Thread):
    """A member that polls in its own thread, as one in its own process would; tells what it owns."""

    def __init__(self, address: str, group: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.consumer = KafkaConsumer(topic, bootstrap_servers=address, group_id=group, auto_offset_reset="earliest")
        self.owned: set[TopicPartition] = set()
        self.ending = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ending.is_set():
            # Long: a poll that ends while the group is being joined may lose its assignment (../FINDINGS.md).
            self.consumer.poll(timeout_ms=2000)
            self.owned = set(self.consumer.assignment())
        self.consumer.close()

    def end(self) -> None:
        self.ending.set()
        self.join(30)


@scenario
def three_members_share_and_one_leaves(address: str) -> None:
    topic, group = unique("group"), unique("group")
    make_topic(address, topic, 6)
    members = [Member(address, group, topic) for _ in range(3)]

    def shared() -> bool:
        time.sleep(0.05)
        owned = [member.owned for member in members]
        return sorted(map(len, owned)) == [6 // len(members)] * len(members) and len(set().union(*owned)) == 6

    until(shared, "three members with two partitions each")
    members.pop().end()
    until(shared, "two members with three partitions each after one left")
    for member in members:
        member.end()


@scenario
def commits_are_taken_up_again(address: str) -> None:
    topic, group = unique("commit"), unique("commit")
    make_topic(address, topic)
    write(address, topic, 20)
    settings = {"bootstrap_servers": address, "group_id": group, "auto_offset_reset": "earliest"}
    first = KafkaConsumer(topic, enable_auto_commit=False, **settings)
    read(first, 20)
    partition = TopicPartition(topic, 0)
    committed = OffsetAndMetadata(7, "half way", -1) if LEADER_EPOCHS else OffsetAndMetadata(7, "half way")
    first.commit({partition: committed})
    expect(first.committed(partition), 7, "the committed offset")
    first.close()
    second = KafkaConsumer(topic, **settings)
    expect([r.offset for r in read(second, 13)], list(range(7, 20)), "offsets after the commit")
    second.close()
    admin = admin_of(address)
    offsets = method_of(admin, "list_group_offsets")(group)
    expect("7" in repr(offsets) or "20" in repr(offsets), True, f"the group's offsets in {offsets!r:.200}")
    expect(group in repr(method_of(admin, "list_groups")()), True, "the group is listed")
    expect(group in repr(method_of(admin, "describe_groups")([group])), True, "the group is described")
    method_of(admin, "delete_groups")([group])
    expect(group in repr(method_of(admin, "list_groups")()), False, "the group is listed after its end")
    admin.close()


@scenario
def seeks_go_by_time_and_to_the_ends(address: str) -> None:
    topic = unique("time")
    make_topic(address, topic)
    producer = KafkaProducer(bootstrap_servers=address)
    for n in range(10):
        producer.send(topic, b"v%d" % n, timestamp_ms=1_700_000_000_000 + n * 1000).get(timeout=30)
    producer.close()
    consumer, partition = KafkaConsumer(bootstrap_servers=address), TopicPartition(topic, 0)
    consumer.assign([partition])
    found = consumer.offsets_for_times({partition: 1_700_000_003_500})
    expect((found[partition].offset, found[partition].timestamp), (4, 1_700_000_004_000), "the offset by time")
    expect(consumer.beginning_offsets([partition])[partition], 0, "the beginning")
    expect(consumer.end_offsets([partition])[partition], 10, "the end")
    consumer.seek(partition, 4)
    expect([r.value for r in read(consumer, 6)], [b"v%d" % n for n in range(4, 10)], "values from there")
    consumer.close()


@scenario
def records_are_deleted_up_to_an_offset(address: str) -> None:
    topic, admin, partition = unique("delete-records"), admin_of(address), None
    if not hasattr(admin, "delete_records"):
        raise Lacking("this version has no DeleteRecords")
    admin.create_topics([NewTopic(topic, 1, 1)])
    write(address, topic, 10)
    partition = TopicPartition(topic, 0)
    admin.delete_records({partition: 6})
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
    consumer.assign([partition])
    expect(consumer.beginning_offsets([partition])[partition], 6, "the beginning after the deletion")
    expect([r.offset for r in read(consumer, 4)], [6, 7, 8, 9], "offsets left")
    consumer.close()
    admin.close()


@scenario
def the_cluster_is_described(address: str) -> None:
    admin = admin_of(address)
    cluster = admin.describe_cluster()
    expect(len(cluster["brokers"]), 1, "brokers")
    expect(bool(cluster["cluster_id"]), True, "a cluster id")
    admin.close()


if __name__ == "__main__":
    main()
