"""ListGroups and DescribeGroups. Source: Kafka's GroupMetadataManager (listGroups, describeGroups)."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.group.classic_group import ClassicGroup, ClassicGroupState
from coordinator.group.group import Group
from coordinator.group.groups import Groups
from wire.errors import ErrorCode
from wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from wire.messages.list_groups import ListedGroup

NOT_FOUND_IS_AN_ERROR_FROM = 6


def list_groups(groups: Groups, states_filter: Sequence[str], types_filter: Sequence[str]) -> list[ListedGroup]:
    """Groups in one of the states and of one of the types, without regard to case; an empty filter
    lets everything through, an unknown name nothing."""
    states = {state.lower() for state in states_filter}
    types = {group_type.lower() for group_type in types_filter}
    return [
        group.as_listed()
        for group in groups
        if (not states or group.state_name.lower() in states) and (not types or group.group_type.value in types)
    ]


def describe_classic_group(group: Group | None, group_id: str, api_version: int) -> DescribedGroup:
    """A classic group as DescribeGroups shows it; any other kind counts as not found.

    What members subscribe to is shown only while the group is Stable, as only then one protocol
    is certain.
    """
    if not isinstance(group, ClassicGroup):
        described = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
        if api_version >= NOT_FOUND_IS_AN_ERROR_FROM:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            missing = "not found" if group is None else "not a classic group"
            described.error_message = f"Group {group_id} {missing}."
        return described
    is_stable = group.state is ClassicGroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
