"""What deciding about one transactional id comes to, before the machine makes a decision of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from coordinator.transaction.metadata import TransactionMetadata


class Known(NamedTuple):
    """A transactional id as a request finds it."""

    metadata: TransactionMetadata
    is_pending: bool = False
    """A transition is under way: its record is not replicated yet, or markers are being written."""
    has_failed_fence: bool = False
    """The record of a fence was refused: the epoch was raised already, and is not raised again (D29)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reply, given when `target` (if there is one) is stored and replicated."""

    reply: Any
    """A KafkaError where what is stored is not what was asked for: the client tries again."""
    target: TransactionMetadata | None = None
    created: TransactionMetadata | None = None
    """The id is new; it is known in memory from now on, whether or not it can be stored."""
    if_refused: TransactionMetadata | None = None
    """Set for a fence: what the id becomes in memory if the record is refused."""
    text: str = ""
    """Why, as one sentence."""
