"""Kafka Connect with its file source and file sink.

CONNECT_LIBRARIES is the folder of its jars, CONNECT_CLASSES that of what was compiled here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource
from scenario import expect, main, scenario, unique, until
from worker import PATIENCE_S, Place

SCENARIO_TIMEOUT_S = 300.0
KILLS = (200, 700)
"""How many lines are committed when the worker is killed."""
ONCE = {
    "exactly.once.support": "required",
    "batch.size": "10",  # lines a transaction
    "producer.override.transaction.timeout.ms": "6000",
}
"""A worker that starts waits for the end of what its predecessor left open in the topic of offsets."""
MISSED_SOON = {"consumer.override.session.timeout.ms": "3000", "consumer.override.heartbeat.interval.ms": "500"}


def source(file: Path, topic: str) -> dict[str, str]:
    """The settings of a connector that writes a file's lines to a topic."""
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(file), "topic": topic}


def sink(file: Path, topic: str) -> dict[str, str]:
    """The settings of a connector that writes a topic's records to a file, a line each."""
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(file), "topics": topic, **MISSED_SOON}


def lines(first: int, last: int) -> list[str]:
    return [f"line {number}" for number in range(first, last + 1)]


def append(file: Path, more: Iterable[str]) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.writelines(f"{line}\n" for line in more)


