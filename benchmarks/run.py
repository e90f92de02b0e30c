"""Measures a node of this tree, and Apache Kafka beside it in the same run: `python3 dev.py bench`.

What is measured: the time from the command to the first answered Metadata request, memory when idle and after the load,
records per second written and read with confluent-kafka's defaults, transactions per second, the latency of single
acknowledged records, the time to the first record through a consumer group, and the processor time of an idle node.
Both keep their data on disk. Numbers of one machine mean little by themselves: the ratio of two brokers measured side
by side is what to look at.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "compat-tests" / "reference"))

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from reference import NotStarted, Reference, free_port

STARTS = 5
LATENCY_RECORDS = 1000
IDLE_S = 5.0
TIMEOUT_S = 180.0

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


class Odradek:
    """A node of this tree with its data on disk."""

    def __init__(self) -> None:
        self.port = free_port()
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.directory = tempfile.mkdtemp(prefix="odradek-bench-")

    def start(self) -> None:
        place = ["--port", str(self.port), "--data", self.directory]
        command = [sys.executable, "-m", "odradek", "start", "--json", *place]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        wait_for_metadata(self.port, lambda: self.process.poll() is None)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.directory, ignore_errors=True)


def prepared(kind: str) -> Odradek | Reference:
    """A broker that is ready to be started: Apache Kafka's directory must be formatted once, which does not count."""
    if kind == "odradek":
        return Odradek()
    kafka = Reference()
    kafka.format()
    return kafka


def wait_for_metadata(port: int, alive: Callable[[], bool]) -> None:
    """Return when a broker at the port has answered a Metadata request (version 1) that names a broker."""
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
    deadline = time.monotonic() + TIMEOUT_S
    while alive() and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            head = connection.recv(12, socket.MSG_WAITALL)
            if len(head) == 12 and struct.unpack(">iii", head)[2] > 0:
                return
        time.sleep(0.002)
    raise NotStarted(f"No broker answered at port {port}.")


def memory_mb(pid: int) -> float:
    """Resident memory of a process and its children."""
    pages = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid), "--ppid", str(pid)], capture_output=True, text=True, check=True
    )
    return sum(int(line) for line in pages.stdout.split()) / 1024


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_topic(address: str, partitions: int = 1) -> str:
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(30)
    return topic


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
            wait_for_metadata(broker.port, lambda: True)
            starts.append((time.perf_counter() - began) * 1000)
            first_group_record(broker.bootstrap_servers)
            firsts.append((time.perf_counter() - began) * 1000)
        finally:
            broker.stop()
    results = {"start": statistics.median(starts), "first_group_record": statistics.median(firsts)}
    broker = prepared(kind)
    broker.start()
    try:
        return results | measure_running(broker, options)
    finally:
        broker.stop()


def measure_running(broker: Odradek | Reference, options: argparse.Namespace) -> dict[str, float]:
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


def show(results: dict[str, dict[str, float]]) -> None:
    kinds = list(results)
    rows = [["", *kinds, *(["ratio"] if len(kinds) == 2 else [])]]
    for name, (title, unit, more_is_better) in MEASURES.items():
        values = [results[kind][name] for kind in kinds]
        cells = [f"{value:,.0f} {unit}" if value >= 100 else f"{value:,.2f} {unit}" for value in values]
        if len(kinds) == 2:
            ours, theirs = values
            better, worse = (ours, theirs) if more_is_better else (theirs, ours)
            cells.append(f"{better / worse:.1f} times as good" if worse > 0.05 else "")
        rows.append([title, *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for title, *cells in rows:
        line = [title.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))]
        print("  ".join(line).rstrip())


def main() -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="dev.py bench", description=__doc__, formatter_class=layout)
    parser.add_argument("--records", type=int, default=200_000, help="how many records are written and read (200000)")
    parser.add_argument("--record-bytes", type=int, default=1024, help="the size of each (1024)")
    parser.add_argument(
        "--starts", type=int, default=STARTS, help=f"how often each is started ({STARTS}); the median counts"
    )
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    parser.add_argument("--output", type=Path, help="also write the numbers as JSON into a file")
    options = parser.parse_args()
    kinds = ["odradek"] if options.alone else ["odradek", "kafka"]
    kernels = (
        "compiled"
        if any((ROOT / "wire").glob("record_kernel.*.so"))
        else "interpreted (dev.py compile makes them fast)"
    )
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores, kernels {kernels}")
    if os.getloadavg()[0] > 0.5:
        print(f"This machine is busy (load {os.getloadavg()[0]:.1f}): measure again when it is quiet.")
    results = {}
    for kind in kinds:
        try:
            results[kind] = measure(kind, options)
        except NotStarted as fault:
            print(f"{kind} was not measured: {fault}", file=sys.stderr)
            if kind == "odradek":
                return 1
    show(results)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
