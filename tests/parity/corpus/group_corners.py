"""Corners of groups and committed offsets: coordinators, static members, mixed and repeated requests."""

from __future__ import annotations

from tests.parity.corpus.classic_groups import OTHER_SUBSCRIPTION, find, heartbeat, join, stable_member, sync
from tests.parity.corpus.committed_offsets import commit, create, fetch
from tests.parity.player import Player
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

GROUP, TRANSACTION = 0, 1


def scenario_find_coordinator(player: Player) -> None:
    """Every version, one and several keys, key types that there are not."""
    connection, group = player.connect(), player.name("g")
    find(connection, group)
    for version in range(7):
        for key_type in (GROUP, 3, -1) if version else (GROUP,):
            keys = {"key": group} if version < 4 else {"coordinator_keys": [group, ""]}
            request = FindCoordinatorRequest(key_type=key_type, **keys)
            connection.call(request, version, f"type {key_type} v{version}")
    connection.call(FindCoordinatorRequest(coordinator_keys=[]), 6, "no keys")
    connection.call(FindCoordinatorRequest(key=""), 3, "empty key")


def scenario_static_restarts(player: Player) -> None:
    """Restarts of leader and follower, before and after v9; what the old ids are told."""
    first, second = player.connect("one"), player.connect("two")
    group = player.name("g")
    find(first, group)
    leader = first.call(join(group, group_instance_id="i1"), 9, "leader joins").member_id
    assigned = sync(group, leader, 1, assignments={leader: b"1"}, group_instance_id="i1")
    first.call(assigned, 5, "leader syncs")
    waiting = second.send(join(group, group_instance_id="i2"), 9, "follower joins")
    beat = heartbeat(group, leader, 1, group_instance_id="i1")
    player.until(lambda: first.call(beat, 4, "told to rejoin"), lambda answer: answer.error_code == 27)
    generation = first.call(join(group, leader, group_instance_id="i1"), 9, "leader rejoins").generation_id
    follower = second.receive(waiting).member_id
    waiting = second.send(sync(group, follower, generation, group_instance_id="i2"), 5, "follower syncs")
    both = {leader: b"one", follower: b"two"}
    first.call(sync(group, leader, generation, assignments=both, group_instance_id="i1"), 5, "leader syncs")
    second.receive(waiting)
    for version in (5, 8, 9):
        leader = first.call(join(group, group_instance_id="i1"), version, f"leader restarts v{version}").member_id
        answer = second.call(join(group, group_instance_id="i2"), version, f"follower restarts v{version}")
        first.call(sync(group, leader, generation, group_instance_id="i1"), 5, "the same assignment")
        second.call(sync(group, follower, generation, group_instance_id="i2"), 5, "sync of the old id")
        second.call(heartbeat(group, follower, generation, group_instance_id="i2"), 4, "beat of the old id")
        second.call(heartbeat(group, follower, generation), 4, "beat of the old id without instance")
        second.call(join(group, follower, group_instance_id="i2"), version, "join of the old id")
        old = MemberIdentity(member_id=follower, group_instance_id="i2")
        second.call(LeaveGroupRequest(group_id=group, members=[old]), 5, "leave of the old id")
        follower = answer.member_id
    other = join(group, group_instance_id="i2", metadata=OTHER_SUBSCRIPTION)
    second.call(other, 9, "follower restarts with another subscription")
    gone = [MemberIdentity(member_id="", group_instance_id=name) for name in ("i1", "i2", "i3")]
    second.call(LeaveGroupRequest(group_id=group, members=gone), 5, "an administrator removes them")
    first.call(DescribeGroupsRequest(groups=[group]), 6, "what is left")


def scenario_ids_given_out(player: Player) -> None:
    """Ids of MEMBER_ID_REQUIRED: used with an instance, left, used twice, after a leave."""
    connection, group = player.connect(), player.name("g")
    find(connection, group)
    given = connection.call(join(group), 9, "first join").member_id
    connection.call(heartbeat(group, given, 0), 4, "beat of a given id")
    connection.call(sync(group, given, 0), 5, "sync of a given id")
    connection.call(DescribeGroupsRequest(groups=[group]), 6, "describe")
    connection.call(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=given)]), 5, "leave")
    connection.call(join(group, given), 9, "join after leave")
    given = connection.call(join(group), 4, "again").member_id
    connection.call(join(group, given), 4, "join with id")
    connection.call(join(group, given), 4, "the same again")
    connection.call(join(group, given, protocols=("range", "sticky")), 4, "with other protocols")
    connection.call(sync(group, given, 1, assignments={given: b"x"}), 5, "sync of the generation before")
    connection.call(sync(group, given, 2, assignments={given: b"x", "nobody": b"y"}), 5, "sync")
    connection.call(join(group, given), 4, "leader joins when stable")


