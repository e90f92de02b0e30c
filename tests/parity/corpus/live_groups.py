"""Sequences of group requests that random play against Apache Kafka found to be answered differently."""

from __future__ import annotations

from tests.parity.corpus.classic_groups import SUBSCRIPTION, find, heartbeat, join
from tests.parity.corpus.committed_offsets import commit, fetch
from tests.parity.corpus.consumer_groups import beat, describe, enter, prepare, subscription
from tests.parity.corpus.produce_and_fetch import create
from tests.parity.player import Player
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.join_group import JoinGroupRequestProtocol
from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic


def scenario_topics_without_partitions_and_twice(player: Player) -> None:
    """OffsetCommit and OffsetDelete name unknown topics that have no partitions, and topics named twice."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    find(connection, group)
    create(connection, topic)

    def twice(*names: str) -> list[OffsetDeleteRequestTopic]:
        partitions = [OffsetDeleteRequestPartition(partition_index=0)]
        return [OffsetDeleteRequestTopic(name=name, partitions=list(partitions)) for name in names]

    unknown = player.name("no")
    connection.call(commit(group, unknown), 9, "commit: an unknown topic, no partitions")
    connection.call(commit(group, topic), 9, "commit: a topic, no partitions")
    both = commit(group, topic, (0, 1, ""))
    both.topics.append(commit(group, topic, (0, 2, "")).topics[0])
    connection.call(both, 9, "commit: a topic twice")
    both.topics.append(commit(group, unknown).topics[0])
    connection.call(both, 9, "commit: a topic twice, after an unknown one")
    connection.call(commit(group, topic, (0, 1, "")), 9, "commit")
    member = {"member_id": "m", "generation_id_or_member_epoch": 3}
    refused = commit(group, topic, (0, 1, ""), **member)
    refused.topics.append(commit(group, topic, (0, 2, "")).topics[0])
    connection.call(refused, 9, "commit refused: a topic twice")
    gone = OffsetDeleteRequestTopic(name=unknown)
    connection.call(OffsetDeleteRequest(group_id=group, topics=[gone]), 0, "delete: an unknown topic, no partitions")
    gone = OffsetDeleteRequestTopic(name=topic)
    connection.call(OffsetDeleteRequest(group_id=group, topics=[gone]), 0, "delete: a topic, no partitions")
    connection.call(OffsetDeleteRequest(group_id=group, topics=twice(topic, topic)), 0, "delete: a topic twice")
    topics = twice(topic, topic, unknown)
    connection.call(OffsetDeleteRequest(group_id=group, topics=topics), 0, "delete: a topic twice, an unknown one")
    connection.call(fetch(group), 9, "what is left")


def scenario_protocol_without_a_name(player: Player) -> None:
    """A classic group agrees on the protocol whose name is empty."""
    connection, group = player.connect(), player.name("g")
    find(connection, group)
    protocols = [JoinGroupRequestProtocol(name=name, metadata=SUBSCRIPTION) for name in ("", "range")]
    for version in (6, 7, 9):
        request = join(player.name(f"g{version}"), group_instance_id="i")
        request.protocols = protocols
        connection.call(request, version, f"join v{version}")
    connection.call(DescribeGroupsRequest(groups=[player.name("g9")]), 6, "describe")


def scenario_instance_named_later(player: Player) -> None:
    """A member of a consumer group joins again, now with an instance id."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 3})
    connection.call(enter(group, "m1", topic), 1, "first")
    connection.call(enter(group, "m2", topic), 1, "second")
    connection.call(enter(group, "m1", topic, instance_id="i1"), 1, "first, with an instance")
    describe(connection, group, "describe")
    connection.call(beat(group, "m1", 3), 1, "first beats")
    connection.call(enter(group, "m1", topic, instance_id="i1"), 1, "first joins again")
    connection.call(beat(group, "m2", 3), 1, "second beats")
    connection.call(beat(group, "m1", -1), 1, "first leaves")
    connection.call(beat(group, "m2", 3), 1, "second beats again")


def scenario_upgrade_that_fails(player: Player) -> None:
    """A consumer cannot take a classic group along: its members' protocol is not readable. Who waits is sent away."""
    first, second, admin = player.connect("one"), player.connect("two"), player.connect()
    group, topic = player.name("g"), player.name("t")
    prepare(admin, group, topics={topic: 1})
    garbage = b"\xff\xff\xff\xff\xff\xff"
    one = first.call(join(group, metadata=garbage), 5, "given an id").member_id
    generation = first.call(join(group, one, metadata=garbage), 5, "first joins").generation_id
    two = second.call(join(group, metadata=garbage), 5, "given an id").member_id
    waiting = second.send(join(group, two, metadata=garbage), 5, "second joins")
    player.until(
        lambda: admin.call(DescribeGroupsRequest(groups=[group]), 6, "describe"),
        lambda answer: answer.groups[0].group_state == "PreparingRebalance",
    )
    admin.call(enter(group, "m", topic), 1, "a consumer comes")
    second.receive(waiting)
    admin.call(DescribeGroupsRequest(groups=[group]), 6, "describe")
    admin.call(heartbeat(group, one, generation), 4, "first is to join again")
    waiting = first.send(join(group, one, metadata=garbage), 5, "first joins again")
    second.call(join(group, two, metadata=garbage), 5, "second joins again")
    first.receive(waiting)
    admin.call(DescribeGroupsRequest(groups=[group]), 6, "describe")


def scenario_tied_votes(player: Player) -> None:
    """Two members prefer different protocols: which one wins does not depend on who came first."""
    first, second = player.connect(), player.connect()
    orders = [("range", "sticky"), ("roundrobin", "range"), ("sticky", "cooperative-sticky"), ("", "range")]
    for index, names in enumerate(orders):
        for order in (names, names[::-1]):
            group = player.name(f"g{index}{order[0]}")
            find(first, group)
            request = join(group, group_instance_id="i1", protocols=order)
            one = first.call(request, 6, "first joins").member_id
            waiting = second.send(join(group, group_instance_id="i2", protocols=order[::-1]), 6, "second joins")
            beat_one = heartbeat(group, one, 1, group_instance_id="i1")
            player.until(
                lambda beat_one=beat_one: first.call(beat_one, 4, "beat"), lambda answer: answer.error_code == 27
            )
            first.call(join(group, one, group_instance_id="i1", protocols=order), 6, "first joins again")
            second.receive(waiting)


def scenario_static_member_takes_the_group_down(player: Player) -> None:
    """The only member of a consumer group comes back by the classic protocol with other topics, then a consumer."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 3})
    connection.call(enter(group, "m1", topic, instance_id="i1"), 1, "consumer")
    other = join(group, group_instance_id="i1", metadata=subscription(topic, player.name("other")))
    connection.call(other, 6, "comes back by the classic protocol")
    connection.call(DescribeGroupsRequest(groups=[group]), 6, "describe")
    connection.call(enter(group, "m2", topic), 1, "another consumer")
    connection.call(beat(group, "m2", 3), 1, "beats")


def scenario_unknown_static_member_with_garbage(player: Player) -> None:
    """A classic member of a consumer group: who it is counts before whether its subscription can be read."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 1})
    connection.call(enter(group, "m1", topic, instance_id="i1"), 1, "consumer")
    garbage = {"metadata": b"\x00\x01garbage"}
    for instance in ("i1", "i2"):
        for member in ("m1", "m2", ""):
            request = join(group, member, group_instance_id=instance, **garbage)
            connection.call(request, 9, f"instance {instance}, member {member!r}")
    for member in ("m1", "m2"):
        connection.call(join(group, member, **garbage), 9, f"member {member!r}")
