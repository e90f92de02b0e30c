"""ConsumerGroupDescribe of one group. Source: Kafka's ConsumerGroup.asDescribedGroup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_member import ConsumerMember
from coordinator.group.group import Group
from coordinator.metadata.image import TopicsImage
from wire.errors import ErrorCode
from wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe_consumer_group(
    group: Group | None, group_id: str, assignors: Sequence[str], topics: TopicsImage
) -> DescribedGroup:
    """The group with its members; any other kind counts as not found. `assignors` are the broker's."""
    if not isinstance(group, ConsumerGroup):
        missing = "not found" if group is None else "is not a consumer group"
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {missing}.",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.subscriptions.preferred_assignor(assignors),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: TopicsImage) -> Member:
    # A member answers for partitions until it has given them up.
    held: dict[bytes, set[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            held.setdefault(topic_id, set()).update(epochs)
    return Member(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(held.items(), topics),
        target_assignment=_assignment(group.target_of(member.member_id).items(), topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: Iterable[tuple[bytes, Iterable[int]]], topics: TopicsImage) -> Assignment:
    """Topics that are no more are left out."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=sorted(indexes))
            for topic_id, indexes in sorted(partitions)
            if (topic := topics.by_id(topic_id)) is not None
        ]
    )
