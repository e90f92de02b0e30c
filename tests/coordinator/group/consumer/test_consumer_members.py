"""Static members, leaving, sessions and rebalance timeouts, fail-over."""

from __future__ import annotations

import pytest

from coordinator.group.consumer_member import MemberState
from coordinator.machine import CoordinatorRecord
from tests.coordinator.group.consumer.consumer_world import (
    SESSION_TIMEOUT_MS,
    Client,
    assigned,
    beat,
    call,
    check_replay,
    code,
    enter,
    epochs,
    group_of,
    image_of,
    settle,
    topic_id,
    world_of,
)
from tests.coordinator.group.shard_world import CODEC, Logged, World
from tests.coordinator.group.shard_world import leave as classic_leave
from wire.errors import ErrorCode
from wire.messages.records.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
)

T = topic_id("t")


# --- static members (H11) --------------------------------------------------------------------------


def test_h11_a_static_member_keeps_its_partitions_through_a_restart() -> None:
    world = world_of({"t": 4})
    a, b = Client(world, "a", {"instance_id": "i"}), Client(world, "b", {"instance_id": "j"})
    a.join("t")
    b.join("t")
    settle(a, b)
    before = epochs(world)
    response = call(world, beat("a", -2, instance_id="i"))
    assert (response.member_id, response.member_epoch) == ("a", -2)
    assert group_of(world).members["a"].member_epoch == -2
    assert epochs(world) == before, "nobody else is told"
    again = Client(world, "c", {"instance_id": "i"})
    assert assigned(again.join("t")) == a.owned
    assert again.member_epoch == before[1]
    assert epochs(world) == before
    assert set(group_of(world).members) == {"b", "c"}
    assert code(world, beat("a", 3, instance_id="i")) is ErrorCode.FENCED_INSTANCE_ID
    assert code(world, beat("a", 3)) is ErrorCode.UNKNOWN_MEMBER_ID
    check_replay(world)


def test_h11_a_place_is_kept_until_the_session_ends() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", instance_id="i"))
    world.pass_time(10_000)
    call(world, beat("a", -2, instance_id="i"))
    world.pass_time(SESSION_TIMEOUT_MS - 10_001)
    assert "a" in group_of(world).members
    world.pass_time(1)
    assert not group_of(world).members, "counted from the last heartbeat, not from leaving"
    assert call(world, enter("b", "t", instance_id="i")).member_epoch == 4


def test_h11_a_static_member_may_leave_for_good() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", instance_id="i"))
    assert call(world, beat("a", -1, instance_id="i")).member_epoch == -1
    assert not group_of(world).members
    assert code(world, beat("a", -1, instance_id="i")) is ErrorCode.UNKNOWN_MEMBER_ID
    check_replay(world)


def test_h11_who_takes_over_with_other_topics_gives_up_what_it_was_kept() -> None:
    world = world_of({"t": 2, "u": 1})
    call(world, enter("a", "t", instance_id="i"))
    call(world, beat("a", -2, instance_id="i"))
    response = call(world, enter("b", "u", instance_id="i"))
    assert assigned(response) == {topic_id("u"): [0]}, "it owns nothing, so there is nothing to wait for"
    assert epochs(world) == (3, 3)


def test_h11_commits_of_who_takes_over_count_from_epoch_0() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t", instance_id="i"))
    assert group_of(world).members["a"].assigned == {T: {0: 2}}
    call(world, beat("a", -2, instance_id="i"))
    call(world, enter("b", "t", instance_id="i"))
    assert group_of(world).members["b"].assigned == {T: {0: 0}}


def test_a_member_that_left_for_a_while_may_not_stay_by_its_old_epoch() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t", instance_id="i"))
    call(world, beat("a", -2, instance_id="i"))
    assert code(world, beat("a", 2, instance_id="i")) is ErrorCode.FENCED_MEMBER_EPOCH
    assert call(world, enter("a", "t", instance_id="i")).member_epoch == 2, "but join again under its own id"


