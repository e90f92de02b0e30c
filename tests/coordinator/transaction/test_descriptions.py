"""ListTransactions and DescribeTransactions (D31, D32)."""

from __future__ import annotations

import pytest

from coordinator.regular_expression import RegularExpression
from coordinator.transaction.descriptions import (
    TransactionFilter,
    describe_transaction,
    list_transactions,
    states_of_names,
)
from coordinator.transaction.metadata import TransactionMetadata
from coordinator.transaction.states import TransactionState as S
from wire.primitives import TopicPartition

NOW_MS = 100_000
ONGOING = TransactionMetadata(
    "pay-1",
    7,
    60_000,
    90_000,
    state=S.ONGOING,
    producer_epoch=3,
    start_ms=40_000,
    partitions=frozenset({TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("a", 0)}),
)
EMPTY = TransactionMetadata("order-1", 8, 60_000, 90_000)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (TransactionFilter(), ["pay-1", "order-1"]),
        (TransactionFilter(producer_ids=frozenset({8, 9})), ["order-1"]),
        (TransactionFilter(states=frozenset({S.ONGOING})), ["pay-1"]),
        (TransactionFilter(states=frozenset()), []),
        (TransactionFilter(duration_ms=59_999), ["pay-1", "order-1"]),
        (TransactionFilter(duration_ms=60_000), ["order-1"]),
        (TransactionFilter(duration_ms=0, states=frozenset({S.ONGOING})), ["pay-1"]),
        (TransactionFilter(pattern=RegularExpression("pay-.*")), ["pay-1"]),
        (TransactionFilter(pattern=RegularExpression("pay")), []),
        (TransactionFilter(pattern=RegularExpression(".*1"), producer_ids=frozenset({7})), ["pay-1"]),
    ],
)
def test_filters(wanted: TransactionFilter, expected: list[str]) -> None:
    listed = list_transactions([ONGOING, EMPTY], wanted, NOW_MS)
    assert [each.transactional_id for each in listed] == expected


def test_names_of_states() -> None:
    assert states_of_names([]) == (None, [])
    assert states_of_names(["Ongoing", "PrepareEpochFence", "Nonsense", "ongoing", "Nonsense"]) == (
        frozenset({S.ONGOING, S.PREPARE_EPOCH_FENCE}),
        ["Nonsense", "ongoing"],
    )
    assert [state.display_name for state in S] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip


def test_a_description_has_partitions_by_topic() -> None:
    described = describe_transaction(ONGOING)
    assert (described.producer_id, described.producer_epoch, described.transaction_state) == (7, 3, "Ongoing")
    assert (described.transaction_timeout_ms, described.transaction_start_time_ms) == (60_000, 40_000)
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("a", [0, 2]), ("b", [1])]
    assert describe_transaction(EMPTY).transaction_start_time_ms == -1
