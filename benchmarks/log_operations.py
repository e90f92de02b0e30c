"""The log engine: `python3 dev.py bench log`.

Batches of one record and of a thousand are appended, as fast as five requests on the way at once allow; what was
written is read from beginning to end; a log of many values a key is compacted; and a broker is started over all of it,
after a clean stop and after a kill that leaves everything to be scanned. The requests are made here and sent as they
are, so that the client costs next to nothing.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import signal
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any, Self

from brokers import TIMEOUT_S, Kafka, NotStarted, Odradek, prepared
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from topics import make_topic

from wire.frames import decode_response, encode_request
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.records import NewRecord, batches, build_batch

BYTES = 1 << 30
IN_FLIGHT = 5
SINGLE_BATCHES = 20_000
SMALL_RECORD_BYTES = 100
VALUES_PER_KEY = 10
RECORDS_PER_COMPACTED_BATCH = 100
SEGMENTS = 10
FETCH_BYTES = 1 << 20
PRODUCE_VERSION, FETCH_VERSION = 11, 12  # the last that name topics
LONG_MS = 10**14
SETTINGS = (
    "log.cleaner.backoff.ms=100",
    f"log.flush.offset.checkpoint.interval.ms={2**31 - 1}",  # so that a kill leaves all of it to be scanned
)
PARTS = ("append", "read", "compaction", "start")

# (name, unit, whether more is better)
MEASURES = {
    "append_single": ("batches of 1 record appended per second", "/s", True),
    "append_thousand": ("records appended per second, batches of 1,000", "/s", True),
    "read": ("read from beginning to end", "MB/s", True),
    "compaction": ("compaction", "MB/s", True),
    "start_clean": ("start after a clean stop", "s", False),
    "start_killed": ("start after a kill", "s", False),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bytes", type=int, default=BYTES, help=f"of the log that is compacted ({BYTES}), a quarter of it for the rest"
    )
    parser.add_argument("--record-bytes", type=int, default=1000, help="the size of a value that is compacted (1000)")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; can be repeated")


class Connection:
    """One socket to a broker, requests on their way one after the other."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self, api_key: int, version: int) -> Any:
        size = int.from_bytes(self._read(4), "big")
        return decode_response(self._read(size), api_key, version)[1]

    def _read(self, size: int) -> bytes:
        content, read = bytearray(size), 0
        view = memoryview(content)
        while read < size:
            step = self._socket.recv_into(view[read:])
            if not step:
                raise NotStarted("The broker closed the connection.")
            read += step
        return bytes(content)


def append(connection: Connection, topic: str, content: Iterable[bytes]) -> None:
    """Write batches in their order, acknowledged by the leader, some requests on their way at once."""

    def acknowledged() -> None:
        (written,) = connection.receive(ProduceRequest.API_KEY, PRODUCE_VERSION).responses[0].partition_responses
        if written.error_code:
            raise NotStarted(f"The broker refused a batch with error {written.error_code}.")

    on_the_way = 0
    for batch in content:
        partition = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[partition])]
        )
        if on_the_way == IN_FLIGHT:
            acknowledged()
            on_the_way -= 1
        connection.send(b"".join(encode_request(request, PRODUCE_VERSION, 1, "benchmark")))
        on_the_way += 1
    for _ in range(on_the_way):
        acknowledged()


def read(connection: Connection, topic: str, size: int) -> int:
    """Read a partition from its beginning until so many bytes came; how many they were."""
    offset = total = 0
    while total < size:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=1000,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        connection.send(b"".join(encode_request(request, FETCH_VERSION, 1, "benchmark")))
        (answer,) = connection.receive(FetchRequest.API_KEY, FETCH_VERSION).responses[0].partitions
        if answer.error_code or not answer.records:
            raise NotStarted(f"Of {size} bytes {total} could be read, then error {answer.error_code}.")
        came = list(batches(answer.records))
        total += sum(batch.size_bytes for batch in came)
        offset = came[-1].last_offset + 1
    return total


def batch_of(records: int) -> bytes:
    now_ms = int(time.time() * 1000)
    return build_batch([NewRecord(None, os.urandom(SMALL_RECORD_BYTES), (), now_ms) for _ in range(records)])