def content(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def wait_for_lines(file: Path, count: int) -> None:
    def enough() -> bool:
        time.sleep(0.1)
        return len(content(file)) >= count

    until(enough, f"{count} lines in {file.name}", PATIENCE_S)


class Reader:
    """Reads partition 0 of a topic from its beginning."""

    def __init__(self, address: str, topic: str, isolation: str = "read_committed") -> None:
        settings = {"bootstrap.servers": address, "group.id": unique("reader"), "isolation.level": isolation}
        self.consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
        self.consumer.assign([TopicPartition(topic, 0, 0)])
        self.messages: list[Message] = []

    def take(self, timeout_s: float = 0.5) -> bool:
        """Read what is there; returns whether it came to the end."""
        at_end = False
        for message in self.consumer.consume(1000, timeout_s):
            fault = message.error()
            at_end = fault is not None and fault.code() == KafkaError._PARTITION_EOF
            if fault is None:
                self.messages.append(message)
        return at_end

    def read_until(self, count: int) -> None:
        def enough() -> bool:
            self.take(0.1)
            return len(self.messages) >= count

        until(enough, f"{count} records", PATIENCE_S)

    def values(self) -> list[str]:
        return [message.value().decode() for message in self.messages]


def whole(address: str, topic: str, isolation: str = "read_committed") -> list[Message]:
    """All records of partition 0 up to its end."""
    reader = Reader(address, topic, isolation)
    until(reader.take, f"the end of {topic}")
    reader.consumer.close()
    return reader.messages


def expect_compacted(address: str, topic: str, partitions: int) -> None:
    """The topic has so many partitions, and keeps the newest record of a key."""
    admin = AdminClient({"bootstrap.servers": address})
    described = admin.list_topics(topic, timeout=20).topics[topic]
    expect(len(described.partitions), partitions, f"partitions of {topic}")
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    policy = admin.describe_configs([resource])[resource].result(20)["cleanup.policy"].value
    expect(policy, "compact", f"cleanup.policy of {topic}")


@scenario
def lines_go_from_a_file_through_a_topic_into_a_file(address: str) -> None:
    """Standalone; what is written while the worker is down comes after its restart, and nothing comes again."""
    topic = unique("lines")
    with Place("standalone") as place:
        read, written = place.file("read"), place.path / "written"
        append(read, lines(1, 500))
        connectors = {unique("source"): source(read, topic), unique("sink"): sink(written, topic)}
        worker = place.standalone(address, connectors).start()
        wait_for_lines(written, 500)
        worker.stop()
        append(read, lines(501, 800))
        worker.start()
        wait_for_lines(written, 800)
        worker.stop()
        expect(content(written), lines(1, 800), "the lines of the file")
    expect([message.value().decode() for message in whole(address, topic)], lines(1, 800), "the records of the topic")


@scenario
def a_distributed_worker_goes_on_where_it_was(address: str) -> None:
    """Offsets, settings and states lie in compacted topics; a worker that comes later has them all."""
    cluster, topic, from_file, to_file = unique("cluster"), unique("lines"), unique("source"), unique("sink")
    with Place("distributed") as place:
        read, written = place.file("read"), place.path / "written"
        append(read, lines(1, 300))
        worker = place.distributed(address, cluster).start()
        worker.put(from_file, source(read, topic))
        worker.put(to_file, sink(written, topic))
        wait_for_lines(written, 300)
        for what, partitions in (("offset", 25), ("config", 1), ("status", 5)):
            expect_compacted(address, f"{cluster}-{what}", partitions)
        worker.stop()
        append(read, lines(301, 400))
        worker.start()
        wait_for_lines(written, 400)
        expect(sorted(worker.ask("/connectors")), sorted([from_file, to_file]), "the connectors after the restart")
        worker.wait_for(from_file, "RUNNING", "RUNNING")
        worker.wait_for(to_file, "RUNNING", "RUNNING")
        worker.stop()
        expect(content(written), lines(1, 400), "the lines of the file")


@scenario
def connectors_are_paused_moved_back_and_deleted(address: str) -> None:
    """What an operator does over REST: pause, resume, stop, read and reset offsets, delete."""
    cluster, topic, from_file, to_file = unique("cluster"), unique("lines"), unique("source"), unique("sink")
    with Place("operated") as place:
        read, written = place.file("read"), place.path / "written"
        append(read, lines(1, 100))
        worker = place.distributed(address, cluster).start()
        worker.put(from_file, source(read, topic))
        worker.put(to_file, sink(written, topic))
        wait_for_lines(written, 100)
        worker.ask(f"/connectors/{from_file}/pause", "PUT")
        worker.wait_for(from_file, "PAUSED", "PAUSED")
        append(read, lines(101, 150))
        worker.ask(f"/connectors/{from_file}/resume", "PUT")
        wait_for_lines(written, 150)
        worker.ask(f"/connectors/{to_file}/stop", "PUT")
        worker.wait_for(to_file, "STOPPED")
        offsets = worker.ask(f"/connectors/{to_file}/offsets")["offsets"]
        expect([entry["offset"]["kafka_offset"] for entry in offsets], [150], "where the sink is")
        back = {"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 140}}
        worker.ask(f"/connectors/{to_file}/offsets", "PATCH", {"offsets": [back]})
        worker.ask(f"/connectors/{to_file}/resume", "PUT")
        wait_for_lines(written, 160)
        expect(content(written), lines(1, 150) + lines(141, 150), "the lines after the sink was moved back by ten")
        worker.ask(f"/connectors/{from_file}/stop", "PUT")
        worker.wait_for(from_file, "STOPPED")
        worker.ask(f"/connectors/{from_file}/offsets", "DELETE")
        worker.ask(f"/connectors/{from_file}/resume", "PUT")
        wait_for_lines(written, 310)
        expect(content(written)[160:], lines(1, 150), "the lines after the source was reset")
        worker.ask(f"/connectors/{to_file}", "DELETE")
        expect(worker.ask("/connectors"), [from_file], "the connectors that are left")
        worker.stop()


@scenario
def every_line_comes_once_although_the_worker_is_killed(address: str) -> None:
    """exactly.once.source.support=enabled: killed with 9 amid its transactions, and started again."""
    cluster, topic = unique("cluster"), unique("once")
    with Place("killed") as place:
        read = place.file("read")
        append(read, lines(1, 1500))
        worker = place.distributed(address, cluster, exactly_once_source_support="enabled").start()
        worker.put(unique("source"), source(read, topic) | ONCE)
        reader = Reader(address, topic)
        for count in KILLS:
            reader.read_until(count)
            worker.kill()
            expect(len(whole(address, topic)) < 1500, True, "killed before the end of the file")
            worker.start()
        append(read, lines(1501, 1700))  # the source keeps the last lines of a file for itself until it grows
        reader.read_until(1500)
        worker.stop()
        reader.take()
    values = reader.values()
    expect(values, lines(1, len(values)), "the lines, as they were committed")
    everything = whole(address, topic, "read_uncommitted")
    print(f"       {len(KILLS)} kills; {len(everything) - len(whole(address, topic))} lines of aborted transactions")


@scenario
def two_workers_share_and_one_is_killed(address: str) -> None:
    """The tasks of a killed worker go on at the other, from where they were."""
    cluster, topics = unique("cluster"), [unique("one"), unique("two")]
    with Place("shared") as place:
        sources, sinks = [[unique(kind) for _ in topics] for kind in ("source", "sink")]
        files = [place.file(f"read{number}") for number in (0, 1)]
        written = [place.path / f"written{number}" for number in (0, 1)]
        first = place.distributed(address, cluster).start()
        for number in (0, 1):
            append(files[number], lines(1, 200))
            first.put(sources[number], source(files[number], topics[number]))
            first.put(sinks[number], sink(written[number], topics[number]))
        for file in written:
            wait_for_lines(file, 200)
        second = place.distributed(address, cluster).start()
        hosts = ["/".join(first.url.split("/")[2:]), "/".join(second.url.split("/")[2:])]

        def shares() -> list[int]:
            time.sleep(0.2)
            tasks = [task for name in sources + sinks for task in second.ask(f"/connectors/{name}/status")["tasks"]]
            at = [task["worker_id"] for task in tasks if task["state"] == "RUNNING"]
            return [at.count(host) for host in hosts]

        until(lambda: shares() == [2, 2], "each worker has two of the four tasks", PATIENCE_S)
        first.kill()
        for file in files:
            append(file, lines(201, 300))
        until(lambda: shares() == [0, 4], "the other has all four tasks", PATIENCE_S)
        for file in written:
            wait_for_lines(file, 300)
        second.stop()
        for file in written:
            expect(sorted(set(content(file))), sorted(lines(1, 300)), f"the lines of {file.name}")


@scenario
def what_a_sink_cannot_read_goes_to_another_topic(address: str) -> None:
    """errors.tolerance=all with a dead letter queue; a connector without both fails at the first such record."""
    topic, refused = unique("json"), unique("refused")
    values = [b"not JSON" if number % 10 == 3 else b"%d" % number for number in range(100)]
    producer = Producer({"bootstrap.servers": address})
    for number, value in enumerate(values):
        producer.produce(topic, value, str(number).encode())
    expect(producer.flush(20), 0, "records that were not written")
    json = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    aside = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": refused,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with Place("refused") as place:
        kept, failing = place.path / "kept", place.path / "failing"
        tolerant, strict = unique("tolerant"), unique("strict")
        connectors = {tolerant: sink(kept, topic) | json | aside, strict: sink(failing, topic) | json}
        worker = place.standalone(address, connectors).start()
        wait_for_lines(kept, 90)
        worker.wait_for(tolerant, "RUNNING", "RUNNING")
        worker.wait_for(strict, "RUNNING", "FAILED")
        trace = worker.ask(f"/connectors/{strict}/tasks/0/status")["trace"]
        expect("Converting byte[] to Kafka Connect data failed" in trace, True, trace)
        reader = Reader(address, refused)
        reader.read_until(10)
        worker.stop()
        expect(content(kept), [value.decode() for value in values if value != b"not JSON"], "what the sink wrote")
    expect([message.value() for message in reader.messages], [b"not JSON"] * 10, "what was put aside")
    headers = [dict(message.headers()) for message in reader.messages]
    places = [(header["__connect.errors.topic"], header["__connect.errors.offset"]) for header in headers]
    expect(places, [(topic.encode(), b"%d" % number) for number in range(3, 100, 10)], "where each came from")


if __name__ == "__main__":
    main(SCENARIO_TIMEOUT_S)
