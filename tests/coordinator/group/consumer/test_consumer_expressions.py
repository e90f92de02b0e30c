"""Subscriptions by regular expressions: what is one, what it matches, when it is resolved (H14)."""

from __future__ import annotations

import pytest

from coordinator.group.topic_regex import compile_regex, matching_topics
from tests.coordinator.group.consumer.consumer_world import (
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
from wire.errors import ErrorCode, KafkaError

T1, T2, U = topic_id("t1"), topic_id("t2"), topic_id("u")
MIN_INTERVAL_MS = 10_000


@pytest.mark.parametrize(
    "regex",
    ["(", "[", "*", "a**", "\\1", "(?=a)", "(?!a)", "(?<=a)", "(?>a)", "a{1001}", "\\C", "x\\C", "[a", "a)", "\\Z",
     "a++", "(?#x)", "[b-a]", "\\8", "a{2,1}", "\\x{110000}", "(?P<n>a)(?P<n>b)", "(?<n>a)(?P<n>b)", "(?P<é>a)",
     "\\p{Foo}", "a|*", "(?i", "\\"],
)  # fmt: skip
def test_what_re2_refuses_is_refused(regex: str) -> None:
    """The same list is refused by com.google.re2j 1.8, which Apache Kafka 4.4.0 uses."""
    with pytest.raises(KafkaError) as refused:
        compile_regex(regex)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert f"`{regex}`" in str(refused.value.message)


@pytest.mark.parametrize(
    ("regex", "matched"),
    [
        ("t", []),
        ("t.", ["t1", "t2"]),
        ("t1|u", ["t1", "u"]),
        (".*", ["__in", "t1", "t2", "u"]),
        ("(?i)T[1]", ["t1"]),
        ("\\Qt1\\E", ["t1"]),
        ("[[:alpha:]]\\d", ["t1", "t2"]),
        ("\\pL", ["u"]),
        ("(?P<n>t)(?<m>1)", ["t1"]),
        ("^u$", ["u"]),
        ("u\\z", ["u"]),
        ("\\Q\\C\\E", []),
        ("[(?<n>t][(?<n>1]", ["t1"]),
        ("(?:\\\\C)?u", ["u"]),
        ("", []),
    ],
)
def test_whole_names_are_matched_as_re2_does(regex: str, matched: list[str]) -> None:
    assert sorted(matching_topics(regex, ["t1", "t2", "u", "__in"])) == matched


def test_a_refusal_repeats_the_beginning_of_a_long_expression() -> None:
    with pytest.raises(KafkaError) as refused:
        compile_regex("[" * 100_000)
    assert len(str(refused.value.message)) < 1_000


def test_an_expression_of_a_foreign_log_matches_nothing() -> None:
    assert matching_topics("(?=a)", ["a"]) == frozenset()


def test_h14_an_expression_is_resolved_after_the_heartbeat_that_brings_it() -> None:
    world = world_of({"t1": 1, "t2": 1, "u": 1})
    response = call(world, enter("a", subscribed_topic_regex="t."))
    assert (response.member_epoch, assigned(response)) == (1, {})
    assert epochs(world) == (2, 1), "resolved right after"
    response = call(world, beat("a", 1))
    assert (response.member_epoch, assigned(response)) == (2, {T1: [0], T2: [0]})
    check_replay(world)


def test_h14_a_resolved_expression_serves_the_next_member_at_once() -> None:
    world = world_of({"t1": 2})
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    response = call(world, enter("b", subscribed_topic_regex="t."))
    assert response.member_epoch == 3
    assert group_of(world).target_of("b") == {T1: frozenset({1})}


def test_h14_names_and_an_expression_may_be_wanted_together() -> None:
    world = world_of({"t1": 1, "t2": 1, "u": 1})
    a, b = Client(world, "a"), Client(world, "b")
    a.join("u", subscribed_topic_regex="t.")
    b.join("t1")
    settle(a, b)
    assert (a.owned, b.owned) == ({T2: [0], U: [0]}, {T1: [0]})
    assert not group_of(world).subscriptions.are_equal(2)


def test_h14_only_topics_that_may_be_described_are_found() -> None:
    world = world_of({"t1": 1, "t2": 1})
    world.may_describe = lambda topic: topic != "t1"
    call(world, enter("a", subscribed_topic_regex="t."))
    assert assigned(call(world, beat("a", 1))) == {T2: [0]}


def test_h14_new_topics_are_noticed_but_not_within_ten_seconds() -> None:
    world = world_of({"t1": 1})
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    world.image = image_of({"t1": 1, "t2": 1}, offset=5)
    world.pass_time(MIN_INTERVAL_MS)
    call(world, beat("a", 2))
    assert epochs(world) == (2, 2)
    world.pass_time(1)
    call(world, beat("a", 2))
    assert epochs(world)[0] == 3
    assert group_of(world).subscriptions.resolved["t."].version == 5
    assert assigned(call(world, beat("a", 2))) == {T1: [0], T2: [0]}


def test_h14_topics_that_go_are_noticed_by_the_hash_alone() -> None:
    world = world_of({"t1": 1, "t2": 1})
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    world.image = image_of({"t1": 1}, offset=5)
    world.pass_time(MIN_INTERVAL_MS + 1)
    call(world, beat("a", 2))
    assert epochs(world) == (3, 3)
    assert group_of(world).subscriptions.resolved["t."].topics == {"t1", "t2"}, "looked for again later"
    assert group_of(world).regex_refresh is None


def test_h14_expressions_are_resolved_again_after_the_refresh_interval() -> None:
    world = world_of({"t1": 1}, regex_refresh_interval_ms=20_000)
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    first = group_of(world).subscriptions.resolved["t."].timestamp_ms
    world.pass_time(20_000)
    call(world, beat("a", 2))
    assert group_of(world).subscriptions.resolved["t."].timestamp_ms == first
    world.pass_time(1)
    call(world, beat("a", 2))
    assert group_of(world).subscriptions.resolved["t."].timestamp_ms == first + 20_001
    assert epochs(world) == (2, 2), "they match what they matched"


def test_a_second_expression_within_ten_seconds_waits_for_them_to_pass() -> None:
    world = world_of({"t1": 1, "u": 1})
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    call(world, enter("b", subscribed_topic_regex="u"))
    assert "u" not in group_of(world).subscriptions.resolved
    world.pass_time(MIN_INTERVAL_MS + 1)
    call(world, beat("a", 2))
    assert group_of(world).subscriptions.resolved["u"].topics == {"u"}


def test_the_last_member_takes_its_expression_along() -> None:
    world = world_of({"t1": 1})
    for name in ("a", "b"):
        call(world, enter(name, subscribed_topic_regex="t."))
    call(world, beat("a", -1))
    assert "t." in group_of(world).subscriptions.resolved
    call(world, beat("b", -1))
    assert not group_of(world).subscriptions.resolved
    check_replay(world)


def test_names_instead_of_an_expression_count_at_once() -> None:
    world = world_of({"t1": 1, "u": 1})
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    call(world, beat("a", 2, subscribed_topic_regex="", subscribed_topic_names=["u"]))
    assert not group_of(world).subscriptions.resolved
    assert epochs(world) == (3, 3)
    assert assigned(call(world, beat("a", 2, owned={}))) == {U: [0]}
    check_replay(world)


def test_a_bad_expression_leaves_the_good_one() -> None:
    world = world_of({"t1": 1})
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    assert code(world, beat("a", 2, subscribed_topic_regex="[")) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group_of(world).members["a"].regex == "t."


def test_all_by_one_expression_are_equal_subscribers() -> None:
    world = world_of({"t1": 4})
    a, b = Client(world, "a"), Client(world, "b")
    for client in (a, b):
        client.join(subscribed_topic_regex="t.")
    settle(a, b)
    assert group_of(world).subscriptions.are_equal(2)
    assert (a.count, b.count) == (2, 2)


def test_a_refresh_that_could_not_be_written_is_tried_again() -> None:
    world = world_of({"t1": 1})
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    world.image = image_of({"t1": 1, "t2": 1}, offset=5)
    world.pass_time(MIN_INTERVAL_MS + 1)
    world.refuse_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    call(world, beat("a", 2))
    assert world.refuse_with is None, "it was this write that was refused"
    assert group_of(world).regex_refresh is not None
    world.pass_time(500)
    assert group_of(world).subscriptions.resolved["t."].topics == {"t1", "t2"}


def test_after_a_load_the_expression_is_looked_at_again() -> None:
    world = world_of({"t1": 1})
    call(world, enter("a", subscribed_topic_regex="t."))
    call(world, beat("a", 1))
    world.reload()
    assert assigned(call(world, beat("a", 2, subscribed_topic_regex="t."))) is None
    world.pass_time(MIN_INTERVAL_MS + 1)
    world.image = image_of({"t1": 1, "t2": 2}, offset=7)
    call(world, beat("a", 2))
    assert assigned(call(world, beat("a", 2))) == {T1: [0], T2: [0, 1]}