@functools.cache
def keyed_batches(size: int, record_bytes: int) -> Sequence[bytes]:
    """Batches of so many bytes in all, a record for each key; the same for every broker."""
    chance = random.Random(1)
    now_ms, found, total = int(time.time() * 1000), [], 0
    while total < size:
        records = [
            NewRecord(b"key-%012d" % chance.getrandbits(40), chance.randbytes(record_bytes), (), now_ms)
            for _ in range(RECORDS_PER_COMPACTED_BATCH)
        ]
        found.append(build_batch(records))
        total += len(found[-1])
    return found


def compaction_rate(broker: Odradek | Kafka, size: int, record_bytes: int) -> float:
    """Megabytes per second of one pass: each key was written several times, in no order. Only when all is written may
    the cleaner begin; it is done when its checkpoint says so."""
    topic = make_topic(
        broker.bootstrap_servers,
        {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "min.compaction.lag.ms": str(LONG_MS),
            "segment.bytes": str(max(1 << 20, size // SEGMENTS)),
        },
    )
    each = keyed_batches(size // VALUES_PER_KEY, record_bytes)
    chance = random.Random(2)
    with Connection(broker.port) as connection:
        for _ in range(VALUES_PER_KEY):
            append(connection, topic, chance.sample(each, len(each)))
    sealed = sorted((broker.data / f"{topic}-0").glob("*.log"))
    before = sum(segment.stat().st_size for segment in sealed[:-1])
    began = time.perf_counter()
    change = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    wait_for_cleaner(broker, topic, int(sealed[-1].stem))
    taken_s = time.perf_counter() - began
    after = sum(segment.stat().st_size for segment in sorted((broker.data / f"{topic}-0").glob("*.log"))[:-1])
    if after > before / 2:
        raise NotStarted(f"Of {before} bytes {after} are left: that was no compaction.")
    return before / taken_s / 1e6


def wait_for_cleaner(broker: Odradek | Kafka, topic: str, offset: int) -> None:
    """Return when the cleaner has noted that all below an offset is clean."""
    checkpoint, line = broker.data / "cleaner-offset-checkpoint", f"{topic} 0 "
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        noted = checkpoint.read_text(encoding="ascii").splitlines() if checkpoint.exists() else []
        if any(each.startswith(line) and int(each.removeprefix(line)) >= offset for each in noted):
            return
        time.sleep(0.02)
    raise NotStarted(f"The log was not compacted up to {offset} in time.")


def measure(kind: str, options: argparse.Namespace) -> dict[str, float]:
    """The measures of one broker that were asked for."""
    parts = set(options.only or PARTS)
    results: dict[str, float] = {}
    broker = prepared(kind, SETTINGS)
    try:
        broker.start()
        if parts - {"compaction"}:
            results |= append_and_read(broker, options.bytes // 4, parts)
        if "compaction" in parts:
            results["compaction"] = compaction_rate(broker, options.bytes, options.record_bytes)
        if "start" in parts:
            broker.end(signal.SIGKILL)
            results["start_killed"] = start_s(broker)
            broker.end()
            results["start_clean"] = start_s(broker)
        return results
    finally:
        broker.remove()


def append_and_read(broker: Odradek | Kafka, size: int, parts: set[str]) -> dict[str, float]:
    results: dict[str, float] = {}
    single, thousand = batch_of(1), batch_of(1000)
    count = max(1, size // len(thousand))
    with Connection(broker.port) as connection:
        append(connection, make_topic(broker.bootstrap_servers), [thousand] * (count // 10))  # warm
        topic = make_topic(broker.bootstrap_servers)
        began = time.perf_counter()
        append(connection, topic, [thousand] * count)
        results["append_thousand"] = 1000 * count / (time.perf_counter() - began)
        if "append" in parts:
            other = make_topic(broker.bootstrap_servers)
            append(connection, other, [single] * (SINGLE_BATCHES // 10))
            began = time.perf_counter()
            append(connection, other, [single] * SINGLE_BATCHES)
            results["append_single"] = SINGLE_BATCHES / (time.perf_counter() - began)
        if "read" in parts:
            began = time.perf_counter()
            total = read(connection, topic, count * len(thousand))
            results["read"] = total / (time.perf_counter() - began) / 1e6
    return results


def start_s(broker: Odradek | Kafka) -> float:
    began = time.perf_counter()
    broker.start()
    return time.perf_counter() - began
