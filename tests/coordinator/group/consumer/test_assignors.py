"""Assignors: equal to Apache Kafka's on recorded rounds; balanced and sticky on any."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coordinator.group.assignors import ASSIGNORS
from coordinator.group.assignors.range import assign_range
from coordinator.group.assignors.specification import GroupAssignment, GroupSpecification, MemberSpecification
from coordinator.group.assignors.uniform import assign_uniform

GOLDEN = Path(__file__).parents[3] / "golden" / "assignors" / "kafka-4.4.0.jsonl"
ROUNDS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def topic(number: int | str) -> bytes:
    return int(number).to_bytes(16, "big")


def partitions(shown: Mapping[str, list[int]]) -> dict[bytes, frozenset[int]]:
    return {topic(number): frozenset(each) for number, each in shown.items()}


def specification(shown: dict[str, Any]) -> GroupSpecification:
    members = {
        member_id: MemberSpecification(
            frozenset(topic(number) for number in each["topics"]), partitions(each["before"]), each["instance"]
        )
        for member_id, each in shown["members"].items()
    }
    counts = {topic(number): count for number, count in shown["partitions"].items()}
    return GroupSpecification(members, shown["equal"], counts)


def without_nothing(assignment: GroupAssignment) -> dict[str, dict[bytes, frozenset[int]]]:
    return {
        member_id: {topic_id: each for topic_id, each in given.items() if each}
        for member_id, given in assignment.items()
        if any(given.values())
    }


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
@pytest.mark.parametrize("equal", [True, False])
def test_rounds_are_those_of_apache_kafka(assignor: str, equal: bool) -> None:
    rounds = [each for each in ROUNDS if each["assignor"] == assignor and each["equal"] is equal]
    assert len(rounds) > 50
    for number, shown in enumerate(rounds):
        expected = {member_id: partitions(each["after"]) for member_id, each in shown["members"].items()}
        answered = without_nothing(ASSIGNORS[assignor](specification(shown)))
        assert answered == without_nothing(expected), f"round {number}"


# --- properties -----------------------------------------------------------------------------------

MEMBERS = [f"m{index}" for index in range(7)]
TOPICS = [topic(number) for number in range(4)]


@st.composite
def groups(draw: st.DrawFn, *, equal: bool | None = None) -> GroupSpecification:
    counts = {each: draw(st.integers(1, 7)) for each in TOPICS}
    is_equal = draw(st.booleans()) if equal is None else equal
    shared = draw(st.frozensets(st.sampled_from(TOPICS), min_size=1))
    names = draw(st.lists(st.sampled_from(MEMBERS), min_size=1, unique=True))
    free = {(each, index) for each, count in counts.items() for index in range(count)}
    members = {}
    for name in names:
        topics = shared if is_equal else draw(st.frozensets(st.sampled_from(TOPICS)))
        had = draw(st.frozensets(st.sampled_from(sorted(free)))) if free else frozenset()
        free -= had
        before: dict[bytes, frozenset[int]] = {}
        for each, index in had:
            before[each] = before.get(each, frozenset()) | {index}
        instance = draw(st.none() | st.just(f"i-{name}"))
        members[name] = MemberSpecification(topics, before, instance)
    return GroupSpecification(members, is_equal, counts)


def loads(assignment: GroupAssignment, group: GroupSpecification) -> dict[str, int]:
    return {name: sum(map(len, assignment.get(name, {}).values())) for name in group.members}


def again(group: GroupSpecification, assignment: GroupAssignment) -> GroupSpecification:
    members = {name: each._replace(assigned=assignment.get(name, {})) for name, each in group.members.items()}
    return GroupSpecification(members, group.is_homogeneous, group.partition_counts)


def pairs(assignment: GroupAssignment) -> list[tuple[bytes, int]]:
    return [(each, index) for given in assignment.values() for each, indexes in given.items() for index in indexes]


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
@given(group=groups())
def test_each_wanted_partition_goes_to_one_subscriber(assignor: str, group: GroupSpecification) -> None:
    assignment = ASSIGNORS[assignor](group)
    given_out = pairs(assignment)
    assert len(given_out) == len(set(given_out)), "no partition has two owners"
    wanted = {topic_id for member in group.members.values() for topic_id in member.topic_ids}
    assert set(given_out) == {(each, index) for each in wanted for index in range(group.partition_counts[each])}
    for name, given_to in assignment.items():
        assert {each for each, indexes in given_to.items() if indexes} <= group.members[name].topic_ids


@given(group=groups(equal=True))
def test_uniform_loads_of_equal_subscribers_differ_by_one_at_most(group: GroupSpecification) -> None:
    found = loads(assign_uniform(group), group).values()
    assert max(found) - min(found) <= 1


@given(group=groups(equal=True))
def test_uniform_keeps_as_much_as_equal_loads_allow(group: GroupSpecification) -> None:
    """Nobody below its share loses anything, and what is moved is what is too much."""
    assignment = assign_uniform(group)
    share = sum(loads(assignment, group).values()) // len(group.members)
    for name, member in group.members.items():
        kept = {each: indexes for each, indexes in member.assigned.items() if each in member.topic_ids}
        lost = sum(len(indexes - assignment.get(name, {}).get(each, frozenset())) for each, indexes in kept.items())
        assert lost <= max(sum(map(len, kept.values())) - share, 0)


@given(group=groups())
def test_uniform_moves_nothing_the_second_time(group: GroupSpecification) -> None:
    first = assign_uniform(group)
    assert without_nothing(assign_uniform(again(group, first))) == without_nothing(first)


@given(group=groups(equal=False))
def test_uniform_leaves_no_move_that_would_gain(group: GroupSpecification) -> None:
    """Of any topic's subscribers, nobody with partitions of it has two more than another."""
    assignment = assign_uniform(group)
    found = loads(assignment, group)
    for name, given_to in assignment.items():
        for each, indexes in given_to.items():
            if not indexes:
                continue
            others = [found[other] for other, member in group.members.items() if each in member.topic_ids]
            assert found[name] - min(others) <= 1


