"""JoinGroup: each refusal in its order, then who waits, who leads and what is chosen."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.classic_group import VALID_PREVIOUS_STATES, ClassicGroup, ClassicGroupState
from coordinator.group.context import GroupSettings
from coordinator.group.validation import check_group_id, check_session_timeout
from tests.coordinator.group.shard_world import World, heartbeat, join, leave, subscription, sync
from wire.errors import ErrorCode, KafkaError

# --- refusals ---------------------------------------------------------------------------------


def test_an_empty_group_id_is_invalid() -> None:
    with pytest.raises(KafkaError) as refused:
        check_group_id("")
    assert refused.value.code is ErrorCode.INVALID_GROUP_ID
    check_group_id("g")


@pytest.mark.parametrize("session_timeout_ms", [5_999, 1_800_001, 0, -1])
def test_session_timeouts_outside_of_the_limits_are_invalid(session_timeout_ms: int) -> None:
    with pytest.raises(KafkaError) as refused:
        check_session_timeout(session_timeout_ms, GroupSettings())
    assert refused.value.code is ErrorCode.INVALID_SESSION_TIMEOUT
    assert str(session_timeout_ms) in str(refused.value)
    for allowed in (6_000, 1_800_000):
        check_session_timeout(allowed, GroupSettings())


@pytest.mark.parametrize(
    ("fields", "code", "answered_id"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID, "nobody"),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        ({"member_id": "nobody", "protocol_type": ""}, ErrorCode.UNKNOWN_MEMBER_ID, "nobody"),
    ],
)
def test_refusals_of_a_group_that_does_not_exist(fields: dict[str, Any], code: ErrorCode, answered_id: str) -> None:
    response = World().call(join(**fields), 9)
    assert (response.error_code, response.member_id) == (code, answered_id)
    assert (response.generation_id, response.leader, response.protocol_name) == (-1, "", None)


@pytest.mark.parametrize(
    ("fields", "code", "answered_id"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID, "nobody"),
        ({"member_id": "nobody", "protocols": ("other",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "nobody"),
        ({"member_id": "nobody", "group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID, "nobody"),
        ({"protocols": ("other",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
    ],
)
def test_refusals_of_a_stable_group(fields: dict[str, Any], code: ErrorCode, answered_id: str) -> None:
    world = World()
    world.stable("a")
    response = world.call(join(**fields), 9)
    assert (response.error_code, response.member_id) == (code, answered_id)
    assert world.state() == "Stable", "a refused join starts no rebalance"


def test_a_full_group_is_said_before_an_unfit_protocol() -> None:
    world = World(GroupSettings(group_max_size=1))
    (member_id,) = world.stable("a")
    response = world.call(join(protocols=("other",)), 9)
    assert (response.error_code, response.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    again = world.call(join(member_id=member_id), 9)
    assert again.error_code == ErrorCode.NONE, "members of a full group may rejoin"


def test_a_full_group_keeps_out_the_last_to_rejoin() -> None:
    world = World(GroupSettings(group_max_size=2))
    world.stable("a")
    (leader,) = world.group().members
    tickets = [world.ask(join(member_id=world.call(join(), 9).member_id), 9) for _ in range(2)]
    late = world.call(join(member_id=leader), 9)
    assert (late.error_code, late.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert leader not in world.group().members
    world.pass_time(60_000)
    assert [world.replies[ticket].generation_id for ticket in tickets] == [2, 2]


def test_the_right_instance_id_with_a_wrong_member_id_is_fenced() -> None:
    world = World()
    held = world.call(join(group_instance_id="i"), 9).member_id
    world.sync_all()
    response = world.call(join(member_id="old", group_instance_id="i"), 9)
    assert (response.error_code, response.member_id) == (ErrorCode.FENCED_INSTANCE_ID, "old")
    assert held in world.group().members


def test_an_id_that_was_given_out_is_not_for_static_members() -> None:
    world = World()
    given = world.call(join(), 9).member_id
    assert world.code(join(member_id=given, group_instance_id="i"), 9) is ErrorCode.UNKNOWN_SERVER_ERROR


# --- ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("api_version", [4, 5, 6, 7, 8, 9])
def test_g17_new_dynamic_members_get_an_id_first(api_version: int) -> None:
    world = World()
    response = world.call(join(), api_version, "me")
    assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert response.member_id.startswith("me-")
    assert len(response.member_id) == len("me-") + 36
    assert (world.state(), world.group().generation_id) == ("Empty", 0)
    joined = world.call(join(member_id=response.member_id), api_version, "me")
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize("api_version", [0, 1, 2, 3])
def test_g17_older_clients_join_at_once(api_version: int) -> None:
    response = World().call(join(), api_version, "me")
    assert (response.error_code, response.generation_id) == (ErrorCode.NONE, 1)
    assert response.member_id.startswith("me-")


def test_g17_static_members_join_at_once() -> None:
    response = World().call(join(group_instance_id="i1"), 5, "me")
    assert response.error_code == ErrorCode.NONE
    assert response.member_id.startswith("i1-")


def test_g17_an_unused_id_ends_with_the_session_timeout() -> None:
    world = World()
    given = world.call(join(), 9).member_id
    world.pass_time(9_999)
    assert given in world.group().pending_joins
    world.pass_time(1)
    assert world.code(join(member_id=given), 9) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_ids_that_were_given_out() -> None:
    world = World()
    (leader,) = world.stable("a")
    given = world.call(join(), 9).member_id
    waiting = world.ask(join(member_id=leader), 9)
    assert world.is_waiting(waiting)
    other = world.ask(join(member_id=given), 9)
    assert world.replies[waiting].generation_id == world.replies[other].generation_id == 2


def test_an_id_given_out_and_not_used_ends_the_wait_of_others() -> None:
    world = World()
    (leader,) = world.stable("a")
    world.call(join(), 9)
    waiting = world.ask(join(member_id=leader), 9)
    world.pass_time(10_000)
    assert world.replies[waiting].generation_id == 2


def test_an_id_given_out_may_leave() -> None:
    world = World()
    (leader,) = world.stable("a")
    given = world.call(join(), 9).member_id
    waiting = world.ask(join(member_id=leader), 9)
    response = world.call(leave("g", given))
    assert [member.error_code for member in response.members] == [ErrorCode.NONE]
    assert world.replies[waiting].generation_id == 2


def test_version_0_takes_the_session_timeout_for_the_rebalance_timeout() -> None:
    world = World()
    world.call(join(rebalance_timeout_ms=-1, session_timeout_ms=7_000), 0)
    (member,) = world.group().members.values()
    assert member.rebalance_timeout_ms == 7_000


# --- answers ----------------------------------------------------------------------------------


def test_only_the_leader_is_told_the_members() -> None:
    world = World()
    world.stable("a")
    given = world.call(join(), 9).member_id
    second = world.ask(join(member_id=given, protocols={"range": b"second"}), 9)
    leader_id = world.group().leader_id
    first = world.call(join(member_id=leader_id, protocols={"range": b"first"}), 9)
    assert first.leader == leader_id
    assert {member.member_id: member.metadata for member in first.members} == {leader_id: b"first", given: b"second"}
    follower = world.replies[second]
    assert (follower.leader, follower.members, follower.skip_assignment) == (leader_id, [], False)
    assert (follower.protocol_type, follower.protocol_name, follower.generation_id) == ("consumer", "range", 2)


def test_a_member_that_joins_again_before_the_sync_gets_the_same_answer() -> None:
    world = World()
    given = world.call(join(), 9).member_id
    first = world.call(join(member_id=given), 9)
    again = world.call(join(member_id=given), 9)
    assert again == first


def test_a_follower_that_rejoins_unchanged_gets_the_present_generation() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    response = world.call(join(member_id=follower), 9)
    assert (response.error_code, response.generation_id, response.leader) == (0, 2, leader)
    assert response.members == []
    assert world.state() == "Stable"


@pytest.mark.parametrize("who", ["leader", "changed follower"])
def test_a_leader_or_changed_protocols_mean_a_rebalance(who: str) -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    if who == "leader":
        waiting = world.ask(join(member_id=leader), 9)
    else:
        waiting = world.ask(join(member_id=follower, protocols={"range": subscription("t", "u")}), 9)
    assert world.state() == "PreparingRebalance"
    assert world.is_waiting(waiting)


def test_changed_protocols_while_syncing_mean_another_rebalance() -> None:
    world = World()
    given = world.call(join(), 9).member_id
    world.call(join(member_id=given), 9)
    changed = world.call(join(member_id=given, protocols={"range": b"other"}), 9)
    assert changed.generation_id == 2


def test_a_retry_on_another_connection_takes_over_the_wait() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    abandoned = world.ask(join(member_id=leader), 9)
    retried = world.ask(join(member_id=leader), 9)
    assert world.replies[abandoned].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.ask(join(member_id=follower), 9)
    assert world.replies[retried].generation_id == 3


# --- protocol choice --------------------------------------------------------------------------


def test_g04_the_chosen_protocol_is_one_that_all_members_have() -> None:
    world = World()
    a = world.call(join(protocols=("cooperative-sticky", "range")), 3, "a")
    waiting = world.ask(join(protocols=("range", "roundrobin")), 3, "b")
    rejoined = world.call(join(member_id=a.member_id, protocols=("cooperative-sticky", "range")), 3)
    assert (rejoined.protocol_name, world.replies[waiting].protocol_name) == ("range", "range")
    assert world.code(join(protocols=("sticky",)), 3) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_every_member_votes_for_the_first_protocol_that_all_have() -> None:
    world = World()
    preferences = [("x", "y"), ("y", "x"), ("z", "y", "x")]
    first = world.call(join(protocols=preferences[0]), 3)
    for each in preferences[1:]:
        world.ask(join(protocols=each), 3)
    response = world.call(join(member_id=first.member_id, protocols=preferences[0]), 3)
    assert response.protocol_name == "y"


def test_an_empty_group_takes_a_new_protocol_type() -> None:
    world = World()
    (member_id,) = world.stable("a")
    world.call(leave("g", member_id))
    assert world.describe().protocol_type == "consumer"
    world.call(join(protocol_type="connect", protocols=("default",)), 3)
    assert world.describe().protocol_type == "connect"


# --- the table of states ----------------------------------------------------------------------


def test_the_state_table_is_kafkas() -> None:
    table = {state.value: sorted(each.value for each in before) for state, before in VALID_PREVIOUS_STATES.items()}
    assert table == {
        "Empty": ["PreparingRebalance"],
        "PreparingRebalance": ["CompletingRebalance", "Empty", "Stable"],
        "CompletingRebalance": ["PreparingRebalance"],
        "Stable": ["CompletingRebalance"],
    }


def test_a_rejoin_of_an_empty_group_is_an_unknown_member() -> None:
    group = ClassicGroup("g")
    assert group.state is ClassicGroupState.EMPTY
    world = World()
    (member_id,) = world.stable("a")
    world.call(leave("g", member_id))
    assert world.code(join(member_id=member_id), 9) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(heartbeat("g", member_id, 2)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(sync("g", member_id, 2)) is ErrorCode.UNKNOWN_MEMBER_ID