def test_an_administrator_removes_members_by_the_classic_request() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", instance_id="i"))
    call(world, enter("b", "t"))
    response = world.call(classic_leave("g", ("", "i"), "b", "nobody", ("x", "i"), ("", "k")), 5)
    codes = [ErrorCode(each.error_code) for each in response.members]
    expected = [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert codes == expected
    assert not group_of(world).members
    assert epochs(world) == (4, 4), "one step for all of them"
    check_replay(world)


# --- sessions (H9) -----------------------------------------------------------------------------------


def test_h9_a_silent_member_is_fenced_when_its_session_ends() -> None:
    world = world_of({"t": 2})
    a, b = Client(world, "a"), Client(world, "b")
    a.join("t")
    b.join("t")
    settle(a, b)
    world.pass_time(30_000)
    a.beat()
    world.pass_time(SESSION_TIMEOUT_MS - 30_001)
    assert "b" in group_of(world).members
    world.pass_time(1)
    assert set(group_of(world).members) == {"a"}
    assert code(world, beat("b", 3)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.events()[-1] == (
        "group g: a rebalance to epoch 4 begins: member b (client client) was removed: "
        "session timeout after 45000 ms without a heartbeat"
    )
    a.beat()
    assert a.count == 2
    check_replay(world)


def test_h9_the_group_stays_when_its_last_member_is_fenced() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    world.pass_time(SESSION_TIMEOUT_MS)
    assert group_of(world).state_name == "Empty"
    assert epochs(world) == (3, 3)
    assert world.shard.next_deadline_ms() is not None, "offsets may expire"


def test_h9_who_does_not_give_up_in_time_is_fenced_though_it_is_alive() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", rebalance_timeout_ms=20_000))
    call(world, enter("b", "t"))
    call(world, beat("a", 2))
    for _ in range(3):
        world.pass_time(5_000)
        call(world, beat("a", 2))
        call(world, beat("b", 3))
    world.pass_time(4_999)
    assert "a" in group_of(world).members
    world.pass_time(1)
    assert set(group_of(world).members) == {"b"}
    assert "failed to leave epoch 2 within 20000 ms" in world.events()[-1]
    assert assigned(call(world, beat("b", 3))) == {T: [0, 1]}


def test_h9_giving_up_in_time_ends_the_timeout() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", rebalance_timeout_ms=20_000))
    call(world, enter("b", "t"))
    call(world, beat("a", 2))
    call(world, beat("a", 2, owned={T: [0]}))
    world.pass_time(20_000)
    assert set(group_of(world).members) == {"a", "b"}


def test_h9_leaving_for_a_while_ends_the_timeout_too() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", rebalance_timeout_ms=5_000, instance_id="i"))
    call(world, enter("b", "t"))
    call(world, beat("a", 2, instance_id="i"))
    call(world, beat("a", -2, instance_id="i"))
    assert assigned(call(world, beat("b", 3))) == {T: [1]}, "what it was to give up, it has given up"
    world.pass_time(5_000)
    assert set(group_of(world).members) == {"a", "b"}
    assert group_of(world).rebalance_deadlines == {}


# --- fail-over (H19) -------------------------------------------------------------------------------


def revoking() -> World:
    """A group of two, of which a is to give up one of two partitions within 10 s."""
    world = world_of({"t": 2})
    call(world, enter("a", "t", rebalance_timeout_ms=10_000))
    call(world, enter("b", "t"))
    call(world, beat("a", 2))
    return world


def test_h19_after_a_load_sessions_begin_anew() -> None:
    world = revoking()
    world.pass_time(9_000)
    world.reload()
    world.pass_time(9_999)
    assert set(group_of(world).members) == {"a", "b"}
    world.pass_time(1)
    assert set(group_of(world).members) == {"b"}, "the time for giving up began anew too"
    world.pass_time(SESSION_TIMEOUT_MS - 10_000)
    assert not group_of(world).members


def test_h19_members_go_on_where_they_were() -> None:
    world = revoking()
    world.reload()
    assert group_of(world).members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert call(world, beat("a", 2, owned={T: [0]})).member_epoch == 3
    assert assigned(call(world, beat("b", 3))) == {T: [1]}
    check_replay(world)


def test_records_of_kafka_before_4_3_have_no_epochs_of_partitions() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t", instance_id="i"))
    for member_epoch, expected in ((2, 2), (-2, 0)):
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member_epoch,
            previous_member_epoch=1,
            assigned_partitions=[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(topic_id=T, partitions=[0])],
        )
        key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
        world.log.append(Logged(*CODEC.encode(CoordinatorRecord(key, value))))
        world.reload()
        assert group_of(world).members["a"].assigned == {T: {0: expected}}


# --- writes that are refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        enter("c", "t"),
        beat("a", 4, owned={T: [0]}),
        beat("a", 4, subscribed_topic_names=[]),
        beat("b", -1),
        beat("s", -2, instance_id="i"),
        classic_leave("g", "a", "b"),
    ],
)
def test_what_could_not_be_written_has_not_happened(request_: object) -> None:
    world = world_of({"t": 2})
    call(world, enter("s", "t", instance_id="i"))
    call(world, beat("s", -1, instance_id="i"))
    call(world, enter("a", "t"))
    call(world, enter("b", "t"))
    call(world, enter("s", instance_id="i"))
    before = group_of(world)
    world.refuse_with = ErrorCode.NOT_COORDINATOR
    assert code(world, request_) is ErrorCode.NOT_COORDINATOR
    assert group_of(world) is before
    check_replay(world)


def test_a_fence_that_could_not_be_written_is_tried_again() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    world.refuse_with = ErrorCode.NOT_COORDINATOR
    world.pass_time(SESSION_TIMEOUT_MS)
    assert "a" in group_of(world).members
    world.pass_time(499)
    assert "a" in group_of(world).members
    world.pass_time(1)
    assert not group_of(world).members


def test_a_heartbeat_in_between_saves_the_member() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    world.refuse_with = ErrorCode.NOT_COORDINATOR
    world.pass_time(SESSION_TIMEOUT_MS + 100)
    call(world, beat("a", 2))
    world.pass_time(SESSION_TIMEOUT_MS - 1)
    assert "a" in group_of(world).members


def test_a_group_at_rest_wakes_for_sessions_only() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    for _ in range(20):
        world.pass_time(5_000)
        call(world, beat("a", 2))
    deadline_ms = world.shard.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms > world.now_ms
    world.image = image_of({"t": 1}, offset=9)
    call(world, beat("a", 2))
    assert epochs(world) == (2, 2), "another image of the same topics changes nothing"
