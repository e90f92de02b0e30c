"""What `odradek groups describe` and the log say of a group's changes: each cause once, in words of its own."""

from __future__ import annotations

from coordinator.group.groups import EVENTS_KEPT_PER_GROUP
from tests.coordinator.group.consumer.consumer_world import SESSION_TIMEOUT_MS, beat, call, enter, image_of, world_of
from tests.coordinator.group.shard_world import World, join, leave, sync
from wire.messages.embedded import ConsumerProtocolSubscription


def said(world: World, since: int = 0) -> list[str]:
    return [text.removeprefix("group g: ") for text in world.events()[since:]]


def in_consumer_protocol(*topics: str) -> dict[str, bytes]:
    return {"range": b"\0\0" + ConsumerProtocolSubscription(topics=list(topics)).encode(0)}


def test_the_first_member_wakes_an_empty_group() -> None:
    world = World()
    (a,) = world.stable("a")
    assert said(world) == [
        f"a rebalance of the empty group begins: member {a} joined",
        f"generation 1 begins with 1 member and protocol range, led by {a}",
        f"generation 1 is stable: leader {a} assigned 1 member",
    ]


def test_each_of_those_that_join_together_is_said() -> None:
    world = World()
    (a,) = world.stable("a")
    count = len(said(world))
    world.ask(join(), 3)
    world.ask(join(), 3)
    b, c = (member_id for member_id in world.group().members if member_id != a)
    assert said(world, count) == [
        f"a rebalance of generation 1 begins: member {b} joined",
        f"member {c} joined too, while members rejoin",
    ]


def test_a_leader_that_rejoins_is_said_to_see_something_new() -> None:
    world = World()
    (a,) = world.stable("a")
    count = len(said(world))
    world.ask(join(member_id=a), 3)
    assert said(world, count)[0] == (
        f"a rebalance of generation 1 begins: leader {a} rejoined, as leaders do when topics or partitions have changed"
    )


def test_the_end_of_a_session_is_said_alike_of_both_kinds() -> None:
    classic = World()
    (a,) = classic.stable("a")
    classic.pass_time(10_000)
    words = "was removed: session timeout after {} ms without a heartbeat"
    assert f"a rebalance of generation 1 begins: member {a} {words.format(10_000)}" in said(classic)
    consumer = world_of({"t": 2})
    call(consumer, enter("a", "t"))
    consumer.pass_time(SESSION_TIMEOUT_MS)
    said_of_it = f"member a (client client) {words.format(SESSION_TIMEOUT_MS)}"
    assert said(consumer)[-1] == f"a rebalance to epoch 3 begins: {said_of_it}"


def test_a_static_member_of_a_consumer_group_goes_and_comes_back() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t", instance_id="i"))
    count = len(said(world))
    call(world, beat("a", -2, instance_id="i"))
    call(world, enter("b", "t", instance_id="i"))
    assert said(world, count) == [
        "static member i (a) left for a while; its partitions are kept for it until its session ends",
        "static member i came back as b (it was a) and has its partitions again",
    ]


def test_topics_that_change_are_said_with_their_partitions() -> None:
    world = world_of({"t": 2})
    call(world, enter("a", "t"))
    world.image = image_of({"t": 3}, offset=2)
    call(world, beat("a", 2))
    assert said(world)[-2:] == [
        "a rebalance to epoch 3 begins: the subscribed topics or their partitions have changed",
        "target assignment 3 computed by uniform for 1 member",
    ]


def test_an_upgrade_and_its_way_back_say_each_cause_once() -> None:
    world = world_of({"t": 2})
    old = world.call(join(protocols=in_consumer_protocol("t")), 3)
    world.call(sync("g", old.member_id, 1, assignments={old.member_id: b""}), 3)
    count = len(said(world))
    call(world, enter("new", "t"))
    became = "became a consumer group with 1 member"
    assert said(world, count)[:2] == [
        f"the classic group of generation 1 {became}, because a member of the consumer protocol joins",
        "a rebalance to epoch 2 begins: member new (client client) joined",
    ]
    count = len(said(world))
    call(world, beat("new", -1))
    became_again, ended = said(world, count)
    assert became_again == (
        "the consumer group became a classic group with 1 member: all who stay speak the classic protocol"
    )
    assert ended.endswith(" begins: member new (client client) left")


def test_a_classic_member_that_leaves_a_consumer_group_is_one_member() -> None:
    world = world_of({"t": 2})
    call(world, enter("new", "t"))
    old = world.call(join(protocols=in_consumer_protocol("t")), 3)
    world.call(leave("g", old.member_id), 3)
    assert said(world)[-1].endswith(f"member {old.member_id} left")


def test_the_last_rebalances_are_kept_whole() -> None:
    """A rebalance of a classic group is three sentences; describe shows the last few."""
    assert EVENTS_KEPT_PER_GROUP >= 4 * 3


def test_names_and_reasons_as_long_as_clients_may_send_them_are_not_kept_whole() -> None:
    world = World()
    long = "x" * 30_000
    group_id = f"g{long}"
    for instance_id in ("i", f"j{long}"):
        world.ask(join(group_id, group_instance_id=instance_id, reason=long), 9)
    texts = world.events(group_id)
    assert len(texts) >= 2
    assert max(map(len, texts)) < 1000
