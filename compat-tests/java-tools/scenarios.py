"""What a transcript cannot tell: members that come, go and are killed, copies of thousands of records."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "reference")]

from killable import Odradek
from ownership import Members
from reference import Reference, tool_command
from scenario import expect, main, scenario, unique, until

TOOL_TIMEOUT_S = 100
SESSION_TIMEOUT_S = 45
SCENARIO_TIMEOUT_S = 300.0
KEYED = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]


def ended_well(command: list[str], stdin: str = "") -> str:
    """Run a program to its end; what it prints. Raises where it fails."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-600:]
        raise AssertionError(f"{' '.join(command[-8:])} ended with {done.returncode}: {said}")
    return done.stdout


def tool(address: str, name: str, *arguments: str, stdin: str = "") -> str:
    return ended_well(tool_command(name, ["--bootstrap-server", address, *arguments]), stdin)


def make_topic(address: str, partitions: int, count: int = 0) -> str:
    """A topic, with so many records k0:0, k1:1, …"""
    topic = unique("topic")
    tool(address, "kafka-topics", "--create", "--topic", topic, "--partitions", str(partitions))
    if count:
        lines = "".join(f"k{number}:{number}\n" for number in range(count))
        tool(address, "kafka-console-producer", "--topic", topic, *KEYED, stdin=lines)
    return topic


def read(address: str, topic: str, count: int, *options: str) -> str:
    """What the console prints of so many records from the beginning."""
    limits = ["--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000"]
    return tool(address, "kafka-console-consumer", "--topic", topic, *limits, *options)


def numbers(printed: str) -> list[int]:
    return sorted(map(int, printed.split()))


@scenario
def the_cluster_tells_its_versions_and_features(address: str) -> None:
    versions = tool(address, "kafka-broker-api-versions")
    expect("Produce(0)" in versions and "UNKNOWN" not in versions.split("\n")[0], True, versions[:300])
    features = tool(address, "kafka-features", "describe")
    expect("metadata.version" in features and "FinalizedVersionLevel: 4.4" in features, True, features[:300])


@scenario
def records_go_through_the_console_with_every_codec(address: str) -> None:
    lines = "".join(f"k{number}:v{number}\n" for number in range(50))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic = unique(codec)
        writing = ["--topic", topic, *KEYED, "--compression-codec", codec]
        tool(address, "kafka-console-producer", *writing, stdin=lines)
        printed = ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"]
        expect(read(address, topic, 50, *printed), lines, f"lines written with {codec}")


@scenario
def the_quorum_tells_its_leader(address: str) -> None:
    topic = make_topic(address, 1)
    status = tool(address, "kafka-metadata-quorum", "describe", "--status")
    said = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    expect(said["LeaderId"].strip(), "1", f"the leader in {status}")
    before = int(said["HighWatermark"])
    tool(address, "kafka-topics", "--alter", "--topic", topic, "--partitions", "9")
    replicas = tool(address, "kafka-metadata-quorum", "describe", "--replication").splitlines()
    node, _directory, end_offset, lag, *_times, role = replicas[1].split()
    expect((node, lag, role, len(replicas)), ("1", "0", "Leader", 2), f"the one voter in {replicas}")
    expect(int(end_offset) >= before + 8, True, f"the log has grown by eight partitions from {before}: {replicas}")


