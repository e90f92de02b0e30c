"""Producers whose connections are cut again and again: nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.broker.dropping_proxy import DroppingProxy, dropping_proxy
from tests.broker.node_fixture import RunningNode, running_node
from tests.broker.transaction_client import TransactionClient

PARTITIONS = 8


@asynccontextmanager
async def node_behind_a_proxy() -> AsyncIterator[tuple[RunningNode, DroppingProxy]]:
    """A node that tells clients the proxy's address, with a topic "t"."""
    async with dropping_proxy() as proxy:
        settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
        async with running_node(settings) as node:
            proxy.target_port = node.port
            await TransactionClient(node).create_topic(partitions=PARTITIONS)
            yield node, proxy


def read_all(address: str) -> list[list[bytes]]:
    """Every partition's values up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("t", index, 0) for index in range(PARTITIONS)])
    values: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(1000, 1.0):
            error = message.error()
            if error is None:
                values[message.partition() or 0].append(message.value() or b"")
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition() or 0)
    consumer.close()
    return values


async def test_p02_idempotent_producers_keep_order_across_cut_connections() -> None:
    """Ten thousand records in batches of twenty, five in flight; a cut for every five hundred of them."""
    count, chunk = 10_000, 500
    async with node_behind_a_proxy() as (node, proxy):
        failed: list[Any] = []
        producer = Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{proxy.port}",
                "enable.idempotence": True,
                "batch.num.messages": 20,
                "linger.ms": 1,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 20,
                "retry.backoff.ms": 10,
            }
        )
        for first in range(0, count, chunk):
            for number in range(first, first + chunk):
                producer.produce(
                    "t",
                    b"%d" % number,
                    partition=number % PARTITIONS,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
            # Something has been answered, most of it is on its way or still to be sent.
            await asyncio.to_thread(producer.poll, 5)
            proxy.cut()
        assert await asyncio.to_thread(producer.flush, 60) == 0
        assert failed == []
        assert proxy.cuts >= 5, "connections were cut"
        values = await asyncio.to_thread(read_all, node.bootstrap_servers)
        for partition in range(PARTITIONS):
            assert values[partition] == [b"%d" % number for number in range(partition, count, PARTITIONS)]
