"""What the transaction machine may know of the world besides its own state."""

from __future__ import annotations

from dataclasses import dataclass, field

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The broker settings that decide about transactions, with Kafka's defaults.

    Source: Kafka's TransactionStateManagerConfig.
    """

    max_timeout_ms: int = 15 * 60_000
    """`transaction.max.timeout.ms`"""
    two_phase_commit_enable: bool = False
    """`transaction.two.phase.commit.enable`"""
    id_expiration_ms: int = 7 * 24 * HOUR_MS
    """`transactional.id.expiration.ms`"""
    abort_interval_ms: int = 10_000
    """`transaction.abort.timed.out.transaction.cleanup.interval.ms`"""
    expiry_interval_ms: int = HOUR_MS
    """`transaction.remove.expired.transaction.cleanup.interval.ms`"""


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """`transaction_version` is the finalized level of the feature of that name."""

    settings: TransactionSettings = field(default_factory=TransactionSettings)
    transaction_version: int = 0
