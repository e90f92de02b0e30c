"""Groups beyond the ordinary: which refusal wins, every version of listing, names twice, empty and null."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.classic_groups import find, heartbeat, join, stable_member, sync
from tests.parity.corpus.committed_offsets import commit, fetch
from tests.parity.corpus.produce_and_fetch import create
from tests.parity.player import Player
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.join_group import JoinGroupRequestProtocol
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic


def scenario_listed_groups(player: Player) -> None:
    """Every version, by state and type, in any case; the groups of others are left out."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic)
    live, simple, left = player.name("live"), player.name("simple"), player.name("left")
    find(connection, live)
    stable_member(connection, live)
    connection.call(commit(simple, topic, (0, 1, "")), 9, "simple commit")
    member, _ = stable_member(connection, left)
    connection.call(LeaveGroupRequest(group_id=left, members=[MemberIdentity(member_id=member)]), 5, "leave")

    def listed(what: str, version: int, **filters: Any) -> None:
        connection.call(ListGroupsRequest(**filters), version, what)
        answer = player.transcript.entries[-1]["response"]
        answer["groups"] = [
            group for group in answer.get("groups", []) if group.get("group_id", "").startswith("<scenario>")
        ]

    for version in range(6):
        listed(f"v{version}", version)
    for version in (4, 5):
        for states in (["Stable"], ["EMPTY"], ["stable", "empty"], ["Dead"], ["CompletingRebalance"], [""], []):
            listed(f"states {states} v{version}", version, states_filter=states)
    for types in (["classic"], ["CLASSIC"], ["Consumer"], ["streams"], ["nonsense"], [""], ["classic", "x"]):
        listed(f"types {types}", 5, types_filter=types)
        listed(f"types {types}, empty ones", 5, types_filter=types, states_filter=["Empty"])


def scenario_joins_that_are_refused(player: Player) -> None:
    """Of two refusals of JoinGroup the one that wins; protocols twice, by another name, for another type."""
    connection, group, empty = player.connect(), player.name("g"), player.name("empty")
    find(connection, group)
    create(connection, player.name("t"))
    connection.call(commit(empty, player.name("t"), (0, 1, "")), 9, "an empty group")
    member, _ = stable_member(connection, group)
    for version in (0, 4, 9):
        connection.call(join("", session_timeout_ms=1), version, f"no group, session v{version}")
        connection.call(join(group, "nobody", session_timeout_ms=1), version, f"session, member v{version}")
        connection.call(join(group, "nobody", protocols=("x",)), version, f"member, protocol v{version}")
        connection.call(join(group, protocols=("x",)), version, f"protocol v{version}")
        connection.call(join(empty, "nobody", protocols=()), version, f"empty group, member, protocol v{version}")
        connection.call(join(empty, protocol_type=""), version, f"empty group, no type v{version}")
        connection.call(join(empty, protocols=()), version, f"empty group, no protocols v{version}")
    static = {"group_instance_id": "i"}
    connection.call(join(group, "nobody", protocols=("x",), **static), 9, "unknown instance, member, protocol")
    connection.call(join(group, member, protocols=("x",), **static), 9, "unknown instance, known member, protocol")
    connection.call(join(group, member, protocols=("x",)), 9, "known member, protocol")
    connection.call(join(group, member, protocol_type="x"), 9, "known member, type")
    connection.call(join(group, group_instance_id=""), 9, "empty instance")
    connection.call(heartbeat(group, member, 1), 4, "still there")
    twice = join(player.name("twice"))
    twice.protocols *= 2
    twice.protocols.append(JoinGroupRequestProtocol(name="other", metadata=b""))
    given = connection.call(twice, 9, "protocol twice, and another").member_id
    twice.member_id = given
    connection.call(twice, 9, "and again")
    for timeout in (0, -1, 2**31 - 1):
        group = player.name(f"r{timeout}")
        request = join(group, rebalance_timeout_ms=timeout)
        given = connection.call(request, 9, f"rebalance timeout {timeout}").member_id
        connection.call(join(group, given, rebalance_timeout_ms=timeout), 9, "and again")
    for session in (6_000, 1_800_000):
        connection.call(join(player.name(f"s{session}"), session_timeout_ms=session), 9, f"session {session}")


