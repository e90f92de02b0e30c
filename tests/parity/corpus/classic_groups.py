"""Classic groups: joining, syncing, heartbeats, leaving, static members; errors by raw request."""

from __future__ import annotations

from typing import Any

from tests.parity.player import Connection, Player
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

# The consumer protocol's subscription, version 0: topic list ["t"], no user data.
SUBSCRIPTION = bytes.fromhex("000000000001000174ffffffff")
OTHER_SUBSCRIPTION = bytes.fromhex("000000000001000175ffffffff")


def join(group: str, member: str = "", **fields: Any) -> JoinGroupRequest:
    """A JoinGroup with one range protocol and sane timeouts."""
    protocols = [
        JoinGroupRequestProtocol(name=name, metadata=fields.pop("metadata", SUBSCRIPTION))
        for name in fields.pop("protocols", ("range",))
    ]
    values = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
    }
    return JoinGroupRequest(group_id=group, member_id=member, protocols=protocols, **{**values, **fields})


def sync(group: str, member: str, generation: int, **fields: Any) -> SyncGroupRequest:
    """A SyncGroup; ``assignments`` maps member ids to bytes."""
    assignments = [
        SyncGroupRequestAssignment(member_id=name, assignment=value)
        for name, value in fields.pop("assignments", {}).items()
    ]
    values = {"protocol_type": "consumer", "protocol_name": "range"}
    return SyncGroupRequest(
        group_id=group,
        member_id=member,
        generation_id=generation,
        assignments=assignments,
        **{**values, **fields},
    )


def heartbeat(group: str, member: str, generation: int, **fields: Any) -> HeartbeatRequest:
    """A Heartbeat."""
    return HeartbeatRequest(group_id=group, member_id=member, generation_id=generation, **fields)


def find(connection: Connection, group: str) -> None:
    """Ask for the coordinator until it is there (the offsets topic may have to be made first)."""
    player = connection.player

    def ask() -> Any:
        connection.call(FindCoordinatorRequest(coordinator_keys=[group]), 4)
        return connection.call(heartbeat(group, "m", 1), 4)

    player.unwritten(lambda: player.until(ask, lambda answer: answer.error_code not in (14, 15, 16)))


def stable_member(connection: Connection, group: str, **fields: Any) -> tuple[str, int]:
    """Join (twice, as v4+ asks) and sync alone; returns member id and generation."""
    first = connection.call(join(group, **fields), 9, "first join")
    answer = connection.call(join(group, first.member_id, **fields), 9, "join with id")
    member, generation = answer.member_id, answer.generation_id
    connection.call(sync(group, member, generation, assignments={member: b"x"}), 5, "sync")
    return member, generation


def scenario_join_group_errors(player: Player) -> None:
    """Each refusal of JoinGroup."""
    connection, group = player.connect(), player.name("g")
    find(connection, group)
    connection.call(join(""), 9, "empty group id")
    connection.call(join(group, session_timeout_ms=5_999), 9, "session too short")
    connection.call(join(group, session_timeout_ms=1_800_001), 9, "session too long")
    connection.call(join(group, "nobody"), 9, "unknown member, unknown group")
    connection.call(join(group, "nobody", session_timeout_ms=1), 9, "session before member")
    connection.call(join(group, protocol_type=""), 9, "no protocol type")
    connection.call(join(group, protocols=()), 9, "no protocols")
    member, _ = stable_member(connection, group)
    connection.call(join(group, "nobody"), 9, "unknown member")
    connection.call(join(group, protocols=("roundrobin",)), 9, "no shared protocol")
    connection.call(join(group, protocol_type="connect"), 9, "other protocol type")
    connection.call(join(group, member, group_instance_id="i"), 9, "unknown instance")


def scenario_join_group_versions(player: Player) -> None:
    """A lone member joins, syncs, beats and leaves in every version."""
    connection = player.connect()
    find(connection, player.name("g"))
    for version in range(10):
        group = player.name(f"g{version}")
        answer = connection.call(join(group), version, f"join v{version}")
        if answer.error_code == 79:
            answer = connection.call(join(group, answer.member_id), version, f"again v{version}")
        member, generation = answer.member_id, answer.generation_id
        request = sync(group, member, generation, assignments={member: b"mine"})
        connection.call(request, min(version, 5), f"sync v{min(version, 5)}")
        beat = min(version, 4)
        connection.call(heartbeat(group, member, generation), beat, f"heartbeat v{beat}")
        leave = LeaveGroupRequest(group_id=group)
        if version < 3:
            leave.member_id = member
        else:
            leave.members = [MemberIdentity(member_id=member)]
        connection.call(leave, min(version, 5), f"leave v{min(version, 5)}")
        connection.call(leave, min(version, 5), f"leave again v{min(version, 5)}")


def scenario_sync_and_heartbeat_errors(player: Player) -> None:
    """Wrong groups, members, generations, instances, protocols."""
    connection, group = player.connect(), player.name("g")
    find(connection, group)
    connection.call(sync("", "m", 1), 5, "sync: empty group id")
    connection.call(sync(group, "m", 1), 5, "sync: unknown group")
    connection.call(heartbeat("", "m", 1), 4, "heartbeat: empty group id")
    connection.call(heartbeat(group, "m", 1), 4, "heartbeat: unknown group")
    member, generation = stable_member(connection, group)
    connection.call(sync(group, member, generation, protocol_type=None), 5, "sync: no type")
    connection.call(sync(group, member, generation, protocol_name=None), 5, "sync: no name")
    connection.call(sync(group, "nobody", generation), 5, "sync: unknown member")
    connection.call(sync(group, member, generation + 1), 5, "sync: wrong generation")
    connection.call(sync(group, member, generation, protocol_type="connect"), 5, "sync: type")
    connection.call(sync(group, member, generation, protocol_name="sticky"), 5, "sync: name")
    connection.call(sync(group, member, generation, group_instance_id="i"), 5, "sync: instance")
    connection.call(sync(group, member, generation), 5, "sync: repeated")
    connection.call(heartbeat(group, "nobody", generation), 4, "heartbeat: unknown member")
    connection.call(heartbeat(group, member, generation - 1), 4, "heartbeat: wrong generation")
    instance = heartbeat(group, member, generation, group_instance_id="i")
    connection.call(instance, 4, "heartbeat: unknown instance")
    connection.call(heartbeat(group, member, generation), 4, "heartbeat: good")


