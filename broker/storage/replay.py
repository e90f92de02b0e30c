"""Producer state from batches: after an append, on a follower, and from the log on load.

Nothing is refused here: what is in the log counts (C8). Source: UnifiedLog.rebuildProducerState,
LogSegment.updateProducerState.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.storage.log_segments import LogSegments
from broker.storage.producer_snapshots import ProducerSnapshots
from broker.storage.producer_state import ProducerState
from broker.storage.segment import Segment
from broker.storage.transaction_index import TransactionIndex
from wire.control_batches import read_end_transaction_marker
from wire.errors import KafkaError
from wire.legacy_records import LegacyBatch
from wire.log_files import AbortedTransactionEntry
from wire.record_batch import MAGIC_POSITION, RecordBatch, next_batch_size

CHUNK_BYTES = 1 << 20


def replay_batch(
    state: ProducerState,
    view: RecordBatch,
    base_offset: int,
    last_offset: int,
    max_timestamp: int,
    transaction_index: TransactionIndex | None,
) -> None:
    """Let the state follow a batch with a producer id that is in the log at these offsets.

    An aborted transaction goes into ``transaction_index``, unless it is there already (None).
    Raises OSError.
    """
    if not view.is_control:
        state.apply_data(
            view.producer_id,
            view.producer_epoch,
            view.last_sequence,
            base_offset,
            last_offset,
            max_timestamp,
            view.is_transactional,
        )
        return
    marker = read_end_transaction_marker(view)
    if marker is None:  # Emptied by the cleaner: the whole transaction is gone.
        return
    completed = state.complete_marker(
        view.producer_id,
        view.producer_epoch,
        marker.coordinator_epoch,
        base_offset,
        max_timestamp,
        not marker.is_commit,
    )
    if completed is not None:
        if completed.is_aborted and transaction_index is not None:
            transaction_index.append(
                AbortedTransactionEntry(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    state.last_stable_offset_after(completed),
                )
            )
        state.complete(completed)


def read_batches(segment: Segment, position: int = 0) -> Iterator[tuple[int, RecordBatch | LegacyBatch]]:
    """(position in the file, batch) from ``position`` on, read in large slices.

    Ends at the end of the file or at an incomplete last batch; raises KafkaError CORRUPT_MESSAGE at bytes
    that are no batch. CRCs are not looked at.
    """
    size = segment.size_bytes
    wanted = CHUNK_BYTES
    while position < size:
        chunk = segment.log.read_at(position, wanted)
        at = 0
        while (batch_size := next_batch_size(chunk, at)) is not None and at + batch_size <= len(chunk):
            if chunk[at + MAGIC_POSITION] == 2:
                yield position + at, RecordBatch(chunk, at)
            else:
                yield position + at, LegacyBatch(chunk, at)
            at += batch_size
        if position + len(chunk) >= size:
            return
        wanted = CHUNK_BYTES if batch_size is None or at else max(CHUNK_BYTES, batch_size)
        if position + at + (batch_size or 0) > size:
            return
        position += at


def rebuild_producer_state(
    state: ProducerState,
    snapshots: ProducerSnapshots,
    segments: LogSegments,
    *,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
    was_closed_cleanly: bool = False,
) -> None:
    """Bring the state to ``log_end_offset``: newest snapshot in reach, then the batches after it (C13).

    A log that was closed cleanly without any snapshot is from before snapshots: it has no producers, and
    is not read. A snapshot is taken at the end. Raises OSError.
    """
    if was_closed_cleanly and not snapshots.offsets:
        state.clear(log_end_offset)
    else:
        snapshots.delete_outside(log_start_offset, log_end_offset)
        if state.end_offset != log_end_offset or state.is_empty:
            snapshots.restore_latest(state, log_start_offset=log_start_offset, now_ms=now_ms)
        if state.end_offset < log_end_offset:
            _replay_range(state, segments, log_end_offset)
    state.passed(log_start_offset)
    state.end_offset = log_end_offset
    snapshots.take(state)


def _replay_range(state: ProducerState, segments: LogSegments, log_end_offset: int) -> None:
    """Replay the batches between the state's end and ``log_end_offset``."""
    start = state.end_offset
    for segment in segments.from_offset(start):
        if segment.base_offset >= log_end_offset:
            break
        found = segment.find(max(start, segment.base_offset))
        if found is None:
            continue
        for _, view in read_batches(segment, found.position):
            if view.next_offset > log_end_offset:
                return
            if isinstance(view, RecordBatch) and view.producer_id >= 0:
                try:
                    replay_batch(state, view, view.base_offset, view.last_offset, view.max_timestamp, None)
                except KafkaError as error:
                    # A marker that cannot be read passed its CRC once: there is nothing to learn from it.
                    raise OSError(f"{segment.log.path} holds a malformed marker at {view.base_offset}") from error
