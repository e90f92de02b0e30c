"""What clients see of a broker: `python3 dev.py bench` (or `bench clients`).

The time from the command to the first answered Metadata request, memory when idle and after the load, records per
second written and read with confluent-kafka's defaults, transactions per second, the latency of single acknowledged
records, the time to the first record through a consumer group, and the processor time of an idle node.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import uuid

from brokers import TIMEOUT_S, Kafka, NotStarted, Odradek, memory_mb, prepared, processor_s
from confluent_kafka import Consumer, Producer, TopicPartition
from topics import make_topic

STARTS = 5
LATENCY_RECORDS = 1000
IDLE_S = 5.0

# (name, unit, whether more is better)
MEASURES = {
    "start": ("start to first answered Metadata", "ms", False),
    "first_group_record": ("start to first record through a group", "ms", False),
    "idle_memory": ("memory when idle", "MB", False),
    "idle_cpu": ("processor when idle", "%", False),
    "produce": ("records written per second", "/s", True),
    "produce_idempotent": ("records written per second, idempotent", "/s", True),
    "consume": ("records read per second", "/s", True),
    "small_transactions": ("transactions of 1 record per second", "/s", True),
    "large_transactions": ("transactions of 1,000 records per second", "/s", True),
    "latency_p50": ("acknowledged record, median", "ms", False),
    "latency_p99": ("acknowledged record, 99th percentile", "ms", False),
    "loaded_memory": ("memory after the load", "MB", False),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=200_000, help="how many records are written and read (200000)")
    parser.add_argument("--record-bytes", type=int, default=1024, help="the size of each (1024)")
    parser.add_argument(
        "--starts", type=int, default=STARTS, help=f"how often each is started ({STARTS}); the median counts"
    )


def produce(address: str, topic: str, records: int, record_bytes: int, *, idempotent: bool = False) -> float:
    """Records per second from the first call to the last acknowledgement, with the producer's defaults else."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": idempotent})
    value = os.urandom(record_bytes)
    began = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(TIMEOUT_S):
        raise NotStarted("The broker did not acknowledge every record in time.")
    return records / (time.perf_counter() - began)


def transactions(address: str, topic: str, count: int, records: int) -> float:
    """Committed transactions per second, one after the other, each of so many records of 100 bytes."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(TIMEOUT_S)
    began = time.perf_counter()
    for _ in range(count):
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(topic, b"x" * 100)
        producer.commit_transaction(TIMEOUT_S)
    return count / (time.perf_counter() - began)


def consume(address: str, topic: str, records: int) -> float:
    """Records per second from the first request to the last record, with the consumer's defaults."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    count, began = 0, time.perf_counter()
    while count < records:
        count += len(consumer.consume(10_000, 1.0))
        if time.perf_counter() - began > TIMEOUT_S:
            raise NotStarted(f"Of {records} records {count} came in time.")
    rate = records / (time.perf_counter() - began)
    consumer.close()
    return rate


def latencies_ms(address: str, topic: str) -> list[float]:
    """The time of each of many records sent one after the other, acks=all, each in a request of its own."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "acks": "all"})
    times = []
    for _ in range(LATENCY_RECORDS):
        began = time.perf_counter()
        producer.produce(topic, b"x" * 100)
        if producer.flush(30):
            raise NotStarted("The broker did not acknowledge a record in time.")
        times.append((time.perf_counter() - began) * 1000)
    return sorted(times[LATENCY_RECORDS // 10 :])


def first_group_record(address: str) -> None:
    """Write one record and read it through a new group: what a first test does."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": address})
    producer.produce(topic, b"first")
    producer.flush(30)
    consumer = Consumer({"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline = time.monotonic() + TIMEOUT_S
    while consumer.poll(0.1) is None:
        if time.monotonic() > deadline:
            raise NotStarted("The first record did not come through a group in time.")
    consumer.close()


def measure(kind: str, options: argparse.Namespace) -> dict[str, float]:
    """Every measure of one broker."""
    starts, firsts = [], []
    for _ in range(options.starts):
        broker = prepared(kind)
        began = time.perf_counter()
        try:
            broker.start()
            starts.append((time.perf_counter() - began) * 1000)
            first_group_record(broker.bootstrap_servers)
            firsts.append((time.perf_counter() - began) * 1000)
        finally:
            broker.remove()
    results = {"start": statistics.median(starts), "first_group_record": statistics.median(firsts)}
    broker = prepared(kind)
    broker.start()
    try:
        return results | measure_running(broker, options)
    finally:
        broker.remove()


def measure_running(broker: Odradek | Kafka, options: argparse.Namespace) -> dict[str, float]:
    """What a running broker is measured by."""
    results: dict[str, float] = {}
    address = broker.bootstrap_servers
    busy = processor_s(broker.pid)
    time.sleep(IDLE_S)
    results["idle_cpu"] = (processor_s(broker.pid) - busy) / IDLE_S * 100
    results["idle_memory"] = memory_mb(broker.pid)
    warm = make_topic(address)
    produce(address, warm, options.records // 10, options.record_bytes)
    consume(address, warm, options.records // 10)
    topic = make_topic(address)
    results["produce"] = produce(address, topic, options.records, options.record_bytes)
    results["consume"] = consume(address, topic, options.records)
    idempotent = make_topic(address)
    results["produce_idempotent"] = produce(address, idempotent, options.records, options.record_bytes, idempotent=True)
    for name, count, records in (("small_transactions", 200, 1), ("large_transactions", 50, 1000)):
        transactions(address, make_topic(address), 10, records)
        results[name] = transactions(address, make_topic(address), count, records)
    times = latencies_ms(address, make_topic(address))
    results["latency_p50"] = times[len(times) // 2]
    results["latency_p99"] = times[len(times) * 99 // 100]
    results["loaded_memory"] = memory_mb(broker.pid)
    return results
