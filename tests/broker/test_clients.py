"""Real clients against a node in this process: a first look, in seconds, at what the scenarios test in full.

Clients that block run in a thread, as the node's loop has to go on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.broker.node_fixture import running_node

VALUES = [b"value %d" % number for number in range(20)]
GUARD_SECONDS = 30


def through_kafka_python(bootstrap_servers: str) -> list[bytes]:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)
    for value in VALUES:
        producer.send("kafka-python", value, key=b"key")
    producer.flush(GUARD_SECONDS)
    producer.close()
    consumer = KafkaConsumer(
        "kafka-python", bootstrap_servers=bootstrap_servers, group_id="kafka-python", auto_offset_reset="earliest"
    )
    received: list[bytes] = []
    try:
        while len(received) < len(VALUES):
            for records in consumer.poll(GUARD_SECONDS * 1000).values():
                received += [record.value for record in records]
        consumer.commit()
    finally:
        consumer.close()
    return received


def confluent_consume(consumer: Any, count: int) -> list[bytes]:
    received: list[bytes] = []
    while len(received) < count:
        message = consumer.poll(GUARD_SECONDS)
        assert message is not None, f"only {len(received)} records came"
        assert message.error() is None
        received.append(message.value())
    return received


def through_confluent_kafka(bootstrap_servers: str, logger: logging.Logger) -> list[bytes]:
    from confluent_kafka import Consumer, Producer

    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "logger": logger})
    for value in VALUES:
        producer.produce("confluent", value, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(GUARD_SECONDS) == 0
    assert failed == []
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "confluent",
            "auto.offset.reset": "earliest",
            "logger": logger,
        }
    )
    try:
        consumer.subscribe(["confluent"])
        received = confluent_consume(consumer, len(VALUES))
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return received


async def through_aiokafka(bootstrap_servers: str) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers)
    await producer.start()
    try:
        for value in VALUES:
            await producer.send_and_wait("aiokafka", value)
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(
        "aiokafka", bootstrap_servers=bootstrap_servers, group_id="aiokafka", auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        async with asyncio.timeout(GUARD_SECONDS):
            received = [(await consumer.getone()).value for _ in VALUES]
        await consumer.commit()
    finally:
        await consumer.stop()
    return received


async def test_kafka_python_produces_and_consumes_in_a_group() -> None:
    async with running_node() as node:
        assert await asyncio.to_thread(through_kafka_python, node.bootstrap_servers) == VALUES


async def test_w13_confluent_kafka_finds_every_feature_it_asks_for(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("librdkafka")
    async with running_node() as node:
        with caplog.at_level(logging.DEBUG, logger="librdkafka"):
            received = await asyncio.to_thread(through_confluent_kafka, node.bootstrap_servers, logger)
    assert received == VALUES
    assert caplog.record_tuples == [], "librdkafka has nothing to complain of"


async def test_aiokafka_produces_and_consumes_in_a_group() -> None:
    async with running_node() as node:
        assert await through_aiokafka(node.bootstrap_servers) == VALUES


async def test_u06_clients_live_through_a_reset() -> None:
    """A consumer and a producer that were there before the reset work after it, without being made anew."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async with running_node() as node:
        producer = AIOKafkaProducer(bootstrap_servers=node.bootstrap_servers, enable_idempotence=True)
        consumer = AIOKafkaConsumer(
            "reset",
            bootstrap_servers=node.bootstrap_servers,
            group_id="reset",
            auto_offset_reset="earliest",
            # With auto commit it would commit its old position into the new group, as after any topic
            # that is deleted and made again.
            enable_auto_commit=False,
            metadata_max_age_ms=500,
            heartbeat_interval_ms=100,
            retry_backoff_ms=50,
        )
        await producer.start()
        await producer.send_and_wait("reset", b"before")
        await consumer.start()
        try:
            async with asyncio.timeout(GUARD_SECONDS):
                assert (await consumer.getone()).value == b"before"
                await node.server.reset()
                await producer.send_and_wait("reset", b"after")
                while (record := await consumer.getone()).value != b"after":
                    assert record.value == b"before"
        finally:
            await producer.stop()
            await consumer.stop()
