"""Idempotence and open transactions of one partition.

Per producer id the epoch, the last five batches and the open transaction are kept, so that a repeated
batch is recognised, a gap is refused, and readers of committed data know how far they may read.
`check_*` decides and changes nothing; after the write `apply_*` changes and never refuses. Replicas and
recovery apply without checking.

Source: ProducerStateManager, ProducerAppendInfo, ProducerStateEntry, VerificationStateEntry
(KIP-98, KIP-890).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition
from wire.producer_snapshot import SnapshotEntry

BATCHES_KEPT = 5
NO_SEQUENCE = -1
NO_EPOCH = -1
SEQUENCE_MAX = 0x7FFFFFFF
EPOCH_MAX = 0x7FFF


class AppendOrigin(Enum):
    """Who appends; decides how much is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    RAFT_LEADER = "raft leader"
    REPLICATION = "replication"


class BatchMetadata(NamedTuple):
    """One of the last five batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record; before 0 comes 2^31-1."""
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + SEQUENCE_MAX + 1

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """What a partition knows of a producer id (C7). ``current_transaction_first_offset`` is -1 without one."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_transaction_first_offset",
        "last_timestamp_ms",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp_ms = -1
        self.current_transaction_first_offset = -1
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 if none is known of this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def move_to_epoch(self, producer_epoch: int) -> None:
        """A new epoch starts without batches."""
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


class VerificationGuard:
    """Proof that the coordinator was asked about a transaction; good for one append, compared by identity."""

    __slots__ = ()


class _Verification:
    """A running verification: see VerificationStateEntry for why the lowest sequence is kept."""

    __slots__ = ("guard", "lowest_sequence", "producer_epoch", "started_ms", "supports_epoch_bump")

    def __init__(self, started_ms: int, sequence: int, producer_epoch: int, supports_epoch_bump: bool) -> None:
        self.guard = VerificationGuard()
        self.started_ms = started_ms
        self.lowest_sequence = sequence
        self.producer_epoch = producer_epoch
        self.supports_epoch_bump = supports_epoch_bump

    def note(self, sequence: int, producer_epoch: int) -> None:
        """Another batch waits for the same verification."""
        if producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = sequence


class CompletedTransaction(NamedTuple):
    """A transaction with data that a marker ended at ``last_offset``."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@dataclass(slots=True)
class ProducerSettings:
    """What all partitions of a node share; may change while it runs. The defaults are Kafka's."""

    expiration_ms: int = 86_400_000
    """`producer.id.expiration.ms`"""
    verification_enabled: bool = True
    """`transaction.partition.verification.enable`"""


