"""Transactions of Kafka's Java clients, in both protocols: which one, the cluster's transaction.version says."""

from __future__ import annotations

import json
import re
import subprocess

from reference import tool_command
from scenario import expect, scenario, unique

COPY_TIMEOUT_S = 100


def run(address: str, name: str, *arguments: str, stdin: str = "") -> str:
    """Run a tool of the usual kind and return what it prints."""
    command = tool_command(name, ["--bootstrap-server", address, *arguments])
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=90, check=False)
    if done.returncode:
        raise AssertionError(f"{name} {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def copy(address: str, source: str, target: str, transactional_id: str, size: int, *options: str) -> int:
    """Copy all of partition 0 with its offsets, `size` records a transaction; returns how many were copied."""
    arguments = ["--broker-list", address, "--input-topic", source, "--input-partition", "0"]
    arguments += ["--output-topic", target, "--transactional-id", transactional_id, "--transaction-size", str(size)]
    command = tool_command("transactional-message-copier", [*arguments, "--consumer-group", unique("copy"), *options])
    done = subprocess.run(command, capture_output=True, text=True, timeout=COPY_TIMEOUT_S, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise AssertionError(f"the copier ended with {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
    return int(json.loads(lines[-1])["totalProcessed"])


def fill(address: str, topic: str, count: int) -> None:
    options = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    lines = "".join(f"k{number}:{number}\n" for number in range(count))
    run(address, "kafka-console-producer", "--topic", topic, *options, stdin=lines)


def committed(address: str, topic: str, count: int) -> list[int]:
    options = ["--from-beginning", "--max-messages", str(count), "--timeout-ms", "20000"]
    said = run(address, "kafka-console-consumer", "--topic", topic, "--isolation-level", "read_committed", *options)
    return sorted(int(line) for line in said.split())


def make_topic(address: str, topic: str, partitions: int) -> None:
    run(address, "kafka-topics", "--create", "--topic", topic, "--partitions", str(partitions))


@scenario
def t06_five_hundred_transactions_over_ten_partitions(address: str) -> None:
    source, target = unique("in"), unique("out")
    make_topic(address, source, 1)
    make_topic(address, target, 10)
    fill(address, source, 5000)
    expect(copy(address, source, target, unique("id"), 10), 5000, "records copied")
    expect(committed(address, target, 5000), list(range(5000)), "what is committed")


@scenario
def random_aborts_neither_lose_nor_repeat(address: str) -> None:
    source, target = unique("in"), unique("out")
    make_topic(address, source, 1)
    make_topic(address, target, 3)
    fill(address, source, 1000)
    options = ["--group-mode", "--use-group-metadata", "--enable-random-aborts"]
    expect(copy(address, source, target, unique("id"), 20, *options), 1000, "records copied")
    expect(committed(address, target, 1000), list(range(1000)), "what is committed")


@scenario
def transactions_are_listed_and_described(address: str) -> None:
    source, target, transactional_id = unique("in"), unique("out"), unique("id")
    make_topic(address, source, 1)
    make_topic(address, target, 1)
    fill(address, source, 20)
    copy(address, source, target, transactional_id, 10)
    listed = run(address, "kafka-transactions", "list")
    state = re.search(rf"^{transactional_id}\s+\d+\s+\d+\s+(\w+)", listed, re.MULTILINE)
    expect(state is not None and state[1], "CompleteCommit", f"the id's state in {listed[-300:]}")
    described = run(address, "kafka-transactions", "describe", "--transactional-id", transactional_id)
    expect("CompleteCommit" in described, True, described[-300:])
    producers = run(address, "kafka-transactions", "describe-producers", "--topic", target, "--partition", "0")
    expect(len(producers.strip().splitlines()), 2, f"a heading and one producer in {producers[-300:]}")
    hanging = run(address, "kafka-transactions", "find-hanging", "--broker-id", "1")
    expect(transactional_id in hanging, False, f"nothing hangs: {hanging[-300:]}")
