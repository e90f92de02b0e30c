"""Heartbeats of members that keep to the protocol: joining, staying, wishes, epochs, answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.group.consumer_member import MemberState
from coordinator.group.topic_hash import SPARE_HASHES, TopicHashes
from tests.coordinator.group.consumer.consumer_world import (
    Client,
    assigned,
    beat,
    call,
    check_replay,
    code,
    describe,
    enter,
    epochs,
    group_of,
    image_of,
    settle,
    topic_id,
    world_of,
)
from wire.errors import ErrorCode

T, U = topic_id("t"), topic_id("u")


def test_the_first_member_gets_everything_at_epoch_2() -> None:
    world = world_of({"t": 3})
    response = call(world, enter("a", "t"))
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert assigned(response) == {T: [0, 1, 2]}
    assert world.shard.group("g") is not None
    assert group_of(world).state_name == "Stable"
    check_replay(world)


def test_below_v1_the_coordinator_makes_the_member_id() -> None:
    world = world_of({"t": 1})
    response = call(world, enter("", "t"), 0)
    assert len(response.member_id) == 22, "16 bytes as base64"
    assert call(world, beat(response.member_id, 2), 0).member_epoch == 2
    assert call(world, enter("own", "t"), 0).member_id == "own"


def test_a_member_without_topics_is_a_member() -> None:
    world = world_of({"t": 1})
    response = call(world, enter("a"))
    assert (response.member_epoch, assigned(response)) == (1, {})
    assert group_of(world).state_name == "Stable"


def test_topics_that_do_not_exist_are_waited_for() -> None:
    world = world_of({"t": 1})
    assert assigned(call(world, enter("a", "u"))) == {}
    assert epochs(world) == (2, 2)
    world.image = image_of({"t": 1, "u": 2}, offset=2)
    response = call(world, beat("a", 2))
    assert (response.member_epoch, assigned(response)) == (3, {U: [0, 1]})


# --- H8: what an answer says ---------------------------------------------------------------------


def test_h8_a_plain_heartbeat_says_nothing_new_and_writes_nothing() -> None:
    world = world_of({"t": 3})
    call(world, enter("a", "t"))
    length = len(world.log)
    for request in (beat("a", 2), beat("a", 2, owned={T: [0, 1, 2]}), beat("a", 2, subscribed_topic_names=["t"])):
        assert assigned(call(world, request)) is None
    assert len(world.log) == length


def test_h8_a_plain_heartbeat_leaves_the_group_as_it_is() -> None:
    world = world_of({"t": 3})
    call(world, enter("a", "t"))
    world.image = image_of({"t": 3}, offset=2)
    call(world, beat("a", 2))
    before = group_of(world)
    call(world, beat("a", 2))
    call(world, beat("a", 2, owned={T: [0]}))
    assert group_of(world) is before, "not even a copy is made"


def test_what_most_members_prefer_is_taken_and_the_brokers_order_decides_ties() -> None:
    world = world_of({"t": 3})
    call(world, enter("a", "t", server_assignor="uniform"))
    call(world, enter("b", "t", server_assignor="range"))
    assert describe(world).assignor_name == "uniform"
    call(world, enter("c", "t", server_assignor="range"))
    assert describe(world).assignor_name == "range"
    call(world, beat("c", -1))
    assert describe(world).assignor_name == "uniform"


def test_an_instance_id_does_not_come_later() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    assert code(world, beat("a", 2, instance_id="i")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_h8_a_full_request_is_answered_in_full() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    full = {"rebalance_timeout_ms": 60_000, "owned": {T: [0]}}
    assert assigned(call(world, beat("a", 2, subscribed_topic_names=["t"], **full))) == {T: [0]}
    assert assigned(call(world, beat("a", 2, **full))) is None, "without a subscription it is not full"


def test_h8_an_empty_assignment_is_not_none() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    assert assigned(call(world, enter("b", "t"))) == {}
    assert assigned(call(world, beat("b", 3))) is None


def test_joining_again_changes_nothing_for_who_is_there() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    length = len(world.log)
    response = call(world, enter("a", "t"))
    assert (response.member_epoch, assigned(response)) == (2, {T: [0, 1]})
    assert len(world.log) == length


# --- H2, H3: the group's epoch ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "rises"),
    [
        ({"subscribed_topic_names": ["t", "u"]}, True),
        ({"subscribed_topic_names": []}, True),
        ({"server_assignor": "range"}, True),
        ({"server_assignor": "uniform"}, False),
        ({"rack_id": "r"}, False),
        ({"rebalance_timeout_ms": 1}, False),
        ({"subscribed_topic_names": ["t"]}, False),
    ],
)
def test_h2_the_epoch_rises_by_what_the_target_depends_on(fields: dict[str, object], rises: bool) -> None:
    world = world_of({"t": 1, "u": 1})
    call(world, enter("a", "t"))
    call(world, beat("a", 2, **fields))
    assert epochs(world) == ((3, 3) if rises else (2, 2))
    check_replay(world)


def test_h2_a_member_by_another_client_id_is_stored_anew() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    world.call(beat("a", 2), 1, "another")
    assert group_of(world).members["a"].client_id == "another"
    check_replay(world)


def test_h2_targets_are_not_computed_more_often_than_the_interval() -> None:
    world = world_of({"t": 2}, interval_ms=1_000)
    call(world, enter("a", "t"))
    response = call(world, enter("b", "t"))
    assert (response.member_epoch, assigned(response)) == (2, {}), "the old target holds"
    assert group_of(world).state_name == "Assigning"
    world.now_ms += 999
    call(world, beat("a", 2))
    assert epochs(world) == (3, 2)
    world.now_ms += 1
    assert assigned(call(world, beat("a", 2))) == {T: [0]}
    assert epochs(world) == (3, 3)


def test_h2_the_first_target_after_all_have_left_does_not_wait() -> None:
    world = world_of({"t": 2}, interval_ms=1_000)
    call(world, enter("a", "t"))
    call(world, beat("a", -1))
    assert epochs(world) == (3, 3)
    assert assigned(call(world, enter("b", "t"))) == {T: [0, 1]}


def test_h2_groups_may_have_another_interval_within_the_brokers_limits() -> None:
    world = world_of({"t": 2}, interval_ms=1_000)
    world.image = image_of({"t": 2}, configs={"consumer.assignment.interval.ms": "0"})
    call(world, enter("a", "t"))
    call(world, enter("b", "t"))
    assert epochs(world) == (3, 3)


@pytest.mark.parametrize(
    ("before", "after", "rises"),
    [
        ({"t": 1}, {"t": 2}, True),
        ({"t": 1}, {"t": 1, "u": 1}, False),
        ({"t": 1}, {}, True),
        ({}, {"t": 1}, True),
    ],
)
def test_h3_changed_topics_raise_the_epoch_if_they_are_the_groups(
    before: dict[str, int], after: dict[str, int], rises: bool
) -> None:
    world = world_of(before)
    call(world, enter("a", "t"))
    world.image = image_of(after, offset=2)
    epoch = call(world, beat("a", 2)).member_epoch
    assert epochs(world) == ((3, 3) if rises else (2, 2))
    length = len(world.log)
    call(world, beat("a", epoch))
    assert len(world.log) == length, "it is noticed once"


def test_h3_racks_and_ids_count_too() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    world.image = image_of({"t": 1}, racks={1: "r"}, offset=2)
    call(world, beat("a", 2))
    assert epochs(world) == (3, 3)
    world.image = image_of({"t": 1}, ids={"t": b"n" * 16}, racks={1: "r"}, offset=3)
    response = call(world, beat("a", 3))
    assert assigned(response) == {}, "the old topic is to be given up first"
    assert assigned(call(world, beat("a", 3, owned={}))) == {b"n" * 16: [0]}


def test_h3_a_hash_that_was_stored_by_others_is_compared_after_a_load() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    world.reload()
    length = len(world.log)
    call(world, beat("a", 2))
    assert len(world.log) == length, "nothing has changed meanwhile"
    world.image = image_of({"t": 2}, offset=2)
    world.reload()
    assert call(world, beat("a", 2)).member_epoch == 3


def test_h3_hashes_of_topics_that_are_no_more_are_forgotten() -> None:
    hashes = TopicHashes()
    for number in range(500):
        name = f"t{number}"
        assert hashes.of_group([name], image_of({name: 1})) != 0
    assert len(hashes._known) <= 2 * 1 + SPARE_HASHES + 1


def test_h3_the_hash_is_that_of_apache_kafka() -> None:
    """Computed with the hash library that Apache Kafka 4.4.0 comes with (hash4j), racks included."""
    image = image_of({"foo": 3}, ids={"foo": bytes(range(16))}, racks={1: "rack1", 2: "rack2"})
    assert TopicHashes().of_group(["foo", "nosuch"], image) == KAFKAS_HASH
    assert TopicHashes().of_group(["nosuch"], image) == 0


KAFKAS_HASH = 2261494127527160834


# --- two members -----------------------------------------------------------------------------------


def test_a_partition_is_given_up_before_another_gets_it() -> None:
    world = world_of({"t": 4})
    a, b = Client(world, "a"), Client(world, "b")
    a.join("t")
    b.join("t")
    assert (a.count, b.count) == (4, 0)
    assert group_of(world).members["b"].state is MemberState.UNRELEASED_PARTITIONS
    b.beat()
    assert b.count == 0
    a.beat()
    assert (a.owned, a.member_epoch) == ({T: [0, 1]}, 2)
    assert group_of(world).state_name == "Reconciling"
    b.beat()
    assert b.count == 0, "a has been told, but has not said that it gave them up"
    a.beat()
    assert a.member_epoch == 3
    b.beat()
    assert b.owned == {T: [2, 3]}
    assert group_of(world).state_name == "Stable"
    check_replay(world)


def test_when_a_member_leaves_the_others_get_what_it_had() -> None:
    world = world_of({"t": 4})
    clients = [Client(world, name) for name in "abc"]
    for client in clients:
        client.join("t")
    settle(*clients)
    assert sorted(client.count for client in clients) == [1, 1, 2]
    call(world, beat("c", -1))
    settle(*clients[:2])
    assert [client.count for client in clients[:2]] == [2, 2]
    assert code(world, beat("c", 5)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_want_different_topics() -> None:
    world = world_of({"t": 3, "u": 3})
    a, b = Client(world, "a"), Client(world, "b")
    a.join("t", "u")
    b.join("u")
    settle(a, b)
    assert (a.owned, b.owned) == ({T: [0, 1, 2]}, {U: [0, 1, 2]})


def test_h7_an_unwanted_topic_goes_in_the_same_heartbeat() -> None:
    world = world_of({"t": 2, "u": 2})
    call(world, enter("a", "t"))
    response = call(world, beat("a", 2, subscribed_topic_names=["u"], owned={T: [0, 1]}))
    assert (response.member_epoch, assigned(response)) == (2, {})
    response = call(world, beat("a", 2, owned={}))
    assert (response.member_epoch, assigned(response)) == (3, {U: [0, 1]})


# --- settings and time -----------------------------------------------------------------------------


def test_h10_groups_may_have_other_timings_within_the_brokers_limits() -> None:
    world = world_of({"t": 1})
    timings = {"consumer.heartbeat.interval.ms": "7000", "consumer.session.timeout.ms": "99000"}
    world.image = image_of({"t": 1}, configs=timings)
    assert call(world, enter("a", "t")).heartbeat_interval_ms == 7_000
    world.pass_time(59_999)
    assert "a" in group_of(world).members
    world.pass_time(1)
    assert not group_of(world).members, "60 s is the broker's limit"


def test_a_downgraded_broker_hands_on_the_records_of_4_0() -> None:
    world = world_of({"t": 1})
    call(world, enter("a", "t"))
    group = group_of(world)
    world.shard._groups.put(replace(group.copy(), has_partition_metadata_record=True))
    world.image = image_of({"t": 2}, offset=2)
    call(world, beat("a", 2))
    assert not group_of(world).has_partition_metadata_record
    check_replay(world)


def test_what_happened_is_kept_in_sentences() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    call(world, enter("b", "t", instance_id="i"))
    world.image = image_of({"t": 3}, offset=2)
    call(world, beat("a", 2))
    assert [text for text in world.events() if "epoch" in text] == [
        "group g: a rebalance to epoch 2 begins: member a (client client) joined",
        "group g: a rebalance to epoch 3 begins: member b (client client, static i) joined",
        "group g: a rebalance to epoch 4 begins: the subscribed topics or their partitions have changed",
    ]


def test_describe_shows_what_is_had_and_what_is_to_be_had() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", rack_id="r"))
    call(world, enter("b", "t"))
    call(world, beat("a", 2))
    described = describe(world)
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Reconciling", 3, 3)
    assert described.assignor_name == "uniform"
    member = next(each for each in described.members if each.member_id == "a")
    assert (member.member_epoch, member.rack_id, member.member_type) == (2, "r", 1)
    assert [each.partitions for each in member.assignment.topic_partitions] == [[0, 1]], "until it is given up"
    assert [each.partitions for each in member.target_assignment.topic_partitions] == [[0]]
    assert describe(world, "nosuch").error_code == ErrorCode.GROUP_ID_NOT_FOUND
