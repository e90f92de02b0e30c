"""What a person who runs `odradek start` reads on standard error while members of groups come and go."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek import Broker
from odradek.client import Client
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GUARD_S = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(settings={"group.min.session.timeout.ms": 100}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result(GUARD_S)
        yield running


def lines_of(broker: Broker, group: str) -> list[str]:
    """The lines about a group, without the parts of member ids that chance chose."""
    found = [line for line in broker.log().splitlines() if f"group {group}: " in line]
    return [re.sub(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "", line) for line in found]


def await_lines(broker: Broker, group: str, count: int, *consumers: Consumer) -> list[str]:
    deadline = time.monotonic() + GUARD_S
    while len(found := lines_of(broker, group)) < count:
        assert time.monotonic() < deadline, found
        for each in consumers:
            each.poll(0.05)
    return found


def await_shares(partitions: int, *consumers: Consumer) -> None:
    """Until each has so many partitions."""
    deadline = time.monotonic() + GUARD_S
    while any(len(each.assignment()) != partitions for each in consumers):
        assert time.monotonic() < deadline
        for each in consumers:
            each.poll(0.05)


def consumer(broker: Broker, group: str, name: str, protocol: str) -> Consumer:
    settings = {"heartbeat.interval.ms": 200} if protocol == "classic" else {}
    made = Consumer({
        "bootstrap.servers": broker.bootstrap_servers, "group.id": group, "client.id": name, "group.protocol": protocol,
        **settings,
    })  # fmt: skip
    made.subscribe(["orders"])
    return made


def test_a_line_for_each_member_that_joins_and_leaves(broker: Broker) -> None:
    group = "come-and-go"
    first = consumer(broker, group, "first", "classic")
    await_lines(broker, group, 1, first)
    second = consumer(broker, group, "second", "classic")
    await_lines(broker, group, 2, first, second)
    await_shares(1, first, second)
    second.close()
    await_shares(2, first)
    first.close()
    said = await_lines(broker, group, 4)
    assert said == [
        f"INFO: group {group}: a rebalance of the empty group begins: member first joined",
        f"INFO: group {group}: a rebalance of generation 1 begins: member second joined",
        f"INFO: group {group}: a rebalance of generation 2 begins: member second left",
        f"INFO: group {group}: a rebalance of generation 3 begins: member first left",
    ]


def test_a_line_for_a_member_that_is_not_heard_of(broker: Broker) -> None:
    group = "silent"
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    with Client(broker.bootstrap_servers, GUARD_S * 1000) as client:
        coordinator = client.coordinator(group)
        request = JoinGroupRequest(
            group_id=group, session_timeout_ms=200, rebalance_timeout_ms=200, protocol_type="x", protocols=protocols
        )
        joined = coordinator.request(request, most=3)
        mine = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"a")]
        coordinator.request(
            SyncGroupRequest(group_id=group, generation_id=1, member_id=joined.member_id, assignments=mine), most=2
        )
        said = await_lines(broker, group, 2)
    assert said[1] == (
        f"INFO: group {group}: a rebalance of generation 1 begins: member odradek-cli was removed: "
        "session timeout after 200 ms without a heartbeat"
    )


def test_a_consumer_group_is_told_alike(broker: Broker) -> None:
    group = "new-protocol"
    member = consumer(broker, group, "first", "consumer")
    await_shares(2, member)
    member.close()
    joined, left = await_lines(broker, group, 2)
    assert re.fullmatch(
        rf"INFO: group {group}: a rebalance to epoch \d begins: member \S+ \(client first\) joined", joined
    )
    assert re.fullmatch(rf"INFO: group {group}: a rebalance to epoch \d begins: member \S+ \(client first\) left", left)
