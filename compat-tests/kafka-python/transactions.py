"""Transactions with kafka-python, whose producer adds partitions by itself."""

from __future__ import annotations

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata
from scenario import Lacking, expect, scenario, unique, until


def make_topic(address: str, topic: str, partitions: int = 1) -> None:
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([NewTopic(topic, partitions, 1)])
    admin.close()


def producer_of(address: str, transactional_id: str) -> KafkaProducer:
    if "transactional_id" not in KafkaProducer.DEFAULT_CONFIG:
        raise Lacking("this version has no transactions")
    producer = KafkaProducer(bootstrap_servers=address, transactional_id=transactional_id)
    producer.init_transactions()
    return producer


def committed_values(address: str, topic: str, count: int, partitions: int = 1) -> list[bytes]:
    """Committed records of a topic: `count` of them, and no more within a moment."""
    consumer = KafkaConsumer(bootstrap_servers=address, isolation_level="read_committed", auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, index) for index in range(partitions)])
    values: list[bytes] = []

    def done() -> bool:
        for records in consumer.poll(500).values():
            values.extend(record.value for record in records)
        return len(values) >= count

    until(done, f"{count} committed records")
    for records in consumer.poll(500).values():
        values.extend(record.value for record in records)
    consumer.close()
    return values


@scenario
def committed_is_seen_and_aborted_is_not(address: str) -> None:
    topic = unique("txn")
    make_topic(address, topic, 2)
    producer = producer_of(address, unique("id"))
    for number in range(10):
        producer.begin_transaction()
        sent = [producer.send(topic, b"%d-%d" % (number, partition), partition=partition) for partition in range(2)]
        for future in sent:
            future.get(30)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    values = committed_values(address, topic, 10, 2)
    expect(sorted(values), sorted(b"%d-%d" % (n, p) for n in range(0, 10, 2) for p in range(2)), "what is committed")


@scenario
def offsets_are_committed_with_the_transaction(address: str) -> None:
    topic, group = unique("offsets"), unique("group")
    make_topic(address, topic)
    producer = producer_of(address, unique("id"))
    tp = TopicPartition(topic, 0)
    for offset, commits in ((5, True), (9, False)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction({tp: OffsetAndMetadata(offset, "", -1)}, group)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=address, group_id=group, isolation_level="read_committed")
    expect(consumer.committed(tp), 5, "the committed offset")
    consumer.close()


@scenario
def a_new_instance_takes_over_an_open_transaction(address: str) -> None:
    topic, transactional_id = unique("takeover"), unique("id")
    make_topic(address, topic)
    first = producer_of(address, transactional_id)
    first.begin_transaction()
    first.send(topic, b"first").get(30)
    second = producer_of(address, transactional_id)
    second.begin_transaction()
    second.send(topic, b"second").get(30)
    second.commit_transaction()
    second.close()
    expect(committed_values(address, topic, 1), [b"second"], "what is committed")
    first.close(timeout=1)
