"""ListTransactions and DescribeTransactions: what is told of transactional ids (D31, D32).

Source: Kafka's TransactionStateManager (listTransactionStates) and TransactionCoordinator
(handleDescribeTransactions); KIP-664, KIP-994, KIP-1152.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator.regular_expression import RegularExpression
from coordinator.transaction.metadata import TransactionMetadata
from coordinator.transaction.states import STATE_OF_NAME, TransactionState
from wire.messages.describe_transactions import TopicData
from wire.messages.describe_transactions import TransactionState as DescribedTransaction
from wire.messages.list_transactions import TransactionState as ListedTransaction


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which transactional ids are listed: those that pass all that is given."""

    producer_ids: frozenset[int] = frozenset()
    """Empty: of any producer id."""
    states: frozenset[TransactionState] | None = None
    """None: in any state. Empty, after naming unknown states only: none."""
    duration_ms: int = -1
    """Running longer than this; negative: however long. (An id without a start counts as very old.)"""
    pattern: RegularExpression | None = None

    def passes(self, metadata: TransactionMetadata, now_ms: int) -> bool:
        """Whether the id is listed."""
        return (
            (not self.producer_ids or metadata.producer_id in self.producer_ids)
            and (self.states is None or metadata.state in self.states)
            and (self.duration_ms < 0 or now_ms - metadata.start_ms > self.duration_ms)
            and (self.pattern is None or self.pattern.matches(metadata.transactional_id))
        )


def states_of_names(names: Iterable[str]) -> tuple[frozenset[TransactionState] | None, list[str]]:
    """The states with these names, None for no names; and the names that no state has, each once."""
    wanted = list(names)
    known = frozenset(STATE_OF_NAME[name] for name in wanted if name in STATE_OF_NAME)
    unknown = [name for name in dict.fromkeys(wanted) if name not in STATE_OF_NAME]
    return (known if wanted else None), unknown


def list_transactions(
    transactions: Iterable[TransactionMetadata], wanted: TransactionFilter, now_ms: int
) -> list[ListedTransaction]:
    """The ids that pass the filter."""
    return [
        ListedTransaction(
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            transaction_state=metadata.state.display_name,
        )
        for metadata in transactions
        if wanted.passes(metadata, now_ms)
    ]


def describe_transaction(metadata: TransactionMetadata) -> DescribedTransaction:
    """All that is told of one id."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(metadata.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return DescribedTransaction(
        transactional_id=metadata.transactional_id,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_state=metadata.state.display_name,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        topics=[TopicData(topic=topic, partitions=ids) for topic, ids in by_topic.items()],
    )
