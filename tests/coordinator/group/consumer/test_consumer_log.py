"""A consumer group that Apache Kafka 4.4.0 has written, taken over by this coordinator."""

from __future__ import annotations

from coordinator.group.consumer_member import ConsumerMember
from coordinator.group.consumer_records import current_assignment_record, group_tombstones, member_tombstones
from tests.coordinator.group.consumer.consumer_world import beat, call, durable, group_of, image_of
from tests.coordinator.group.shard_world import World, replayed
from tests.coordinator.group.test_kafkas_log import kafkas_log

WRITTEN_MS = 1_795_965_079_113
"""When Kafka computed the group's target: a clock that went back would make the next one wait."""


def taken_over() -> tuple[World, str, bytes]:
    """The world, the id of the group's only member, and the id of its topic."""
    world = World(log=kafkas_log(), now_ms=WRITTEN_MS + 60_000)
    world.reload()
    (member,) = group_of(world, "modern").members.values()
    (topic_id,) = member.assigned
    return world, member.member_id, topic_id


def test_the_group_is_as_kafka_left_it() -> None:
    world, member_id, topic_id = taken_over()
    group = group_of(world, "modern")
    member = group.members[member_id]
    assert group.state_name == "Stable"
    assert (group.group_epoch, group.assignment_epoch, member.member_epoch) == (2, 2, 2)
    assert member.assigned == {topic_id: {0: 2, 1: 2}}
    assert group.target == {member_id: {topic_id: frozenset({0, 1})}}
    assert (member.client_id, member.subscribed_topic_names) == ("rdkafka", {"t"})


def test_its_hash_of_the_topic_is_ours_so_that_nothing_rebalances() -> None:
    world, member_id, topic_id = taken_over()
    world.image = image_of({"t": 2}, ids={"t": topic_id})
    length = len(world.log)
    response = world.call(beat(member_id, 2, group_id="modern"), 1, "rdkafka")
    assert (response.member_epoch, response.assignment) == (2, None)
    assert group_of(world, "modern").group_epoch == 2
    assert len(world.log) == length


def test_the_member_goes_on_here() -> None:
    world, member_id, topic_id = taken_over()
    world.image = image_of({"t": 3}, ids={"t": topic_id}, offset=2)
    response = call(world, beat(member_id, 2, group_id="modern"))
    assert response.member_epoch == 3
    assert [each.partitions for each in response.assignment.topic_partitions] == [[0, 1, 2]]
    read = replayed(world.log).group("modern")
    assert durable(read) == durable(group_of(world, "modern"))  # type: ignore[arg-type]


def test_tombstones_that_compaction_has_left_alone_are_passed_over() -> None:
    world = World()
    for record in (*group_tombstones("g", ["a"], ["t."]), *member_tombstones("g", "b")):
        world.shard.replay(record, 0)
    assert world.shard.group("g") is None


def test_the_later_record_wins_where_compaction_has_left_two_owners() -> None:
    """Of b, which gave the partition up, the record without it is yet to come."""
    world = World()
    topic_id = b"t" * 16
    had = ConsumerMember("b", 2, 1, assigned={topic_id: {0: 2}})
    has = ConsumerMember("a", 3, 2, assigned={topic_id: {0: 3}})
    gave_up = ConsumerMember("b", 3, 2)
    for member in (had, has, gave_up):
        world.shard.replay(current_assignment_record("g", member), 0)
    assert group_of(world).owners == {(topic_id, 0): "a"}