class ProducerState:
    """The producers of one partition. ``end_offset``: the state covers everything below it."""

    __slots__ = (
        "_ongoing",
        "_unreplicated",
        "_verifications",
        "end_offset",
        "entries",
        "first_unstable_offset",
        "settings",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, settings: ProducerSettings | None = None) -> None:
        self.topic_partition = topic_partition
        self.settings = settings or ProducerSettings()
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = 0
        self._verifications: dict[int, _Verification] = {}
        # First offset -> producer id, and first offset -> marker's offset for those the high watermark
        # has not passed yet.
        self._ongoing: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}
        self.first_unstable_offset: int | None = None
        """First offset whose fate is open, or known but not yet replicated (D23)."""

    # --- deciding -------------------------------------------------------------------------------

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has data of an undecided transaction here, in this epoch."""
        entry = self.entries.get(producer_id)
        return (
            entry is not None and entry.current_transaction_first_offset >= 0 and entry.producer_epoch == producer_epoch
        )

    def find_duplicate(
        self, producer_id: int, producer_epoch: int, first_sequence: int, last_sequence: int
    ) -> BatchMetadata | None:
        """The kept batch with exactly these sequences, if the epoch is the current one (C.2.1)."""
        entry = self.entries.get(producer_id)
        if entry is None or entry.producer_epoch != producer_epoch:
            return None
        for batch in reversed(entry.batches):
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None

    def check_transaction(
        self, producer_id: int, producer_epoch: int, guard: VerificationGuard | None, offset: int
    ) -> None:
        """Refuse a transactional batch that neither continues a transaction nor was verified (C.2.2)."""
        if not self.settings.verification_enabled or self.has_ongoing_transaction(producer_id, producer_epoch):
            return
        verification = self._verifications.get(producer_id)
        if guard is not None and verification is not None and verification.guard is guard:
            return
        entry = self.entries.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise self._stale_epoch(producer_id, producer_epoch, entry.producer_epoch, offset, "<")
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Record was not part of an ongoing transaction of producer {producer_id} in {self.topic_partition}",
        )

    def check_data(
        self,
        producer_id: int,
        producer_epoch: int,
        first_sequence: int,
        is_transactional: bool,
        origin: AppendOrigin,
        offset: int,
    ) -> None:
        """Refuse a batch of data that does not follow what is known (C.2.3 to C.2.8)."""
        entry = self.entries.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise self._stale_epoch(producer_id, producer_epoch, entry.producer_epoch, offset, "<")
        if origin is AppendOrigin.CLIENT:
            self._check_sequence(producer_id, producer_epoch, first_sequence, entry, offset)
        if entry is not None and entry.current_transaction_first_offset >= 0 and not is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {producer_id} at offset {offset} in partition "
                f"{self.topic_partition}",
            )

    def _check_sequence(
        self, producer_id: int, producer_epoch: int, first: int, entry: ProducerEntry | None, offset: int
    ) -> None:
        verification = self._verifications.get(producer_id)
        if verification is not None:
            if verification.supports_epoch_bump and first != 0 and (entry is None or not entry.batches):
                raise self._out_of_order(producer_id, offset, first, "expected is 0, as nothing is known of it")
            if first > verification.lowest_sequence:
                raise self._out_of_order(
                    producer_id, offset, first, f"sequence {verification.lowest_sequence} still waits for verification"
                )
        if entry is None or entry.producer_epoch == NO_EPOCH:
            return  # Nothing is known, perhaps because all was deleted: any sequence may start.
        if producer_epoch != entry.producer_epoch:
            if first != 0:
                raise self._out_of_order(
                    producer_id,
                    offset,
                    first,
                    f"a new epoch starts with 0; request epoch {producer_epoch}, current epoch {entry.producer_epoch}",
                )
            return
        last = entry.last_sequence
        if first != last + 1 and not (first == 0 and last == SEQUENCE_MAX):
            raise self._out_of_order(producer_id, offset, first, f"current end sequence number {last}")

    def _out_of_order(self, producer_id: int, offset: int, sequence: int, why: str) -> KafkaError:
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {producer_id} at offset {offset} in partition "
            f"{self.topic_partition}: {sequence} (incoming seq. number), {why}",
        )

    def _stale_epoch(self, producer_id: int, epoch: int, current: int, offset: int, comparison: str) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {producer_id} at offset {offset} in {self.topic_partition} is {epoch}, "
            f"which is {comparison} the last seen epoch {current}",
        )

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int, offset: int
    ) -> None:
        """Refuse a marker of a stale producer epoch or coordinator (D11)."""
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        current = entry.producer_epoch
        if transaction_version >= 2:
            retry = producer_epoch == current and (
                entry.current_transaction_first_offset < 0 or producer_epoch == EPOCH_MAX
            )
            if producer_epoch <= current and not retry:
                raise self._stale_epoch(producer_id, producer_epoch, current, offset, "<=")
        elif producer_epoch < current:
            raise self._stale_epoch(producer_id, producer_epoch, current, offset, "<")
        if entry.coordinator_epoch > coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {producer_id} at offset {offset} in partition "
                f"{self.topic_partition}: {coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
            )

    # --- verification (D.8) ---------------------------------------------------------------------

    def start_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """A guard to hold while the coordinator is asked; None if the transaction is open here already.

        Raises INVALID_PRODUCER_EPOCH if a newer epoch is known (D17).
        """
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return None
        entry = self.entries.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise self._stale_epoch(producer_id, producer_epoch, entry.producer_epoch, self.end_offset, "<")
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = _Verification(now_ms, sequence, producer_epoch, supports_epoch_bump)
            self._verifications[producer_id] = verification
        else:
            verification.note(sequence, producer_epoch)
        return verification.guard

    # --- changing -------------------------------------------------------------------------------

    def apply_data(
        self,
        producer_id: int,
        producer_epoch: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp_ms: int,
        is_transactional: bool,
    ) -> None:
        """A batch of data was written."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        if entry.producer_epoch != producer_epoch:
            entry.move_to_epoch(producer_epoch)
        batches = entry.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(BatchMetadata(last_sequence, last_offset, last_offset - first_offset, timestamp_ms))
        entry.last_timestamp_ms = timestamp_ms
        if is_transactional:
            self._verifications.pop(producer_id, None)
            if entry.current_transaction_first_offset < 0:
                entry.current_transaction_first_offset = first_offset
                self._ongoing[first_offset] = producer_id
                self._update_first_unstable()

    def complete_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp_ms: int,
        is_abort: bool,
    ) -> CompletedTransaction | None:
        """A marker was written; the transaction it ends, if the partition holds data of one.

        The caller writes the transaction index with ``last_stable_offset_after`` and then calls
        ``complete``: an abort must be findable before readers may pass it.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        first_offset = entry.current_transaction_first_offset
        entry.move_to_epoch(producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        entry.current_transaction_first_offset = -1
        self._verifications.pop(producer_id, None)
        if first_offset < 0:
            return None
        return CompletedTransaction(producer_id, first_offset, offset, is_abort)

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """What the last stable offset becomes with the end of a transaction, once all is replicated."""
        others = [first for first, producer_id in self._ongoing.items() if producer_id != completed.producer_id]
        return min(others, default=completed.last_offset + 1)

    def complete(self, completed: CompletedTransaction) -> None:
        """The transaction is over; it stays unstable until the high watermark passes its marker."""
        self._ongoing.pop(completed.first_offset, None)
        self._unreplicated[completed.first_offset] = completed.last_offset
        self._update_first_unstable()

    def _update_first_unstable(self) -> None:
        self.first_unstable_offset = min([*self._ongoing, *self._unreplicated], default=None)

    def passed(self, offset: int) -> None:
        """The high watermark (or the log start) moved to ``offset``: markers below it are settled."""
        if self._unreplicated:
            done = [first for first, last in self._unreplicated.items() if last < offset]
            for first in done:
                del self._unreplicated[first]
            if done:
                self._update_first_unstable()

    @property
    def first_undecided_offset(self) -> int | None:
        """First offset of a transaction without a marker."""
        return min(self._ongoing, default=None)

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers and verifications idle for longer than the setting says (C10)."""
        limit = now_ms - self.settings.expiration_ms
        for producer_id in [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.current_transaction_first_offset < 0 and entry.last_timestamp_ms <= limit
        ]:
            del self.entries[producer_id]
        for producer_id in [key for key, waiting in self._verifications.items() if waiting.started_ms <= limit]:
            del self._verifications[producer_id]

    def clear(self, end_offset: int) -> None:
        """Forget everything; the state covers what is below ``end_offset``."""
        self.entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.first_unstable_offset = None
        self.end_offset = end_offset

    # --- snapshots ------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether no producer is known."""
        return not self.entries and not self._unreplicated

    def snapshot(self) -> list[SnapshotEntry]:
        """Every producer with its last batch, as a snapshot file keeps it."""
        rows = []
        for entry in self.entries.values():
            last = entry.batches[-1] if entry.batches else BatchMetadata(NO_SEQUENCE, -1, 0, -1)
            rows.append(
                SnapshotEntry(
                    entry.producer_id,
                    entry.producer_epoch,
                    last.last_sequence,
                    last.last_offset,
                    last.offset_delta,
                    entry.last_timestamp_ms,
                    entry.coordinator_epoch,
                    entry.current_transaction_first_offset,
                )
            )
        return rows

    def restore(self, rows: list[SnapshotEntry], end_offset: int, now_ms: int) -> None:
        """Become what a snapshot says, without the producers that have expired since."""
        self.clear(end_offset)
        for row in rows:
            if row.transaction_first_offset < 0 and now_ms - row.timestamp_ms >= self.settings.expiration_ms:
                continue
            entry = self.entries[row.producer_id] = ProducerEntry(row.producer_id)
            entry.producer_epoch = row.producer_epoch
            entry.coordinator_epoch = row.coordinator_epoch
            entry.last_timestamp_ms = row.timestamp_ms
            entry.current_transaction_first_offset = row.transaction_first_offset
            if row.last_offset >= 0:
                entry.batches.append(
                    BatchMetadata(row.last_sequence, row.last_offset, row.offset_delta, row.timestamp_ms)
                )
            if row.transaction_first_offset >= 0:
                self._ongoing[row.transaction_first_offset] = row.producer_id
        self._update_first_unstable()
