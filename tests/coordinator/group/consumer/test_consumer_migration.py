"""Groups that change their kind while members are in them (G40 to G45)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.classic_group import ClassicGroup
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_protocol import read_assignment
from tests.coordinator.group.consumer.consumer_world import (
    SESSION_TIMEOUT_MS,
    assigned,
    beat,
    call,
    check_replay,
    code,
    enter,
    epochs,
    group_of,
    topic_id,
    world_of,
)
from tests.coordinator.group.shard_world import World, commit, heartbeat, join, leave, sync
from tests.coordinator.group.shard_world import subscription as old_subscription
from wire.errors import ErrorCode, KafkaError
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)

T = topic_id("t")
AGAIN = ErrorCode.REBALANCE_IN_PROGRESS


def subscription(*topics: str, owned: dict[str, list[int]] | None = None, version: int = 3) -> bytes:
    pairs = [
        ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=each)
        for topic, each in (owned or {}).items()
    ]
    body = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=pairs)
    return version.to_bytes(2, "big") + body.encode(version)


def assignment(partitions: list[int], user_data: bytes | None = None, topic: str = "t") -> bytes:
    pairs = [ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)]
    return b"\0\0" + ConsumerProtocolAssignment(assigned_partitions=pairs, user_data=user_data).encode(0)


def rejoin(member_id: str, owned: list[int], **fields: Any) -> Any:
    """JoinGroup of a member by the classic protocol that says what it owns."""
    data = subscription("t", owned={"t": owned} if owned else {})
    return join("g", member_id, protocols={"range": data}, **fields)


def classic_pair(world: World) -> tuple[str, str]:
    """A stable classic group of two, which share four partitions; the leader first."""
    protocols = {"range": subscription("t"), "roundrobin": subscription("t")}
    first, second = world.stable("one", "two", protocols=protocols)
    group = world.group()
    given = {first: assignment([0, 1]), second: assignment([2, 3])}
    world.ask(join("g", first, protocols=protocols), 9)
    world.ask(join("g", second, protocols=protocols), 9)
    group = world.group()
    world.ask(sync("g", second, group.generation_id), 5)
    world.ask(sync("g", first, group.generation_id, given), 5)
    assert world.group().state_name == "Stable"
    return first, second


# --- up (G40) --------------------------------------------------------------------------------------------


def test_g40_members_keep_what_they_have_when_the_group_is_upgraded() -> None:
    world = world_of({"t": 4})
    first, second = classic_pair(world)
    generation = world.group().generation_id
    response = call(world, enter("new", "t"))
    group = group_of(world)
    assert response.member_epoch == generation + 1
    assert assigned(response) == {}, "everything is somebody's"
    for member_id, held in ((first, {0, 1}), (second, {2, 3})):
        member = group.members[member_id]
        assert (member.member_epoch, set(member.assigned[T])) == (generation, held)
        assert member.classic is not None
        assert member.classic.session_timeout_ms == 10_000
    assert epochs(world) == (generation + 1, generation + 1)
    check_replay(world)


def test_g40_a_static_member_that_takes_the_group_up_keeps_what_it_had() -> None:
    world = world_of({"t": 4})
    protocols = {"range": subscription("t")}
    leader = world.stable("one", protocols=protocols)[0]
    world.ask(join("g", "", protocols=protocols, group_instance_id="i"), 9)
    world.rejoin_all("g", protocols=protocols)
    group = world.group()
    static = group.static_members["i"]
    given = {leader: assignment([0, 1]), static: assignment([2, 3])}
    world.ask(sync("g", leader, group.generation_id, given), 5)
    response = call(world, enter("new", "t", instance_id="i"))
    assert response.member_epoch == group.generation_id
    assert assigned(response) == {T: [2, 3]}
    check_replay(world)


def test_g40_the_old_members_follow_by_joining() -> None:
    world = world_of({"t": 4})
    first, second = classic_pair(world)
    generation = world.group().generation_id
    call(world, enter("new", "t"))
    assert code(world, heartbeat("g", first, generation), 4) is AGAIN
    assert code(world, sync("g", first, generation), 5) is AGAIN
    joined = world.call(rejoin(first, [0, 1]), 9)
    assert (joined.member_id, joined.error_code, joined.leader, joined.members) == (first, 0, "", [])
    synced = world.call(sync("g", first, joined.generation_id), 5)
    kept = read_assignment(synced.assignment).assigned_partitions
    target = group_of(world).target_of(first)[T]
    assert {index for each in kept for index in each.partitions} == target & {0, 1}
    if joined.generation_id == generation:
        assert code(world, heartbeat("g", first, generation), 4) is AGAIN, "it is to give one up"
        joined = world.call(rejoin(first, sorted(target)), 9)
    world.call(sync("g", first, joined.generation_id), 5)
    assert code(world, heartbeat("g", first, joined.generation_id), 4) is ErrorCode.NONE
    assert world.call(commit(member_id=first, generation_id=joined.generation_id), 8).topics
    check_replay(world)


def test_g40_who_waits_in_a_rebalance_is_told_to_join_again() -> None:
    world = world_of({"t": 4})
    first, _ = classic_pair(world)
    waiting = world.ask(join("g", first, protocols={"range": subscription("t", "u")}), 9)
    assert world.is_waiting(waiting)
    call(world, enter("new", "t"))
    answer = world.replies[waiting]
    assert (answer.error_code, answer.member_id) == (AGAIN, first)
    assert world.call(rejoin(first, [0, 1]), 9).error_code == 0
    check_replay(world)


def test_g40_who_waits_for_the_leader_is_told_to_join_again() -> None:
    world = world_of({"t": 4})
    first, second = classic_pair(world)
    world.ask(join("g", first, protocols={"range": subscription("t", "u")}), 9)
    world.ask(join("g", second, protocols={"range": subscription("t", "u")}), 9)
    waiting = world.ask(sync("g", second, world.group().generation_id), 5)
    call(world, enter("new", "t"))
    assert world.replies[waiting].error_code == AGAIN
    check_replay(world)


@pytest.mark.parametrize(
    ("settings", "fields", "given", "why"),
    [
        ({"upgrade_enabled": False}, {}, assignment([0]), "group.consumer.migration.policy"),
        ({}, {"protocol_type": "connect"}, assignment([0]), "embedded protocol"),
        ({"group_max_size": 2}, {}, assignment([0]), None),
        ({}, {"protocols": {"range": b"\x00"}}, assignment([0]), "malformed"),
        ({}, {}, b"\xff\xff", "malformed"),
        ({}, {}, b"\x00\x00\x00", "malformed"),
        ({}, {}, assignment([0], b"x"), "user data"),
    ],
)
def test_g40_what_keeps_a_group_classic(
    settings: dict[str, Any], fields: dict[str, Any], given: bytes, why: str | None
) -> None:
    world = world_of({"t": 4}, **settings)
    member_id = world.stable("one", **{"protocols": {"range": old_subscription("t")}, **fields})[0]
    world.ask(join("g", member_id, **{"protocols": {"range": old_subscription("t")}, **fields}), 9)
    world.ask(sync("g", member_id, world.group().generation_id, {member_id: given}), 5)
    before = world.group()
    error = world.call(enter("new", "t"), 1)
    if why is None:
        assert error.error_code == 0, "two members are as many as may be"
        return
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert why in str(error.message)
    assert world.group() is before


def test_g40_an_empty_classic_group_gives_way_and_keeps_its_offsets() -> None:
    world = world_of({"t": 1})
    world.call(commit(), 9)
    call(world, enter("a", "t"))
    assert isinstance(world.shard.group("g"), ConsumerGroup)
    assert world.offset() == 1
    check_replay(world)


# --- classic members of consumer groups (G41 to G43, G45) ----------------------------------------------------


def test_g41_a_classic_member_joins_and_is_answered_at_once() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    asked = world.call(join("g", protocols={"range": subscription("t")}), 9)
    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = world.call(join("g", asked.member_id, protocols={"range": subscription("t")}), 9)
    assert (joined.error_code, joined.generation_id) == (0, 3)
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert len(world.call(join("g", protocols={"range": subscription("t")}), 3).member_id) == 22, "no round trip"
    check_replay(world)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": b""}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": b"\xff\xff"}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"sticky": old_subscription("t")}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({}, ErrorCode.NONE),
        ({"protocols": {"sticky": b"", "range": old_subscription("t")}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": old_subscription("t"), "sticky": b""}}, ErrorCode.NONE),
    ],
)
def test_g41_what_refuses_a_classic_member(fields: dict[str, Any], expected: ErrorCode) -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    world.call(join("g", "b", protocols={"range": subscription("t")}), 9)
    assert code(world, join("g", "m", **fields), 9) is expected


def test_g41_a_full_group_and_a_forbidden_migration_refuse() -> None:
    world = world_of({"t": 2}, group_max_size=1)
    call(world, enter("a", "t"))
    assert code(world, join("g", "m"), 9) is ErrorCode.GROUP_MAX_SIZE_REACHED
    world = world_of({"t": 2}, upgrade_enabled=False, downgrade_enabled=False)
    call(world, enter("a", "t"))
    assert code(world, join("g", "m"), 9) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    world = world_of({"t": 2}, upgrade_enabled=False)
    call(world, enter("a", "t"))
    assert code(world, join("g", "m"), 9) is ErrorCode.NONE, "one way of the two is enough"


def mixed(**settings: Any) -> World:
    """Consumer member a and classic member c share two partitions; all is settled at epoch 3."""
    world = world_of({"t": 2}, **settings)
    call(world, enter("a", "t"))
    world.call(rejoin("c", []), 9)
    call(world, beat("a", 2, owned={T: [0]}))
    assert code(world, heartbeat("g", "c", 3), 4) is AGAIN, "what it waited for is free"
    world.call(rejoin("c", []), 9)
    world.call(sync("g", "c", 3), 5)
    assert code(world, heartbeat("g", "c", 3), 4) is ErrorCode.NONE
    return world


@pytest.mark.parametrize(
    ("request_", "version", "expected"),
    [
        (heartbeat("g", "nobody", 3), 4, ErrorCode.UNKNOWN_MEMBER_ID),
        (heartbeat("g", "a", 3), 4, ErrorCode.UNKNOWN_MEMBER_ID),
        (heartbeat("g", "c", 2), 4, ErrorCode.ILLEGAL_GENERATION),
        (heartbeat("g", "c", 3, "i"), 4, ErrorCode.UNKNOWN_MEMBER_ID),
        (heartbeat("g", "c", 3), 4, ErrorCode.NONE),
        (sync("g", "a", 3), 5, ErrorCode.UNKNOWN_MEMBER_ID),
        (sync("g", "c", 4), 5, ErrorCode.ILLEGAL_GENERATION),
        (sync("g", "c", 3, protocol_type="connect"), 5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (sync("g", "c", 3, protocol_name="sticky"), 5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (sync("g", "c", 3, protocol_type="consumer", protocol_name="range"), 5, ErrorCode.NONE),
        (beat("c", 2), 1, ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_g42_and_g45_members_speak_their_own_protocol(request_: Any, version: int, expected: ErrorCode) -> None:
    assert code(mixed(), request_, version) is expected


def test_g43_the_assignment_is_written_in_the_version_of_the_subscription() -> None:
    for version in (0, 1, 3):
        world = world_of({"t": 1})
        call(world, enter("a", "t"))
        call(world, beat("a", 2, subscribed_topic_names=[], owned={}))
        data = subscription("t", version=version)
        generation = world.call(join("g", "c", protocols={"range": data}), 9).generation_id
        answer = world.call(sync("g", "c", generation), 5)
        assert int.from_bytes(answer.assignment[:2], "big") == version
        (topic,) = read_assignment(answer.assignment).assigned_partitions
        assert (topic.topic, topic.partitions) == ("t", [0])


def test_a_classic_member_has_a_session_of_its_own_and_is_timed_by_join_and_sync() -> None:
    world = mixed()
    world.pass_time(9_999)
    assert code(world, heartbeat("g", "c", 3), 4) is ErrorCode.NONE
    world.pass_time(10_000)
    assert set(group_of(world).members) == {"a"}, "its session is 10 s, as it said when it joined"


def test_who_does_not_join_again_in_time_is_fenced() -> None:
    world = mixed()
    call(world, beat("a", 3, server_assignor="range"))
    for _ in range(8):
        world.pass_time(8_000)
        call(world, beat("a", 4))
        assert code(world, heartbeat("g", "c", 3), 4) is AGAIN
    world.pass_time(3_999)
    assert set(group_of(world).members) == {"a", "c"}
    world.pass_time(1)
    assert set(group_of(world).members) == {"a"}
    assert "failed to join" in world.events()[-1]


def test_who_does_not_sync_in_time_is_fenced() -> None:
    world = mixed()
    world.call(rejoin("c", [1]), 9)
    for _ in range(7):
        world.pass_time(8_000)
        call(world, beat("a", 3))
        assert code(world, heartbeat("g", "c", 3), 4) is ErrorCode.NONE
    world.pass_time(4_000)
    assert "failed to sync" in world.events()[-1]


def test_a_classic_member_may_come_back_by_the_consumer_protocol() -> None:
    for request in (enter("c", "t"), beat("c", 3)):
        world = mixed()
        assert call(world, request).member_epoch == 3
        assert group_of(world).members["c"].classic is None
        check_replay(world)


# --- down (G44) ----------------------------------------------------------------------------------------------


def test_g44_the_group_becomes_classic_when_the_last_by_the_consumer_protocol_leaves() -> None:
    world = mixed()
    call(world, beat("a", -1))
    group = world.group()
    assert isinstance(group, ClassicGroup)
    assert (group.state_name, group.generation_id, list(group.members)) == ("PreparingRebalance", 3, ["c"])
    assert code(world, heartbeat("g", "c", 3), 4) is AGAIN
    joined = world.call(rejoin("c", [1]), 9)
    assert (joined.generation_id, joined.leader) == (4, "c")
    world.call(sync("g", "c", 4, {"c": assignment([0, 1])}), 5)
    assert world.group().state_name == "Stable"
    check_replay(world)


def test_g44_what_a_member_has_not_given_up_is_its_own_after_a_downgrade() -> None:
    """Up, down and up again before the old member was heard of: it owns all four partitions all the time."""
    world = world_of({"t": 4})
    member_id = world.stable("one", protocols={"range": subscription("t")})[0]
    world.ask(join("g", member_id, protocols={"range": subscription("t")}), 9)
    world.ask(sync("g", member_id, world.group().generation_id, {member_id: assignment([0, 1, 2, 3])}), 5)
    call(world, enter("a", "t"))
    call(world, beat("a", -1))
    kept = read_assignment(world.group().members[member_id].assignment).assigned_partitions
    assert [each.partitions for each in kept] == [[0, 1, 2, 3]]
    assert assigned(call(world, enter("b", "t"))) == {}


def test_g40_partitions_that_are_no_more_are_left_behind() -> None:
    world = world_of({"t": 1})
    member_id = world.stable("one", protocols={"range": subscription("t")})[0]
    world.ask(join("g", member_id, protocols={"range": subscription("t")}), 9)
    world.ask(sync("g", member_id, world.group().generation_id, {member_id: assignment([0, 1, 2, 3])}), 5)
    call(world, enter("a", "t"))
    assert group_of(world).members[member_id].assigned == {T: {0: 2}}


def test_g44_after_a_load_it_is_as_classic_as_before() -> None:
    world = mixed()
    call(world, beat("a", -1))
    world.reload()
    group = world.group()
    assert (group.state_name, group.generation_id) == ("Stable", 3)
    kept = read_assignment(group.members["c"].assignment).assigned_partitions
    assert [each.partitions for each in kept] == [[1]], "the target of the time"


def test_g44_a_fence_downgrades_too() -> None:
    world = mixed()
    for _ in range(5):
        world.pass_time(9_000)
        world.ask(heartbeat("g", "c", 3), 4)
    assert isinstance(world.shard.group("g"), ClassicGroup)


def test_g44_not_while_somebody_by_the_consumer_protocol_stays_or_nobody_at_all() -> None:
    world = mixed()
    call(world, enter("b", "t"))
    call(world, beat("a", -1))
    assert isinstance(world.shard.group("g"), ConsumerGroup)
    world = mixed()
    world.call(leave("g", "a", "c"), 5)
    assert group_of(world).state_name == "Empty"
    world = mixed()
    world.call(leave("g", "c"), 5)
    assert set(group_of(world).members) == {"a"}


def test_g44_not_when_it_is_forbidden() -> None:
    world = mixed(downgrade_enabled=False)
    call(world, beat("a", -1))
    assert set(group_of(world).members) == {"c"}
    assert code(world, heartbeat("g", "c", 3), 4) is ErrorCode.NONE, "nobody computes a target for it"
    world = mixed()
    world.refuse_with = ErrorCode.NOT_COORDINATOR
    assert code(world, beat("a", -1)) is ErrorCode.NOT_COORDINATOR
    assert set(group_of(world).members) == {"a", "c"}, "nor when it could not be written"


def test_g44_a_static_member_that_comes_back_by_the_classic_protocol_downgrades() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", instance_id="i"))
    call(world, beat("a", -2, instance_id="i"))
    joined = world.call(rejoin("", [], group_instance_id="i"), 9)
    assert joined.error_code == 0
    group = world.group()
    assert (group.state_name, group.generation_id, list(group.members)) == ("Stable", 2, [joined.member_id])
    assert joined.generation_id == 2
    answer = world.call(sync("g", joined.member_id, 2), 5)
    assert [each.partitions for each in read_assignment(answer.assignment).assigned_partitions] == [[0, 1]]
    assert code(world, heartbeat("g", joined.member_id, 2, "i"), 4) is ErrorCode.NONE
    check_replay(world)


def test_g44_with_other_topics_it_downgrades_into_a_rebalance() -> None:
    world = world_of({"t": 2, "u": 1})
    call(world, enter("a", "t", instance_id="i"))
    joined = world.call(join("g", protocols={"range": subscription("u")}, group_instance_id="i"), 9)
    assert joined.error_code == 0
    assert world.group().state_name == "PreparingRebalance"
    check_replay(world)


# --- empty consumer groups ---------------------------------------------------------------------------------------


def test_an_empty_consumer_group_gives_way_to_a_classic_member() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    call(world, beat("a", -1))
    assert code(world, join("g", "nobody"), 9) is ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(world.shard.group("g"), ConsumerGroup)
    given = world.call(join("g"), 9)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert isinstance(world.shard.group("g"), ClassicGroup)
    world.ask(join("g", given.member_id), 9)
    world.pass_time(1)
    world.sync_all()
    assert world.group().state_name == "Stable"
    check_replay(world)
    world.call(leave("g", given.member_id), 5)
    call(world, enter("b", "t"))
    check_replay(world)
    call(world, beat("b", -1))
    world.call(DeleteGroupsRequest(groups_names=["g"]))
    assert not world.exists()
    world.pass_time(SESSION_TIMEOUT_MS)
    check_replay(world)
