"""Fill a running Apache Kafka with the topics of this folder (see README.md): `make.py HOST:PORT`.

Timestamps are fixed and far apart where a roll is wanted (segment.ms works by the records' clock).
"""

from __future__ import annotations

import sys

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

START_MS = 1_790_000_000_000
SETTINGS = {"index.interval.bytes": "100", "segment.index.bytes": "1200", "segment.ms": "60000"}


def produce_codecs(servers: str) -> None:
    """`codecs`: five codecs, a segment each, and records without key, value, or with headers."""
    for number, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 50})
        for index in range(20):
            producer.produce(
                "codecs",
                partition=0,
                key=f"{codec}-{index}" if index % 3 else None,
                value=f"value {index} of {codec}" * 4 if index % 5 else None,
                headers=[("codec", codec.encode()), ("empty", None)] if index % 4 == 0 else None,
                timestamp=START_MS + number * 100_000 + index,
            )
            if index % 4 == 3:
                producer.flush()


def produce_idempotent(servers: str) -> None:
    """`idempotent`: two producers, eight batches each, with retried sequences possible to ask for."""
    for number in range(2):
        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 20})
        for index in range(24):
            producer.produce(
                "idempotent", partition=0, value=f"{number}/{index}", timestamp=START_MS + number * 1000 + index
            )
            if index % 3 == 2:
                producer.flush()


def produce_transactions(servers: str) -> None:
    """`transactions`: commit, abort, abort, commit over three segments, and one left open."""
    for number, ending in enumerate(["commit", "abort", "abort", "commit", "open"]):
        producer = Producer({"bootstrap.servers": servers, "transactional.id": f"golden-{number}"})
        producer.init_transactions()
        producer.begin_transaction()
        for index in range(3):
            producer.produce(
                "transactions",
                partition=0,
                key=f"{ending}-{number}",
                value=str(index),
                timestamp=START_MS + number * 40_000 + index,
            )
        producer.flush()
        if ending == "commit":
            producer.commit_transaction()
        elif ending == "abort":
            producer.abort_transaction()


def main(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(name, 1, 1, config=SETTINGS) for name in ("codecs", "idempotent", "transactions")]
    for future in admin.create_topics(topics).values():
        future.result()
    produce_codecs(servers)
    produce_idempotent(servers)
    produce_transactions(servers)


if __name__ == "__main__":
    main(sys.argv[1])
