"""The commands against a node: what a person reads, what a program reads, and what a broker refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.config import load_config
from odradek import Broker
from odradek.cli.start import advertised

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(settings={"num.partitions": 3}) as running:
        yield running


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


class Shell:
    """Runs commands against one broker."""

    def __init__(self, address: str) -> None:
        self.environment = {**os.environ, "ODRADEK_BOOTSTRAP_SERVER": address}

    def run(self, line: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "odradek", *line.split(" ")]
        return subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def __call__(self, line: str, stdin: str = "") -> str:
        done = self.run(line, stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, line: str) -> list[dict[str, object]]:
        return [json.loads(row) for row in self(f"{line} --json").splitlines()]

    def fails(self, line: str, stdin: str = "") -> str:
        done = self.run(line, stdin)
        assert done.returncode == 1, done.stdout
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr


@pytest.fixture
def shell(broker: Broker) -> Shell:
    return Shell(broker.bootstrap_servers)


def test_health(shell: Shell, broker: Broker) -> None:
    assert f"{broker.bootstrap_servers} is ready" in shell("health")
    assert shell.json("health") == [{"healthy": True, "cluster_id": broker.cluster_id, "brokers": [1]}]


def test_topics_from_making_to_deleting(shell: Shell) -> None:
    assert shell("topics list") == "There are no topics.\n"
    assert shell("topics create orders") == "Created topic orders with 3 partitions.\n"
    assert shell("topics create small --partitions 1 --config retention.ms=1000") != ""
    assert [row["topic"] for row in shell.json("topics list")] == ["orders", "small"]
    (described,) = shell.json("topics describe orders")
    partitions = described["partitions"]
    assert isinstance(partitions, list)
    assert [partition["partition"] for partition in partitions] == [0, 1, 2]
    assert shell("topics delete orders small") == "Deleted topic orders.\nDeleted topic small.\n"
    assert shell("topics list") == "There are no topics.\n"


def test_u14_what_the_broker_refuses_is_told_with_its_code_and_sentence(shell: Shell) -> None:
    shell("topics create orders")
    assert "TOPIC_ALREADY_EXISTS" in shell.fails("topics create orders")
    assert "INVALID_CONFIG" in shell.fails("topics create t --config retention.ms=soon")
    assert "INVALID_REPLICATION_FACTOR" in shell.fails("topics create t --replication-factor 3")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in shell.fails("topics delete nothing")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in shell.fails("topics describe nothing")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in shell.fails("consume nothing")
    assert "has no partition 9" in shell.fails("consume orders --partition 9")
    assert "There is no group 'nobody'" in shell.fails("groups describe nobody")


def test_u03_looking_never_creates_a_topic(shell: Shell) -> None:
    shell.fails("topics describe nothing")
    shell.fails("consume nothing")
    assert shell("topics list") == "There are no topics.\n"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_become_records_and_lines_again(shell: Shell, codec: str) -> None:
    shell("topics create orders --partitions 1")
    lines = "".join(f"order {number}\n" for number in range(1500))
    shell(f"produce orders --compression {codec}", lines)
    assert shell("consume orders") == lines
    assert shell("consume orders --from 1498") == "order 1498\norder 1499\n"
    assert shell("consume orders --count 2") == "order 0\norder 1\n"
    assert shell("consume orders --from end") == ""


def test_keys_go_where_kafkas_clients_send_them(shell: Shell, broker: Broker) -> None:
    shell("produce orders --key-separator =", "".join(f"key{number}={number}\n" for number in range(30)))
    ours = {row["key"]: row["partition"] for row in shell.json("consume orders")}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "murmur2_random"})
    theirs: dict[str, int] = {}

    def note(_error: object, message: object) -> None:
        theirs[message.key().decode()] = message.partition()  # type: ignore[attr-defined]

    for key in ours:
        producer.produce("orders", key=str(key), value="", on_delivery=note)
    assert producer.flush(30) == 0
    assert ours == theirs


def test_records_as_json_keep_every_byte(shell: Shell, broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", key=b"\xff", value=None, partition=0, headers=[("h", b"v"), ("n", None)], timestamp=1234)
    assert producer.flush(30) == 0
    assert shell.json("consume orders") == [
        {
            "topic": "orders", "partition": 0, "offset": 0, "timestamp": 1234, "key_base64": "/w==", "value": None,
            "headers": [{"name": "h", "value": "v"}, {"name": "n", "value": None}],
        }
    ]  # fmt: skip


def test_records_are_found_by_time(shell: Shell, broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(5):
        producer.produce("orders", value=str(number), partition=0, timestamp=1_700_000_000_000 + number * 1000)
    assert producer.flush(30) == 0
    assert shell("consume orders --from @1700000002500") == "3\n4\n"


def test_groups_show_what_they_committed(shell: Shell, broker: Broker) -> None:
    shell("topics create orders --partitions 1")
    shell("produce orders", "a\nb\nc\n")
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "kitchen", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    assert consumer.poll(30) is not None
    consumer.commit(offsets=[TopicPartition("orders", 0, 2)], asynchronous=False)
    assert [row["group"] for row in shell.json("groups list")] == ["kitchen"]
    (described,) = shell.json("groups describe kitchen")
    (offset,) = described["offsets"]
    assert isinstance(offset, dict)
    assert {name: offset[name] for name in ("partition", "committed", "end", "lag")} == {
        "partition": 0,
        "committed": 2,
        "end": 3,
        "lag": 1,
    }
    members = described["members"]
    assert isinstance(members, list)
    assert len(members) == 1
    assert "NON_EMPTY_GROUP" in shell.fails("groups delete kitchen")
    consumer.close()
    assert shell("groups delete kitchen") == "Deleted group kitchen.\n"
    assert shell("groups list") == "There are no groups.\n"


def test_settings_are_altered_and_shown(shell: Shell) -> None:
    shell("topics create orders")
    # A new cluster sets this one for all brokers, as Apache Kafka 4.4 does.
    assert [row["name"] for row in shell.json("configs describe topic orders")] == ["min.insync.replicas"]
    shell("configs alter topic orders --set retention.ms=777")
    shown = {row["name"]: row for row in shell.json("configs describe topic orders")}
    assert shown["retention.ms"]["value"] == "777"
    assert shown["retention.ms"]["source"] == "topic"
    assert "INVALID_CONFIG" in shell.fails("configs alter topic orders --set retention.ms=soon")
    shell("configs alter topic orders --delete retention.ms")
    assert "retention.ms" not in shell("configs describe topic orders")
    assert {row["name"] for row in shell.json("configs describe broker 1 --all")} >= {"num.partitions", "log.dirs"}


def test_a_reader_that_goes_away_is_no_fault(shell: Shell) -> None:
    shell("topics create orders --partitions 1")
    shell("produce orders", "x\n" * 50_000)
    command = f"{sys.executable} -m odradek consume orders | head -1"
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=shell.environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("x\n", "")


def test_start_tells_a_person_in_ten_lines_and_ends_on_interrupt(tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    command = [sys.executable, "-m", "odradek", "start", "--port", "0", "--ready-file", str(ready_file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        assert node.stderr is not None
        lines = [node.stderr.readline() for _ in range(6)]
        ready = json.loads(ready_file.read_text())
        told = Shell(ready["bootstrap_servers"])
        assert told("reset") == "The node is empty.\n"
        node.send_signal(signal.SIGINT)
        rest, errors = node.communicate(timeout=30)
    assert ready["bootstrap_servers"] in lines[1]
    assert "in memory" in lines[2]
    assert "Ctrl-C" in lines[4]
    assert (rest, errors) == ("", "")
    assert node.returncode == 0
    assert not ready_file.exists()


def test_an_address_that_is_only_advertised_is_named_at_the_start_and_where_it_cannot_be_reached() -> None:
    """Port 1 of this machine: nothing listens there."""
    command = [sys.executable, "-m", "odradek", "start", "--port", "0", "--json", "--stop-with-stdin"]
    command += ["--advertised-listeners", "PLAINTEXT://127.0.0.1:1"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        address = json.loads(node.stdout.readline())["bootstrap_servers"]
        shell = Shell(address)
        said = (
            f"The broker at {address} advertises 127.0.0.1:1 for node 1 (advertised.listeners), where no broker can be "
            "reached: Connection refused"
        )
        for line in ("topics create t", "groups list", "produce t"):
            assert said in shell.fails(line, "a\n")
        node.communicate(timeout=30)


@pytest.mark.parametrize(
    ("listener", "told", "said"),
    [
        ("PLAINTEXT://localhost:9092", "", ""),
        ("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://127.0.0.1:9092", ""),
        ("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://kafka.example:29092", " (advertised as kafka.example:29092)"),
        ("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://[::1]:9092", " (advertised as [::1]:9092)"),
        ("PLAINTEXT://:9092", "", f" (advertised as {socket.gethostname()}:9092)"),
    ],
)
def test_what_is_advertised_is_told_where_it_is_another_address(listener: str, told: str, said: str) -> None:
    sets = {"listeners": listener} | ({"advertised.listeners": told} if told else {})
    config = load_config(sets=sets, environment={})
    assert advertised({"bootstrap_servers": "127.0.0.1:9092"}, config) == said


def test_the_ready_line_says_all_a_program_needs(broker: Broker) -> None:
    command = [sys.executable, "-m", "odradek", "start", "--port", "0", "--json", "--stop-with-stdin"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        ready = json.loads(node.stdout.readline())
        rest, _ = node.communicate(timeout=30)  # closes its standard input
    assert set(ready) == {"event", "bootstrap_servers", "control_url", "node_id", "cluster_id", "pid"}
    assert (ready["event"], ready["pid"], ready["node_id"]) == ("ready", node.pid, 1)
    assert rest == ""
    assert node.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["--port", "x"], 2, "'x' is not a port"),
        (["--set", "num.partitions=many"], 2, "num.partitions"),
        (["--port", "0", "--listeners", "PLAINTEXT://localhost:0"], 2, "listeners is given twice"),
        (["--config", "no-such-file.yaml"], 2, "no-such-file.yaml"),
        (["--nonsense"], 2, "--nonsense"),
    ],
)
def test_u14_start_refuses_in_one_sentence(arguments: list[str], exit_code: int, said: str) -> None:
    command = [sys.executable, "-m", "odradek", "start", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == exit_code
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stdout == ""


def test_a_data_directory_that_is_a_file_is_told_once() -> None:
    command = [sys.executable, "-m", "odradek", "start", "--port", "0", "--data", os.devnull]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"log directory {os.devnull} cannot be used: it is a file, not a directory" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_data_directory_that_is_in_use_is_told(tmp_path: Path) -> None:
    with Broker(data=tmp_path):
        command = [sys.executable, "-m", "odradek", "start", "--port", "0", "--data", str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_what_is_not_text_goes_in_and_out_as_it_is(shell: Shell) -> None:
    run = [sys.executable, "-m", "odradek"]
    lines = b"\xff\xfe\n\ncaf\xe9\n"
    wrote = subprocess.run([*run, "produce", "bytes"], cwd=ROOT, env=shell.environment, input=lines, check=False)
    assert wrote.returncode == 0
    read = subprocess.run([*run, "consume", "bytes"], cwd=ROOT, env=shell.environment, capture_output=True, check=False)
    assert sorted(read.stdout.split(b"\n")) == sorted(lines.split(b"\n"))


def test_lines_are_written_in_batches_that_the_topic_takes(shell: Shell) -> None:
    shell("topics create large --partitions 1")
    lines = (("x" * 2000) + "\n") * 1500  # three times max.message.bytes in fewer lines than a small batch has
    shell("produce large", lines)
    assert shell("consume large") == lines
    shell("topics create narrow --partitions 1 --config max.message.bytes=500")
    shell("produce narrow", "some twenty characters\n" * 200)
    assert shell("consume narrow") == "some twenty characters\n" * 200
    assert "MESSAGE_TOO_LARGE" in shell.fails("produce narrow", "x" * 600)


def test_nothing_to_write_makes_no_topic(shell: Shell) -> None:
    assert "Topic 'orders': UNKNOWN_TOPIC_OR_PARTITION" in shell.fails("produce orders")
    assert shell("topics list") == "There are no topics.\n"
    shell("topics create orders")
    assert shell.run("produce orders").stderr == "Wrote 0 records to orders.\n"
    assert shell.json("produce orders") == [{"topic": "orders", "written": 0}]


def test_a_failed_produce_tells_the_line_and_what_is_written(shell: Shell) -> None:
    shell("topics create orders --partitions 1 --config max.message.bytes=500")
    assert (
        shell.fails("produce orders --key-separator =", "a=1\nb=2\nc\nd=4\n")
        == "odradek produce: Line 3: 'c' has no key separator '='; 2 records written.\n"
    )
    assert shell("consume orders") == "1\n2\n", "what came before it"
    large = "x" * 600
    assert shell.fails("produce orders", f"3\n4\n5\n{large}\n6\n").startswith(
        "odradek produce: Line 4: partition 0 of topic 'orders' took no records: MESSAGE_TOO_LARGE"
    )
    assert "; 3 records written." in shell.fails("produce orders", f"3\n4\n5\n{large}\n6\n")
    shell("topics create keyed --partitions 1 --config cleanup.policy=compact")
    refused = shell.fails("produce keyed", "1\n2\n")
    assert refused.startswith(
        "odradek produce: Lines 1 to 2: partition 0 of topic 'keyed' took no records: INVALID_RECORD"
    )
    assert refused.endswith("; 0 records written.\n")
    assert shell("consume keyed") == ""


def test_what_the_terminal_cannot_show_is_no_failure(shell: Shell) -> None:
    shell("produce t", "caf\u00e9 \u2192\n")
    shell.environment["PYTHONIOENCODING"] = "ascii"
    (row,) = shell.json("consume t")
    assert row["value"] == "caf\u00e9 \u2192"
    assert "INVALID_TOPIC_EXCEPTION" in shell.fails("topics describe \u2192")


def test_a_topic_is_compacted_and_its_retention_applied_at_once(shell: Shell, broker: Broker) -> None:
    shell("topics create seats --partitions 1 --config cleanup.policy=compact --config delete.retention.ms=0")
    for number in range(4):
        shell("produce seats --key-separator :", f"a:{number}\nb:{number}\n")
    said = shell("compact seats")
    assert said.startswith("Compacted seats, 1 partition: ")
    assert shell("consume seats --keys") == "a\t3\nb\t3\n"
    (upshot,) = shell.json("compact seats")
    assert (upshot["topic"], upshot["partitions"], upshot["bytes_after"]) == ("seats", 1, upshot["bytes_before"])
    shell("topics create news --partitions 2 --config retention.ms=1")
    shell("produce news", "old\nnews\n")
    assert shell("retention news").startswith("Applied the retention of news, 2 partitions: ")
    assert shell("consume news") == ""
    broker.retention("news")
    assert "has no compact in its cleanup.policy" in shell.fails("compact news")
    assert "there is no topic 'nowhere'" in shell.fails("retention nowhere")
