"""What group decisions carry for `settle` and `unsettle`: the in-memory part of a change."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coordinator.group.group import Group
from coordinator.machine import CoordinatorRecord, Decision, Event, Ticket
from wire.errors import KafkaError

if TYPE_CHECKING:
    GroupDecision = Decision[CoordinatorRecord]
else:
    # A parametrised class cannot be called here: it would set an attribute on a frozen instance.
    GroupDecision = Decision


@dataclass(frozen=True, slots=True)
class GroupEvent(Event):
    """A sentence about one group, kept with it for a while.

    `is_progress`: it tells how a rebalance goes on; all others are causes, or what a person should know of.
    """

    group_id: str
    at_ms: int
    is_progress: bool = False


NAME_SHOWN_MAX = 100
"""Names come from clients, of any length: a sentence repeats the beginning of one."""
SENTENCE_MAX = 600
"""Sentences are kept, so what clients give as reasons is not kept whole."""


def group_event(group_id: str, text: str, at_ms: int, *, is_progress: bool = False) -> GroupEvent:
    """The sentence about a group, cut where it is too long to be kept."""
    sentence = f"group {_cut(group_id, NAME_SHOWN_MAX)}: {text}"
    return GroupEvent(_cut(sentence, SENTENCE_MAX), group_id, at_ms, is_progress)


def _cut(text: str, size_max: int) -> str:
    return text if len(text) <= size_max else f"{text[:size_max]}…"


def counted_members(members: Sized) -> str:
    """`1 member`, `3 members`: for sentences."""
    return f"{len(members)} member" + ("" if len(members) == 1 else "s")


@dataclass(frozen=True, slots=True)
class GroupReplaced:
    """The group becomes this value."""

    group: Group


@dataclass(frozen=True, slots=True)
class DeadlineMoved:
    """Nothing of the group was due although it was noted so: look again."""

    group_id: str


@dataclass(frozen=True, slots=True)
class CleanupScheduled:
    """The next look for expired offsets, beginning behind the group `after` ("" for the first)."""

    at_ms: int
    after: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request behind a decision with records: answered with the error if they are refused."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class IfRefused:
    """What is decided instead if the records are refused; takes the error to answer with."""

    decide: Callable[[KafkaError], GroupDecision]


def keep_if_refused(decision: GroupDecision, ticket: Ticket = 0) -> GroupDecision:
    """The decision, made to hold in memory even if its records are refused.

    The request behind it (`ticket`), if there is one, is then answered with the error.
    """
    if not decision.records:
        return decision

    def refused(error: KafkaError) -> GroupDecision:
        replies = [(waiting, error if waiting == ticket else response) for waiting, response in decision.replies]
        return replace(decision, records=(), replies=replies)

    return replace(decision, volatile=(*decision.volatile, IfRefused(refused)))
