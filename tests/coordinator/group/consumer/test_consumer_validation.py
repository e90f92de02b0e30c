"""What heartbeats are refused for, errors first, and which error comes first."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.consumer_settings import ConsumerGroupSettings
from coordinator.group.consumer_validation import check_request
from tests.coordinator.group.consumer.consumer_world import beat, call, code, enter, topic_id, world_of
from wire.errors import ErrorCode, KafkaError
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

INVALID = ErrorCode.INVALID_REQUEST
T = topic_id("t")


def refusal(request: ConsumerGroupHeartbeatRequest, version: int = 1) -> KafkaError | None:
    try:
        check_request(request, version, ConsumerGroupSettings())
    except KafkaError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("request_", "version", "text"),
    [
        (enter(""), 1, "MemberId"),
        (enter(" \t"), 1, "MemberId"),
        (beat("", 1), 0, "MemberId"),
        (beat("", -1), 0, "MemberId"),
        (enter("m", group_id=""), 1, "GroupId"),
        (enter("m", instance_id=""), 1, "InstanceId"),
        (enter("m", rack_id=" "), 1, "RackId"),
        (enter("m", rebalance_timeout_ms=-1), 1, "RebalanceTimeoutMs"),
        (enter("m", owned=None), 1, "TopicPartitions"),
        (enter("m", owned={T: [0]}), 1, "TopicPartitions"),
        (enter("m", owned={T: []}), 1, "TopicPartitions"),
        (enter("m", subscribed_topic_names=None), 1, "SubscribedTopicNames or SubscribedTopicRegex"),
        (beat("m", -2), 1, "InstanceId"),
        (beat("m", -3), 1, "MemberEpoch -3"),
        (beat("m", -(2**31), instance_id="i"), 1, "MemberEpoch"),
    ],
)
def test_a_malformed_heartbeat_is_an_invalid_request(
    request_: ConsumerGroupHeartbeatRequest, version: int, text: str
) -> None:
    error = refusal(request_, version)
    assert error is not None
    assert error.code is INVALID
    assert text in str(error.message)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (enter("m", "t"), 1),
        (enter("m"), 1),
        (enter("m", subscribed_topic_names=None, subscribed_topic_regex=""), 1),
        (enter(""), 0),
        (beat("", -2, instance_id="i"), 0),
        (beat("m", 7), 1),
        (beat("m", -1), 1),
        (beat("m", -2, instance_id="i"), 1),
        (enter("m", server_assignor="uniform"), 1),
        (enter("m", server_assignor="range"), 1),
    ],
)
def test_a_well_formed_heartbeat_passes(request_: ConsumerGroupHeartbeatRequest, version: int) -> None:
    assert refusal(request_, version) is None


@pytest.mark.parametrize("name", ["sticky", "Uniform", ""])
def test_an_unknown_assignor_is_refused_with_those_that_there_are(name: str) -> None:
    error = refusal(enter("m", "t", server_assignor=name))
    assert error is not None
    assert error.code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in str(error.message)


FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("MemberId", {"member_id": ""}),
    ("GroupId", {"group_id": ""}),
    ("InstanceId", {"instance_id": ""}),
    ("RackId", {"rack_id": ""}),
    ("RebalanceTimeoutMs", {"rebalance_timeout_ms": -1}),
    ("TopicPartitions", {"owned": None}),
    ("SubscribedTopicNames", {"subscribed_topic_names": None}),
    ("ServerAssignor", {"server_assignor": "sticky"}),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
def test_of_several_faults_the_first_in_kafkas_order_is_told(first: int) -> None:
    fields: dict[str, Any] = {"member_id": "m"}
    for _, fault in FAULTS[first:]:
        fields.update(fault)
    error = refusal(enter(**fields))
    assert error is not None
    assert str(error.message).startswith((FAULTS[first][0], f"Either {FAULTS[first][0]}"))


# --- with a group ----------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [beat("m", 1), beat("m", -1), beat("m", -2, instance_id="i")])
def test_only_a_first_heartbeat_makes_a_group(request_: ConsumerGroupHeartbeatRequest) -> None:
    world = world_of({"t": 1})
    assert code(world, request_) is ErrorCode.GROUP_ID_NOT_FOUND
    assert not world.exists()
    assert not world.log


def test_a_full_group_refuses_one_more_but_not_its_own() -> None:
    world = world_of({"t": 4}, group_max_size=2)
    call(world, enter("a", "t", instance_id="i"))
    call(world, enter("b", "t"))
    assert code(world, enter("c", "t")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code(world, enter("c", "t", instance_id="j")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code(world, beat("c", 7)) is ErrorCode.GROUP_MAX_SIZE_REACHED, "size comes before the member"
    assert code(world, enter("b", "t")) is ErrorCode.NONE
    call(world, beat("a", -2, instance_id="i"))
    assert code(world, enter("c", "t", instance_id="i")) is ErrorCode.NONE, "a static member is replaced"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (beat("nobody", 2), ErrorCode.UNKNOWN_MEMBER_ID),
        (beat("a", 3), ErrorCode.FENCED_MEMBER_EPOCH),
        (beat("a", 1), ErrorCode.FENCED_MEMBER_EPOCH),
        (beat("nobody", 2, instance_id="i"), ErrorCode.UNKNOWN_MEMBER_ID),
        (beat("a", 2, instance_id="s"), ErrorCode.FENCED_INSTANCE_ID),
        (beat("a", 99, instance_id="s"), ErrorCode.FENCED_INSTANCE_ID),
        (beat("b", 99, instance_id="s"), ErrorCode.FENCED_MEMBER_EPOCH),
        (enter("c", "t", instance_id="s"), ErrorCode.UNRELEASED_INSTANCE_ID),
        (enter("b", "t", instance_id="s"), ErrorCode.UNRELEASED_INSTANCE_ID),
        (beat("nobody", -1), ErrorCode.UNKNOWN_MEMBER_ID),
        (beat("b", -1, instance_id="i"), ErrorCode.UNKNOWN_MEMBER_ID),
        (beat("a", -1, instance_id="s"), ErrorCode.FENCED_INSTANCE_ID),
        (beat("a", -2, instance_id="s"), ErrorCode.FENCED_INSTANCE_ID),
        (enter("c", subscribed_topic_regex="(", instance_id="s"), ErrorCode.UNRELEASED_INSTANCE_ID),
        (enter("c", subscribed_topic_regex="("), ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_members_are_who_they_say(request_: ConsumerGroupHeartbeatRequest, expected: ErrorCode) -> None:
    world = world_of({"t": 4})
    call(world, enter("a", "t"))
    call(world, enter("b", "t", instance_id="s"))
    length = len(world.log)
    assert code(world, request_) is expected
    assert len(world.log) == length, "a refusal leaves nothing behind"


def test_the_epoch_before_is_right_for_who_owns_no_more_than_it_is_assigned() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    assert call(world, beat("a", 2, server_assignor="range")).member_epoch == 3
    assert code(world, beat("a", 2)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code(world, beat("a", 2, owned={T: [0, 7]})) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code(world, beat("a", 2, owned={topic_id("u"): []})) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code(world, beat("a", 1, owned={})) is ErrorCode.FENCED_MEMBER_EPOCH
    assert call(world, beat("a", 2, owned={T: [1]})).member_epoch == 3
    assert call(world, beat("a", 2, owned={})).member_epoch == 3
