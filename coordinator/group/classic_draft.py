"""The working copy on which a decision about a classic group is made.

Deciding changes nothing: it edits this copy and collects what should happen. `decision()` then
hands over the copy, to be put in place by settling.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.classic_group import (
    VALID_PREVIOUS_STATES,
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
)
from coordinator.group.context import GroupSettings
from coordinator.group.settlement import GroupDecision, GroupEvent, GroupReplaced, group_event
from coordinator.machine import CoordinatorRecord, Ticket
from wire.errors import ErrorCode
from wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from wire.messages.sync_group import SyncGroupResponse


class ClassicDraft:
    """A copy of a group under change, and the replies, records and events of the decision."""

    def __init__(self, group: ClassicGroup, settings: GroupSettings, now_ms: int) -> None:
        self.group = group.copy()
        self.settings = settings
        self.now_ms = now_ms
        self.replies: list[tuple[Ticket, object]] = []
        self.records: list[CoordinatorRecord] = []
        self.events: list[GroupEvent] = []

    def decision(self) -> GroupDecision:
        """Everything collected, with the group's new value as the in-memory change."""
        return GroupDecision(
            records=self.records,
            replies=self.replies,
            events=self.events,
            volatile=(GroupReplaced(self.group),),
        )

    def event(self, text: str) -> None:
        """Note in a sentence why something happened to the group."""
        self._note(text)

    def progress(self, text: str) -> None:
        """Note in a sentence how far a rebalance has got."""
        self._note(text, is_progress=True)

    def _note(self, text: str, *, is_progress: bool = False) -> None:
        self.events.append(group_event(self.group.group_id, text, self.now_ms, is_progress=is_progress))

    # --- members ---------------------------------------------------------------------------

    def add_member(self, member: ClassicMember) -> None:
        """Add a member; the first one brings the protocol type and leads."""
        group = self.group
        if not group.members:
            group.protocol_type = member.protocol_type
        if member.group_instance_id is not None:
            group.static_members[member.group_instance_id] = member.member_id
        if group.leader_id is None:
            group.leader_id = member.member_id
        group.members[member.member_id] = member
        self._count_protocols(member, 1)
        group.pending_joins.pop(member.member_id, None)

    def remove_member(self, member_id: str) -> None:
        """Remove a member or a pending id with all that is known of it; maybe another one leads."""
        group = self.group
        member = group.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            if member.group_instance_id is not None:
                group.static_members.pop(member.group_instance_id, None)
        if group.leader_id == member_id:
            group.leader_id = next(iter(group.members), None)
        group.pending_joins.pop(member_id, None)
        group.pending_syncs -= {member_id}
        group.session_deadlines.pop(member_id, None)

    def put_member(self, member: ClassicMember) -> None:
        """Replace the member of the same id, which may bring other protocols."""
        self._count_protocols(self.group.members[member.member_id], -1)
        self.group.members[member.member_id] = member
        self._count_protocols(member, 1)

    def _count_protocols(self, member: ClassicMember, change: int) -> None:
        counts = self.group.protocol_counts
        for name, _ in member.protocols:
            count = counts.get(name, 0) + change
            if count:
                counts[name] = count
            else:
                counts.pop(name, None)

    def restart_session(self, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """The member was heard of: its session runs anew."""
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.group.session_deadlines[member.member_id] = self.now_ms + timeout_ms

    def transition_to(self, state: ClassicGroupState) -> None:
        """Change the state; a change that is not in the table is a fault of this program."""
        group = self.group
        if group.state not in VALID_PREVIOUS_STATES[state]:
            raise AssertionError(f"group {group.group_id} cannot become {state.value} from {group.state_name}")
        group.previous_state = group.state
        group.state = state
        group.state_timestamp_ms = self.now_ms

    # --- answers to waiting requests -------------------------------------------------------

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> ClassicMember:
        """Answer the member's waiting JoinGroup, if there is one; returns the member after that."""
        if member.join_ticket is None:
            return member
        self.replies.append((member.join_ticket, response))
        member = replace(member, join_ticket=None)
        self.group.members[member.member_id] = member
        return member

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> ClassicMember:
        """Answer the member's waiting SyncGroup, if there is one; its session then runs anew."""
        if member.sync_ticket is None:
            return member
        self.replies.append((member.sync_ticket, response))
        member = replace(member, sync_ticket=None)
        self.group.members[member.member_id] = member
        self.restart_session(member)
        return member

    def joined(
        self, member_id: str, *, leader_id: str | None = None, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """The answer to a member of the present generation; only the leader is told the members."""
        group = self.group
        leads = group.leader_id == member_id and leader_id in (None, member_id)
        members = []
        if leads:
            members = [
                JoinGroupResponseMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    metadata=member.metadata(group.protocol_name),
                )
                for member in group.members.values()
            ]
        return JoinGroupResponse(
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader_id or "" if leader_id is None else leader_id,
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=members,
        )


def join_error(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """A refused JoinGroup: generation -1, no leader. Below v7 a null protocol name is written ""."""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def sync_error(code: ErrorCode) -> SyncGroupResponse:
    """A refused SyncGroup."""
    return SyncGroupResponse(error_code=code)
