"""SyncGroup, Heartbeat, LeaveGroup: each refusal in its order, then what happens."""

from __future__ import annotations

from typing import Any

import pytest

from tests.coordinator.group.shard_world import World, heartbeat, join, leave, subscription, sync
from wire.errors import ErrorCode

# --- SyncGroup --------------------------------------------------------------------------------


def test_sync_of_an_unknown_or_empty_group() -> None:
    world = World()
    assert world.code(sync("g", "m", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    world.call(join(), 9)
    assert world.state() == "Empty"
    assert world.code(sync("g", "m", 0)) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "nobody", "generation_id": 7}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 2, "protocol_type": "connect"}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({}, ErrorCode.NONE),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
    ],
)
def test_refusals_of_sync(fields: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    (member_id,) = world.stable("a")
    values = {"member_id": member_id, "generation_id": 1, **fields}
    assert world.code(sync("g", values.pop("member_id"), values.pop("generation_id"), **values)) is code


def test_sync_while_members_rejoin() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader), 9)
    assert world.code(sync("g", follower, 2)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_g02_followers_wait_for_the_leader_and_get_their_own_bytes() -> None:
    world = World()
    world.stable("a", "b", "c")
    leader = world.group().leader_id
    world.ask(join(member_id=leader), 9)
    world.rejoin_all()
    assert world.state() == "CompletingRebalance"
    generation = world.group().generation_id
    first, second = (each for each in world.group().members if each != leader)
    waiting = world.ask(sync("g", first, generation), 5)
    left_out = world.ask(sync("g", second, generation), 5)
    assert world.is_waiting(waiting)
    assert world.is_waiting(left_out)
    own = world.call(sync("g", leader, generation, {leader: b"l", first: b"f"}), 5)
    assert (own.assignment, own.protocol_type, own.protocol_name) == (b"l", "consumer", "range")
    assert world.replies[waiting].assignment == b"f"
    assert (world.replies[left_out].error_code, world.replies[left_out].assignment) == (0, b"")
    assert world.state() == "Stable"
    assert world.call(sync("g", first, generation), 5).assignment == b"f", "asked again, answered again"


def test_a_rebalance_ends_waiting_syncs() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader), 9)
    world.rejoin_all()
    waiting = world.ask(sync("g", follower, 3))
    world.ask(join(member_id=leader, protocols={"range": b"changed"}), 9)
    assert world.replies[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_retried_on_another_connection_takes_over_the_wait() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader), 9)
    world.rejoin_all()
    abandoned, retried = (world.ask(sync("g", follower, 3)) for _ in range(2))
    assert world.replies[abandoned].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.call(sync("g", leader, 3, {leader: b"l"}))
    assert world.replies[retried].error_code == ErrorCode.NONE


