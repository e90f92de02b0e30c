"""Rebalances in time: the initial delay, those who are late, static members that restart, fail-over."""

from __future__ import annotations

import pytest

from coordinator.group.context import GroupSettings
from tests.coordinator.group.shard_world import World, heartbeat, join, leave, sync
from wire.errors import ErrorCode

# --- the initial delay ------------------------------------------------------------------------


def test_g05_without_a_delay_the_first_join_is_answered_at_once() -> None:
    world = World()
    before_ms = world.now_ms
    assert world.call(join(), 3).generation_id == 1
    assert world.now_ms == before_ms


def test_g05_members_that_join_during_the_delay_share_generation_1() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3_000))
    tickets = [world.ask(join(), 3)]
    for _ in range(2):
        world.pass_time(400)
        tickets.append(world.ask(join(), 3))
    world.pass_time(2_200)
    assert all(world.is_waiting(ticket) for ticket in tickets), "new members prolong the delay"
    world.pass_time(3_000)
    assert [world.replies[ticket].generation_id for ticket in tickets] == [1, 1, 1]


def test_the_delay_alone_holds_where_nobody_else_joins() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3_000))
    ticket = world.ask(join(), 3)
    world.pass_time(2_999)
    assert world.is_waiting(ticket)
    world.pass_time(1)
    assert world.replies[ticket].generation_id == 1


def test_the_delay_ends_with_the_rebalance_timeout_however_many_join() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3_000))
    first = world.ask(join(rebalance_timeout_ms=7_000), 3)
    waited_ms = 0
    while world.is_waiting(first):
        world.ask(join(rebalance_timeout_ms=7_000), 3)
        world.pass_time(500)
        waited_ms += 500
        assert waited_ms <= 10_000, "the delay does not end"
    assert waited_ms >= 7_000


def test_only_groups_that_were_empty_wait_for_the_delay() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3_000))
    (leader,) = world.stable("a")
    given = world.call(join(), 9).member_id
    world.ask(join(member_id=given), 9)
    assert world.call(join(member_id=leader), 9).generation_id == 2


def test_a_member_that_leaves_does_not_cut_the_delay_short() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3_000))
    given = world.call(join(), 9).member_id
    world.ask(join(member_id=given), 9)
    world.call(leave("g", given))
    assert world.state() == "PreparingRebalance"
    world.pass_time(3_000)
    assert world.state() == "Empty"


# --- those who are late -----------------------------------------------------------------------


def test_g01_dynamic_members_that_do_not_rejoin_are_removed() -> None:
    world = World()
    leader, follower = world.stable("a", "b", rebalance_timeout_ms=6_000, session_timeout_ms=60_000)
    waiting = world.ask(join(member_id=leader, rebalance_timeout_ms=6_000, session_timeout_ms=60_000), 9)
    world.pass_time(5_999)
    assert world.is_waiting(waiting)
    world.pass_time(1)
    assert world.replies[waiting].generation_id == 3
    assert list(world.group().members) == [leader]
    assert any(f"did not rejoin in time: {follower}" in event for event in world.events())


def test_the_largest_rebalance_timeout_of_the_members_counts() -> None:
    world = World()
    fields = {"session_timeout_ms": 60_000}
    leader, follower = world.stable("a", "b", rebalance_timeout_ms=6_000, **fields)
    world.ask(join(member_id=follower, rebalance_timeout_ms=9_000, protocols={"range": b"x"}, **fields), 9)
    world.pass_time(8_999)
    assert leader in world.group().members
    world.pass_time(1)
    assert leader not in world.group().members


def test_another_member_leads_when_the_leader_is_late() -> None:
    world = World()
    fields = {"rebalance_timeout_ms": 6_000, "session_timeout_ms": 60_000}
    leader, follower = world.stable("a", "b", **fields)
    waiting = world.ask(join(member_id=follower, protocols={"range": b"changed"}, **fields), 9)
    world.pass_time(6_000)
    response = world.replies[waiting]
    assert (response.leader, [member.member_id for member in response.members]) == (follower, [follower])
    assert leader not in world.group().members


