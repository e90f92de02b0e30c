"""The working copy on which a decision about a consumer group is made.

A record that a decision writes is applied to the copy at once, by the same code that replays it: what
comes later in the decision sees the group as it will be. Settling puts the copy in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_replay import apply_record
from coordinator.group.settlement import GroupDecision, GroupEvent, GroupReplaced, IfRefused, group_event
from coordinator.machine import CoordinatorRecord, Ticket
from wire.errors import KafkaError

RETRY_MS = 500
"""A timeout whose records were refused is due again after this (CoordinatorRuntime's timer does so)."""


class ConsumerDraft:
    """A copy of a group under change, and the records, replies and events of the decision."""

    def __init__(self, group: ConsumerGroup, now_ms: int, *, before: Iterable[CoordinatorRecord] = ()) -> None:
        """`before` are records about what stood under the group's id until now."""
        self.before = group
        """The group as it was: without the records of this decision, but as a consumer group."""
        self.group = group.copy()
        self.has_new_target = False
        """The target assignment was computed in this decision."""
        self.now_ms = now_ms
        self.records: list[CoordinatorRecord] = list(before)
        self.replies: list[tuple[Ticket, object]] = []
        self.events: list[GroupEvent] = []

    def add(self, *records: CoordinatorRecord) -> None:
        """Write records, and have the copy be as they say."""
        for record in records:
            self.records.append(record)
            apply_record(self.group, record.key, record.value)

    def event(self, text: str) -> None:
        """Note in a sentence why something happened to the group."""
        self._note(text)

    def progress(self, text: str) -> None:
        """Note in a sentence how far a rebalance has got."""
        self._note(text, is_progress=True)

    def _note(self, text: str, *, is_progress: bool = False) -> None:
        self.events.append(group_event(self.group.group_id, text, self.now_ms, is_progress=is_progress))

    def decision(self) -> GroupDecision:
        """Everything collected, with the group's new value as the in-memory change."""
        return GroupDecision(
            records=self.records,
            replies=self.replies,
            events=self.events,
            volatile=(GroupReplaced(self.group),),
        )


def retry_if_refused(decision: GroupDecision, group: ConsumerGroup, now_ms: int) -> GroupDecision:
    """The decision on something that was due in `group`; due again a little later if it cannot be written."""
    if not decision.records:
        return decision

    def refused(error: KafkaError) -> GroupDecision:
        postponed = group.copy()
        at_ms = now_ms + RETRY_MS
        for deadlines in (postponed.session_deadlines, postponed.join_deadlines, postponed.sync_deadlines):
            deadlines.update((member_id, at_ms) for member_id, due_ms in deadlines.items() if due_ms <= now_ms)
        postponed.rebalance_deadlines = {
            member_id: (max(due_ms, at_ms) if due_ms <= now_ms else due_ms, epoch)
            for member_id, (due_ms, epoch) in postponed.rebalance_deadlines.items()
        }
        if postponed.regex_refresh is not None and postponed.regex_refresh.at_ms <= now_ms:
            postponed.regex_refresh = replace(postponed.regex_refresh, at_ms=at_ms)
        return GroupDecision(volatile=(GroupReplaced(postponed),))

    return replace(decision, volatile=(*decision.volatile, IfRefused(refused)))
