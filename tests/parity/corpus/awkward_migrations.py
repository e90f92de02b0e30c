"""A group changes its kind at an awkward moment.

A static member comes back by the other protocol, and nobody is asked to join again: what waited for a change goes
on waiting for one, in Apache Kafka too. That is partitions that others were to give up, a member that was joining,
partitions that came since the last assignment. And members join by the consumer protocol in the middle of a rebalance.
"""

from __future__ import annotations

from tests.parity.corpus.classic_groups import heartbeat as classic_heartbeat
from tests.parity.corpus.classic_groups import join as classic_join
from tests.parity.corpus.classic_groups import sync as classic_sync
from tests.parity.corpus.consumer_groups import (
    PROTOCOL,
    assignment,
    beat,
    classic_member,
    describe,
    enter,
    prepare,
    subscription,
)
from tests.parity.player import Connection, Pending, Player
from wire.errors import ErrorCode
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.describe_groups import DescribeGroupsRequest


def static_classic_member(connection: Connection, group: str, topic: str) -> str:
    """A lone static member by the classic protocol, which has both partitions of a topic; returns its id."""
    wanted = {"metadata": subscription(topic, version=1), "group_instance_id": "i"}
    member_id: str = connection.call(classic_join(group, **wanted), 9, "joins alone, classic and static").member_id
    given = {member_id: assignment(topic, 0, 1)}
    connection.call(classic_sync(group, member_id, 1, assignments=given, group_instance_id="i"), 5, "has all")
    return member_id


def scenario_static_takeover_down_while_another_waits(player: Player) -> None:
    """S is to give up what C waits for, and comes back by the classic protocol: C is not told to join again."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 4})
    wanted = {"metadata": subscription(topic, version=1)}
    connection.call(enter(group, "S", topic, instance_id="i"), 1, "S alone")
    connection.call(classic_join(group, "c", **wanted), 9, "C joins")
    connection.call(classic_sync(group, "c", 3, **PROTOCOL), 5, "nothing is free")
    everything = [(topic_id, [0, 1, 2, 3])]
    connection.call(beat(group, "S", 2, instance_id="i", owned=everything), 1, "S is told to give up")
    connection.call(classic_heartbeat(group, "c", 3), 4, "C waits")
    restarted = connection.call(classic_join(group, **wanted, group_instance_id="i"), 9, "S comes back")
    new_id = restarted.member_id
    connection.call(classic_sync(group, new_id, 3, group_instance_id="i", **PROTOCOL), 5, "S has its part")
    connection.call(classic_heartbeat(group, new_id, 3, group_instance_id="i"), 4, "S is at rest")
    connection.call(classic_heartbeat(group, "c", 3), 4, "C waits on")
    classic = player.unwritten(lambda: connection.call(DescribeGroupsRequest(groups=[group]), 6)).groups[0]
    assert classic.group_state == "Stable", classic


def scenario_static_takeover_up_while_another_joins(player: Player) -> None:
    """C waits for the rebalance that lets it in when S comes back by the consumer protocol: C gets nothing."""
    connection, other = player.connect(), player.connect("other")
    group, topic, second = player.name("g"), player.name("t"), player.name("u")
    topic_id, _ = prepare(connection, group, topics={topic: 2, second: 2})
    static_classic_member(connection, group, topic)
    wanted = {"metadata": subscription(second, version=1)}
    given = other.call(classic_join(group, **wanted), 9, "C is given an id").member_id
    waiting = other.send(classic_join(group, given, **wanted), 9, "C is to join again")

    def state() -> str:
        return str(connection.call(DescribeGroupsRequest(groups=[group]), 6).groups[0].group_state)

    player.until(state, lambda found: found == "PreparingRebalance")
    connection.call(enter(group, "S", topic, instance_id="i"), 1, "S comes back")
    other.receive(waiting)
    describe(connection, group, "both")
    joined = other.call(classic_join(group, given, **wanted), 9, "C joins")
    other.call(classic_sync(group, given, joined.generation_id, **PROTOCOL), 5, "C has nothing")
    other.call(classic_heartbeat(group, given, joined.generation_id), 4, "C is at rest")
    connection.call(beat(group, "S", 1, instance_id="i", owned=[(topic_id, [0, 1])]), 1, "S is at rest")
    describe(connection, group, "nobody has the second topic")


def scenario_static_takeover_up_after_partitions_grow(player: Player) -> None:
    """The topic grew under the classic group; S comes back by the consumer protocol and gets what it had."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 2})
    static_classic_member(connection, group, topic)
    grown = CreatePartitionsTopic(name=topic, count=3, assignments=None)
    connection.call(CreatePartitionsRequest(topics=[grown], timeout_ms=30_000), 3, "a third partition")
    probe = player.name("probe")

    def partitions_known() -> int:
        answer = connection.call(enter(probe, "probe", topic), 1)
        connection.call(beat(probe, "probe", -1), 1)
        return len(answer.assignment.topic_partitions[0].partitions)

    player.unwritten(lambda: player.until(partitions_known, lambda known: known == 3))
    connection.call(enter(group, "S", topic, instance_id="i"), 1, "S comes back")
    connection.call(beat(group, "S", 1, instance_id="i", owned=[(topic_id, [0, 1])]), 1, "S is at rest")
    describe(connection, group, "nobody has the third partition")


def scenario_upgrade_between_join_and_sync(player: Player) -> None:
    """A rebalance that ends in another empties what was assigned: who joins by the consumer protocol then is given at
    once what a cooperative member still has. (Member ids are drawn and decide who gets what, so nothing of it is
    recorded but that.)"""
    first, second, third = player.connect("one"), player.connect("two"), player.connect("three")
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 4})
    wanted = {"metadata": subscription(topic, version=1)}

    def state() -> str:
        return str(connection.call(DescribeGroupsRequest(groups=[group]), 6).groups[0].group_state)

    def joins_and_waits(other: Connection) -> Pending:
        given = other.call(classic_join(group, **wanted), 9).member_id
        waiting = other.send(classic_join(group, given, **wanted), 9)
        player.until(state, lambda found: found == "PreparingRebalance")
        return waiting

    def play() -> int:
        leader, _ = classic_member(first, group, topic)
        waiting = joins_and_waits(second)
        owning = {"metadata": subscription(topic, version=1, owned={topic: [0, 1, 2, 3]})}
        first.call(classic_join(group, leader, **owning), 9)
        second.receive(waiting)
        waiting = joins_and_waits(third)
        entered = connection.call(enter(group, "A", topic), 1)
        assert third.receive(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        return sum(len(each.partitions) for each in entered.assignment.topic_partitions)

    assert player.unwritten(play) == 1
    connection.call(beat(group, "A", 3), 1, "A has one of four at once")