def scenario_leave_group(player: Player) -> None:
    """One, several, unknown and static members."""
    connection, group = player.connect(), player.name("g")
    find(connection, group)

    def leave(*members: MemberIdentity, group_id: str = group) -> LeaveGroupRequest:
        return LeaveGroupRequest(group_id=group_id, members=list(members))

    nobody = MemberIdentity(member_id="nobody")
    connection.call(leave(nobody), 5, "unknown group")
    connection.call(leave(nobody, group_id=""), 5, "empty group id")
    member, generation = stable_member(connection, group)
    connection.call(leave(nobody), 5, "unknown member")
    unknown = MemberIdentity(member_id="", group_instance_id="i")
    connection.call(leave(unknown), 5, "unknown instance")
    both = leave(nobody, MemberIdentity(member_id=member))
    connection.call(both, 5, "one unknown, one known")
    connection.call(heartbeat(group, member, generation), 4, "heartbeat after leave")
    connection.call(sync(group, member, generation), 5, "sync after leave")
    connection.call(join(group, member), 9, "join after leave")


def scenario_two_members(player: Player) -> None:
    """A second member makes the first rejoin; the leader assigns; followers wait for it."""
    first, second, third = player.connect("one"), player.connect("two"), player.connect("three")
    group = player.name("g")
    find(first, group)
    leader, generation = stable_member(first, group)
    given = second.call(join(group), 9, "second asks for an id")
    waiting = second.send(join(group, given.member_id), 9, "second joins")
    beat = heartbeat(group, leader, generation)
    player.until(lambda: third.call(beat, 4, "leader beats"), lambda answer: answer.error_code == 27)
    rejoined = first.call(join(group, leader), 9, "leader rejoins")
    joined = second.receive(waiting)
    follower, generation = joined.member_id, rejoined.generation_id
    third.call(heartbeat(group, follower, generation), 4, "beat before sync")
    early = second.send(sync(group, follower, generation), 5, "follower syncs first")
    assignments = {leader: b"for one", follower: b"for two"}
    first.call(sync(group, leader, generation, assignments=assignments), 5, "leader syncs")
    second.receive(early)
    second.call(join(group, follower), 9, "follower rejoins unchanged")
    changed = join(group, follower, metadata=OTHER_SUBSCRIPTION)
    waiting = second.send(changed, 9, "follower rejoins changed")
    again = heartbeat(group, leader, generation)
    player.until(lambda: third.call(again, 4, "told to rejoin"), lambda answer: answer.error_code == 27)
    third.call(sync(group, leader, generation), 5, "sync while rejoining")
    first.call(join(group, leader), 9, "leader rejoins again")
    second.receive(waiting)


def scenario_static_members(player: Player) -> None:
    """A restarted instance gets a new id without a rebalance; the old id is fenced."""
    connection, group = player.connect(), player.name("g")
    find(connection, group)
    answer = connection.call(join(group, group_instance_id="i1"), 9, "join")
    old, generation = answer.member_id, answer.generation_id
    request = sync(group, old, generation, assignments={old: b"mine"}, group_instance_id="i1")
    connection.call(request, 5, "sync")
    answer = connection.call(join(group, group_instance_id="i1"), 9, "restart")
    new = answer.member_id
    stale = {"group_instance_id": "i1"}
    connection.call(heartbeat(group, old, generation, **stale), 4, "old id beats")
    connection.call(sync(group, old, generation, **stale), 5, "old id syncs")
    connection.call(join(group, old, **stale), 9, "old id joins")
    connection.call(heartbeat(group, new, generation, **stale), 4, "new id beats")
    connection.call(sync(group, new, generation, **stale), 5, "new id syncs")
    fenced = MemberIdentity(member_id=old, group_instance_id="i1")
    connection.call(LeaveGroupRequest(group_id=group, members=[fenced]), 5, "old id leaves")
    by_instance = MemberIdentity(member_id="", group_instance_id="i1")
    connection.call(LeaveGroupRequest(group_id=group, members=[by_instance]), 5, "leaves")


def scenario_protocol_choice(player: Player) -> None:
    """The chosen protocol is one that every member lists."""
    first, second, third = player.connect("one"), player.connect("two"), player.connect("three")
    group = player.name("g")
    find(first, group)
    lists = ("cooperative-sticky", "range"), ("range", "roundrobin")
    given = first.call(join(group, protocols=lists[0]), 9, "first asks")
    alone = first.call(join(group, given.member_id, protocols=lists[0]), 9, "first joins")
    leader, generation = alone.member_id, alone.generation_id
    other = second.call(join(group, protocols=lists[1]), 9, "second asks")
    waiting = second.send(join(group, other.member_id, protocols=lists[1]), 9, "second joins")
    beat = heartbeat(group, leader, generation)
    player.until(lambda: third.call(beat, 4, "beat"), lambda answer: answer.error_code == 27)
    third.call(join(group, protocols=("sticky",)), 9, "third shares none")
    first.call(join(group, leader, protocols=lists[0]), 9, "first rejoins")
    second.receive(waiting)