def scenario_members_that_are_refused(player: Player) -> None:
    """Of two refusals of SyncGroup, Heartbeat and LeaveGroup the one that wins; generations and instances."""
    connection, group = player.connect(), player.name("g")
    find(connection, group)
    answer = connection.call(join(group, group_instance_id="i"), 9, "join")
    member, generation = answer.member_id, answer.generation_id
    static = {"group_instance_id": "i"}
    connection.call(heartbeat(group, member, generation, **static), 4, "beat before sync")
    for assigned in ({"nobody": b"x"}, {}):
        connection.call(sync(group, member, generation, assignments=assigned, **static), 5, f"assigned {assigned}")
    for name, number, instance, what in (
        (member, generation, "other", "unknown instance"),
        ("nobody", generation, "i", "another's instance"),
        ("nobody", generation + 1, "i", "another's instance, generation"),
        ("nobody", generation + 1, "other", "unknown instance, generation"),
        ("nobody", generation + 1, None, "unknown member, generation"),
        (member, generation + 1, None, "generation"),
        (member, -1, None, "generation -1"),
        (member, generation, None, "without its instance"),
        ("", generation, "i", "instance alone"),
        ("", generation, None, "nobody"),
        (member, generation, "", "empty instance"),
    ):
        connection.call(heartbeat(group, name, number, group_instance_id=instance), 4, f"beat: {what}")
        connection.call(sync(group, name, number, group_instance_id=instance), 5, f"sync: {what}")
        wrong = sync(group, name, number, group_instance_id=instance, protocol_name="x")
        connection.call(wrong, 5, f"sync, another protocol: {what}")
        committed = commit(group, player.name("no"), (0, 1, "y" * 5000))
        committed.member_id, committed.generation_id_or_member_epoch = name, number
        committed.group_instance_id = instance
        connection.call(committed, 9, f"commit of an unknown topic: {what}")
        empty = OffsetCommitRequest(group_id=group, member_id=name, generation_id_or_member_epoch=number)
        empty.group_instance_id = instance
        connection.call(empty, 9, f"commit of nothing: {what}")
    leave = LeaveGroupRequest(group_id=group)
    connection.call(leave, 5, "nobody leaves")
    identities = [
        MemberIdentity(member_id="nobody", group_instance_id="i"),
        MemberIdentity(member_id=member, group_instance_id="other"),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id=""),
        MemberIdentity(member_id="", group_instance_id=""),
        MemberIdentity(member_id=member, group_instance_id="i", reason="over"),
        MemberIdentity(member_id="", group_instance_id="i"),
    ]
    connection.call(LeaveGroupRequest(group_id=group, members=identities), 5, "many leave")
    connection.call(LeaveGroupRequest(group_id=group, members=identities[:3]), 3, "again v3")
    for version in (0, 2):
        connection.call(LeaveGroupRequest(group_id=group, member_id="nobody"), version, f"nobody v{version}")
        connection.call(LeaveGroupRequest(group_id="", member_id="nobody"), version, f"no group v{version}")


def scenario_commits_that_are_refused(player: Player) -> None:
    """Offsets and metadata at their limits, beside members; nothing, topics twice, by version."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    find(connection, group)
    create(connection, topic, 2)
    member, generation = stable_member(connection, group)
    good = {"member_id": member, "generation_id_or_member_epoch": generation}
    for version in (2, 5, 8, 9):
        long = (0, 1, "y" * 4097)
        connection.call(commit(group, topic, long, **{**good, "member_id": "x"}), version, f"long, member v{version}")
        connection.call(commit(group, topic, long, (1, 4, ""), **good), version, f"long v{version}")
        connection.call(commit(group, player.name("no"), long, **good), version, f"long, unknown topic v{version}")
    connection.call(commit(group, topic, (0, 5, "y" * 4096), **good), 9, "as long as may be")
    connection.call(commit(group, topic, (0, 6, "ü" * 2049), **good), 9, "long in bytes alone")
    connection.call(fetch(group, (topic, [0])), 9, "its metadata")
    for offset in (-1, -2, 2**63 - 1, 0):
        connection.call(commit(group, topic, (0, offset, "\x00"), **good), 9, f"offset {offset}")
        connection.call(fetch(group, (topic, [0])), 9, f"offset {offset} as stored")
    connection.call(commit(group, topic, (0, 1, "a"), (0, 2, "b"), **good), 9, "partition twice")
    connection.call(fetch(group, (topic, [0, 0])), 9, "asked twice")
    connection.call(commit(group, "", (0, 1, ""), **good), 9, "no name")
    connection.call(commit(group, topic, (-1, 1, ""), **good), 9, "partition -1")
    connection.call(
        OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic)], **good), 9, "none"
    )
    connection.call(OffsetCommitRequest(group_id=group, **good), 9, "nothing")
    connection.call(OffsetCommitRequest(group_id=player.name("new"), topics=[]), 9, "nothing to a new group")
    connection.call(DescribeGroupsRequest(groups=[player.name("new")]), 6, "is it there")
    for number in (-1, -2, 0, 5):
        other = player.name(f"n{number}")
        connection.call(
            commit(other, topic, (0, 1, ""), generation_id_or_member_epoch=number), 9, f"generation {number}"
        )
        named = commit(other, topic, (0, 1, ""), generation_id_or_member_epoch=number, member_id="m")
        connection.call(named, 9, f"member, generation {number}")
        static = commit(other, topic, (0, 1, ""), generation_id_or_member_epoch=number, group_instance_id="i")
        connection.call(static, 9, f"instance, generation {number}")
    waiting = join(group, member, protocols=("range", "other"))
    connection.call(waiting, 9, "rejoin")
    connection.call(commit(group, topic, (0, 9, ""), **good), 9, "of the generation before")
    good["generation_id_or_member_epoch"] = generation + 1
    connection.call(commit(group, topic, (0, 9, ""), **good), 9, "before sync")
    connection.call(heartbeat(group, member, generation + 1), 4, "beat before sync")


def scenario_group_requests_corners(player: Player) -> None:
    """Names twice, empty and unknown; authorised operations; fetches of nothing."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    find(connection, group)
    create(connection, topic)
    connection.call(commit(group, topic, (0, 1, "x")), 9, "commit")
    for version in (0, 3, 5, 6):
        request = DescribeGroupsRequest(groups=[group, player.name("no"), group])
        connection.call(request, version, f"describe v{version}")
        if version >= 3:
            request.include_authorized_operations = True
            connection.call(request, version, f"describe with operations v{version}")
    for version in (1, 2, 5, 7):
        request = OffsetFetchRequest(group_id=group, topics=[])
        connection.call(request, version, f"fetch nothing v{version}")
        request.topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[])]
        connection.call(request, version, f"fetch no partitions v{version}")
        request.topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[0, -1]) for name in (topic, topic, "")]
        connection.call(request, version, f"fetch twice v{version}")
    connection.call(OffsetFetchRequest(groups=[]), 9, "fetch of no groups")
    connection.call(DeleteGroupsRequest(groups_names=[player.name("no"), group]), 2, "delete")
    connection.call(DescribeGroupsRequest(groups=[group]), 6, "deleted")
