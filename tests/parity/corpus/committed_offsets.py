"""OffsetCommit, OffsetFetch, OffsetDelete, and the groups that exist by commits alone."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.classic_groups import find, join, stable_member
from tests.parity.corpus.produce_and_fetch import create
from tests.parity.player import Player
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)


def commit(group: str, topic: str, *offsets: tuple[int, int, str | None], **fields: Any) -> Any:
    """An OffsetCommit of (partition, offset, metadata) entries for one topic."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata=metadata)
        for partition, offset, metadata in offsets
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=partitions)]
    return OffsetCommitRequest(group_id=group, topics=topics, **fields)


def fetch(group: str, *topics: tuple[str, list[int]]) -> OffsetFetchRequest:
    """An OffsetFetch of one group for v8+; no topics means all."""
    wanted = [OffsetFetchRequestTopics(name=name, partition_indexes=list(p)) for name, p in topics]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted or None)])


def scenario_offset_commit_errors(player: Player) -> None:
    """Simple commits, commits beside members, unknown topics, long metadata."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    find(connection, group)
    create(connection, topic, 2)
    connection.call(commit(group, topic, (0, 1, "x")), 9, "simple commit")
    connection.call(commit("", topic, (0, 1, "x")), 9, "empty group id")
    connection.call(commit(group, topic, (0, 5, "x"), (99, 1, "x")), 9, "unknown partition")
    connection.call(commit(group, player.name("nosuch"), (0, 1, "x")), 9, "unknown topic")
    long = (1, 1, "y" * 4097)
    connection.call(commit(group, topic, (0, 7, ""), long), 9, "long metadata")
    connection.call(commit(group, topic, (0, 7, None)), 9, "null metadata")
    named = {"member_id": "m", "generation_id_or_member_epoch": 3}
    connection.call(commit(group, topic, (0, 1, ""), **named), 9, "member of an empty group")
    other = player.name("other")
    connection.call(commit(other, topic, (0, 1, ""), **named), 9, "member of no group v9")
    connection.call(commit(other, topic, (0, 1, ""), **named), 8, "member of no group v8")
    member, generation = stable_member(connection, player.name("live"))
    live = player.name("live")
    connection.call(commit(live, topic, (0, 1, "")), 9, "anonymous beside members")
    good = {"member_id": member, "generation_id_or_member_epoch": generation}
    connection.call(commit(live, topic, (0, 1, ""), **good), 9, "member")
    wrong = {**good, "generation_id_or_member_epoch": generation + 1}
    connection.call(commit(live, topic, (0, 1, ""), **wrong), 9, "wrong generation")
    stranger = {**good, "member_id": "nobody"}
    connection.call(commit(live, topic, (0, 1, ""), **stranger), 9, "unknown member")
    instance = {**good, "group_instance_id": "i"}
    connection.call(commit(live, topic, (0, 1, ""), **instance), 9, "unknown instance")
    mixed = commit(live, topic, (0, 1, ""), **wrong)
    mixed.topics.append(commit(live, player.name("nosuch"), (0, 1, "")).topics[0])
    connection.call(mixed, 9, "unknown topic and wrong generation")
    connection.call(fetch(group), 9, "what is stored")
    connection.call(fetch(live), 9, "what the live group stored")


def scenario_offset_commit_versions(player: Player) -> None:
    """Commit and fetch in every version."""
    connection, topic = player.connect(), player.name("t")
    topic_id = create(connection, topic, 2)
    find(connection, player.name("g"))
    for version in range(2, 11):
        group = player.name(f"g{version}")
        request = commit(group, topic, (0, version, f"v{version}"), (1, 2, ""))
        if version >= 6:
            request.topics[0].partitions[0].committed_leader_epoch = 0
        if version >= 10:
            request.topics[0].name, request.topics[0].topic_id = "", topic_id
        connection.call(request, version, f"commit v{version}")
    for version in range(1, 8):
        topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1, 7])]
        request = OffsetFetchRequest(group_id=player.name("g9"), topics=topics)
        connection.call(request, version, f"fetch v{version}")
        if version >= 2:
            everything = OffsetFetchRequest(group_id=player.name("g9"), topics=None)
            connection.call(everything, version, f"fetch all v{version}")
        unknown = OffsetFetchRequest(group_id=player.name("nosuch"), topics=topics)
        connection.call(unknown, version, f"fetch unknown group v{version}")
    for version in range(8, 11):
        request = fetch(player.name("g9"), (topic, [0, 1, 7]))
        if version == 10:
            request.groups[0].topics[0].name = ""
            request.groups[0].topics[0].topic_id = topic_id
        request.groups.append(fetch(player.name("nosuch")).groups[0])
        connection.call(request, version, f"fetch v{version}")
    bad = fetch(player.name("g9"), (topic, [0]))
    bad.groups[0].topics[0].name, bad.groups[0].topics[0].topic_id = "", b"\x01" * 16
    connection.call(bad, 10, "fetch unknown id")


def scenario_describe_and_list_groups(player: Player) -> None:
    """Unknown, commit-only, left and live groups in every version."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    find(connection, player.name("simple"))
    connection.call(commit(player.name("simple"), topic, (0, 1, "x")), 9, "simple commit")
    live = player.name("live")
    member, _ = stable_member(connection, live)
    for version in range(7):
        groups = [player.name("nosuch"), player.name("simple"), live]
        connection.call(DescribeGroupsRequest(groups=groups), version, f"describe v{version}")
    connection.call(join(live, member, metadata=b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"), 9)
    connection.call(DescribeGroupsRequest(groups=[live]), 6, "describe after rejoin")
    for states in (["Nonsense"], ["dead"]):
        request = ListGroupsRequest(states_filter=states)
        connection.call(request, 5, f"list {states}")
    connection.call(ListGroupsRequest(types_filter=["share"]), 5, "list share groups")


def scenario_delete_groups_and_offsets(player: Player) -> None:
    """Live, empty, unknown groups; subscribed and other topics."""
    connection, topic, group = player.connect(), player.name("t"), player.name("live")
    create(connection, topic, 2)
    find(connection, group)
    subscription = b"\x00\x00\x00\x00\x00\x01" + len(topic).to_bytes(2, "big") + topic.encode()
    metadata = subscription + b"\xff\xff\xff\xff"
    member, generation = stable_member(connection, group, metadata=metadata)
    good = {"member_id": member, "generation_id_or_member_epoch": generation}
    connection.call(commit(group, topic, (0, 1, "x"), (1, 2, "x"), **good), 9, "commit")
    simple = player.name("simple")
    connection.call(commit(simple, topic, (0, 1, "x"), (1, 2, "x")), 9, "simple commit")

    def forget(name: str, topic_name: str = topic) -> OffsetDeleteRequest:
        partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 99)]
        topics = [OffsetDeleteRequestTopic(name=topic_name, partitions=partitions)]
        return OffsetDeleteRequest(group_id=name, topics=topics)

    connection.call(forget(group), 0, "offsets of a subscribed topic")
    connection.call(forget(simple), 0, "offsets of a simple group")
    connection.call(forget(simple, player.name("nosuch")), 0, "offsets of an unknown topic")
    connection.call(forget(player.name("nosuch")), 0, "offsets of an unknown group")
    connection.call(forget(""), 0, "offsets of no group")
    connection.call(fetch(simple), 9, "what is left")
    for version in range(4):
        names = [group, player.name("nosuch"), player.name(f"s{version}")]
        connection.call(commit(names[2], topic, (0, 1, "x")), 9, "simple commit")
        request = DeleteGroupsRequest(groups_names=names)
        connection.call(request, version, f"delete groups v{version}")