@scenario
def replicas_are_verified(address: str) -> None:
    """The tool reads every replica and compares them without end; it is asked to end once it has come to the log's."""
    topic = make_topic(address, 2, 40)
    options = ["--broker-list", address, "--topics-include", topic, "--report-interval-ms", "300", "--time", "-2"]
    command = tool_command("kafka-replica-verification", options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "max lag is 0 for partition" in line and "among 2 partitions" in line:
                break
        process.kill()
    found = re.search(rf"max lag is 0 for partition {topic}-\d at offset (\d+) among 2 partitions", said[-1])
    expect(found is not None, True, f"what the tool says at last: {said[-3:]}")


@scenario
def the_files_of_a_broker_are_dumped(_address: str) -> None:
    """On a broker of its own, for its directory; every kind of log is decoded by the name of its records."""
    reference = os.environ.get("COMPAT_AGAINST") == "reference"
    node = Reference() if reference else Odradek()
    try:
        node.start()
        source, target = unique("source"), unique("target")
        lines = "".join(f"k{number}:{number}\n" for number in range(60))
        tool(node.bootstrap_servers, "kafka-console-producer", "--topic", source, *KEYED, stdin=lines)
        expect(copied(node.bootstrap_servers, source, target, 20), 60, "records copied")
        assert node.directory is not None
        wanted = {
            "compat-*-0": (
                ["--print-data-log"],
                ["key: k59 payload: 59", "endTxnMarker: COMMIT", "isTransactional: true"],
            ),
            "__consumer_offsets-*": (["--offsets-decoder"], ['"offset":60', f'"topic":"{source}"']),
            "__transaction_state-*": (["--transaction-log-decoder"], ["CompleteCommit", "PrepareCommit"]),
            "__cluster_metadata-0": (["--cluster-metadata-decoder"], ["TOPIC_RECORD", f'"name":"{target}"']),
        }
        for pattern, (options, words) in wanted.items():
            files = sorted(file for file in node.directory.rglob(f"{pattern}/*.log") if file.stat().st_size)
            said = ended_well(tool_command("kafka-dump-log", ["--files", ",".join(map(str, files)), *options]))
            for word in words:
                expect(word in said, True, f"{word!r} in what is dumped of {pattern}: {said[-300:]}")
            expect("isvalid: false" in said, False, f"a batch of {pattern} whose checksum is wrong")
    finally:
        node.stop()


# --- consumer groups (KIP-848) -------------------------------------------------------------------


def member(address: str, group: str, topic: str, protocol: str = "consumer", *more: str) -> list[str]:
    """The command of a VerifiableConsumer, which tells what it is assigned, gives up and reads."""
    options = ["--topic", topic, "--group-id", group, "--group-protocol", protocol, "--reset-policy", "earliest"]
    return tool_command("kafka-verifiable-consumer", ["--bootstrap-server", address, *options, *more])


def listed(address: str, *options: str) -> list[str]:
    return tool(address, "kafka-consumer-groups", "--list", *options).split()


@scenario
def h06_the_console_reads_by_the_consumer_protocol_and_the_group_is_administered(address: str) -> None:
    topic, group = make_topic(address, 6, 60), unique("console")
    as_member = ["--group", group, "--command-property", "group.protocol=consumer"]
    expect(numbers(read(address, topic, 60, *as_member)), list(range(60)), "what is read")
    expect(group in listed(address, "--type", "consumer"), True, "it is listed among consumer groups")
    state = tool(address, "kafka-consumer-groups", "--describe", "--group", group, "--state")
    expect(re.search(rf"{group}.* Empty +0", state) is not None, True, f"its state in {state}")
    back = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"]
    tool(address, "kafka-consumer-groups", *back)
    expect(len(read(address, topic, 60, *as_member).split()), 60, "records read after moving back")
    tool(address, "kafka-consumer-groups", "--delete", "--group", group)
    expect(group in listed(address), False, "the group is listed after its end")


@scenario
def h07_members_in_java_share_and_a_killed_one_is_replaced(address: str) -> None:
    topic, group = make_topic(address, 6, 300), unique("java")
    with Members() as members:
        for name, loads in (("a", (6,)), ("b", (3, 3)), ("c", (2, 2, 2))):
            members.start(name, member(address, group, topic))
            members.wait_for(*loads)
        described = tool(address, "kafka-consumer-groups", "--describe", "--group", group, "--members", "--verbose")
        rows = [line.split() for line in described.splitlines() if line.startswith(group)]
        expect(len(rows), 3, f"members in {described}")
        members.kill("b")
        members.wait_for(3, 3, timeout_s=SESSION_TIMEOUT_S + 30)
        members.stop("a")
        members.wait_for(6)
        members.check_one_owner()
        until(lambda: sum(members.counts.values()) >= 300, "every record is read", pause_s=0.1)


@scenario
def h08_a_live_group_in_java_changes_its_protocol_and_back(address: str) -> None:
    topic, group = make_topic(address, 6, 300), unique("migration")
    with Members() as members:
        for name in ("old1", "old2"):
            members.start(name, member(address, group, topic, "classic"))
        members.wait_for(3, 3)
        members.start("new1", member(address, group, topic))
        members.wait_for(2, 2, 2)
        members.stop("old1")
        members.wait_for(3, 3)
        members.start("new2", member(address, group, topic))
        members.wait_for(2, 2, 2)
        members.stop("old2")
        members.wait_for(3, 3)
        members.start("old3", member(address, group, topic, "classic"))
        members.wait_for(2, 2, 2)
        for name, loads in (("new1", (3, 3)), ("new2", (6,))):
            members.stop(name)
            members.wait_for(*loads)
        expect(group in listed(address, "--type", "classic"), True, "it is a classic group at the end")
        members.check_one_owner()


@scenario
def h09_a_rolling_restart_of_static_members_in_java_moves_nothing(address: str) -> None:
    topic, group = make_topic(address, 6), unique("static")
    with Members() as members:
        for number in range(3):
            members.start(f"m{number}", member(address, group, topic, "consumer", "--group-instance-id", f"i{number}"))
        members.wait_for(2, 2, 2)
        before = {number: members.owned[f"m{number}"] for number in range(3)}
        since = time.time()
        for number in range(3):
            members.stop(f"m{number}")
            again = member(address, group, topic, "consumer", "--group-instance-id", f"i{number}")
            members.start(f"again{number}", again)
            members.wait_for(2, 2, 2)
            expect(members.owned[f"again{number}"], before[number], f"what i{number} has after its restart")
            others = [f"m{other}" for other in range(number + 1, 3)] + [f"again{other}" for other in range(number)]
            for other in others:
                expect(members.revocations(other, since), [], f"what {other} gave up meanwhile")
        members.check_one_owner()


# --- transactions ----------------------------------------------------------------------------------


def copied(address: str, source: str, target: str, size: int, *options: str) -> int:
    """Copy all of partition 0 with its offsets, `size` records a transaction; returns how many were copied."""
    arguments = ["--broker-list", address, "--input-topic", source, "--input-partition", "0"]
    arguments += ["--output-topic", target, "--transactional-id", unique("id"), "--transaction-size", str(size)]
    said = ended_well(
        tool_command("transactional-message-copier", [*arguments, "--consumer-group", unique("copy"), *options])
    )
    return int(json.loads([line for line in said.splitlines() if line.startswith("{")][-1])["totalProcessed"])


def check_copy(address: str, count: int, size: int, partitions: int, *options: str) -> None:
    source, target = make_topic(address, 1, count), make_topic(address, partitions)
    expect(copied(address, source, target, size, *options), count, "records copied")
    committed = read(address, target, count, "--isolation-level", "read_committed")
    expect(numbers(committed), list(range(count)), "what is committed")


@scenario
def t06_five_hundred_transactions_over_ten_partitions(address: str) -> None:
    check_copy(address, 5000, 10, 10)


@scenario
def random_aborts_neither_lose_nor_repeat(address: str) -> None:
    check_copy(address, 1000, 20, 3, "--group-mode", "--use-group-metadata", "--enable-random-aborts")


if __name__ == "__main__":
    main(SCENARIO_TIMEOUT_S)
