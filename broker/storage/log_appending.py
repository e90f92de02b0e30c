"""Appending to a log: checks, offsets, the one write, and what follows from it.

Functions over a `Log`, called by its methods. The order is Kafka's (UnifiedLog.append): the batch, its
records, its size, the producer, then the write; only after the write does anything change in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.storage.files import REFUSED_WRITES, Buffer
from broker.storage.producer_state import AppendOrigin, VerificationGuard
from broker.storage.replay import replay_batch
from broker.storage.segment import BatchPosition, Segment
from broker.storage.validation import batch_to_write, check_produced_batch
from wire.control_batches import read_end_transaction_marker
from wire.errors import ErrorCode, KafkaError
from wire.record_batch import RecordBatch, any_batches

if TYPE_CHECKING:
    from broker.storage.log import Log

NO_TRANSACTION_VERSION = -1


@dataclass(slots=True)
class AppendInfo:
    """What an append did. ``duplicate``: nothing was written, the offsets are those of the first time.

    ``log_append_time_ms`` is -1 on a CreateTime topic (of a duplicate it is the batch's timestamp, as
    Kafka answers it).
    """

    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    duplicate: bool = False


def append_as_leader(
    log: Log,
    batch: bytes,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin,
    guard: VerificationGuard | None,
    transaction_version: int,
) -> AppendInfo:
    """See ``Log.append_as_leader``."""
    config, topic_partition = log.config, log.topic_partition
    view = RecordBatch(batch)
    validated = check_produced_batch(view, config, origin, now_ms=now_ms, topic_partition=topic_partition)
    base_offset = log.log_end_offset
    written = batch_to_write(
        view,
        validated,
        config,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        topic_partition=topic_partition,
    )
    has_producer = view.producer_id >= 0
    if has_producer:
        duplicate = _check_producer(log, view, origin, guard, transaction_version, base_offset)
        if duplicate is not None:
            return duplicate
    last_offset = base_offset + validated.record_count - 1
    max_timestamp = now_ms if config.is_log_append_time else validated.max_timestamp
    _note_epoch(log, leader_epoch, base_offset)
    _write(log, written, [BatchPosition(0, len(written), base_offset, last_offset, max_timestamp, 2)], now_ms)
    log.log_end_offset = last_offset + 1
    if has_producer:
        _apply_producer(log, view, base_offset, last_offset, max_timestamp)
    log.producer_state.end_offset = last_offset + 1
    log.maybe_flush(now_ms)
    return AppendInfo(
        base_offset,
        last_offset,
        max_timestamp,
        now_ms if config.is_log_append_time else -1,
        log.log_start_offset,
        len(written),
    )


def append_as_follower(log: Log, records: bytes, leader_epoch: int, now_ms: int) -> AppendInfo | None:
    """See ``Log.append_as_follower``."""
    views = _fetched_batches(log, records, leader_epoch)
    if not views:
        return None
    first, last = views[0], views[-1]
    if first.base_offset < log.log_end_offset:
        if log.log_end_offset != log.log_start_offset or first.last_offset < log.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"fetched batch starts at {first.base_offset}, {log.topic_partition} ends at {log.log_end_offset}",
            )
        # An empty replica starts where the leader's log start lies within a batch.
        log.truncate_fully_and_start_at(first.base_offset, now_ms=now_ms)
    done = 0
    while done < len(views):
        count = _fitting(log, views, done, now_ms)
        group = views[done : done + count]
        for view in group:
            _note_epoch(log, view.partition_leader_epoch, view.base_offset)
        positions = [
            BatchPosition(
                view.position - group[0].position,
                view.size_bytes,
                view.base_offset,
                view.last_offset,
                view.max_timestamp,
                2,
            )
            for view in group
        ]
        _write(log, memoryview(records)[group[0].position : group[-1].end_position], positions, now_ms)
        for view in group:
            log.log_end_offset = view.next_offset
            if view.producer_id >= 0:
                _apply_producer(log, view, view.base_offset, view.last_offset, view.max_timestamp)
            log.producer_state.end_offset = view.next_offset
        done += count
    log.maybe_flush(now_ms)
    return AppendInfo(
        first.base_offset,
        last.last_offset,
        max(view.max_timestamp for view in views),
        -1,
        log.log_start_offset,
        sum(view.size_bytes for view in views),
    )


def _fetched_batches(log: Log, records: bytes, leader_epoch: int) -> list[RecordBatch]:
    """The batches to take over, checked. Raises KafkaError CORRUPT_MESSAGE."""
    views: list[RecordBatch] = []
    expected = -1
    for view in any_batches(records):
        if not isinstance(view, RecordBatch):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"fetched batch of magic {view.magic}, 2 is expected")
        if view.partition_leader_epoch > leader_epoch:
            break
        if not view.has_valid_crc():
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"fetched batch at offset {view.base_offset} of {log.topic_partition} does not match its CRC",
            )
        if view.base_offset <= expected or view.last_offset < view.base_offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"fetched batches of {log.topic_partition} are out of order")
        expected = view.last_offset
        views.append(view)
    return views


def _fitting(log: Log, views: Sequence[RecordBatch], start: int, now_ms: int) -> int:
    """How many of the batches from ``start`` on go into one segment: at least one."""
    segment = log.segments.active
    size = views[start].size_bytes
    if _rolls(log, segment, size, views[start], now_ms):
        return 1
    for place in range(start + 1, len(views)):
        size += views[place].size_bytes
        if _rolls(log, segment, size, views[place], now_ms):
            return place - start
    return len(views) - start


def _rolls(log: Log, segment: Segment, size_bytes: int, view: RecordBatch, now_ms: int) -> bool:
    return segment.should_roll(
        log.config,
        size_bytes=size_bytes,
        max_timestamp=view.max_timestamp,
        last_offset=view.last_offset,
        now_ms=now_ms,
    )


def _check_producer(
    log: Log,
    view: RecordBatch,
    origin: AppendOrigin,
    guard: VerificationGuard | None,
    transaction_version: int,
    offset: int,
) -> AppendInfo | None:
    """C.2 for a batch with a producer id; the answer if it is a duplicate. Raises KafkaError."""
    state = log.producer_state
    producer_id, producer_epoch = view.producer_id, view.producer_epoch
    if view.is_control:
        marker = read_end_transaction_marker(view)
        if marker is not None:
            state.check_marker(producer_id, producer_epoch, marker.coordinator_epoch, transaction_version, offset)
        return None
    if origin is AppendOrigin.CLIENT:
        known = state.find_duplicate(producer_id, producer_epoch, view.base_sequence, view.last_sequence)
        if known is not None:
            return AppendInfo(
                known.first_offset,
                known.last_offset,
                known.timestamp_ms,
                known.timestamp_ms,
                log.log_start_offset,
                0,
                duplicate=True,
            )
    if view.is_transactional:
        state.check_transaction(producer_id, producer_epoch, guard, offset)
    state.check_data(producer_id, producer_epoch, view.base_sequence, view.is_transactional, origin, offset)
    return None


def _apply_producer(log: Log, view: RecordBatch, base_offset: int, last_offset: int, max_timestamp: int) -> None:
    """Producer state and transaction index after the write of ``view``."""
    try:
        replay_batch(
            log.producer_state, view, base_offset, last_offset, max_timestamp, log.segments.active.transaction_index
        )
    except OSError as error:
        # The marker is in the log, its abort not in the index: only a recovery can mend that.
        raise log.fail(error) from error


def _note_epoch(log: Log, leader_epoch: int, offset: int) -> None:
    if leader_epoch > log.leader_epochs.latest_epoch:
        log.assign_epoch_start_offset(leader_epoch, offset)


def _write(log: Log, content: Buffer, batches: list[BatchPosition], now_ms: int) -> None:
    """Write batches that go into one segment, after rolling if need be. Raises KafkaError."""
    if not log.topic_id_is_durable:
        log.make_topic_id_durable()
    segment = log.segments.active
    newest = batches[-1]
    if segment.should_roll(
        log.config,
        size_bytes=len(content),
        max_timestamp=newest.max_timestamp,
        last_offset=newest.last_offset,
        now_ms=now_ms,
    ):
        segment = log.roll(now_ms=now_ms, base_offset=batches[0].base_offset)
    start = segment.size_bytes
    if start:
        batches = [batch._replace(position=batch.position + start) for batch in batches]
    try:
        segment.append([content], batches)
    except OSError as error:
        raise _failed_append(log, segment, error) from error


def _failed_append(log: Log, segment: Segment, error: OSError) -> KafkaError:
    """A write failed: nothing of it may stay, so that no offset is ever there twice."""
    try:
        segment.drop_failed_append()
    except OSError as second:
        return log.fail(second)
    if error.errno in REFUSED_WRITES:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"append to {log.topic_partition} refused, nothing was written: {error.strerror}",
        )
    return log.fail(error)
