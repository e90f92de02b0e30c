"""confluent-kafka 2.16.1 (librdkafka) as people use it, with its default settings."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import consumer_groups  # noqa: F401 (its scenarios register themselves)
import transactions  # noqa: F401 (likewise)
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from scenario import expect, main, scenario, unique, until

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def admin_of(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address})


def done(futures: dict) -> list:
    """Results of an admin call, in the order asked; raises what the broker refused."""
    return [future.result(30) for future in futures.values()]


def make_topic(address: str, topic: str, partitions: int = 1) -> None:
    admin = admin_of(address)  # held until the answer is there: an admin client takes its requests along
    done(admin.create_topics([NewTopic(topic, partitions, 1)]))


def write(address: str, topic: str, count: int, **settings: object) -> None:
    refused: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": address} | {name.replace("_", "."): v for name, v in settings.items()})
    for n in range(count):
        producer.produce(topic, b"v%d" % n, b"k%d" % n, on_delivery=lambda e, _m: refused.append(e) if e else None)
    expect(producer.flush(60), 0, "records left unsent")
    expect(refused, [], "refused records")


def consumer_of(address: str, group: str | None = None, **settings: object) -> Consumer:
    base = {"bootstrap.servers": address, "group.id": group or unique("group"), "auto.offset.reset": "earliest"}
    return Consumer(base | {name.replace("_", "."): value for name, value in settings.items()})


def read(consumer: Consumer, count: int) -> list:
    messages: list = []

    def enough() -> bool:
        for message in consumer.consume(1000, 0.5):
            if message.error():
                raise KafkaException(message.error())
            messages.append(message)
        return len(messages) >= count

    until(enough, f"{count} records")
    return messages


@scenario
def topics_are_made_described_grown_and_deleted(address: str) -> None:
    topic, admin = unique("topic"), admin_of(address)
    done(admin.create_topics([NewTopic(topic, 3, 1, config={"retention.ms": "123456"})]))
    try:
        done(admin.create_topics([NewTopic(topic, 3, 1)]))
        raise AssertionError("a second topic of the same name was made")
    except KafkaException as error:
        expect(error.args[0].code(), KafkaError.TOPIC_ALREADY_EXISTS, "the error code")
    expect(len(admin.list_topics(topic, 30).topics[topic].partitions), 3, "partitions")
    done(admin.create_partitions([NewPartitions(topic, 5)]))
    # Apache Kafka's broker may learn a moment after its controller answered.
    until(lambda: len(admin.list_topics(topic, 30).topics[topic].partitions) == 5, "five partitions")
    done(admin.delete_topics([topic]))
    until(lambda: topic not in admin.list_topics(timeout=30).topics, "the topic is not listed after its end")


@scenario
def topic_settings_are_altered(address: str) -> None:
    topic, admin = unique("settings"), admin_of(address)
    make_topic(address, topic)
    entry = ConfigEntry("retention.ms", "777", incremental_operation=AlterConfigOpType.SET)
    done(admin.incremental_alter_configs([ConfigResource("topic", topic, incremental_configs=[entry])]))

    def described() -> dict:
        return done(admin.describe_configs([ConfigResource("topic", topic)]))[0]

    until(lambda: described()["retention.ms"].value == "777", "the altered setting")
    expect(described()["cleanup.policy"].is_default, True, "an untouched setting is at its default")


@scenario
def every_codec_comes_back(address: str) -> None:
    for codec in CODECS:
        topic = unique(codec)
        write(address, topic, 500, compression_type=codec)
        consumer = consumer_of(address)
        consumer.subscribe([topic])
        messages = read(consumer, 500)
        expect([m.value() for m in messages], [b"v%d" % n for n in range(500)], f"values written with {codec}")
        expect([m.offset() for m in messages], list(range(500)), f"offsets written with {codec}")
        consumer.close()


@scenario
def keys_headers_and_times_come_back(address: str) -> None:
    topic, producer = unique("headers"), Producer({"bootstrap.servers": address})
    producer.produce(topic, None, b"k", headers=[("a", b"1"), ("b", None)], timestamp=1_700_000_000_123)
    expect(producer.flush(30), 0, "records left unsent")
    consumer = consumer_of(address)
    consumer.subscribe([topic])
    (message,) = read(consumer, 1)
    expect((message.key(), message.value()), (b"k", None), "key and value")
    expect(message.timestamp(), (TIMESTAMP_CREATE_TIME, 1_700_000_000_123), "time")
    expect(message.headers(), [("a", b"1"), ("b", None)], "headers")
    consumer.close()


@scenario
def acks_and_idempotence_of_every_kind_write(address: str) -> None:
    for settings in ({"acks": "0"}, {"acks": "1"}, {"acks": "all"}, {"enable_idempotence": True}):
        topic = unique("acks")
        make_topic(address, topic)
        write(address, topic, 2000, **settings)
        consumer = consumer_of(address)
        consumer.assign([TopicPartition(topic, 0, 0)])
        expect([m.value() for m in read(consumer, 2000)], [b"v%d" % n for n in range(2000)], f"values with {settings}")
        consumer.close()


@scenario
def three_members_share_and_one_leaves(address: str) -> None:
    for strategy in ("range,roundrobin", "cooperative-sticky"):
        topic, group = unique("group"), unique("group")
        make_topic(address, topic, 6)
        members = [consumer_of(address, group, partition_assignment_strategy=strategy) for _ in range(3)]
        for member in members:
            member.subscribe([topic])

        def shared(members: list[Consumer] = members) -> bool:
            for member in members:
                member.poll(0.1)
            owned = [{(tp.topic, tp.partition) for tp in member.assignment()} for member in members]
            return sorted(map(len, owned)) == [6 // len(members)] * len(members) and len(set().union(*owned)) == 6

        until(shared, f"three members with two partitions each, {strategy}")
        members.pop().close()
        until(shared, f"two members with three partitions each after one left, {strategy}")
        for member in members:
            member.close()


@scenario
def commits_are_taken_up_again(address: str) -> None:
    topic, group = unique("commit"), unique("commit")
    make_topic(address, topic)
    write(address, topic, 20)
    first = consumer_of(address, group, enable_auto_commit=False)
    first.subscribe([topic])
    read(first, 20)
    first.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    (committed,) = first.committed([TopicPartition(topic, 0)], 30)
    expect(committed.offset, 7, "the committed offset")
    first.close()
    second = consumer_of(address, group)
    second.subscribe([topic])
    expect([m.offset() for m in read(second, 13)], list(range(7, 20)), "offsets after the commit")
    second.close()


@scenario
def groups_are_listed_described_and_deleted(address: str) -> None:
    topic, group, admin = unique("admin"), unique("admin"), admin_of(address)
    make_topic(address, topic)
    write(address, topic, 5)
    consumer = consumer_of(address, group)
    consumer.subscribe([topic])
    read(consumer, 5)
    consumer.commit(asynchronous=False)
    listed = admin.list_consumer_groups(request_timeout=30).result(30).valid
    expect(group in [listing.group_id for listing in listed], True, "the group is listed")
    (described,) = done(admin.describe_consumer_groups([group]))
    expect((described.state.name, len(described.members)), ("STABLE", 1), "state and members")
    consumer.close()
    asked = [ConsumerGroupTopicPartitions(group)]
    (offsets,) = done(admin.list_consumer_group_offsets(asked))
    expect([(tp.topic, tp.offset) for tp in offsets.topic_partitions], [(topic, 5)], "the group's offsets")
    altered = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])]
    done(admin.alter_consumer_group_offsets(altered))
    (offsets,) = done(admin.list_consumer_group_offsets(asked))
    expect([tp.offset for tp in offsets.topic_partitions], [2], "the group's offsets after altering them")
    done(admin.delete_consumer_groups([group]))
    listed = admin.list_consumer_groups(request_timeout=30).result(30).valid
    expect(group in [listing.group_id for listing in listed], False, "the group is listed after its end")


@scenario
def seeks_go_by_time_and_to_the_ends(address: str) -> None:
    topic, producer = unique("time"), Producer({"bootstrap.servers": address})
    make_topic(address, topic)
    for n in range(10):
        producer.produce(topic, b"v%d" % n, timestamp=1_700_000_000_000 + n * 1000)
    expect(producer.flush(30), 0, "records left unsent")
    consumer = consumer_of(address)
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, 1_700_000_003_500)], 30)
    expect(found.offset, 4, "the offset by time")
    expect(consumer.get_watermark_offsets(TopicPartition(topic, 0), 30), (0, 10), "beginning and end")
    consumer.assign([found])
    expect([m.value() for m in read(consumer, 6)], [b"v%d" % n for n in range(4, 10)], "values from there")
    consumer.close()
    admin = admin_of(address)
    partition = TopicPartition(topic, 0)
    for spec, offset in ((OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 10), (OffsetSpec.max_timestamp(), 9)):
        (result,) = done(admin.list_offsets({partition: spec}))
        expect(result.offset, offset, f"the offset at {spec}")


@scenario
def records_are_deleted_up_to_an_offset(address: str) -> None:
    topic, admin = unique("delete-records"), admin_of(address)
    make_topic(address, topic)
    write(address, topic, 10)
    (deleted,) = done(admin.delete_records([TopicPartition(topic, 0, 6)]))
    expect(deleted.low_watermark, 6, "the beginning after the deletion")
    consumer = consumer_of(address)
    consumer.assign([TopicPartition(topic, 0, 0)])
    expect([m.offset() for m in read(consumer, 4)], [6, 7, 8, 9], "offsets left")
    consumer.close()


@scenario
def a_record_too_large_is_refused_with_its_code(address: str) -> None:
    topic, codes = unique("large"), []
    make_topic(address, topic)
    producer = Producer({"bootstrap.servers": address, "message.max.bytes": 3_000_000})
    producer.produce(topic, b"x" * 2_000_000, on_delivery=lambda e, _m: codes.append(e and e.code()))
    expect(producer.flush(60), 0, "records left unsent")
    expect(codes, [KafkaError.MSG_SIZE_TOO_LARGE], "the error code")


@scenario
def the_cluster_is_described(address: str) -> None:
    admin = admin_of(address)
    cluster = admin.describe_cluster(request_timeout=30).result(30)
    expect(len(cluster.nodes), 1, "nodes")
    expect(bool(cluster.cluster_id), True, "a cluster id")


if __name__ == "__main__":
    main()
