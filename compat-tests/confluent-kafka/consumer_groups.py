"""Consumer groups by KIP-848 (group.protocol=consumer), whose members are processes that come, go and are killed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupState, Producer, libversion
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from ownership import Members
from scenario import Scenario, expect, unique, until
from scenario import scenario as register

MEMBER = str(Path(__file__).resolve().parent / "member.py")
SESSION_TIMEOUT_S = 45
PARTITIONS = 6
FROM = 0x020C0000
"""Before 2.12 librdkafka had a preview of the protocol, with which no released Apache Kafka works."""


def scenario(function: Scenario) -> Scenario:
    """Register a scenario where the client has the protocol."""
    return register(function) if libversion()[1] >= FROM else function


def make_topic(address: str, partitions: int = PARTITIONS) -> str:
    topic = unique("consumer")
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    return topic


def fill(address: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50})
    for number in range(count):
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    expect(producer.flush(30), 0, "records left unsent")


def member(address: str, group: str, topic: str, protocol: str = "consumer", **settings: str) -> list[str]:
    """The command of a member."""
    named = {"group.protocol": protocol, **{name.replace("_", "."): value for name, value in settings.items()}}
    return [sys.executable, MEMBER, address, group, topic, *(f"{name}={value}" for name, value in named.items())]


@scenario
def h01_members_share_and_a_killed_one_is_replaced(address: str) -> None:
    topic, group = make_topic(address), unique("group")
    fill(address, topic, 600)
    with Members() as members:
        members.start("a", member(address, group, topic))
        members.wait_for(6)
        for name, loads in (("b", (3, 3)), ("c", (2, 2, 2))):
            members.start(name, member(address, group, topic))
            members.wait_for(*loads)
        members.kill("b")
        members.wait_for(3, 3, timeout_s=SESSION_TIMEOUT_S + 30)
        members.stop("a")
        members.wait_for(6)
        members.check_one_owner()
        until(lambda: sum(members.counts.values()) >= 600, "every record is read", pause_s=0.1)


@scenario
def h02_a_rolling_restart_of_static_members_moves_nothing(address: str) -> None:
    topic, group = make_topic(address), unique("static")
    with Members() as members:
        for number in range(3):
            members.start(f"m{number}", member(address, group, topic, group_instance_id=f"i{number}"))
        members.wait_for(2, 2, 2)
        before = {number: members.owned[f"m{number}"] for number in range(3)}
        since = time.time()
        for number in range(3):
            members.stop(f"m{number}")
            members.start(f"again{number}", member(address, group, topic, group_instance_id=f"i{number}"))
            members.wait_for(2, 2, 2)
            expect(members.owned[f"again{number}"], before[number], f"what i{number} has after its restart")
            others = [f"m{other}" for other in range(number + 1, 3)] + [f"again{other}" for other in range(number)]
            for other in others:
                expect(members.revocations(other, since), [], f"what {other} gave up meanwhile")
        members.check_one_owner()


@scenario
def h03_a_live_group_changes_its_protocol_and_back(address: str) -> None:
    topic, group = make_topic(address), unique("migration")
    fill(address, topic, 600)
    admin = AdminClient({"bootstrap.servers": address})
    with Members() as members:
        for name in ("old1", "old2"):
            members.start(name, member(address, group, topic, "classic"))
        members.wait_for(3, 3)
        members.start("new1", member(address, group, topic))
        members.wait_for(2, 2, 2)
        expect(kind_of(admin, group), "CONSUMER", "the kind of the group")
        members.stop("old1")
        members.wait_for(3, 3)
        members.start("old3", member(address, group, topic, "classic"))
        members.wait_for(2, 2, 2)
        members.stop("new1")
        members.wait_for(3, 3)
        expect(kind_of(admin, group), "CLASSIC", "the kind of the group when all speak the old protocol")
        members.check_one_owner()
        until(lambda: sum(members.counts.values()) >= 600, "every record is read", pause_s=0.1)


def kind_of(admin: AdminClient, group: str) -> str:
    listed = admin.list_consumer_groups(request_timeout=30).result(30).valid
    return next(each.type.name for each in listed if each.group_id == group)


@scenario
def h04_new_partitions_and_topics_are_taken_up(address: str) -> None:
    topic, group = make_topic(address, 2), unique("growing")
    with Members() as members:
        members.start("a", member(address, group, topic))
        members.start("b", member(address, group, topic))
        members.wait_for(1, 1)
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
        members.wait_for(2, 2)
        members.check_one_owner()
    with Members() as members:
        # Both topics' names begin so; the second comes while the member is there.
        members.start("c", member(address, unique("expression"), f"^{topic}.*"))
        members.wait_for(4)
        admin.create_topics([NewTopic(f"{topic}-2", 3, 1)])[f"{topic}-2"].result(30)
        members.wait_for(7)


@scenario
def h05_commits_are_taken_up_by_the_next_member(address: str) -> None:
    topic, group = make_topic(address), unique("commits")
    fill(address, topic, 60)
    settings = {
        "bootstrap.servers": address,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    first, read = Consumer(settings), []
    first.subscribe([topic])

    def has_read() -> bool:
        read.extend(message for message in first.consume(30, 0.5) if message.error() is None)
        return len(read) >= 30

    until(has_read, "half of the records")
    first.commit(asynchronous=False)
    first.close()
    second, rest = Consumer(settings), []
    second.subscribe([topic])

    def has_all() -> bool:
        rest.extend(message for message in second.consume(60, 0.5) if message.error() is None)
        return len(read) + len(rest) >= 60

    until(has_all, "the other half")
    places = [(message.partition(), message.offset()) for message in (*read, *rest)]
    expect(len(set(places)), len(places), "no record comes twice")
    admin = AdminClient({"bootstrap.servers": address})
    described = admin.describe_consumer_groups([group])[group].result(30)
    expect(described.state, ConsumerGroupState.STABLE, "the state")
    expect(sum(len(each.assignment.topic_partitions) for each in described.members), PARTITIONS, "partitions")
    second.close()
