"""aiokafka 0.14.0 as people use it, with its default settings."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import transactions  # noqa: F401 (its scenarios register themselves)
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from scenario import expect, main, scenario, unique

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
WAIT_S = 60


def asynchronous(function: Callable[[str], Awaitable[None]]) -> None:
    """Register a coroutine function as a scenario."""

    @wraps(function)
    def run(address: str) -> None:
        asyncio.run(asyncio.wait_for(function(address), WAIT_S))

    scenario(run)


async def make_topic(address: str, topic: str, partitions: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()


async def write(address: str, topic: str, count: int, **settings: object) -> None:
    async with AIOKafkaProducer(bootstrap_servers=address, **settings) as producer:
        sent = [await producer.send(topic, b"v%d" % n, key=b"k%d" % n) for n in range(count)]
        await asyncio.gather(*sent)


async def read(consumer: AIOKafkaConsumer, count: int) -> list:
    records: list = []
    while len(records) < count:
        for polled in (await consumer.getmany(timeout_ms=500)).values():
            records.extend(polled)
    return records


@asynchronous
async def topics_and_settings_are_administered(address: str) -> None:
    topic = unique("topic")
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    answer = await admin.create_topics([NewTopic(topic, 3, 1, topic_configs={"retention.ms": "123456"})])
    expect([(name, code) for name, code, *_ in answer.topic_errors], [(topic, 0)], "the answer to CreateTopics")
    answer = await admin.create_topics([NewTopic(topic, 3, 1)])
    expect([code for _, code, *_ in answer.topic_errors], [36], "the code for a name that exists")
    expect(topic in await admin.list_topics(), True, "the topic is listed")
    (described,) = await admin.describe_topics([topic])
    expect(len(described["partitions"]), 3, "partitions")
    configs = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    expect("123456" in repr(configs), True, f"the topic's setting in {configs!r:.200}")
    await admin.delete_topics([topic])
    expect(topic in await admin.list_topics(), False, "the topic is listed after its end")
    await admin.close()


@asynchronous
async def every_codec_comes_back(address: str) -> None:
    for codec in CODECS:
        topic = unique(codec or "plain")
        await write(address, topic, 500, compression_type=codec)
        async with AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
            records = await read(consumer, 500)
        expect([r.value for r in records], [b"v%d" % n for n in range(500)], f"values written with {codec}")
        expect([r.offset for r in records], list(range(500)), f"offsets written with {codec}")


@asynchronous
async def acks_and_idempotence_of_every_kind_write(address: str) -> None:
    for settings in ({"acks": 0}, {"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}):
        topic = unique("acks")
        await make_topic(address, topic)
        await write(address, topic, 300, **settings)
        async with AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
            values = [r.value for r in await read(consumer, 300)]
        expect(values, [b"v%d" % n for n in range(300)], f"values with {settings}")


@asynchronous
async def three_members_share_and_one_leaves(address: str) -> None:
    topic, group = unique("group"), unique("group")
    await make_topic(address, topic, 6)
    settings = {"bootstrap_servers": address, "group_id": group, "auto_offset_reset": "earliest"}
    members = [AIOKafkaConsumer(topic, **settings) for _ in range(3)]
    await asyncio.gather(*(member.start() for member in members))

    async def wait_until_shared() -> None:
        while True:
            owned = [set(member.assignment()) for member in members]
            if sorted(map(len, owned)) == [6 // len(members)] * len(members) and len(set().union(*owned)) == 6:
                return
            await asyncio.gather(*(member.getmany(timeout_ms=100) for member in members))

    await wait_until_shared()
    await members.pop().stop()
    await wait_until_shared()
    await asyncio.gather(*(member.stop() for member in members))


@asynchronous
async def commits_are_taken_up_again(address: str) -> None:
    topic, group, partition = unique("commit"), unique("commit"), None
    await make_topic(address, topic)
    await write(address, topic, 20)
    partition = TopicPartition(topic, 0)
    settings = {"bootstrap_servers": address, "group_id": group, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(topic, enable_auto_commit=False, **settings) as first:
        await read(first, 20)
        await first.commit({partition: 7})
        expect(await first.committed(partition), 7, "the committed offset")
    async with AIOKafkaConsumer(topic, **settings) as second:
        expect([r.offset for r in await read(second, 13)], list(range(7, 20)), "offsets after the commit")


@asynchronous
async def seeks_go_by_time_and_to_the_ends(address: str) -> None:
    topic, partition = unique("time"), None
    await make_topic(address, topic)
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        for n in range(10):
            await producer.send_and_wait(topic, b"v%d" % n, timestamp_ms=1_700_000_000_000 + n * 1000)
    partition = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(bootstrap_servers=address) as consumer:
        consumer.assign([partition])
        found = await consumer.offsets_for_times({partition: 1_700_000_003_500})
        expect(found[partition].offset, 4, "the offset by time")
        expect(await consumer.beginning_offsets([partition]), {partition: 0}, "the beginning")
        expect(await consumer.end_offsets([partition]), {partition: 10}, "the end")
        consumer.seek(partition, 4)
        expect([r.value for r in await read(consumer, 6)], [b"v%d" % n for n in range(4, 10)], "values from there")


@asynchronous
async def groups_are_listed_and_their_offsets_read(address: str) -> None:
    topic, group = unique("admin"), unique("admin")
    await make_topic(address, topic)
    await write(address, topic, 5)
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    settings = {"bootstrap_servers": address, "group_id": group, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(topic, **settings) as consumer:
        await read(consumer, 5)
        await consumer.commit()
        listed = [tuple(found[:2]) for found in await admin.list_consumer_groups()]
        expect((group, "consumer") in listed, True, "the group is listed")
        described = await admin.describe_consumer_groups([group])
        expect("Stable" in repr(described), True, f"the group is stable in {described!r:.200}")
    offsets = await admin.list_consumer_group_offsets(group)
    expect({tp.topic: meta.offset for tp, meta in offsets.items()}, {topic: 5}, "the group's offsets")
    await admin.close()


if __name__ == "__main__":
    main()
