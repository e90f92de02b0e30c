"""Loading a partition directory, and mending it after an unclean stop (J.5).

In order: leftovers of swaps and deletions, segments with their indexes, a scan of what may not have
reached the device, leader epochs, producer state. What is cut off was never promised: nothing below the
recovery point is touched unless its index is missing or cannot be right. Source: LogLoader, LogSegment.recover.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from broker.config_log import LogConfig
from broker.storage.files import Files, StorageFault
from broker.storage.leader_epochs import LeaderEpochs
from broker.storage.log import Log
from broker.storage.log_segments import LogSegments
from broker.storage.partition_metadata import CorruptPartitionMetadata, read_topic_id
from broker.storage.producer_snapshots import ProducerSnapshots
from broker.storage.producer_state import ProducerSettings, ProducerState
from broker.storage.replay import read_batches, rebuild_producer_state, replay_batch
from broker.storage.segment import SUFFIXES, BatchPosition, CorruptSegment, Segment
from wire.errors import KafkaError
from wire.log_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    off20,
    offset_of_name,
)
from wire.primitives import TopicPartition
from wire.record_batch import RecordBatch

_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


@dataclass
class LogLoading:
    """What loading one directory needs to be told, and what it found to tell."""

    files: Files
    directory: str
    topic_partition: TopicPartition
    config: LogConfig
    now_ms: int
    was_closed_cleanly: bool
    recovery_point: int = 0
    """From the checkpoint: segments below it are on the device."""
    log_start_offset: int = 0
    """From the checkpoint, 0 without an entry."""
    producer_settings: ProducerSettings | None = None
    chance: Random | None = None
    bytes_cut: int = 0
    """How many bytes of torn or corrupt batches were cut off."""


def load_log(
    loading: LogLoading,
    *,
    on_failure: Callable[[Log, OSError], None] | None = None,
    on_truncation: Callable[[Log], None] | None = None,
) -> Log:
    """The log of a partition directory, complete and consistent; an empty one if the directory is empty.

    Raises OSError, and StorageFault for a segment that only Apache Kafka can mend.
    """
    files, directory = loading.files, loading.directory
    names = _finish_swaps(files, directory, loading.config, loading.now_ms)
    leader_epochs = LeaderEpochs(files, directory)
    snapshots = ProducerSnapshots(files, directory, names)
    segments = LogSegments()
    try:
        recovered = _open_segments(loading, names, segments, leader_epochs, snapshots)
        log_end_offset = _end_or_start_over(loading, segments, leader_epochs, snapshots)
        log_start_offset = max(loading.log_start_offset, segments[0].base_offset)
        leader_epochs.truncate_from_end(log_end_offset)
        leader_epochs.truncate_from_start(log_start_offset)
        snapshots.delete_stray(segments.base_offsets)
        # What a recovery has just read says more than the snapshot it left: five batches of each producer.
        state = recovered or _new_producer_state(loading)
        state.remove_expired(loading.now_ms)
        rebuild_producer_state(
            state,
            snapshots,
            segments,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            now_ms=loading.now_ms,
            was_closed_cleanly=loading.was_closed_cleanly,
        )
        topic_id = _topic_id(files, directory, is_empty=segments.size_bytes == 0)
    except BaseException:
        segments.close_files()
        raise
    log = Log(
        files,
        directory,
        loading.topic_partition,
        loading.config,
        topic_id=topic_id,
        segments=segments,
        leader_epochs=leader_epochs,
        producer_state=state,
        snapshots=snapshots,
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        recovery_point=log_end_offset if loading.was_closed_cleanly else min(loading.recovery_point, log_end_offset),
        now_ms=loading.now_ms,
        on_failure=on_failure,
        on_truncation=on_truncation,
        chance=loading.chance,
    )
    log.topic_id_is_durable = topic_id is None or segments.size_bytes > 0
    return log


def _topic_id(files: Files, directory: str, *, is_empty: bool) -> bytes | None:
    """The topic id; a file torn before the first data (which waits for it) counts as none."""
    try:
        return read_topic_id(files, directory)
    except CorruptPartitionMetadata:
        if not is_empty:
            raise
        return None


def _new_producer_state(loading: LogLoading) -> ProducerState:
    return ProducerState(loading.topic_partition, loading.producer_settings)


# --- leftovers ----------------------------------------------------------------------------------


def _finish_swaps(files: Files, directory: str, config: LogConfig, now_ms: int) -> list[str]:
    """Remove unfinished files, put finished replacements in place; the names that are left."""
    names = files.list(directory)
    least_cleaned: int | None = None
    swaps: list[str] = []
    for name in names:
        offset = offset_of_name(name)
        if name.endswith(DELETED_SUFFIX) and not name.endswith(".checkpoint" + DELETED_SUFFIX):
            files.delete(f"{directory}/{name}")
        elif offset is not None and name.endswith(CLEANED_SUFFIX):
            least_cleaned = offset if least_cleaned is None else min(least_cleaned, offset)
        elif offset is not None and name.endswith(SWAP_SUFFIX):
            swaps.append(name)
    # A swap at or above an unfinished file is part of the same unfinished replacement.
    for name in [name for name in swaps if least_cleaned is not None and (offset_of_name(name) or 0) >= least_cleaned]:
        files.delete(f"{directory}/{name}")
        swaps.remove(name)
    if least_cleaned is not None:
        for name in names:
            if name.endswith(CLEANED_SUFFIX):
                files.delete(f"{directory}/{name}")
    if swaps:
        _swap_in(files, directory, swaps, config, now_ms)
    return files.list(directory)


def _swap_in(files: Files, directory: str, swaps: list[str], config: LogConfig, now_ms: int) -> None:
    """The segments that finished replacements cover go, then the replacements take their names."""
    logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    least, beyond = None, 0
    for name in logs:
        base = offset_of_name(name)
        assert base is not None
        segment = Segment(files, directory, base, config, now_ms=now_ms, suffix=SWAP_SUFFIX)
        try:
            beyond = max(beyond, segment.next_offset(), base)
        finally:
            segment.close_files()
        least = base if least is None else min(least, base)
    if least is not None:
        for name in files.list(directory):
            offset = offset_of_name(name)
            if offset is not None and not name.endswith(SWAP_SUFFIX) and least <= offset < beyond:
                files.delete(f"{directory}/{name}")
    for name in swaps:
        files.rename(f"{directory}/{name}", f"{directory}/{name[: -len(SWAP_SUFFIX)]}")
    files.sync_directory(directory)


# --- segments -----------------------------------------------------------------------------------


def _open_segments(
    loading: LogLoading,
    names: list[str],
    segments: LogSegments,
    leader_epochs: LeaderEpochs,
    snapshots: ProducerSnapshots,
) -> ProducerState | None:
    """Open every segment; recover those without a right index, and after an unclean stop the unflushed ones.

    Returns the producer state at the log end if the last segment was recovered.
    """
    files, directory = loading.files, loading.directory
    present = set(names)
    for name in names:
        base = offset_of_name(name)
        if base is not None and name.endswith(_INDEX_SUFFIXES) and off20(base) + LOG_SUFFIX not in present:
            files.delete(f"{directory}/{name}")
    bases = sorted(
        offset_of_name(name) or 0 for name in names if name.endswith(LOG_SUFFIX) and offset_of_name(name) is not None
    )
    # The segment that holds the recovery point, and all above, may not be on the device.
    flushed_below = 0
    if not loading.was_closed_cleanly:
        flushed_below = max([base for base in bases if base <= loading.recovery_point], default=0)
    state: ProducerState | None = None
    for place, base in enumerate(bases):
        segment = Segment(files, directory, base, loading.config, now_ms=loading.now_ms)
        needs_recovery = not loading.was_closed_cleanly and base >= flushed_below
        if not needs_recovery:
            try:
                segment.load_indexes(sealed=place + 1 < len(bases))
                segment.restore_bookkeeping()
                if place + 1 == len(bases):
                    segment.next_offset()
            except (FileNotFoundError, ValueError, CorruptSegment):
                needs_recovery = True
        segments.add(segment)
        if not needs_recovery:
            state = None
            continue
        if state is None:
            state = _state_up_to(loading, segments, snapshots, base)
        cut = recover_segment(segment, state, leader_epochs)
        snapshots.take(state)
        loading.bytes_cut += cut
        if place + 1 < len(bases):
            if cut and not loading.was_closed_cleanly:
                _remove_files(loading, bases[place + 1 :], snapshots)
                break
            segment.seal()
    return state


def _state_up_to(
    loading: LogLoading, segments: LogSegments, snapshots: ProducerSnapshots, base_offset: int
) -> ProducerState:
    """The producer state at the start of a segment that is to be scanned."""
    state = _new_producer_state(loading)
    usable = ProducerSnapshots(
        loading.files,
        loading.directory,
        [f"{off20(offset)}.snapshot" for offset in snapshots.offsets if offset <= base_offset],
    )
    rebuild_producer_state(
        state,
        usable,
        segments,
        log_start_offset=loading.log_start_offset,
        log_end_offset=base_offset,
        now_ms=loading.now_ms,
    )
    snapshots.offsets = sorted({*usable.offsets, *(offset for offset in snapshots.offsets if offset > base_offset)})
    return state


def _remove_files(loading: LogLoading, bases: list[int], snapshots: ProducerSnapshots) -> None:
    """Everything after a cut: what followed the lost bytes cannot stand without them."""
    for base in reversed(bases):
        for suffix in SUFFIXES:
            path = f"{loading.directory}/{off20(base)}{suffix}"
            if loading.files.exists(path):
                loading.bytes_cut += loading.files.size(path) if suffix == LOG_SUFFIX else 0
                loading.files.delete(path)
        snapshots.delete(base)


def recover_segment(segment: Segment, state: ProducerState, leader_epochs: LeaderEpochs) -> int:
    """Scan a segment: rebuild its indexes, let epochs and producers follow, cut it at the first bad batch.

    Returns the number of bytes cut. Raises OSError, and StorageFault where offsets exceed 32 bits.
    """
    segment.reset_indexes()
    valid = 0
    previous = segment.base_offset - 1
    try:
        for position, view in read_batches(segment):
            last_offset = view.last_offset
            if not view.has_valid_crc() or last_offset <= previous:
                break
            if not segment.can_hold(last_offset):
                raise StorageFault(
                    f"{segment.log.path} holds offset {last_offset}, more than 2^31-1 above its base: "
                    "such a segment of an old broker must be split by Apache Kafka once"
                )
            if isinstance(view, RecordBatch):
                if view.base_offset <= previous:
                    break
                if view.producer_id >= 0:
                    replay_batch(
                        state, view, view.base_offset, last_offset, view.max_timestamp, segment.transaction_index
                    )
                if view.partition_leader_epoch > leader_epochs.latest_epoch:
                    leader_epochs.assign(view.partition_leader_epoch, view.base_offset)
            segment.note_batch(
                BatchPosition(
                    position,
                    view.size_bytes,
                    view.base_offset if isinstance(view, RecordBatch) else last_offset,
                    last_offset,
                    view.max_timestamp,
                    view.magic,
                )
            )
            previous = last_offset
            state.end_offset = last_offset + 1
            valid = position + view.size_bytes
    except KafkaError:
        pass  # Bytes that are no batch: the log ends before them.
    cut = segment.size_bytes - valid
    if cut:
        segment.log.truncate(valid)
    segment.finish_recovery()
    return cut


def _end_or_start_over(
    loading: LogLoading, segments: LogSegments, leader_epochs: LeaderEpochs, snapshots: ProducerSnapshots
) -> int:
    """The log end offset; a log that ends below its checkpointed start begins anew there."""
    if len(segments):
        end = segments.active.next_offset()
        if end >= loading.log_start_offset:
            segments.recount()
            return end
        for segment in list(segments)[::-1]:
            segments.remove(segment)
            segment.delete()
        leader_epochs.clear()
        snapshots.delete_all()
    segments.add(
        Segment(loading.files, loading.directory, loading.log_start_offset, loading.config, now_ms=loading.now_ms)
    )
    return loading.log_start_offset
