"""The target assignment of a consumer group: when it is computed, and the records of it.

Source: Kafka's GroupMetadataManager.maybeUpdateTargetAssignment, TargetAssignmentBuilder.
"""

from __future__ import annotations

from coordinator.group.assignors import ASSIGNORS
from coordinator.group.assignors.specification import GroupSpecification, MemberSpecification
from coordinator.group.consumer_draft import ConsumerDraft
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_member import NOTHING
from coordinator.group.consumer_records import target_epoch_record, target_record
from coordinator.group.context import GroupContext
from coordinator.group.settlement import counted_members
from coordinator.metadata.image import RESOURCE_GROUP, TopicsImage


def update_target(draft: ConsumerDraft, context: GroupContext) -> None:
    """Compute the target anew if the group's epoch has risen and the last one is old enough (KIP-1263)."""
    group, settings = draft.group, context.settings.consumer
    if group.assignment_epoch >= group.group_epoch:
        return
    interval_ms = settings.assignment_interval_of(context.image.configs.of(RESOURCE_GROUP, group.group_id))
    computed_ms = group.assignment_timestamp_ms
    if computed_ms and interval_ms and draft.now_ms < computed_ms + interval_ms:
        # A later heartbeat of any member does it, for all changes until then.
        return
    assignor = group.subscriptions.preferred_assignor(settings.assignors)
    assignment = ASSIGNORS[assignor](specification(group, context.image.topics))
    for member_id in group.members:
        partitions = {topic_id: each for topic_id, each in assignment.get(member_id, NOTHING).items() if each}
        if group.target.get(member_id) != partitions:
            draft.add(target_record(group.group_id, member_id, partitions))
    draft.add(target_epoch_record(group.group_id, group.group_epoch, draft.now_ms))
    draft.has_new_target = True
    draft.progress(
        f"target assignment {group.assignment_epoch} computed by {assignor} for {counted_members(group.members)}"
    )


def specification(group: ConsumerGroup, topics: TopicsImage) -> GroupSpecification:
    """The group as assignors see it: subscriptions by topic id, topics that do not exist left out."""
    subscriptions = group.subscriptions
    counts: dict[bytes, int] = {}
    known: dict[tuple[frozenset[str], str | None], frozenset[bytes]] = {}
    members = {}
    for member_id, member in group.members.items():
        wanted = member.subscribed_topic_names, member.regex
        topic_ids = known.get(wanted)
        if topic_ids is None:
            found = [topic for name in subscriptions.topics_of(member) if (topic := topics.by_name(name))]
            topic_ids = known[wanted] = frozenset(topic.topic_id for topic in found)
            counts.update((topic.topic_id, len(topic.partitions)) for topic in found)
        members[member_id] = MemberSpecification(topic_ids, group.target_of(member_id), member.group_instance_id)
    return GroupSpecification(members, subscriptions.are_equal(len(members)), counts)
