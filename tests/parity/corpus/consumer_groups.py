"""Consumer groups (KIP-848): heartbeats and their refusals, revocation, static members, expressions, migration.

Member ids are the client's own from v1 on, so they are fixed here. The interval between two computations of a
target is set to 0 for each group: what a heartbeat answers then does not depend on when it comes.
"""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.classic_groups import find
from tests.parity.corpus.classic_groups import heartbeat as classic_heartbeat
from tests.parity.corpus.classic_groups import join as classic_join
from tests.parity.corpus.classic_groups import sync as classic_sync
from tests.parity.corpus.committed_offsets import commit, fetch
from tests.parity.corpus.produce_and_fetch import create
from tests.parity.player import Connection, Player
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic

GROUP_RESOURCE = 32
HEARTBEAT_INTERVAL_MS = 6_000
PROTOCOL = {"protocol_type": "consumer", "protocol_name": "range"}


def beat(group: str, member: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat; ``owned`` lists (topic id, partitions)."""
    owned = fields.pop("owned", None)
    if owned is not None:
        fields["topic_partitions"] = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in owned
        ]
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)


def enter(group: str, member: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """A first heartbeat: everything that has to be there."""
    values = {"subscribed_topic_names": list(topics), "rebalance_timeout_ms": 30_000, "owned": [], **fields}
    return beat(group, member, 0, **values)


def describe(connection: Connection, group: str, label: str) -> Any:
    """ConsumerGroupDescribe."""
    return connection.call(ConsumerGroupDescribeRequest(group_ids=[group]), 1, label)


def listed(connection: Connection, group: str, label: str, **filters: Any) -> None:
    """ListGroups; what is written down of the answer is this group's line."""
    answer = connection.call(ListGroupsRequest(**filters), 5, label)
    own = [each for each in answer.groups if each.group_id == group]
    shown = [[each.group_type, each.group_state, each.protocol_type] for each in own]
    connection.player.transcript.entries[-1]["response"] = {"error_code": answer.error_code, "own": shown}


def subscription(*topics: str, version: int = 0, owned: dict[str, list[int]] | None = None) -> bytes:
    """The consumer protocol's subscription, by hand."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    data = version.to_bytes(2, "big") + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"
    if version >= 1:
        data += len(owned or {}).to_bytes(4, "big")
        for topic, partitions in (owned or {}).items():
            data += len(topic).to_bytes(2, "big") + topic.encode() + len(partitions).to_bytes(4, "big")
            data += b"".join(partition.to_bytes(4, "big") for partition in partitions)
    return data


def assignment(topic: str, *partitions: int) -> bytes:
    """The consumer protocol's assignment, by hand."""
    data = b"\x00\x00\x00\x00\x00\x01" + len(topic).to_bytes(2, "big") + topic.encode()
    data += len(partitions).to_bytes(4, "big") + b"".join(partition.to_bytes(4, "big") for partition in partitions)
    return data + b"\xff\xff\xff\xff"


def prepare(connection: Connection, *groups: str, topics: dict[str, int]) -> list[bytes]:
    """Make topics, set the groups' intervals, and wait until the coordinator knows of both."""
    player = connection.player
    find(connection, groups[0])
    topic_ids = [create(connection, topic, partitions) for topic, partitions in topics.items()]
    probe = player.name("probe")
    values = {"consumer.assignment.interval.ms": 0, "consumer.heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS}
    configs = [AlterableConfig(name=name, value=str(value)) for name, value in values.items()]
    resources = [
        AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=configs)
        for group in (*groups, probe)
    ]

    def is_known(answer: Any) -> bool:
        known = answer.heartbeat_interval_ms == HEARTBEAT_INTERVAL_MS and answer.assignment is not None
        return known and len(answer.assignment.topic_partitions) == len(topics)

    def wait() -> None:
        connection.call(IncrementalAlterConfigsRequest(resources=resources), 1)
        player.until(lambda: connection.call(enter(probe, "probe", *topics), 1), is_known)
        connection.call(beat(probe, "probe", -1), 1)

    player.unwritten(wait)
    return topic_ids


def scenario_consumer_group_refusals(player: Player) -> None:
    """Each refusal of a heartbeat that needs no group."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 1})

    def refused(label: str, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> None:
        connection.call(request, version, label)

    refused("no member id", enter(group, "", topic))
    refused("blank member id", enter(group, "  ", topic))
    refused("no member id v0, epoch 1", beat(group, "", 1), 0)
    refused("no member id v0, epoch -1", beat(group, "", -1), 0)
    refused("no group id", enter("", "m", topic))
    refused("empty instance id", enter(group, "m", topic, instance_id=""))
    refused("empty rack id", enter(group, "m", topic, rack_id=""))
    refused("no rebalance timeout", enter(group, "m", topic, rebalance_timeout_ms=-1))
    refused("owned partitions are null", enter(group, "m", topic, owned=None))
    refused("owned partitions when joining", enter(group, "m", topic, owned=[(b"\1" * 16, [0])]))
    refused("no subscription", enter(group, "m", subscribed_topic_names=None))
    refused("leave for a while without an instance", beat(group, "m", -2))
    refused("epoch -3", beat(group, "m", -3))
    refused("unknown assignor", enter(group, "m", topic, server_assignor="sticky"))
    refused("unknown assignor before the group", beat(group, "m", 7, server_assignor=""))
    refused("epoch 1 of no group", beat(group, "m", 1))
    refused("leave no group", beat(group, "m", -1))
    refused("leave no group for a while", beat(group, "m", -2, instance_id="i"))
    refused("bad expression", enter(group, "m", subscribed_topic_names=None, subscribed_topic_regex="[a"))
    refused("expression with a look-ahead", enter(group, "m", subscribed_topic_regex="(?=a)"))
    describe(connection, group, "nothing came of it")


def scenario_consumer_group_one_member(player: Player) -> None:
    """A member joins, stays, repeats itself, changes its wishes, leaves; both versions."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 3})
    connection.call(enter(group, "A", topic), 1, "join")
    describe(connection, group, "described")
    connection.call(beat(group, "A", 2), 1, "stay")
    connection.call(beat(group, "A", 2, owned=[(topic_id, [0, 1, 2])]), 1, "stay and own")
    everything = {"subscribed_topic_names": [topic], "rebalance_timeout_ms": 30_000, "owned": [(topic_id, [0])]}
    connection.call(beat(group, "A", 2, **everything), 1, "full request")
    connection.call(beat(group, "A", 2, subscribed_topic_names=[topic], rebalance_timeout_ms=30_000), 1, "nearly full")
    connection.call(enter(group, "A", topic), 1, "join again")
    connection.call(beat(group, "A", 2, rebalance_timeout_ms=31_000), 1, "another timeout")
    connection.call(beat(group, "A", 2, rack_id="r"), 1, "a rack")
    connection.call(beat(group, "A", 2, server_assignor="uniform"), 1, "the assignor it has")
    connection.call(beat(group, "A", 2, server_assignor="range"), 1, "another assignor")
    describe(connection, group, "described again")
    connection.call(beat(group, "A", 3, subscribed_topic_names=[]), 1, "no topics")
    describe(connection, group, "without topics")
    connection.call(beat(group, "A", 3, owned=[]), 1, "owns nothing")
    connection.call(beat(group, "A", 4, subscribed_topic_names=[player.name("nosuch")]), 1, "no such topic")
    connection.call(beat(group, "A", 5, subscribed_topic_names=[topic]), 1, "topic again")
    connection.call(beat(group, "A", -1), 1, "leave")
    connection.call(beat(group, "A", -1), 1, "leave again")
    connection.call(beat(group, "A", 6), 1, "stay after leaving")
    describe(connection, group, "empty")
    connection.call(enter(group, "B", topic), 0, "join v0")
    connection.call(beat(group, "B", 8), 0, "stay v0")
    connection.call(ConsumerGroupDescribeRequest(group_ids=[group]), 0, "described v0")
    connection.call(beat(group, "B", -1), 0, "leave v0")


def scenario_consumer_group_epochs(player: Player) -> None:
    """Epochs too high, too low, the one before with and without what is owned."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 2})
    connection.call(enter(group, "A", topic), 1, "join")
    connection.call(beat(group, "nobody", 2), 1, "unknown member")
    connection.call(beat(group, "A", 3), 1, "too high")
    connection.call(beat(group, "A", 1), 1, "too low")
    connection.call(beat(group, "A", 1, owned=[]), 1, "too low, owns nothing")
    connection.call(beat(group, "A", 2, server_assignor="range"), 1, "the epoch rises")
    connection.call(beat(group, "A", 2), 1, "the one before, says nothing")
    connection.call(beat(group, "A", 2, owned=[(topic_id, [0])]), 1, "the one before, owns a part")
    connection.call(beat(group, "A", 2, owned=[(topic_id, [0, 7])]), 1, "the one before, owns more")
    connection.call(beat(group, "A", 2, owned=[(b"\7" * 16, [])]), 1, "the one before, owns another topic")
    connection.call(beat(group, "A", 3), 1, "right")
    connection.call(beat(group, "A", 3, instance_id="i"), 1, "an instance id comes")
    connection.call(enter(group, "B", topic, instance_id="j"), 1, "static")
    connection.call(beat(group, "B", 4, instance_id="k"), 1, "unknown instance")
    connection.call(beat(group, "A", 3, instance_id="j"), 1, "another's instance")
    connection.call(beat(group, "B", 99, instance_id="j"), 1, "instance, too high")
    describe(connection, group, "described")


def scenario_consumer_group_revocation(player: Player) -> None:
    """Two members: one gives up before the other gets; then one leaves."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 4})
    connection.call(enter(group, "A", topic), 1, "A joins")
    connection.call(enter(group, "B", topic), 1, "B joins")
    describe(connection, group, "B waits")
    connection.call(beat(group, "B", 3), 1, "B stays")
    connection.call(beat(group, "A", 2), 1, "A is told to give up")
    describe(connection, group, "A is giving up")
    connection.call(beat(group, "A", 2), 1, "A says nothing")
    connection.call(beat(group, "A", 2, owned=[(topic_id, [0, 1, 2])]), 1, "A has given up one of two")
    connection.call(beat(group, "A", 2, owned=[(topic_id, [0, 1])]), 1, "A has given up")
    describe(connection, group, "B may have them")
    connection.call(beat(group, "B", 3), 1, "B gets them")
    connection.call(beat(group, "B", 3), 1, "B stays")
    describe(connection, group, "stable")
    connection.call(enter(group, "C", topic), 1, "C joins")
    connection.call(beat(group, "C", -1), 1, "C leaves at once")
    connection.call(beat(group, "B", 3, owned=[(topic_id, [2, 3])]), 1, "B after C")
    connection.call(beat(group, "A", 3, owned=[(topic_id, [0, 1])]), 1, "A after C")
    connection.call(beat(group, "B", -1), 1, "B leaves")
    connection.call(beat(group, "A", 5), 1, "A gets all")
    describe(connection, group, "A alone")


def scenario_consumer_group_partitions_grow(player: Player) -> None:
    """A topic gets more partitions: the group's epoch rises at the next heartbeat."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 1})
    connection.call(enter(group, "A", topic), 1, "join")
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=3, assignments=None)], timeout_ms=10_000
    )
    connection.call(grow, 3, "more partitions")
    full = {"subscribed_topic_names": [topic], "rebalance_timeout_ms": 30_000, "owned": []}

    def has_grown(answer: Any) -> bool:
        return bool(answer.assignment.topic_partitions[0].partitions == [0, 1, 2])

    player.until(lambda: connection.call(enter(group, "A", topic, **full), 1, "the new ones come"), has_grown)
    describe(connection, group, "described")


def scenario_consumer_group_unsubscribing(player: Player) -> None:
    """Partitions of a topic that is no longer wanted go in the same heartbeat."""
    connection, group = player.connect(), player.name("g")
    one, two = player.name("t1"), player.name("t2")
    first, second = prepare(connection, group, topics={one: 1, two: 1})
    connection.call(enter(group, "A", one), 1, "one topic")
    connection.call(beat(group, "A", 2, subscribed_topic_names=[two]), 1, "the other")
    describe(connection, group, "the first is to be given up")
    connection.call(beat(group, "A", 2, owned=[(first, [0])]), 1, "not given up")
    connection.call(beat(group, "A", 2, subscribed_topic_names=[one]), 1, "back again, before it is")
    describe(connection, group, "back")
    connection.call(beat(group, "A", 2, owned=[]), 1, "given up")
    connection.call(beat(group, "A", 4, subscribed_topic_names=[two], owned=[]), 1, "the other, owning nothing")
    describe(connection, group, "the other")
    connection.call(enter(group, "B", one), 1, "B wants the first")
    connection.call(beat(group, "B", 6, subscribed_topic_names=[two]), 1, "B wants what A has")
    describe(connection, group, "B waits")
    connection.call(beat(group, "A", 5, subscribed_topic_names=[]), 1, "A wants nothing")
    connection.call(beat(group, "B", 6, owned=[]), 1, "B still waits")
    connection.call(beat(group, "A", 5, owned=[]), 1, "A has given up")
    connection.call(beat(group, "B", 6, owned=[]), 1, "B gets it")
    describe(connection, group, "at the end")


def scenario_consumer_group_static_members(player: Player) -> None:
    """Instance ids: in use, left for a while, taken over, left for good, by an administrator."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 4})
    connection.call(enter(group, "A", topic, instance_id="i"), 1, "A joins")
    connection.call(enter(group, "B", topic, instance_id="i"), 1, "the instance is in use")
    connection.call(beat(group, "B", -2, instance_id="i"), 1, "another leaves for A")
    connection.call(beat(group, "A", -2, instance_id="j"), 1, "unknown instance leaves")
    connection.call(beat(group, "A", -2, instance_id="i"), 1, "A leaves for a while")
    describe(connection, group, "A is away")
    connection.call(beat(group, "A", 2, instance_id="i"), 1, "A stays after all")
    connection.call(enter(group, "X", topic), 1, "X joins meanwhile")
    connection.call(enter(group, "B", topic, instance_id="i"), 1, "B takes over")
    describe(connection, group, "B has what A had")
    connection.call(beat(group, "A", 2, instance_id="i"), 1, "A is fenced")
    connection.call(beat(group, "A", 2), 1, "A without its instance")
    connection.call(beat(group, "B", 2, owned=[(topic_id, [0, 1])], instance_id="i"), 1, "B has given up")
    connection.call(beat(group, "B", 3, owned=[(topic_id, [0, 1])], instance_id="i"), 1, "B stays")
    connection.call(beat(group, "X", 3), 1, "X gets the rest")
    connection.call(enter(group, "B", topic, instance_id="i"), 1, "B joins again without leaving")
    connection.call(beat(group, "B", -2, instance_id="i"), 1, "B leaves for a while")
    connection.call(enter(group, "B", topic, instance_id="i"), 1, "B comes back under its own id")
    connection.call(beat(group, "B", -2, instance_id="i"), 1, "B leaves for a while again")
    connection.call(enter(group, "C", player.name("other"), instance_id="i"), 1, "C takes over, other topics")
    describe(connection, group, "C gives up")
    connection.call(beat(group, "C", -1, instance_id="i"), 1, "C leaves for good")
    connection.call(beat(group, "C", -1, instance_id="i"), 1, "C leaves again")
    connection.call(enter(group, "D", topic, instance_id="i"), 1, "D is new")
    gone = [MemberIdentity(member_id="", group_instance_id=name) for name in ("i", "k")]
    connection.call(LeaveGroupRequest(group_id=group, members=gone), 5, "an administrator removes them")
    gone = [MemberIdentity(member_id="X"), MemberIdentity(member_id="nobody")]
    connection.call(LeaveGroupRequest(group_id=group, members=gone), 5, "and the rest")
    describe(connection, group, "empty")


def scenario_consumer_group_expressions(player: Player) -> None:
    """A regular expression is resolved after the heartbeat that brings it, and noticed by later ones."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t1")
    prepare(connection, group, topics={topic: 2})
    regex = player.name("t") + "[0-9]"

    def assigned(member: str, epoch: int, label: str) -> Any:
        full = {"subscribed_topic_names": [], "rebalance_timeout_ms": 30_000, "owned": []}
        request = beat(group, member, epoch, **full)
        return player.until(
            lambda: connection.call(request, 1, label), lambda answer: answer.error_code or answer.member_epoch > epoch
        )

    connection.call(enter(group, "A", subscribed_topic_regex=regex), 1, "join")
    assigned("A", 1, "the topics come")
    describe(connection, group, "described")
    connection.call(beat(group, "A", 2, subscribed_topic_regex="*"), 1, "no expression")
    connection.call(enter(group, "B", subscribed_topic_regex=regex), 1, "the same expression again")
    describe(connection, group, "two members")
    connection.call(beat(group, "B", -1), 1, "one leaves")
    connection.call(beat(group, "A", 2, subscribed_topic_regex=""), 1, "names instead of it")
    describe(connection, group, "without expression")
    connection.call(beat(group, "A", -1), 1, "the other leaves")
    describe(connection, group, "empty")


def scenario_consumer_group_expressions_and_names(player: Player) -> None:
    """Whole names are matched, all topics are looked at, names are wanted as well."""
    connection, topic = player.connect(), player.name("t1")
    groups = [player.name(f"g{index}") for index in range(4)]
    prepare(connection, *groups, topics={topic: 1, player.name("u"): 1})
    expressions = [player.name("t"), ".*" + player.name("t") + ".", "__consumer_off.*", "(?i)" + player.name("T1")]
    for index, (group, regex) in enumerate(zip(groups, expressions, strict=True)):
        connection.call(enter(group, "A", player.name("u"), subscribed_topic_regex=regex), 1, f"join {index}")

        def is_resolved(answer: Any) -> bool:
            return bool(answer.groups[0].group_epoch > 2)

        if regex != expressions[0]:
            ask = ConsumerGroupDescribeRequest(group_ids=[group])
            player.unwritten(lambda ask=ask, done=is_resolved: player.until(lambda: connection.call(ask, 1), done))
        answer = connection.call(beat(group, "A", 2), 1, "stay")
        count = sum(len(each.partitions) for each in answer.assignment.topic_partitions) if answer.assignment else 0
        player.transcript.entries[-1]["response"].pop("assignment", None)
        player.transcript.entries[-1]["assigned"] = count


def scenario_consumer_group_assignors(player: Player) -> None:
    """What most members prefer is taken; ranges are contiguous."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 5})
    connection.call(enter(group, "A", topic, server_assignor="range"), 1, "A, range")
    connection.call(enter(group, "B", topic, server_assignor="uniform"), 1, "B, uniform")
    connection.call(enter(group, "C", topic, server_assignor="range"), 1, "C, range")
    describe(connection, group, "range is preferred")
    connection.call(beat(group, "C", 4, server_assignor="uniform"), 1, "C, uniform")
    connection.call(enter(group, "S", topic, instance_id="z", server_assignor="range"), 1, "a static one")
    connection.call(beat(group, "B", 4, server_assignor="range"), 1, "B, range")
    describe(connection, group, "range again, static first")


def scenario_consumer_group_commits(player: Player) -> None:
    """Commits and fetches by members: versions, stale and newer epochs, strangers, administrators."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 2})
    connection.call(commit(group, topic, (0, 1, "")), 9, "before the group")
    connection.call(enter(group, "A", topic), 1, "join")

    def by(member: str, epoch: int, version: int, label: str, *offsets: tuple[int, int, str | None]) -> None:
        fields = {"member_id": member, "generation_id_or_member_epoch": epoch}
        connection.call(commit(group, topic, *(offsets or ((0, 5, ""),)), **fields), version, label)

    by("A", 2, 9, "member")
    by("A", 2, 8, "member v8")
    by("A", 3, 9, "newer epoch")
    by("A", 1, 9, "older epoch than the assignment")
    by("nobody", 2, 9, "unknown member")
    connection.call(commit(group, topic, (0, 1, "")), 9, "anonymous beside members")
    by("A", 2, 9, "long metadata", (0, 6, "x" * 4097), (1, 7, ""))
    connection.call(beat(group, "A", 2, server_assignor="range"), 1, "the epoch rises")
    by("A", 2, 9, "older epoch, as old as the assignment")
    by("A", 1, 9, "older than that")
    by("A", 2, 9, "one of two is not assigned", (0, 8, ""), (1, 8, ""))
    request = commit(group, topic, (0, 9, ""), member_id="A", generation_id_or_member_epoch=3)
    request.topics[0].name, request.topics[0].topic_id = "", topic_id
    connection.call(request, 10, "by topic id")
    for member, epoch in (("A", 3), ("A", 2), ("A", 4), ("nobody", 3), (None, -1), ("A", -1)):
        asked = fetch(group, (topic, [0]))
        asked.groups[0].member_id, asked.groups[0].member_epoch = member, epoch
        connection.call(asked, 9, f"fetch by {member} at {epoch}")
    connection.call(enter(group, "B", topic), 1, "B joins")
    connection.call(beat(group, "A", 3), 1, "A is to give one up")
    by("A", 3, 9, "A commits what it gives up", (0, 10, ""), (1, 11, ""))
    connection.call(beat(group, "A", 3, owned=[(topic_id, [0])]), 1, "A has given up")
    by("A", 3, 9, "A commits too late", (1, 12, ""))
    by("A", 3, 9, "A commits what it kept", (0, 12, ""))
    connection.call(fetch(group, (topic, [0, 1])), 9, "what is stored")


def scenario_consumer_group_administration(player: Player) -> None:
    """List, describe, delete: of both kinds, of groups with and without members."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 1})

    connection.call(enter(group, "A", topic), 1, "join")
    listed(connection, group, "all")
    listed(connection, group, "consumer, stable", types_filter=["CONSUMER"], states_filter=["sTable"])
    listed(connection, group, "classic", types_filter=["classic"])
    listed(connection, group, "empty", states_filter=["Empty"])
    connection.call(enter(group, "B", topic), 1, "B joins")
    connection.call(enter(group, "A", topic), 1, "A gives nothing up")
    listed(connection, group, "reconciling?")
    connection.call(DescribeGroupsRequest(groups=[group]), 6, "classic describe")
    connection.call(DescribeGroupsRequest(groups=[group]), 5, "classic describe v5")
    asked = ConsumerGroupDescribeRequest(
        group_ids=[group, player.name("nosuch"), ""], include_authorized_operations=True
    )
    connection.call(asked, 1, "describe three, one without a name")
    fields = {"member_id": "A", "generation_id_or_member_epoch": 3}
    connection.call(commit(group, topic, (0, 1, ""), **fields), 9, "commit")

    def delete_offset(name: str, label: str) -> None:
        topics = [OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
        connection.call(OffsetDeleteRequest(group_id=group, topics=topics), 0, label)

    delete_offset(topic, "delete an offset in use")
    connection.call(DeleteGroupsRequest(groups_names=[group]), 2, "delete with members")
    connection.call(beat(group, "A", -1), 1, "A leaves")
    connection.call(beat(group, "B", -1), 1, "B leaves")
    listed(connection, group, "empty now")
    delete_offset(topic, "delete an offset")
    connection.call(commit(group, topic, (0, 2, "")), 9, "an administrator commits")
    connection.call(DeleteGroupsRequest(groups_names=[group]), 2, "delete")
    describe(connection, group, "gone")
    listed(connection, group, "gone")
    connection.call(fetch(group, (topic, [0])), 9, "offsets are gone")


def scenario_consumer_group_empty_conversions(player: Player) -> None:
    """Groups without members become of the other kind; offsets stay."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 1})
    connection.call(commit(group, topic, (0, 7, "")), 9, "offsets alone")
    connection.call(enter(group, "A", topic), 1, "a member by the consumer protocol")
    connection.call(fetch(group, (topic, [0])), 9, "offsets are there")
    connection.call(beat(group, "A", -1), 1, "it leaves")
    connection.call(classic_join(group, "nobody"), 9, "an unknown id by the classic protocol")
    describe(connection, group, "still a consumer group")
    given = connection.call(classic_join(group), 9, "an id is given out").member_id
    describe(connection, group, "a consumer group no more")
    joined = connection.call(classic_join(group, given), 9, "joined")
    mine = {given: b"x"}
    connection.call(classic_sync(group, given, joined.generation_id, assignments=mine), 5, "assigned")
    connection.call(DescribeGroupsRequest(groups=[group]), 6, "a classic group")
    listed(connection, group, "listed as such")
    connection.call(beat(group, "A", 1), 1, "heartbeat to a classic group")
    connection.call(beat(group, "A", -1), 1, "leave a classic group")
    leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=given)])
    connection.call(leave, 5, "it leaves")
    connection.call(enter(group, "B", topic), 1, "a consumer group again")
    describe(connection, group, "described")


def classic_member(connection: Connection, group: str, topic: str, **fields: Any) -> tuple[str, int]:
    """A lone member by the classic protocol that has all partitions; returns its id and generation."""
    values = {"metadata": subscription(topic), **fields}
    given = connection.call(classic_join(group, **values), 9, "first join").member_id
    joined = connection.call(classic_join(group, given, **values), 9, "join with id")
    mine = {given: assignment(topic, 0, 1, 2, 3)}
    connection.call(classic_sync(group, given, joined.generation_id, assignments=mine), 5, "sync")
    return given, joined.generation_id


def scenario_consumer_group_upgrade_and_downgrade(player: Player) -> None:
    """A classic group with a member gets one by the consumer protocol, and loses it again."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 4})
    old, generation = classic_member(connection, group, topic)
    connection.call(enter(group, "A", topic), 1, "A joins by the consumer protocol")
    described = describe(connection, group, "both")
    assert len(described.groups[0].members) == 2
    connection.call(classic_heartbeat(group, old, generation), 4, "the old one is told to rejoin")
    connection.call(classic_sync(group, old, generation), 5, "or at a sync")
    connection.call(classic_heartbeat(group, "A", 3), 4, "A by the classic heartbeat")
    connection.call(classic_heartbeat(group, old, generation + 5), 4, "wrong generation")
    owning = {"metadata": subscription(topic, version=1, owned={topic: [0, 1, 2, 3]})}
    joined = connection.call(classic_join(group, old, **owning), 9, "rejoin, owning all")
    connection.call(classic_sync(group, old, joined.generation_id, **PROTOCOL), 5, "its assignment shrinks")
    connection.call(classic_heartbeat(group, old, joined.generation_id), 4, "and is to be given up")
    giving = {"metadata": subscription(topic, version=1, owned={topic: [0, 1]})}
    joined = connection.call(classic_join(group, old, **giving), 9, "rejoin, owning half")
    connection.call(classic_sync(group, old, joined.generation_id, **PROTOCOL), 5, "the same half")
    connection.call(classic_heartbeat(group, old, joined.generation_id), 4, "at rest")
    connection.call(beat(group, "A", joined.generation_id), 1, "A gets the other half")
    describe(connection, group, "stable")
    connection.call(classic_sync(group, old, joined.generation_id, protocol_name="sticky"), 5, "other protocol")
    connection.call(classic_sync(group, old, joined.generation_id, protocol_type="connect"), 5, "other type")
    fields = {"member_id": old, "generation_id_or_member_epoch": joined.generation_id}
    connection.call(commit(group, topic, (0, 1, ""), **fields), 8, "the old one commits")
    fields["generation_id_or_member_epoch"] += 1
    connection.call(commit(group, topic, (0, 1, ""), **fields), 8, "at a wrong generation")
    connection.call(beat(group, "A", -1), 1, "A leaves")
    describe(connection, group, "no consumer group any more")
    connection.call(DescribeGroupsRequest(groups=[group]), 6, "but a classic one, rebalancing")
    connection.call(classic_heartbeat(group, old, joined.generation_id), 4, "told to rejoin, old generation")
    joined = connection.call(classic_join(group, old, **giving), 9, "rejoin")
    mine = {old: assignment(topic, 0, 1, 2, 3)}
    connection.call(classic_sync(group, old, joined.generation_id, assignments=mine), 5, "assigned")
    connection.call(DescribeGroupsRequest(groups=[group]), 6, "a classic one, stable")


def scenario_consumer_group_upgrade_refusals(player: Player) -> None:
    """What keeps a classic group from becoming a consumer group."""
    connection, topic = player.connect(), player.name("t")
    groups = [player.name(f"g{index}") for index in range(4)]
    prepare(connection, *groups, topics={topic: 4})
    classic_member(connection, groups[0], topic, protocol_type="connect")
    connection.call(enter(groups[0], "A", topic), 1, "another protocol type")
    classic_member(connection, groups[1], topic, metadata=b"\x00")
    connection.call(enter(groups[1], "A", topic), 1, "an unreadable subscription")
    given = connection.call(classic_join(groups[2], metadata=subscription(topic)), 9, "first join").member_id
    joined = connection.call(classic_join(groups[2], given, metadata=subscription(topic)), 9, "join with id")
    data = assignment(topic, 0)[:-4] + b"\x00\x00\x00\x01x"
    connection.call(classic_sync(groups[2], given, joined.generation_id, assignments={given: data}), 5, "user data")
    connection.call(enter(groups[2], "A", topic), 1, "an assignor's user data")
    connection.call(DescribeGroupsRequest(groups=groups[:3]), 6, "classic still")


def scenario_consumer_group_classic_joins(player: Player) -> None:
    """A member by the classic protocol joins a consumer group: refusals, ids, leaving."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 2})
    wanted = {"metadata": subscription(topic)}
    connection.call(enter(group, "A", topic), 1, "A joins")
    connection.call(classic_join(group, protocol_type="connect", **wanted), 9, "other type")
    connection.call(classic_join(group, protocols=()), 9, "no protocols")
    connection.call(classic_join(group, "m", metadata=b"\x00"), 9, "unreadable")
    connection.call(classic_join(group, "m", **wanted), 9, "its own id")
    describe(connection, group, "both")
    connection.call(classic_join(group, "n", protocols=("roundrobin",), **wanted), 9, "no protocol in common")
    connection.call(classic_sync(group, "m", 3, **PROTOCOL), 5, "nothing is free")
    connection.call(classic_heartbeat(group, "m", 3), 4, "waits")
    connection.call(beat(group, "A", 2, owned=[(topic_id, [0, 1])]), 1, "A is told to give up")
    connection.call(beat(group, "A", 2, owned=[(topic_id, [0])]), 1, "A has given up")
    connection.call(classic_heartbeat(group, "m", 3), 4, "told to rejoin")
    connection.call(classic_join(group, "m", **wanted), 9, "rejoins")
    connection.call(classic_sync(group, "m", 3, **PROTOCOL), 5, "gets it")
    connection.call(classic_heartbeat(group, "m", 3), 4, "at rest")
    connection.call(classic_heartbeat(group, "m", 3, group_instance_id="i"), 4, "unknown instance")
    connection.call(enter(group, "m", topic), 1, "becomes a member by the consumer protocol")
    describe(connection, group, "both by the consumer protocol")
    gone = [MemberIdentity(member_id="m"), MemberIdentity(member_id="nobody")]
    connection.call(LeaveGroupRequest(group_id=group, members=gone), 5, "leaves by the classic request")
    describe(connection, group, "A alone")


def scenario_consumer_group_static_migration(player: Player) -> None:
    """An instance id changes its protocol: up by a heartbeat, down by a join."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    prepare(connection, group, topics={topic: 2})
    wanted = {"metadata": subscription(topic), "group_instance_id": "i"}
    old = connection.call(classic_join(group, **wanted), 9, "classic, static").member_id
    mine = {old: assignment(topic, 0, 1)}
    connection.call(classic_sync(group, old, 1, assignments=mine, group_instance_id="i"), 5, "assigned")
    connection.call(enter(group, "A", topic, instance_id="i"), 1, "restarts by the consumer protocol")
    described = describe(connection, group, "taken over")
    epoch = described.groups[0].members[0].member_epoch
    connection.call(classic_heartbeat(group, old, 1, group_instance_id="i"), 4, "the old one is fenced")
    connection.call(beat(group, "A", -2, instance_id="i"), 1, "leaves for a while")
    joined = player.unwritten(lambda: connection.call(classic_join(group, **wanted), 9, "restarts by the classic one"))
    assert joined.error_code == 0
    describe(connection, group, "no consumer group any more")
    beats = classic_heartbeat(group, joined.member_id, joined.generation_id, group_instance_id="i")
    connection.call(beats, 4, f"beats, generation {joined.generation_id} after epoch {epoch}")
    player.transcript.entries[-1]["request"]["member_id"] = "<the new id>"