@given(group=groups(equal=True))
def test_range_gives_contiguous_ranges_in_the_order_of_members(group: GroupSpecification) -> None:
    assignment = assign_range(group)
    members = group.members
    order = sorted(
        members, key=lambda name: (members[name].group_instance_id is None, members[name].group_instance_id or name)
    )
    for each in next(iter(members.values())).topic_ids:
        row = [sorted(assignment.get(name, {}).get(each, frozenset())) for name in order]
        assert [index for part in row for index in part] == list(range(group.partition_counts[each]))
        sizes = [len(part) for part in row]
        assert sizes == sorted(sizes, reverse=True)
        assert max(sizes) - min(sizes) <= 1


@given(group=groups(equal=True), count=st.integers(1, 12))
def test_range_gives_the_same_numbers_of_topics_of_one_size(group: GroupSpecification, count: int) -> None:
    same = GroupSpecification(group.members, True, dict.fromkeys(group.partition_counts, count))
    for given_to in assign_range(same).values():
        assert len(set(given_to.values())) <= 1, "co-partitioned"


@given(group=groups(), order=st.randoms(use_true_random=False))
def test_the_order_in_which_members_are_told_does_not_count(group: GroupSpecification, order: Any) -> None:
    names = list(group.members)
    order.shuffle(names)
    assume(names != list(group.members))
    shuffled = GroupSpecification(
        {name: group.members[name] for name in names}, group.is_homogeneous, group.partition_counts
    )
    for assign in ASSIGNORS.values():
        assert assign(shuffled) == assign(group)


def test_nobody_gets_nothing() -> None:
    for assign in ASSIGNORS.values():
        assert assign(GroupSpecification({}, True, {})) == {}
    lonely = GroupSpecification({"m": MemberSpecification(frozenset(), {})}, True, {})
    for assign in ASSIGNORS.values():
        assert without_nothing(assign(lonely)) == {}


def test_names_are_ordered_as_java_orders_them() -> None:
    """A character beyond 16 bits is two units in Java, below U+FFFF."""
    members = {name: MemberSpecification(frozenset({topic(1)}), {}) for name in ("\uffff", "\U0001f600")}
    assignment = assign_range(GroupSpecification(members, True, {topic(1): 2}))
    assert assignment["\U0001f600"] == {topic(1): frozenset({0})}
