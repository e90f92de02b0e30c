"""Committed offsets of consumer groups: who may commit and fetch, what expires, what is deleted (H16 to H18)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.context import GroupSettings
from tests.coordinator.group.consumer.consumer_world import (
    SESSION_TIMEOUT_MS,
    beat,
    call,
    check_replay,
    code,
    enter,
    group_of,
    image_of,
    settings_with,
    topic_id,
    world_of,
)
from tests.coordinator.group.shard_world import World, commit, commit_in_transaction, fetch_request
from wire.errors import ErrorCode, KafkaError
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic

T = topic_id("t")
STALE = ErrorCode.STALE_MEMBER_EPOCH


def at_epochs() -> World:
    """Member a at epoch 4: it has t-0 since epoch 2 and t-1 since epoch 4, and is to give up t-2 of epoch 2."""
    world = world_of({"t": 4})
    call(world, enter("a", "t"))
    call(world, enter("b", "t"))
    call(world, beat("a", 2))
    call(world, beat("a", 2, owned={T: [0, 1]}))
    call(world, beat("b", 3))
    return world


def committed(world: World, version: int = 9, **fields: Any) -> ErrorCode:
    response = world.call(commit(topic_id=T, **fields), version)
    if isinstance(response, KafkaError):
        return response.code
    return ErrorCode(response.topics[0].partitions[0].error_code)


@pytest.mark.parametrize(
    ("fields", "version", "expected"),
    [
        ({"member_id": "a", "generation_id": 3}, 9, ErrorCode.NONE),
        ({"member_id": "a", "generation_id": 3}, 10, ErrorCode.NONE),
        ({"member_id": "a", "generation_id": 3}, 8, ErrorCode.UNSUPPORTED_VERSION),
        ({"member_id": "a", "generation_id": 99}, 8, ErrorCode.UNSUPPORTED_VERSION),
        ({"member_id": "nobody", "generation_id": 3}, 8, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a", "generation_id": 4}, 9, STALE),
        ({"member_id": "a", "generation_id": 2}, 9, ErrorCode.NONE),
        ({"member_id": "a", "generation_id": 1}, 9, STALE),
        ({"member_id": "a", "generation_id": -1}, 9, STALE),
        ({"member_id": "", "generation_id": -1}, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a", "generation_id": 2, "offsets": {("t", 3): 1}}, 9, STALE),
        ({"member_id": "b", "generation_id": 2, "offsets": {("t", 2): 1}}, 9, STALE),
        ({"member_id": "b", "generation_id": 3, "offsets": {("t", 0): 1}}, 9, ErrorCode.NONE),
    ],
)
def test_h17_members_commit_at_their_epoch_or_for_what_they_have_had_since(
    fields: dict[str, Any], version: int, expected: ErrorCode
) -> None:
    assert committed(at_epochs(), version, **fields) is expected


def test_h17_one_partition_that_is_not_the_members_refuses_all() -> None:
    world = at_epochs()
    assert committed(world, member_id="a", generation_id=2, offsets={("t", 0): 7, ("t", 3): 7}) is STALE
    assert world.offset("t", 0) == -1


def test_h17_what_is_being_given_up_may_still_be_committed() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    call(world, beat("a", 2, server_assignor="range"))
    call(world, enter("b", "t"))
    call(world, beat("a", 3))
    assert group_of(world).members["a"].pending_revocation == {T: {1: 2}}
    assert committed(world, member_id="a", generation_id=2, offsets={("t", 1): 5}) is ErrorCode.NONE
    call(world, beat("a", 3, owned={T: [0]}))
    assert committed(world, member_id="a", generation_id=2, offsets={("t", 1): 6}) is STALE


def test_h17_administrators_commit_when_nobody_is_there() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    call(world, beat("a", -1))
    assert committed(world) is ErrorCode.NONE
    assert world.offset() == 1


def test_h18_a_commit_does_not_keep_a_session_alive() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    world.pass_time(SESSION_TIMEOUT_MS - 1)
    assert committed(world, member_id="a", generation_id=2) is ErrorCode.NONE
    world.pass_time(1)
    assert not group_of(world).members


# --- transactions (G28) --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "expected"),
    [
        ("a", 3, 5, ErrorCode.NONE),
        ("a", 2, 5, ErrorCode.NONE),
        ("a", 1, 6, STALE),
        ("a", 1, 5, ErrorCode.ILLEGAL_GENERATION),
        ("a", 9, 6, STALE),
        ("a", 9, 5, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 3, 5, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 5, ErrorCode.NONE),
    ],
)
def test_g28_transactions_know_stale_epochs_from_v6(
    member_id: str, epoch: int, version: int, expected: ErrorCode
) -> None:
    request = commit_in_transaction(1, 5, member_id=member_id, generation_id_or_member_epoch=epoch)
    response = at_epochs().call(request, version)
    found = response.code if isinstance(response, KafkaError) else response.topics[0].partitions[0].error_code
    assert found == expected


# --- fetches (G33) -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member_id", "epoch", "expected"),
    [
        ("a", 3, None),
        (None, -1, None),
        ("a", 2, STALE),
        ("a", 4, STALE),
        ("a", -1, STALE),
        ("nobody", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 3, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_g33_members_fetch_at_their_epoch(member_id: str | None, epoch: int, expected: ErrorCode | None) -> None:
    request = fetch_request("g", "t", 0)
    request.member_id, request.member_epoch = member_id, epoch
    world = at_epochs()
    if expected is None:
        assert world.shard.fetch_offsets(request).topics[0].partitions[0].committed_offset == -1
        return
    with pytest.raises(KafkaError) as refused:
        world.shard.fetch_offsets(request)
    assert refused.value.code is expected


# --- deletion and expiry -------------------------------------------------------------------------------


def delete_offset(world: World, topic: str) -> int:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    return int(world.call(OffsetDeleteRequest(group_id="g", topics=topics)).topics[0].partitions[0].error_code)


def test_offsets_in_use_are_not_deleted() -> None:
    world = world_of({"t": 1, "u": 1, "r1": 1})
    call(world, enter("a", "t", subscribed_topic_regex="r."))
    for topic in ("t", "u", "r1"):
        offsets = {(topic, 0): 5}
        fields: dict[str, Any] = {"member_id": "a", "generation_id": group_of(world).members["a"].member_epoch}
        assert committed(world, offsets=offsets, **fields) is ErrorCode.NONE
    assert delete_offset(world, "t") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offset(world, "r1") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offset(world, "u") == ErrorCode.NONE
    assert [world.offset(topic) for topic in ("t", "u", "r1")] == [5, -1, 5]


def test_a_group_is_deleted_when_nobody_is_there() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    committed(world, member_id="a", generation_id=2)
    (result,) = world.call(DeleteGroupsRequest(groups_names=["g"])).results
    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    call(world, beat("a", -1))
    (result,) = world.call(DeleteGroupsRequest(groups_names=["g"])).results
    assert result.error_code == ErrorCode.NONE
    assert not world.exists()
    assert world.offset() == -1
    check_replay(world)
    assert call(world, enter("b", "t")).member_epoch == 2, "a new group begins anew"


def expiring(**fields: Any) -> World:
    settings = settings_with()
    settings = GroupSettings(
        consumer=settings.consumer, offsets_retention_ms=60_000, offsets_retention_check_interval_ms=10_000
    )
    return World(settings, image=image_of({"t": 1, "u": 1}), **fields)


def test_g35_offsets_of_unwanted_topics_expire_though_members_are_there() -> None:
    world = expiring()
    call(world, enter("a", "t"))
    for topic in ("t", "u"):
        assert committed(world, offsets={(topic, 0): 5}, member_id="a", generation_id=2) is ErrorCode.NONE
    for _ in range(4):
        world.pass_time(20_000)
        call(world, beat("a", 2))
    assert [world.offset(topic) for topic in ("t", "u")] == [5, -1]


def test_g36_an_empty_group_goes_with_its_last_offset() -> None:
    world = expiring()
    call(world, enter("a", "t"))
    committed(world, member_id="a", generation_id=2)
    call(world, beat("a", -1))
    world.pass_time(50_000)
    assert world.exists()
    world.pass_time(30_000)
    assert not world.exists()
    check_replay(world)


# --- lists -----------------------------------------------------------------------------------------------


def test_groups_are_listed_by_kind_and_state() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    call(world, enter("b", "t", group_id="h"))
    call(world, enter("c", "t", group_id="h"))
    world.call(commit("simple"), 9)

    def listed(states: list[str], types: list[str]) -> list[tuple[str, str, str]]:
        return [(each.group_id, each.group_state, each.group_type) for each in world.shard.list_groups(states, types)]

    assert listed([], ["Consumer"]) == [("g", "Stable", "consumer"), ("h", "Reconciling", "consumer")]
    assert listed(["reconciling"], []) == [("h", "Reconciling", "consumer")]
    assert listed([], ["classic"]) == [("simple", "Empty", "classic")]
    assert listed(["stable"], ["classic"]) == []
    assert world.describe("g").group_state == "Dead", "the classic description knows nothing of them"
    assert world.describe("g").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_classic_requests_know_nothing_of_members_by_the_other_protocol() -> None:
    from tests.coordinator.group.shard_world import heartbeat, sync

    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    assert code(world, heartbeat("g", "a", 2), 4) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(world, sync("g", "a", 2), 5) is ErrorCode.UNKNOWN_MEMBER_ID
    call(world, beat("a", -1))
    assert code(world, heartbeat("g", "a", 2), 4) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(world, sync("g", "a", 2), 5) is ErrorCode.UNKNOWN_MEMBER_ID
