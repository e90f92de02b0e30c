"""The log refuses a write: who is told what, and what holds in memory (G5, G18)."""

from __future__ import annotations

import pytest

from coordinator.group.context import GroupSettings
from tests.coordinator.group.shard_world import World, commit, commit_in_transaction, heartbeat, join, leave, sync
from wire.errors import ErrorCode, KafkaError
from wire.messages.delete_groups import DeleteGroupsRequest

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def refused(world: World) -> World:
    """The next append is refused."""
    world.refuse_with = NOT_AVAILABLE
    return world


@pytest.mark.parametrize("api_version", [3, 9])
def test_a_group_that_cannot_be_stored_does_not_exist(api_version: int) -> None:
    world = refused(World())
    answer = world.call(join(), api_version)
    assert isinstance(answer, KafkaError)
    assert answer.code is NOT_AVAILABLE
    assert not world.exists()
    assert world.call(join(), 3).generation_id == 1


@pytest.mark.parametrize(
    "request_",
    [commit(), commit_in_transaction(7, 1), DeleteGroupsRequest(groups_names=["g"])],
    ids=["commit", "transactional commit", "delete"],
)
def test_a_refused_request_is_answered_and_nothing_has_changed(request_: object) -> None:
    world = World()
    world.call(commit(offsets={("t", 0): 9}))
    answer = refused(world).call(request_, 3)
    assert isinstance(answer, KafkaError)
    assert answer.code is NOT_AVAILABLE
    assert world.fetch_stable() == (9, ErrorCode.NONE)


def test_g18_an_assignment_that_cannot_be_stored_makes_everybody_join_again() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader), 9)
    world.rejoin_all()
    waiting = world.ask(sync("g", follower, 3))
    own = refused(world).call(sync("g", leader, 3, {leader: b"l", follower: b"f"}))
    assert (own.error_code, own.assignment) == (NOT_AVAILABLE, b"")
    assert world.replies[waiting].error_code == NOT_AVAILABLE
    assert world.state() == "PreparingRebalance"
    assert world.code(heartbeat("g", follower, 3)) is ErrorCode.REBALANCE_IN_PROGRESS
    assert any("could not be stored: COORDINATOR_NOT_AVAILABLE" in event for event in world.events())
    world.ask(join(member_id=leader), 9)
    assert world.call(join(member_id=follower), 9).generation_id == 4


def test_a_static_member_that_cannot_be_stored_keeps_its_old_id() -> None:
    world = World()
    old = world.call(join(group_instance_id="i"), 9).member_id
    world.sync_all()
    answer = refused(world).call(join(group_instance_id="i"), 9)
    assert (answer.error_code, answer.member_id) == (NOT_AVAILABLE, "")
    assert (answer.generation_id, answer.leader, answer.protocol_name) == (1, old, "range")
    assert world.code(heartbeat("g", old, 1, "i")) is ErrorCode.NONE


def test_a_member_has_left_also_if_the_empty_group_cannot_be_stored() -> None:
    world = World()
    (member_id,) = world.stable("a")
    answer = refused(world).call(leave("g", member_id))
    assert isinstance(answer, KafkaError)
    assert answer.code is NOT_AVAILABLE
    assert world.state() == "Empty"
    world.reload()
    assert world.state() == "Stable", "after a fail-over the last stored generation comes back"
    world.pass_time(10_000)
    assert world.state() == "Empty", "and times out again"


def test_a_timeout_holds_also_if_the_empty_group_cannot_be_stored() -> None:
    world = World()
    world.stable("a")
    refused(world).pass_time(10_000)
    assert world.refuse_with is None, "the write was tried"
    assert world.state() == "Empty"


def test_expiry_that_is_refused_is_tried_again_at_the_next_look() -> None:
    world = World(GroupSettings(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=10_000))
    world.call(commit())
    refused(world).pass_time(60_000)
    assert world.offset() == 1
    world.pass_time(10_000)
    assert world.offset() == -1


def test_other_members_that_wait_are_answered_when_a_leave_is_refused() -> None:
    world = World()
    (leader,) = world.stable("a")
    given = world.call(join(), 9).member_id
    waiting = world.ask(join(member_id=leader), 9)
    answer = refused(world).call(leave("g", given, leader))
    assert world.replies[waiting].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(answer, KafkaError)
    assert world.state() == "Empty"
