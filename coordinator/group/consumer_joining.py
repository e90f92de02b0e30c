"""Finding or making the member that a request is about, and giving a static member a new id.

Source: Kafka's GroupMetadataManager (getOrMaybeSubscribeDynamicConsumerGroupMember,
getOrMaybeSubscribeStaticConsumerGroupMember, replaceMember).
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.consumer_draft import ConsumerDraft
from coordinator.group.consumer_member import JOIN_EPOCH, ConsumerMember
from coordinator.group.consumer_records import (
    current_assignment_record,
    member_record,
    member_tombstones,
    target_record,
)
from coordinator.group.consumer_validation import check_instance, check_instance_is_free


def static_member_for(
    draft: ConsumerDraft, member_id: str, group_instance_id: str, *, joins: bool, uses_classic: bool
) -> ConsumerMember:
    """The member of this instance id; if it joins, a new one or the present one under a new member id.

    Raises UNRELEASED_INSTANCE_ID, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    existing = draft.group.static_member(group_instance_id)
    if not joins:
        return check_instance(draft.group, existing, member_id, group_instance_id)
    if existing is None:
        return draft.group.members.get(member_id) or ConsumerMember(member_id)
    if not uses_classic and existing.classic is None:
        check_instance_is_free(existing, member_id, group_instance_id)
    return _renamed(draft, existing, member_id)


def _renamed(draft: ConsumerDraft, old: ConsumerMember, member_id: str) -> ConsumerMember:
    """Give the static member's place, wishes and partitions to a new member id."""
    group = draft.group
    member = replace(old, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
    target = group.target_of(old.member_id)
    draft.add(*member_tombstones(group.group_id, old.member_id))
    draft.add(member_record(group.group_id, member))
    draft.add(target_record(group.group_id, member_id, target))
    draft.add(current_assignment_record(group.group_id, member))
    who = f"static member {old.group_instance_id}"
    draft.event(f"{who} came back as {member_id} (it was {old.member_id}) and has its partitions again")
    return group.members[member_id]
