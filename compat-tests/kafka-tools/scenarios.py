"""Apache Kafka 4.4.0's own command line tools, and so its Java clients."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "reference")]

import consumer_groups  # noqa: F401 (its scenarios register themselves)
import transactions  # noqa: F401 (likewise)
from reference import tool_command
from scenario import expect, main, scenario, unique

TOOL_TIMEOUT_S = 90


def tool(address: str, name: str, *arguments: str, stdin: str = "", refused: bool = False) -> str:
    """Run a tool and return what it prints; `refused`: it is expected to fail, and what it says is returned."""
    where = ["--bootstrap-server", address]
    # kafka-cluster wants its command first, the others take the address anywhere.
    command = tool_command(name, [*arguments, *where] if name == "kafka-cluster" else [*where, *arguments])
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
    said = "\n".join(line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("SLF4J"))
    if (done.returncode != 0) is not refused:
        raise AssertionError(f"{name} {' '.join(arguments)} ended with {done.returncode}: {said[-400:]}")
    return said if refused else done.stdout


def write(address: str, topic: str, lines: str) -> None:
    options = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    tool(address, "kafka-console-producer", "--topic", topic, *options, stdin=lines)


@scenario
def topics_are_made_described_grown_and_deleted(address: str) -> None:
    topic = unique("topic")
    made = ["--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=1000"]
    expect(f"Created topic {topic}" in tool(address, "kafka-topics", *made), True, "the topic is made")
    again = tool(address, "kafka-topics", *made, refused=True)
    expect(f"Topic '{topic}' already exists." in again, True, f"a second one is refused in {again[-200:]}")
    described = tool(address, "kafka-topics", "--describe", "--topic", topic)
    expect(len(re.findall(r"Partition: \d", described)), 3, "partitions")
    expect("retention.ms=1000" in described, True, "its setting is described")
    tool(address, "kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    described = tool(address, "kafka-topics", "--describe", "--topic", topic)
    expect(len(re.findall(r"Partition: \d", described)), 5, "partitions after growing")
    tool(address, "kafka-topics", "--delete", "--topic", topic)
    expect(topic in tool(address, "kafka-topics", "--list").split(), False, "it is listed after its end")


@scenario
def settings_are_altered(address: str) -> None:
    topic = unique("settings")
    tool(address, "kafka-topics", "--create", "--topic", topic)
    entity = ["--entity-type", "topics", "--entity-name", topic]
    tool(
        address, "kafka-configs", "--alter", *entity, "--add-config", "retention.ms=777,cleanup.policy=[compact,delete]"
    )
    described = tool(address, "kafka-configs", "--describe", *entity)
    expect("retention.ms=777" in described and "cleanup.policy=compact,delete" in described, True, described)
    wrong = ["--alter", *entity, "--add-config", "retention.ms=soon"]
    said = tool(address, "kafka-configs", *wrong, refused=True)
    expect("Invalid value soon for configuration retention.ms" in said, True, said[-300:])
    everything = tool(address, "kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    expect("num.partitions=" in everything, True, "settings of the broker")


@scenario
def records_go_through_the_console_with_every_codec(address: str) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic = unique(codec)
        lines = "".join(f"k{number}:v{number}\n" for number in range(50))
        options = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
        compressed = [*options, "--compression-codec", codec]
        tool(address, "kafka-console-producer", "--topic", topic, *compressed, stdin=lines)
        printed = ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"]
        reading = ["--topic", topic, "--from-beginning", "--max-messages", "50", "--timeout-ms", "30000", *printed]
        expect(tool(address, "kafka-console-consumer", *reading), lines, f"lines written with {codec}")


@scenario
def a_group_reads_commits_and_is_moved_back(address: str) -> None:
    topic, group = unique("group"), unique("group")
    write(address, topic, "a:1\nb:2\nc:3\n")
    reading = ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", "3", "--timeout-ms", "30000"]
    expect(sorted(tool(address, "kafka-console-consumer", *reading).split()), ["1", "2", "3"], "values")
    listed = tool(address, "kafka-consumer-groups", "--list")
    expect(group in listed.split(), True, "the group is listed")
    described = tool(address, "kafka-consumer-groups", "--describe", "--group", group)
    row = next(line.split() for line in described.splitlines() if line.startswith(group))
    expect(row[1:6], [topic, "0", "3", "3", "0"], "topic, partition, committed, end, lag")
    back = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"]
    tool(address, "kafka-consumer-groups", *back)
    described = tool(address, "kafka-consumer-groups", "--describe", "--group", group)
    row = next(line.split() for line in described.splitlines() if line.startswith(group))
    expect(row[3:6], ["0", "3", "3"], "committed, end, lag after moving back")
    tool(address, "kafka-consumer-groups", "--delete", "--group", group)
    expect(
        group in tool(address, "kafka-consumer-groups", "--list").split(), False, "the group is listed after its end"
    )


@scenario
def offsets_are_told_and_records_deleted(address: str) -> None:
    topic = unique("offsets")
    write(address, topic, "a:1\nb:2\nc:3\n")
    expect(tool(address, "kafka-get-offsets", "--topic", topic).strip(), f"{topic}:0:3", "the end")
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 2}]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(plan, file)
        file.flush()
        tool(address, "kafka-delete-records", "--offset-json-file", file.name)
    expect(
        tool(address, "kafka-get-offsets", "--topic", topic, "--time", "-2").strip(), f"{topic}:0:2", "the beginning"
    )


@scenario
def the_cluster_describes_itself(address: str) -> None:
    versions = tool(address, "kafka-broker-api-versions")
    expect("Produce(0)" in versions and "UNKNOWN" not in versions.split("\n")[0], True, versions[:300])
    expect("Cluster ID: " in tool(address, "kafka-cluster", "cluster-id"), True, "the cluster's id")
    features = tool(address, "kafka-features", "describe")
    expect("metadata.version" in features and "FinalizedVersionLevel: 4.4" in features, True, features[:300])
    dirs = tool(address, "kafka-log-dirs", "--describe")
    expect('"logDir"' in dirs, True, "log directories")


@scenario
def a_thousand_records_are_measured(address: str) -> None:
    topic = unique("perf")
    options = ["--topic", topic, "--num-records", "1000", "--record-size", "100", "--throughput", "-1"]
    said = tool(address, "kafka-producer-perf-test", *options)
    expect("1000 records sent" in said, True, said[-300:])


if __name__ == "__main__":
    main()
