"""Transactions with aiokafka: the oldest versions of every request."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import ProducerFenced
from scenario import expect, scenario, unique


async def make_topic(address: str, topic: str, partitions: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()


async def started_producer(address: str, transactional_id: str) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id=transactional_id)
    await producer.start()
    return producer


async def committed_values(address: str, topic: str, count: int) -> list[bytes]:
    """Committed records of partition 0: `count` of them, and no more within a moment."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    values: list[bytes] = []
    try:
        async with asyncio.timeout(60):
            while len(values) < count:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    values += [record.value for record in records]
        for records in (await consumer.getmany(timeout_ms=500)).values():
            values += [record.value for record in records]
    finally:
        await consumer.stop()
    return values


@scenario
def committed_is_seen_and_aborted_is_not(address: str) -> None:
    async def run() -> None:
        topic = unique("txn")
        await make_topic(address, topic)
        producer = await started_producer(address, unique("id"))
        for number in range(10):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"%d" % number)
            if number % 2:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
        await producer.stop()
        values = await committed_values(address, topic, 5)
        expect(values, [b"%d" % number for number in range(0, 10, 2)], "what is committed")

    asyncio.run(run())


@scenario
def offsets_are_committed_with_the_transaction(address: str) -> None:
    async def run() -> None:
        topic, group = unique("offsets"), unique("group")
        await make_topic(address, topic)
        producer = await started_producer(address, unique("id"))
        async with producer.transaction():
            await producer.send(topic, b"v")
            await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, group)
        await producer.stop()
        consumer = AIOKafkaConsumer(bootstrap_servers=address, group_id=group)
        await consumer.start()
        expect(await consumer.committed(TopicPartition(topic, 0)), 1, "the committed offset")
        await consumer.stop()

    asyncio.run(run())


@scenario
def a_second_producer_fences_the_first(address: str) -> None:
    async def run() -> None:
        topic, transactional_id = unique("fence"), unique("id")
        await make_topic(address, topic)
        first = await started_producer(address, transactional_id)
        await first.begin_transaction()
        await first.send_and_wait(topic, b"first")
        second = await started_producer(address, transactional_id)
        fenced = False
        try:
            await first.send_and_wait(topic, b"first again")
            await first.commit_transaction()
        except ProducerFenced:
            fenced = True
        expect(fenced, True, "the first producer is told that it is fenced")
        async with second.transaction():
            await second.send(topic, b"second")
        await second.stop()
        expect(await committed_values(address, topic, 1), [b"second"], "what is committed")
        await first.stop()

    asyncio.run(run())
