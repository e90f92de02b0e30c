"""What a broker is filled with, and everything that a client can see of it: taken before and after a directory changes
hands, both must be the same."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic, OffsetSpec
from scenario import until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEEP = {"retention.ms": "-1"}
TOPICS = {
    "codecs": (1, KEEP),
    "spread": (3, KEEP | {"segment.bytes": "1048576"}),
    "compacted": (1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}),
    "append-time": (1, KEEP | {"message.timestamp.type": "LogAppendTime"}),
    "trimmed": (1, KEEP),
    "transactions": (2, KEEP),
    "gone": (1, {}),
}
START_MS = int(time.time() * 1000) - 3_600_000
"""Timestamps of records: recent, so that no broker finds them strange."""
READ_TIMEOUT_S = 60.0


def fill(address: str, mark: str) -> None:
    """Make the topics that are missing and write to all of them; `mark` tells this round from others."""
    admin = AdminClient({"bootstrap.servers": address})
    present = admin.list_topics(timeout=30).topics
    for name, (partitions, settings) in TOPICS.items():
        if name not in present:
            for future in admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values():
                future.result(30)
    write_records(address, mark)
    write_transactions(address, mark)
    for future in admin.delete_records([TopicPartition("trimmed", 0, 7)]).values():
        future.result(30)
    commit_offsets(address, mark)
    for future in admin.delete_topics(["gone"]).values():
        future.result(30)


def write_records(address: str, mark: str) -> None:
    """Every codec, keys, headers, missing values, and two batches of each idempotent producer."""
    for place, codec in enumerate(CODECS):
        producer = Producer(
            {"bootstrap.servers": address, "compression.type": codec, "enable.idempotence": place % 2 == 0}
        )
        for number in range(40):
            stamp = START_MS + place * 1000 + number
            key = f"{mark}-{number % 10}"
            value = None if number % 10 == 9 else f"{codec} {number} ".encode() * 20
            headers = [("codec", codec.encode()), ("empty", None)] if number % 4 == 0 else None
            producer.produce("codecs", value, key, 0, timestamp=stamp, headers=headers)
            producer.produce("spread", value, f"{mark}-{number}", timestamp=stamp)
            producer.produce("compacted", value, key, 0, timestamp=stamp)
            producer.produce("append-time", value, timestamp=stamp)
            producer.produce("trimmed", b"%d" % number, timestamp=stamp)
            producer.produce("gone", b"%d" % number)
            if number % 20 == 19:
                flush(producer)


def flush(producer: Producer) -> None:
    left = producer.flush(60)
    if left:
        raise AssertionError(f"{left} records were not acknowledged within a minute")


def write_transactions(address: str, mark: str) -> None:
    """Committed and aborted ones over two partitions, offsets committed with one, and an id that comes again."""
    for number, ending in enumerate(("commit", "abort", "commit", "abort")):
        producer = Producer({"bootstrap.servers": address, "transactional.id": f"writer-{number % 3}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for place in range(6):
            producer.produce("transactions", f"{mark} {ending} {place}".encode(), str(number), place % 2)
        if number == 2:
            reader = Consumer({"bootstrap.servers": address, "group.id": "transactional", "client.id": mark})
            offsets = [TopicPartition("spread", 0, 3, metadata=mark)]
            producer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), 30)
            reader.close()
        flush(producer)  # what was not sent when a transaction is aborted never comes into the log
        (producer.commit_transaction if ending == "commit" else producer.abort_transaction)(30)


def commit_offsets(address: str, mark: str) -> None:
    """Through members of a group of each protocol, and without a member."""
    for group, protocol in (("classic", "classic"), ("modern", "consumer")):
        settings = {"bootstrap.servers": address, "group.id": group, "group.protocol": protocol}
        consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
        consumer.subscribe(["spread", "codecs"])
        read: list[Any] = []

        def came(consumer: Consumer = consumer, read: list[Any] = read) -> bool:
            read.extend(message for message in consumer.consume(50, 0.5) if message.error() is None)
            return len(read) >= 50

        until(came, f"group {group} reads 50 records")
        consumer.commit(asynchronous=False)
        consumer.close()
    consumer = Consumer({"bootstrap.servers": address, "group.id": "alone"})
    consumer.commit(offsets=[TopicPartition("codecs", 0, 11, metadata=f"from {mark}")], asynchronous=False)
    consumer.close()


def forget_log_start(address: str) -> None:
    """Take away the topic whose records were deleted up to an offset."""
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_topics(["trimmed"]).values():
        future.result(30)


# --- what can be seen -----------------------------------------------------------------------------


def seen(address: str, start_ms: int = START_MS) -> dict[str, Any]:
    """Everything: topics, their ids and settings, every record at both isolation levels, offsets, groups. `start_ms` is
    the START_MS of whoever wrote it."""
    admin = AdminClient({"bootstrap.servers": address})
    topics = sorted(name for name in admin.list_topics(timeout=30).topics if not name.startswith("__"))
    described = {name: future.result(30) for name, future in admin.describe_topics(TopicCollection(topics)).items()}
    found: dict[str, Any] = {"start_ms": start_ms, "topics": {}, "records": {}, "settings": {}, "offsets": {}}
    everything: list[TopicPartition] = []
    for name in topics:
        partitions = [partition.id for partition in described[name].partitions]
        found["topics"][name] = (str(described[name].topic_id), partitions)
        found["settings"][name] = settings_of(admin, name)
        for partition in partitions:
            found["offsets"][f"{name}-{partition}"] = offsets_of(admin, name, partition, start_ms)
            everything.append(TopicPartition(name, partition, 0))
    for level in ("read_uncommitted", "read_committed"):
        for (name, partition), records in read(address, everything, level).items():
            found["records"][f"{name}-{partition} {level}"] = records
    found["groups"] = groups_of(admin)
    return found


def settings_of(admin: AdminClient, topic: str) -> dict[str, str]:
    """What is set on the topic itself."""
    (future,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in future.result(30).items() if entry.source == own}


def offsets_of(admin: AdminClient, topic: str, partition: int, start_ms: int) -> dict[str, tuple[int, int]]:
    """Where the log begins, ends, has its greatest timestamp and one in the middle."""
    answers = {}
    for name, spec in {
        "earliest": OffsetSpec.earliest(),
        "latest": OffsetSpec.latest(),
        "greatest": OffsetSpec.max_timestamp(),
        "middle": OffsetSpec.for_timestamp(start_ms + 2005),
    }.items():
        result = listed(admin, TopicPartition(topic, partition), spec)
        answers[name] = (result.offset, result.timestamp)
    committed = IsolationLevel.READ_COMMITTED
    stable = listed(admin, TopicPartition(topic, partition), OffsetSpec.latest(), isolation_level=committed)
    answers["stable"] = (stable.offset, -1)
    return answers


def listed(admin: AdminClient, partition: TopicPartition, spec: OffsetSpec, **options: Any) -> Any:
    """One offset. A broker that has just started may tell clients a leader epoch that its partitions have yet to learn;
    librdkafka's admin client leaves it to its user to ask again."""
    deadline = time.monotonic() + READ_TIMEOUT_S
    while True:
        (future,) = admin.list_offsets({partition: spec}, **options).values()
        try:
            return future.result(30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_LEADER_EPOCH or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def records_of(address: str, topic: str, partition: int, level: str) -> list[tuple[Any, ...]]:
    """Every record of a partition from the beginning to the end."""
    return read(address, [TopicPartition(topic, partition, 0)], level)[topic, partition]


def read(address: str, partitions: Sequence[TopicPartition], level: str) -> dict[tuple[str, int], list[Any]]:
    """Every record from the beginning of each partition to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": level,
            "fetch.wait.max.ms": 20,
            "auto.offset.reset": "earliest",
        }
    )
    found: dict[tuple[str, int], list[Any]] = {(each.topic, each.partition): [] for each in partitions}
    unread = set(found)
    consumer.assign(list(partitions))

    def at_the_ends() -> bool:
        for message in consumer.consume(500, 0.05):
            where = message.topic(), message.partition()
            if message.error() is None:
                found[where].append(
                    (message.offset(), message.key(), message.value(), message.timestamp(), message.headers())
                )
            elif message.error().code() == KafkaError._PARTITION_EOF:
                unread.discard(where)
            else:
                raise AssertionError(f"{where}: {message.error()}")
        return not unread

    until(at_the_ends, f"the ends of {sorted(unread)}", READ_TIMEOUT_S)
    consumer.close()
    return found


def groups_of(admin: AdminClient) -> dict[str, Any]:
    """Each group's type, state, and what it has committed."""
    found = {}
    listed_groups = admin.list_consumer_groups().result(30).valid
    for group in sorted(listed_groups, key=lambda group: group.group_id):
        (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group.group_id)]).values()
        committed = {
            (partition.topic, partition.partition): (partition.offset, partition.metadata)
            for partition in future.result(30).topic_partitions
        }
        found[group.group_id] = (str(group.type), str(group.state), committed)
    return found


def plain(value: Any) -> Any:
    """What was seen as JSON holds it: pairs as lists, pairs that are keys and bytes as text."""
    if isinstance(value, dict):
        return {"-".join(map(str, key)) if isinstance(key, tuple) else key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


def difference(before: Any, after: Any, path: str = "") -> list[str]:
    """Where two of `seen` differ, in words; at most a few."""
    return list(differences(before, after, path))[:5]


def differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys(), key=str):
            yield from differences(before.get(name, "(nothing)"), after.get(name, "(nothing)"), f"{path}/{name}")
    elif isinstance(before, list) and isinstance(after, list) and before != after:
        place = next((i for i, (left, right) in enumerate(zip(before, after, strict=False)) if left != right), None)
        if place is None:
            yield f"{path}: {len(before)} became {len(after)}"
        else:
            yield f"{path}[{place}]: {before[place]!r} became {after[place]!r}"
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"
