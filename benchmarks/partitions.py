"""Many partitions on one node: `python benchmarks/partitions.py [--partitions N]`.

Makes topics until there are so many partitions, writes a record into each, stops, starts over the same directory (after
a clean stop, and after a kill), and rests. Prints times, memory, open descriptors and processor time; each should grow
with the number of partitions no more than linearly, and descriptors not beyond their bound.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).resolve().parent.parent
PARTITIONS = 10_000
PARTITIONS_PER_TOPIC = 100
IDLE_S = 10.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
DESCRIPTORS_MAX = 4096


class Node:
    """A node over a directory that stays."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.bootstrap_servers = ""

    def start(self) -> float:
        """Seconds from the command to the ready line."""
        began = time.monotonic()
        command = [sys.executable, "-m", "odradek", "start", "--json", "--port", "0", "--data", str(self.data)]
        self.process = subprocess.Popen(
            ["bash", "-c", f'ulimit -n {DESCRIPTORS_MAX} && exec "$@"', "bash", *command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the node did not start; it ended with {self.process.wait()}")
        self.bootstrap_servers = json.loads(line)["bootstrap_servers"]
        return time.monotonic() - began

    def end(self, number: int) -> float:
        """Seconds until it is gone after a signal."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(300)
        return time.monotonic() - began

    @property
    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def processor_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def create(node: Node, partitions: int) -> list[NewTopic]:
    """Topics of a hundred partitions, ten at a request."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
    count = -(-partitions // PARTITIONS_PER_TOPIC)
    topics = [NewTopic(f"many-{number}", min(PARTITIONS_PER_TOPIC, partitions), 1) for number in range(count)]
    for place in range(0, len(topics), 10):
        for future in admin.create_topics(topics[place : place + 10], operation_timeout=60).values():
            future.result(120)
    return topics


def write(node: Node, topics: list[NewTopic]) -> None:
    """A record into every partition."""
    producer = Producer({"bootstrap.servers": node.bootstrap_servers})
    failed: list[object] = []
    for topic in topics:
        for partition in range(topic.num_partitions):
            producer.produce(
                topic.topic, b"x" * 100, partition=partition, on_delivery=lambda e, m: failed.append(e) if e else None
            )
        producer.poll(0)
    left = producer.flush(300)
    if left or failed:
        raise SystemExit(f"{left} records were not acknowledged, {len(failed)} refused: {failed[:1]}")


def shown(what: str, value: float, unit: str) -> None:
    print(f"  {what:44} {value:10.1f} {unit}", flush=True)


def state(node: Node, when: str) -> None:
    shown(f"memory {when}", node.memory_mb, "MB")
    shown(f"open descriptors {when} (at most {DESCRIPTORS_MAX})", node.descriptors, "")


def measure(data: Path, partitions: int) -> None:
    node = Node(data)
    shown("start with nothing", node.start(), "s")
    state(node, "with nothing")
    began = time.monotonic()
    topics = create(node, partitions)
    shown(f"create {partitions} partitions", time.monotonic() - began, "s")
    state(node, "after creating")
    began = time.monotonic()
    write(node, topics)
    shown("write a record into each", time.monotonic() - began, "s")
    state(node, "after writing")
    shown("clean stop", node.end(signal.SIGTERM), "s")
    shown("start after a clean stop", node.start(), "s")
    state(node, "after that start")
    time.sleep(2)  # what a start leaves to do (its snapshot of metadata) is no rest
    before = node.processor_s
    time.sleep(IDLE_S)
    shown("processor when idle", 100 * (node.processor_s - before) / IDLE_S, "%")
    node.end(signal.SIGKILL)
    shown("start after a kill", node.start(), "s")
    state(node, "after that start")
    node.end(signal.SIGTERM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    print(
        f"{options.partitions} partitions; load of this machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
    data = Path(tempfile.mkdtemp(prefix="odradek-partitions-"))
    try:
        measure(data, options.partitions)
    finally:
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    main()
