"""The states of a transactional id, and from where each may be entered.

Source: Kafka's TransactionState (D.2).
"""

from __future__ import annotations

from enum import IntEnum


class TransactionState(IntEnum):
    """The numbers are those of records. DEAD and PREPARE_EPOCH_FENCE are never written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def display_name(self) -> str:
        """As ListTransactions and DescribeTransactions say it: "PrepareCommit"."""
        return DISPLAY_NAMES[self]


_S = TransactionState

DISPLAY_NAMES: dict[TransactionState, str] = {
    state: "".join(word.capitalize() for word in state.name.split("_")) for state in TransactionState
}
STATE_OF_NAME: dict[str, TransactionState] = {name: state for state, name in DISPLAY_NAMES.items()}

VALID_PREVIOUS_STATES: dict[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    # From Empty and Complete* only with transaction.version 2: an abort of nothing bumps the epoch.
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}

BETWEEN_TRANSACTIONS = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""Nothing is open: a producer may be initialised, and the id may expire."""

ENDING = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
"""Decided, markers are still being written."""
