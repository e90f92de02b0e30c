"""The rebalance of a classic group: from a reason, through the join phase, to a new generation.

    prepare_rebalance ─ everybody joined? ──────────► complete_join ► CompletingRebalance
          └ no: wait until the last one joins or the rebalance timeout
          └ group was Empty: wait for the initial delay instead

Source: Kafka's GroupMetadataManager (prepareRebalance, completeClassicGroupJoin and around).
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.classic_draft import ClassicDraft, join_error
from coordinator.group.classic_group import (
    VALID_PREVIOUS_STATES,
    ClassicGroupState,
    ClassicMember,
    InitialDelay,
)
from coordinator.group.classic_records import group_record
from coordinator.group.settlement import counted_members
from wire.errors import ErrorCode
from wire.messages.sync_group import SyncGroupResponse


def rebalance(draft: ClassicDraft, reason: str) -> None:
    """Start a rebalance because of `reason`, or complete the one that runs if nobody is missing."""
    if draft.group.state in VALID_PREVIOUS_STATES[ClassicGroupState.PREPARING_REBALANCE]:
        prepare_rebalance(draft, reason)
    else:
        draft.event(f"{reason} too, while members rejoin")
        maybe_complete_join(draft)


def prepare_rebalance(draft: ClassicDraft, reason: str) -> None:
    """Enter the join phase; waiting SyncGroups are answered REBALANCE_IN_PROGRESS."""
    group = draft.group
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        drop_assignments(draft, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs = frozenset()
    group.sync_deadline_ms = None

    is_first = group.state is ClassicGroupState.EMPTY
    draft.transition_to(ClassicGroupState.PREPARING_REBALANCE)
    what = "the empty group" if is_first else f"generation {group.generation_id}"
    draft.event(f"a rebalance of {what} begins: {reason}")
    if is_first:
        delay_ms = draft.settings.initial_rebalance_delay_ms
        group.initial_delay = InitialDelay(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        group.join_deadline_ms = draft.now_ms + delay_ms
    elif group.all_members_joined:
        complete_join(draft)
    else:
        group.join_deadline_ms = draft.now_ms + group.rebalance_timeout_ms


def drop_assignments(draft: ClassicDraft, code: ErrorCode) -> None:
    """Answer waiting SyncGroups with an error; no assignment of this generation counts."""
    for member in list(draft.group.members.values()):
        member = replace(member, assignment=b"")
        draft.group.members[member.member_id] = member
        draft.answer_sync(member, SyncGroupResponse(error_code=code))


def maybe_complete_join(draft: ClassicDraft) -> None:
    """Complete the join phase if all members wait in it. The first rebalance of a group that was
    empty ends by time alone."""
    group = draft.group
    if (
        group.state is ClassicGroupState.PREPARING_REBALANCE
        and group.previous_state is not ClassicGroupState.EMPTY
        and group.all_members_joined
    ):
        complete_join(draft)


def join_deadline_passed(draft: ClassicDraft) -> None:
    """The join phase, or one span of the initial delay, is over."""
    group = draft.group
    initial = group.initial_delay
    if initial is not None and group.new_member_added and initial.remaining_ms != 0:
        # Somebody joined meanwhile: wait on, up to the rebalance timeout altogether.
        group.new_member_added = False
        delay_ms = min(draft.settings.initial_rebalance_delay_ms, initial.remaining_ms)
        group.initial_delay = InitialDelay(delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
        group.join_deadline_ms = draft.now_ms + delay_ms
    else:
        complete_join(draft)


def complete_join(draft: ClassicDraft) -> None:
    """End the join phase: a new generation of those who joined, or an Empty group.

    Dynamic members that did not rejoin are removed, static ones stay until their session ends. If
    nobody at all rejoined, wait for another rebalance timeout.
    """
    group = draft.group
    group.join_deadline_ms = None
    group.initial_delay = None
    missing = [
        member.member_id
        for member in group.members.values()
        if member.join_ticket is None and member.group_instance_id is None
    ]
    for member_id in missing:
        draft.remove_member(member_id)
    if missing:
        draft.event(f"removed members that did not rejoin in time: {', '.join(missing)}")

    if not _leader_has_joined(draft) and group.members:
        draft.event("no member rejoined; waiting for another rebalance timeout")
        group.join_deadline_ms = draft.now_ms + group.rebalance_timeout_ms
        return

    group.generation_id += 1
    group.pending_syncs = frozenset()
    if not group.members:
        group.protocol_name = None
        group.subscribed_topics = group.compute_subscribed_topics()
        draft.transition_to(ClassicGroupState.EMPTY)
        draft.progress(f"generation {group.generation_id} is empty: no member is left")
        draft.records.append(group_record(group))
        return

    group.protocol_name = group.select_protocol()
    group.subscribed_topics = group.compute_subscribed_topics()
    draft.transition_to(ClassicGroupState.COMPLETING_REBALANCE)
    draft.progress(
        f"generation {group.generation_id} begins with {counted_members(group.members)}"
        f" and protocol {group.protocol_name}, led by {group.leader_id}"
    )
    for member in list(group.members.values()):
        member = draft.answer_join(member, draft.joined(member.member_id))
        draft.restart_session(member)
        group.members[member.member_id] = replace(member, is_new=False)
    group.pending_syncs = frozenset(group.members)
    group.sync_deadline_ms = draft.now_ms + group.rebalance_timeout_ms


def _leader_has_joined(draft: ClassicDraft) -> bool:
    """True if the leader waits in the join phase, maybe after another one became leader."""
    group = draft.group
    if group.leader_id is None:
        return False
    if group.members[group.leader_id].join_ticket is not None:
        return True
    joined = (m.member_id for m in group.members.values() if m.join_ticket is not None)
    new_leader_id = next(joined, None)
    if new_leader_id is None:
        return False
    draft.event(f"leader {group.leader_id} did not rejoin in time; {new_leader_id} leads instead")
    group.leader_id = new_leader_id
    return True


def sync_deadline_passed(draft: ClassicDraft) -> None:
    """The sync phase is over: members that have not asked for their assignment are removed."""
    group = draft.group
    group.sync_deadline_ms = None
    missing = [member_id for member_id in group.members if member_id in group.pending_syncs]
    if not missing:
        return
    for member_id in missing:
        draft.remove_member(member_id)
    prepare_rebalance(draft, f"members did not sync in time and were removed: {', '.join(missing)}")


def session_ended(draft: ClassicDraft, member: ClassicMember) -> None:
    """A member was not heard of within its session timeout."""
    if member.is_new:
        reason = f"member {member.member_id} was removed: its first join was not completed in time"
    else:
        reason = (
            f"member {member.member_id} was removed: "
            f"session timeout after {member.session_timeout_ms} ms without a heartbeat"
        )
    # A client that still waits for its first join is to retry it.
    draft.answer_join(member, join_error(ErrorCode.UNKNOWN_MEMBER_ID))
    draft.remove_member(member.member_id)
    if draft.group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
        prepare_rebalance(draft, reason)
    else:
        draft.event(reason)
        _complete_without_the_gone(draft)


def pending_join_ended(draft: ClassicDraft, member_id: str) -> None:
    """An id given out with MEMBER_ID_REQUIRED was not used within the session timeout."""
    draft.remove_member(member_id)
    draft.event(f"member id {member_id} was given out and not used within the session timeout")
    _complete_without_the_gone(draft)


def _complete_without_the_gone(draft: ClassicDraft) -> None:
    """Timeouts end the first rebalance of a group early too, unlike members that leave."""
    group = draft.group
    if group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_members_joined:
        complete_join(draft)