def test_static_members_stay_although_they_do_not_rejoin() -> None:
    world = World()
    fields = {"rebalance_timeout_ms": 6_000, "session_timeout_ms": 20_000}
    world.call(join(group_instance_id="i1", **fields), 9)
    world.sync_all()
    (first,) = world.group().members
    second = world.ask(join(group_instance_id="i2", **fields), 9)
    world.pass_time(6_000)
    response = world.replies[second]
    assert response.error_code == ErrorCode.NONE
    assert {member.group_instance_id for member in response.members} == {"i1", "i2"}
    assert response.leader == response.member_id, "who waits leads, not who is away"
    assert first in world.group().members


def test_where_nobody_rejoins_another_rebalance_timeout_is_waited_for() -> None:
    world = World()
    fields = {"rebalance_timeout_ms": 6_000, "session_timeout_ms": 60_000}
    world.call(join(group_instance_id="i1", **fields), 9)
    world.sync_all()
    given = world.call(join(**fields), 9).member_id
    world.ask(join(member_id=given, **fields), 9)
    world.call(leave("g", given))
    world.pass_time(6_000)
    assert world.state() == "PreparingRebalance"
    (static,) = world.group().members
    assert world.call(join(member_id=static, group_instance_id="i1", **fields), 9).generation_id == 2


def test_a_first_join_that_nobody_waits_for_any_more_ends_after_five_minutes() -> None:
    world = World()
    fields = {"rebalance_timeout_ms": 1_800_000, "session_timeout_ms": 1_800_000}
    (leader,) = world.stable("a", **fields)
    given = world.call(join(**fields), 9).member_id
    waiting = world.ask(join(member_id=given, **fields), 9)
    world.pass_time(299_999)
    assert world.is_waiting(waiting)
    world.pass_time(1)
    assert world.replies[waiting].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.replies[waiting].member_id == ""
    assert list(world.group().members) == [leader]


def test_a_session_that_ends_in_a_rebalance_lets_it_go_on() -> None:
    world = World()
    leader, follower = world.stable("a", "b", rebalance_timeout_ms=60_000, session_timeout_ms=10_000)
    waiting = world.ask(join(member_id=leader), 9)
    world.pass_time(10_000)
    assert world.replies[waiting].generation_id == 3
    assert list(world.group().members) == [leader]
    assert follower not in world.group().members


def test_g03_every_completed_rebalance_is_one_generation() -> None:
    world = World()
    seen = [world.call(join(), 3).generation_id]
    leader = world.group().leader_id
    for number in range(5):
        ticket = world.ask(join(), 3, f"c{number}")
        world.rejoin_all()
        seen.append(world.replies[ticket].generation_id)
        world.sync_all()
    assert seen == [1, 2, 3, 4, 5, 6]
    assert world.group().leader_id == leader


# --- static members ---------------------------------------------------------------------------


def restarted(world: World, instance_id: str, api_version: int = 9, **fields: object) -> int:
    """A static member comes back without its member id; returns the ticket."""
    return world.ask(join(group_instance_id=instance_id, **fields), api_version)


def static_pair(world: World, **fields: object) -> tuple[str, str]:
    """Two static members i1 (leader) and i2, Stable; returns their member ids."""
    world.call(join(group_instance_id="i1", **fields), 9)
    world.ask(join(group_instance_id="i2", **fields), 9)
    for member_id in [world.group().static_members["i1"]]:
        world.ask(join(member_id=member_id, group_instance_id="i1", **fields), 9)
    world.sync_all()
    return world.group().static_members["i1"], world.group().static_members["i2"]


@pytest.mark.parametrize("instance_id", ["i1", "i2"])
def test_g06_a_restarted_static_member_is_given_a_new_id_without_a_rebalance(instance_id: str) -> None:
    world = World()
    old = dict(zip(("i1", "i2"), static_pair(world), strict=True))[instance_id]
    generation = world.group().generation_id
    response = world.replies[restarted(world, instance_id)]
    assert (response.error_code, response.generation_id) == (ErrorCode.NONE, generation)
    assert response.member_id not in ("", old)
    assert world.state() == "Stable"
    leads = instance_id == "i1"
    assert (response.skip_assignment, len(response.members)) == (leads, 2 if leads else 0)
    assert response.leader == world.group().static_members["i1"]
    assert world.call(sync("g", response.member_id, generation)).assignment == old.encode()


