"""The record that stores a classic group: built and read back here.

Source: Kafka's GroupCoordinatorRecordHelpers.newGroupMetadataRecord and GroupMetadataManager.replay.
"""

from __future__ import annotations

from coordinator.group.classic_group import ClassicGroup, ClassicGroupState, ClassicMember
from coordinator.machine import CoordinatorRecord
from wire.messages.records.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

GROUP_METADATA_VERSION = 3
"""The version that Kafka 4.4 writes, although it reads 4 as well."""


def group_record(group: ClassicGroup) -> CoordinatorRecord:
    """The record that stores the present generation with its members and assignments."""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=member.assignment,
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=members,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def restore_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group as of its stored generation: Stable if it has members, else Empty.

    A record does not know when it is read: sessions start once the whole log is loaded.
    """
    group = ClassicGroup(
        group_id,
        state=ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
        state_timestamp_ms=value.current_state_timestamp,
    )
    protocol_name = value.protocol or ""
    for stored in value.members:
        timeout_ms = stored.rebalance_timeout
        group.members[stored.member_id] = ClassicMember(
            stored.member_id,
            stored.group_instance_id,
            stored.client_id,
            stored.client_host,
            # Version 0 had no rebalance timeout.
            timeout_ms if timeout_ms != -1 else stored.session_timeout,
            stored.session_timeout,
            value.protocol_type,
            ((protocol_name, stored.subscription),),
            stored.assignment,
        )
        if stored.group_instance_id is not None:
            group.static_members[stored.group_instance_id] = stored.member_id
    if group.members:
        group.protocol_counts[protocol_name] = len(group.members)
    group.subscribed_topics = group.compute_subscribed_topics()
    return group
