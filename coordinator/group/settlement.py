"""What group decisions carry for `settle` and `unsettle`: the in-memory part of a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coordinator.group.group import Group
from coordinator.machine import CoordinatorRecord, Decision, Event, Ticket
from wire.errors import KafkaError

GroupDecision = Decision[CoordinatorRecord]


@dataclass(frozen=True, slots=True)
class GroupEvent(Event):
    """A sentence about one group, kept with it for a while."""

    group_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class GroupReplaced:
    """The group becomes this value."""

    group: Group


@dataclass(frozen=True, slots=True)
class SessionRefreshed:
    """A member was heard of: its session now ends at `deadline_ms`, later than before."""

    group_id: str
    member_id: str
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class CleanupScheduled:
    """The next look for expired offsets."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The request behind a decision with records: answered with the error if they are refused."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class IfRefused:
    """What is decided instead if the records are refused; takes the error to answer with."""

    decide: Callable[[KafkaError], GroupDecision]
