"""What holds of every consumer group after every step, by name."""

from __future__ import annotations

from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_member import ConsumerMember, MemberState


def check_consumer_group(group: ConsumerGroup) -> None:
    """What holds of one group, whatever was asked of it."""
    members = group.members
    owners: dict[tuple[bytes, int], str] = {}
    for member in members.values():
        for partition in partitions_of(member):
            assert partition not in owners, f"EachPartitionHasOneOwner: {partition}"
            owners[partition] = member.member_id
    assert group.owners == owners, "OwnersAreWhatMembersHold"
    static = {m.group_instance_id: m.member_id for m in members.values() if m.group_instance_id is not None}
    assert group.static_members == static, "StaticMembersAreMapped"
    check_target(group)
    check_counts(group)
    check_deadlines(group)
    for member in members.values():
        check_member(group, member)


def partitions_of(member: ConsumerMember) -> list[tuple[bytes, int]]:
    """All that a member has or has not given up yet."""
    return [
        (topic_id, partition)
        for partitions in (member.assigned, member.pending_revocation)
        for topic_id, epochs in partitions.items()
        for partition in epochs
    ]


def check_target(group: ConsumerGroup) -> None:
    assert set(group.target) <= set(group.members), "TargetsAreOfMembers"
    given = [
        (topic_id, partition)
        for target in group.target.values()
        for topic_id, partitions in target.items()
        for partition in partitions
    ]
    assert len(given) == len(set(given)), "TheTargetGivesEachPartitionOnce"
    assert group.assignment_epoch <= group.group_epoch, "TheTargetIsNotAheadOfTheGroup"


def check_counts(group: ConsumerGroup) -> None:
    counts = group.subscriptions
    expected: dict[str, int] = {}
    regexes: dict[str, int] = {}
    assignors: dict[str, int] = {}
    for member in group.members.values():
        for name in member.subscribed_topic_names:
            expected[name] = expected.get(name, 0) + 1
        if member.regex is not None:
            regexes[member.regex] = regexes.get(member.regex, 0) + 1
        if member.server_assignor is not None:
            assignors[member.server_assignor] = assignors.get(member.server_assignor, 0) + 1
    assert (counts.by_name, counts.by_regex, counts.assignors) == (expected, regexes, assignors), "WishesAreCounted"
    assert set(counts.resolved) <= set(regexes), "ResolvedExpressionsAreWanted"


def check_deadlines(group: ConsumerGroup) -> None:
    assert set(group.session_deadlines) == set(group.members), "EveryMemberHasASession"
    for deadlines in (group.rebalance_deadlines, group.join_deadlines, group.sync_deadlines):
        assert set(deadlines) <= set(group.members), "DeadlinesAreOfMembers"


def check_member(group: ConsumerGroup, member: ConsumerMember) -> None:
    assert member.member_epoch <= group.assignment_epoch, "NoMemberIsAheadOfTheTarget"
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if member.classic is None and member.member_epoch >= 0:
            assert member.member_id in group.rebalance_deadlines, "RevocationIsTimed"
    else:
        assert not member.pending_revocation, "OnlyUnrevokedMembersHaveSomethingToGiveUp"
    if member.is_reconciled_to(group.assignment_epoch):
        target = group.target_of(member.member_id)
        held = {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
        assert all(held[topic_id] <= target.get(topic_id, frozenset()) for topic_id in held), "StableIsWithinTheTarget"