def scenario_mixed_offset_requests(player: Player) -> None:
    """Good and bad topics in one request; repeated topics, partitions and groups."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    find(connection, group)
    topic_id = create(connection, topic)
    mixed = commit(group, topic, (1, 5, ""), (99, 5, ""), (0, 5, ""), (1, 6, ""))
    mixed.topics.append(commit(group, player.name("no"), (0, 1, "")).topics[0])
    mixed.topics.append(commit(group, topic, (0, 9, "")).topics[0])
    connection.call(mixed, 9, "commit")
    by_id = commit(group, "", (0, 3, "x"))
    by_id.topics[0].topic_id = topic_id
    by_id.topics.append(commit(group, "", (0, 4, "x")).topics[0])
    by_id.topics[1].topic_id = b"\x01" * 16
    connection.call(by_id, 10, "commit by id")
    connection.call(fetch(group), 9, "fetch all")
    connection.call(fetch(group, (topic, [1, 0, 1, 7])), 9, "fetch partitions twice")
    asked = fetch(group, ("", [0]), ("", [1]))
    asked.groups[0].topics[0].topic_id, asked.groups[0].topics[1].topic_id = b"\x01" * 16, topic_id
    connection.call(asked, 10, "fetch by id")
    for stable in (False, True):
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in (group, player.name("no"))]
        groups.append(OffsetFetchRequestGroup(group_id="", topics=[]))
        groups.append(OffsetFetchRequestGroup(group_id=group, topics=[]))
        for version in (8, 9, 10):
            request = OffsetFetchRequest(groups=groups, require_stable=stable)
            connection.call(request, version, f"fetch groups v{version}, stable {stable}")
        connection.call(OffsetFetchRequest(group_id=group, topics=None, require_stable=stable), 7, "fetch v7")
    member = OffsetFetchRequestGroup(group_id=group, member_id="m", member_epoch=3, topics=None)
    connection.call(OffsetFetchRequest(groups=[member]), 9, "fetch as a member of a classic group")
    nothing = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=player.name("no"), partition_indexes=[0])]
    )
    connection.call(OffsetFetchRequest(groups=[nothing]), 9, "fetch of an unknown topic")

    def forget(*topics: tuple[str, int]) -> OffsetDeleteRequest:
        return OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
                for name, index in topics
            ],
        )

    connection.call(forget((player.name("no"), 0), (topic, 0)), 0, "forget unknown and known")
    connection.call(forget((topic, 0), (topic, 9)), 0, "forget again, and a partition that is none")
    connection.call(forget(), 0, "forget nothing")
    connection.call(OffsetDeleteRequest(group_id="", topics=forget((topic, 0)).topics), 0, "of no group")
    connection.call(OffsetDeleteRequest(group_id=""), 0, "of no group, nothing")
    connection.call(fetch(group), 9, "what is left")
    names = [group, player.name("no"), group]
    connection.call(DeleteGroupsRequest(groups_names=names), 2, "delete groups twice")
    connection.call(DeleteGroupsRequest(groups_names=[]), 2, "delete no groups")
    connection.call(DescribeGroupsRequest(groups=[]), 6, "describe no groups")


def scenario_other_protocol_types(player: Player) -> None:
    """A group that is not of consumers: offsets, deletion, description."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    find(connection, group)
    create(connection, topic)
    member, generation = stable_member(
        connection, group, protocol_type="connect", protocols=("default",), metadata=b"\x00\x01"
    )
    connection.call(sync(group, member, generation, protocol_type="connect", protocol_name="default"), 5, "sync")
    good = {"member_id": member, "generation_id_or_member_epoch": generation}
    connection.call(commit(group, topic, (0, 1, "x"), **good), 9, "commit")
    forget = OffsetDeleteRequest(
        group_id=group,
        topics=[OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])],
    )
    connection.call(forget, 0, "offsets of a live group")
    connection.call(DescribeGroupsRequest(groups=[group], include_authorized_operations=True), 6, "describe")
    connection.call(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member)]), 5, "leave")
    connection.call(forget, 0, "offsets of a left group")
    connection.call(DescribeGroupsRequest(groups=[group]), 5, "describe when left")
    connection.call(ListGroupsRequest(states_filter=["nonsense"], types_filter=["classic"]), 5, "list none")