@pytest.mark.parametrize("api_version", [5, 8])
def test_an_older_restarted_leader_is_told_that_its_old_id_leads(api_version: int) -> None:
    world = World()
    old, _ = static_pair(world)
    response = world.replies[restarted(world, "i1", api_version)]
    assert (response.leader, response.members, response.skip_assignment) == (old, [], False)
    assert world.group().leader_id == response.member_id


def test_g06_the_old_id_of_a_restarted_static_member_is_fenced_everywhere() -> None:
    world = World()
    old, _ = static_pair(world)
    restarted(world, "i1")
    generation = world.group().generation_id
    assert world.code(heartbeat("g", old, generation, "i1")) is ErrorCode.FENCED_INSTANCE_ID
    assert world.code(heartbeat("g", old, generation + 9, "i1")) is ErrorCode.FENCED_INSTANCE_ID
    assert world.code(sync("g", old, generation, group_instance_id="i1")) is ErrorCode.FENCED_INSTANCE_ID
    assert world.code(join(member_id=old, group_instance_id="i1"), 9) is ErrorCode.FENCED_INSTANCE_ID
    left = world.call(leave("g", (old, "i1")))
    assert left.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_waiting_request_of_the_old_id_is_fenced() -> None:
    world = World()
    old, other = static_pair(world)
    waiting = world.ask(join(member_id=old, group_instance_id="i1"), 9)
    newer = restarted(world, "i1")
    assert world.replies[waiting].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert world.is_waiting(newer)
    world.ask(join(member_id=other, group_instance_id="i2"), 9)
    assert world.replies[newer].generation_id == 3


def test_a_restart_while_syncing_means_another_rebalance() -> None:
    world = World()
    old, other = static_pair(world)
    world.ask(join(member_id=old, group_instance_id="i1"), 9)
    world.ask(join(member_id=other, group_instance_id="i2"), 9)
    syncing = world.ask(sync("g", other, 3, group_instance_id="i2"))
    newer = restarted(world, "i2")
    assert world.replies[syncing].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert world.is_waiting(newer)
    assert world.state() == "PreparingRebalance"


def test_a_restart_that_changes_the_protocol_means_a_rebalance() -> None:
    world = World()
    static_pair(world, protocols=("range", "sticky"))
    newer = restarted(world, "i2", protocols=("sticky",))
    assert world.is_waiting(newer)
    assert world.state() == "PreparingRebalance"


def test_a_restarted_static_member_is_stored_at_once() -> None:
    world = World()
    static_pair(world)
    response = world.replies[restarted(world, "i2")]
    world.reload()
    assert world.group().static_members["i2"] == response.member_id


# --- fail-over --------------------------------------------------------------------------------


def test_a_stored_generation_comes_back_stable_and_its_sessions_start_anew() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.pass_time(9_000)
    world.reload()
    assert world.state() == "Stable"
    assert world.call(sync("g", follower, 2)).assignment == follower.encode()
    world.pass_time(9_999)
    assert world.code(heartbeat("g", leader, 2)) is ErrorCode.NONE
    world.pass_time(1)
    assert set(world.group().members) == {leader}


def test_a_rebalance_is_forgotten_by_a_fail_over() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader), 9)
    world.reload()
    assert (world.state(), world.group().generation_id) == ("Stable", 2)
    assert world.code(heartbeat("g", follower, 2)) is ErrorCode.NONE


def test_a_group_that_only_gave_out_an_id_survives_a_fail_over_as_empty() -> None:
    world = World()
    given = world.call(join(), 9).member_id
    world.reload()
    assert world.state() == "Empty"
    assert world.code(join(member_id=given), 9) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_beyond_a_lowered_limit_rebalances_when_loaded() -> None:
    world = World()
    world.stable("a", "b", "c")
    world.settings = GroupSettings(group_max_size=2)
    world.reload()
    assert world.state() == "PreparingRebalance"
    assert any("group.max.size 2" in event for event in world.events())
