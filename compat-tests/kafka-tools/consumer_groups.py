"""Consumer groups by KIP-848 with Java's clients, through Apache Kafka's own tools."""

from __future__ import annotations

import re
import subprocess
import time

from ownership import Members
from reference import tool_command
from scenario import expect, scenario, unique, until

TOOL_TIMEOUT_S = 90
SESSION_TIMEOUT_S = 45
PARTITIONS = 6


def tool(address: str, name: str, *arguments: str, stdin: str = "") -> str:
    """Run a tool that is to succeed; what it prints."""
    command = tool_command(name, ["--bootstrap-server", address, *arguments])
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
    if done.returncode:
        raise AssertionError(f"{name} {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def make_topic(address: str, count: int = 0) -> str:
    topic = unique("consumer")
    tool(address, "kafka-topics", "--create", "--topic", topic, "--partitions", str(PARTITIONS))
    if count:
        options = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
        lines = "".join(f"k{number}:v{number}\n" for number in range(count))
        tool(address, "kafka-console-producer", "--topic", topic, *options, stdin=lines)
    return topic


def member(address: str, group: str, topic: str, protocol: str = "consumer", *more: str) -> list[str]:
    """The command of a VerifiableConsumer, which tells what it is assigned, gives up and reads."""
    options = ["--topic", topic, "--group-id", group, "--group-protocol", protocol, "--reset-policy", "earliest"]
    return tool_command("kafka-verifiable-consumer", ["--bootstrap-server", address, *options, *more])


@scenario
def h06_the_console_reads_by_the_consumer_protocol_and_the_group_is_administered(address: str) -> None:
    topic, group = make_topic(address, 60), unique("console")
    reading = ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", "60", "--timeout-ms", "30000"]
    values = tool(address, "kafka-console-consumer", *reading, "--command-property", "group.protocol=consumer").split()
    expect(sorted(values), sorted(f"v{number}" for number in range(60)), "what is read")
    listed = tool(address, "kafka-consumer-groups", "--list", "--type", "consumer")
    expect(group in listed.split(), True, "it is listed among consumer groups")
    state = tool(address, "kafka-consumer-groups", "--describe", "--group", group, "--state")
    expect(re.search(rf"{group}.* Empty +0", state) is not None, True, f"its state in {state}")
    back = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"]
    tool(address, "kafka-consumer-groups", *back)
    again = tool(address, "kafka-console-consumer", *reading, "--command-property", "group.protocol=consumer").split()
    expect(len(again), 60, "records read after moving back")
    tool(address, "kafka-consumer-groups", "--delete", "--group", group)
    listed = tool(address, "kafka-consumer-groups", "--list")
    expect(group in listed.split(), False, "it is listed after its end")


@scenario
def h07_members_in_java_share_and_a_killed_one_is_replaced(address: str) -> None:
    topic, group = make_topic(address, 300), unique("java")
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
        until(lambda: time.sleep(0.1) or sum(members.counts.values()) >= 300, "every record is read")


@scenario
def h08_a_live_group_in_java_changes_its_protocol_and_back(address: str) -> None:
    topic, group = make_topic(address, 300), unique("migration")
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
        listed = tool(address, "kafka-consumer-groups", "--list", "--type", "classic")
        expect(group in listed.split(), True, "it is a classic group at the end")
        members.check_one_owner()


@scenario
def h09_a_rolling_restart_of_static_members_in_java_moves_nothing(address: str) -> None:
    topic, group = make_topic(address), unique("static")
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