def test_g01_members_that_do_not_sync_are_removed() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader, rebalance_timeout_ms=9_000, session_timeout_ms=30_000), 9)
    world.ask(join(member_id=follower, rebalance_timeout_ms=9_000, session_timeout_ms=30_000), 9)
    waiting = world.ask(sync("g", follower, 3))
    world.pass_time(8_999)
    assert world.is_waiting(waiting)
    world.pass_time(1)
    assert world.replies[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(world.group().members) == [follower]
    assert world.code(heartbeat("g", follower, 3)) is ErrorCode.REBALANCE_IN_PROGRESS
    alone = world.call(join(member_id=follower), 9)
    assert (alone.leader, alone.generation_id) == (follower, 4)
    assert any("did not sync in time" in event for event in world.events())


def test_syncing_in_time_ends_the_sync_phase() -> None:
    world = World()
    (member_id,) = world.stable("a", rebalance_timeout_ms=6_000, session_timeout_ms=60_000)
    world.pass_time(6_000)
    assert (world.state(), list(world.group().members)) == ("Stable", [member_id])


# --- Heartbeat --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "nobody", "generation_id": 9}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "i", "generation_id": 9}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({}, ErrorCode.NONE),
    ],
)
def test_refusals_of_heartbeat(fields: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    assert world.code(heartbeat("g", "m", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    (member_id,) = world.stable("a")
    values = {"member_id": member_id, "generation_id": 1, **fields}
    assert world.code(heartbeat("g", **values)) is code


def test_heartbeats_keep_a_member_and_their_end_removes_it() -> None:
    world = World()
    (member_id,) = world.stable("a")
    for _ in range(5):
        world.pass_time(9_999)
        assert world.code(heartbeat("g", member_id, 1)) is ErrorCode.NONE
    world.pass_time(10_000)
    assert world.state() == "Empty"
    assert world.code(heartbeat("g", member_id, 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert any("session timeout after 10000 ms" in event for event in world.events())


def test_a_heartbeat_in_a_rebalance_refreshes_the_session_and_tells_to_rejoin() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader), 9)
    for _ in range(3):
        world.pass_time(9_000)
        assert world.code(heartbeat("g", follower, 2)) is ErrorCode.REBALANCE_IN_PROGRESS
    assert follower in world.group().members


def test_heartbeats_before_the_sync_are_good() -> None:
    world = World()
    member_id = world.call(join(), 3).member_id
    assert world.code(heartbeat("g", member_id, 1)) is ErrorCode.NONE


def test_waiting_counts_as_heartbeat() -> None:
    world = World()
    leader, follower = world.stable("a", "b", rebalance_timeout_ms=60_000)
    waiting = world.ask(join(member_id=leader), 9)
    for _ in range(5):
        world.pass_time(9_000)
        world.call(heartbeat("g", follower, 2))
    assert world.is_waiting(waiting), "45 s without a heartbeat, and still a member"
    world.ask(join(member_id=follower), 9)
    assert world.replies[waiting].error_code == ErrorCode.NONE
    world.pass_time(10_000)
    assert world.state() == "Empty", "then the session runs anew"


# --- LeaveGroup -------------------------------------------------------------------------------


def test_leave_of_an_unknown_group() -> None:
    assert World().call(leave("g", "m")).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_every_leaving_member_is_answered_for_itself() -> None:
    world = World()
    static = world.call(join(group_instance_id="i"), 9).member_id
    given = world.call(join(), 9).member_id
    response = world.call(
        leave("g", "nobody", ("", "j"), ("", None), ("old", "i"), (static, "j"), given, ("", "i"), ("", "i")), 5
    )
    assert [(each.member_id, each.group_instance_id, ErrorCode(each.error_code)) for each in response.members] == [
        ("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("old", "i", ErrorCode.FENCED_INSTANCE_ID),
        (static, "j", ErrorCode.UNKNOWN_MEMBER_ID),
        (given, None, ErrorCode.NONE),
        ("", "i", ErrorCode.NONE),
        ("", "i", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert response.error_code == ErrorCode.NONE
    assert world.state() == "Empty"


def test_nobody_leaving_starts_no_rebalance() -> None:
    world = World()
    world.stable("a")
    world.call(leave("g", "nobody"))
    assert world.state() == "Stable"


def test_the_last_member_that_leaves_empties_the_group() -> None:
    world = World()
    (member_id,) = world.stable("a")
    world.call(leave("g", member_id))
    described = world.describe()
    assert (described.group_state, described.protocol_type, described.members) == ("Empty", "consumer", [])
    assert world.group().generation_id == 2


def test_a_leaving_member_ends_its_own_waiting_requests() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    joining = world.ask(join(member_id=leader), 9)
    world.call(leave("g", leader))
    assert world.replies[joining].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.replies[joining].member_id == ""
    assert world.call(join(member_id=follower), 9).generation_id == 3


def test_a_leaving_member_ends_its_waiting_sync() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader), 9)
    world.rejoin_all()
    syncing = world.ask(sync("g", follower, 3))
    world.call(leave("g", follower))
    assert world.replies[syncing].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.state() == "PreparingRebalance"


def test_another_member_leads_when_the_leader_leaves() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.call(leave("g", leader))
    assert world.code(heartbeat("g", follower, 2)) is ErrorCode.REBALANCE_IN_PROGRESS
    response = world.call(join(member_id=follower), 9)
    assert (response.leader, response.generation_id) == (follower, 3)


def test_reasons_of_members_stand_in_the_events() -> None:
    world = World()
    (member_id,) = world.stable("a")
    request = leave("g", member_id)
    request.members[0].reason = "the consumer is being closed"
    world.call(request, 5)
    assert any("the consumer is being closed" in event for event in world.events())
    world.ask(join(reason="need to rejoin"), 3)
    assert any("client reason: need to rejoin" in event for event in world.events())


# --- what tools are shown ---------------------------------------------------------------------


def test_g14_unknown_groups_are_dead_and_from_v6_an_error() -> None:
    world = World()
    for api_version in range(6):
        described = world.describe("nosuch", api_version)
        assert (described.error_code, described.group_state) == (ErrorCode.NONE, "Dead")
    described = world.describe("nosuch", 6)
    assert (described.error_code, described.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group nosuch not found.")


def test_g14_members_are_described_with_their_bytes_only_when_stable() -> None:
    world = World()
    (member_id,) = world.stable("a")
    described = world.describe()
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    (member,) = described.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (subscription("t"), member_id.encode())
    world.call(join(member_id=member_id), 9)
    described = world.describe()
    assert (described.group_state, described.protocol_data) == ("CompletingRebalance", "")
    assert [each.member_metadata for each in described.members] == [b""]


def test_lists_are_filtered_by_state_and_type_without_regard_to_case() -> None:
    world = World()
    world.stable("a", group_id="live")
    world.call(join("waiting"), 9)
    everything = [("live", "Stable", "classic"), ("waiting", "Empty", "classic")]

    def listed(states: list[str], types: list[str]) -> list[tuple[str, str, str]]:
        return [(each.group_id, each.group_state, each.group_type) for each in world.shard.list_groups(states, types)]

    assert listed([], []) == everything
    assert listed(["sTaBlE"], []) == everything[:1]
    assert listed(["stable", "EMPTY"], ["CLASSIC"]) == everything
    assert listed(["nonsense"], []) == listed([], ["consumer"]) == listed([], ["nonsense"]) == []
