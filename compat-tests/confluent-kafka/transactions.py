"""Transactions with confluent-kafka (librdkafka adds partitions by itself: transaction.version 1 to it)."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from scenario import expect, scenario, unique, until


def make_topic(address: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


def producer_of(address: str, transactional_id: str, **settings: object) -> Producer:
    base = {"bootstrap.servers": address, "transactional.id": transactional_id}
    producer = Producer(base | {name.replace("_", "."): value for name, value in settings.items()})
    producer.init_transactions(30)
    return producer


def reader_of(address: str, topic: str, partitions: int = 1, *, committed: bool = True) -> Consumer:
    reader = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": unique("reader"),
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
        }
    )
    reader.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    return reader


def read_to_end(reader: Consumer, partitions: int = 1) -> list[bytes]:
    """Everything up to where each partition ends for this reader."""
    values: list[bytes] = []
    ended: set[int] = set()

    def done() -> bool:
        for message in reader.consume(500, 0.5):
            error = message.error()
            if error is None:
                values.append(message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
        return len(ended) == partitions

    until(done, "the end of every partition")
    return values


@scenario
def committed_is_seen_and_aborted_is_not(address: str) -> None:
    topic = unique("txn")
    make_topic(address, topic, 3)
    producer = producer_of(address, unique("id"))
    for number in range(20):
        producer.begin_transaction()
        for index in range(9):
            producer.produce(topic, b"%s %d-%d" % (b"good" if number % 2 == 0 else b"bad", number, index))
        expect(producer.flush(30), 0, "records left unsent")
        if number % 2 == 0:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    reader = reader_of(address, topic, 3)
    values = read_to_end(reader, 3)
    expect(
        sorted(values), sorted(b"good %d-%d" % (n, i) for n in range(0, 20, 2) for i in range(9)), "what is committed"
    )
    reader.close()
    reader = reader_of(address, topic, 3, committed=False)
    expect(len(read_to_end(reader, 3)), 180, "records with those that were aborted")
    reader.close()


@scenario
def t05_the_first_transaction_needs_no_settings(address: str) -> None:
    topic = unique("first")
    producer = producer_of(address, unique("id"))
    producer.begin_transaction()
    producer.produce(topic, b"v")
    producer.commit_transaction(30)


@scenario
def t09_a_second_producer_fences_the_first(address: str) -> None:
    topic, transactional_id = unique("fence"), unique("id")
    make_topic(address, topic)
    first = producer_of(address, transactional_id)
    first.begin_transaction()
    first.produce(topic, b"first")
    first.flush(30)
    second = producer_of(address, transactional_id)
    fatal: list[KafkaError] = []
    try:
        first.produce(topic, b"first again")
        first.commit_transaction(10)
    except KafkaException as error:
        fatal.append(error.args[0])
    expect([error.fatal() for error in fatal], [True], "the first producer fails for good")
    second.begin_transaction()
    second.produce(topic, b"second")
    second.commit_transaction(30)
    reader = reader_of(address, topic)
    expect(read_to_end(reader), [b"second"], "what is committed")
    reader.close()


@scenario
def t10_empty_transactions_and_offsets_only(address: str) -> None:
    topic, group = unique("empty"), unique("group")
    make_topic(address, topic)
    producer = producer_of(address, unique("id"))
    producer.begin_transaction()
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.abort_transaction(30)
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
    producer.begin_transaction()
    offsets = [TopicPartition(topic, 0, 7)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    (committed,) = consumer.committed([TopicPartition(topic, 0)], 30)
    expect(committed.offset, 7, "the committed offset")
    consumer.close()


@scenario
def consume_transform_produce_loses_and_repeats_nothing(address: str) -> None:
    source, target, group = unique("in"), unique("out"), unique("copy")
    make_topic(address, source, 2)
    make_topic(address, target, 2)
    writer = Producer({"bootstrap.servers": address})
    for number in range(300):
        writer.produce(source, b"%d" % number, b"%d" % number)
    writer.flush(30)
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    producer, rounds, copied = producer_of(address, unique("id")), 0, 0

    def copy() -> bool:
        nonlocal rounds, copied
        messages = [message for message in consumer.consume(25, 0.5) if message.error() is None]
        if not messages:
            return copied == 300
        rounds += 1
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), message.key())
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
        if rounds % 4 == 0:
            producer.abort_transaction(30)
            for position in consumer.committed(consumer.assignment(), 30):
                position.offset = max(position.offset, 0)
                consumer.seek(position)
        else:
            producer.commit_transaction(30)
            copied += len(messages)
        return copied == 300

    until(copy, "all records are copied")
    reader = reader_of(address, target, 2)
    expect(sorted(map(int, read_to_end(reader, 2))), list(range(300)), "the copies")
    reader.close()
    consumer.close()


@scenario
def t17_the_position_passes_the_marker(address: str) -> None:
    topic = unique("marker")
    make_topic(address, topic)
    producer = producer_of(address, unique("id"))
    producer.begin_transaction()
    producer.produce(topic, b"v")
    producer.commit_transaction(30)
    reader = reader_of(address, topic)
    expect(read_to_end(reader), [b"v"], "what is committed")
    expect(reader.get_watermark_offsets(TopicPartition(topic, 0), 30), (0, 2), "low and high watermark")
    reader.close()
