"""Transactions as the cleaner meets them: which data was aborted, which markers are still needed (J15).

Source: CleanedTransactionMetadata.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from wire.control_batches import ControlRecordType, control_record_type
from wire.log_files import AbortedTransactionEntry
from wire.record_batch import RecordBatch


class CleanedTransactions:
    """Fed every batch in the order of offsets. ``kept_aborts`` collects the aborted transactions that readers
    of the cleaned segment still need."""

    def __init__(self) -> None:
        self.kept_aborts: list[AbortedTransactionEntry] = []
        self._coming: list[tuple[int, AbortedTransactionEntry]] = []
        self._aborting: dict[int, tuple[AbortedTransactionEntry, bool]] = {}
        self._committing: set[int] = set()

    def expect(self, aborted: Iterable[AbortedTransactionEntry]) -> None:
        """Aborted transactions of the next segment, by its transaction index."""
        for entry in aborted:
            heapq.heappush(self._coming, (entry.first_offset, entry))

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            _, entry = heapq.heappop(self._coming)
            self._aborting.setdefault(entry.producer_id, (entry, False))

    def is_aborted_data(self, batch: RecordBatch) -> bool:
        """Whether a batch of data belongs to an aborted transaction, so that it goes at once."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        entry = self._aborting.get(batch.producer_id)
        if entry is None:
            self._committing.add(batch.producer_id)
            return False
        self._aborting[batch.producer_id] = (entry[0], True)
        return True

    def is_needless_marker(self, batch: RecordBatch) -> bool:
        """Whether nothing of the transaction that a control batch ends was met any more."""
        self._begin_up_to(batch.last_offset)
        record = next(batch.records(), None)
        if record is None:
            return True  # Emptied before.
        kind = control_record_type(record.key)
        if kind is ControlRecordType.ABORT:
            entry, seen = self._aborting.pop(batch.producer_id, (None, False))
            if entry is not None and seen:
                self.kept_aborts.append(entry)
                return False
            return True
        if kind is ControlRecordType.COMMIT:
            if batch.producer_id in self._committing:
                self._committing.remove(batch.producer_id)
                return False
            return True
        return False
