"""What the tests of the log engine share: logs over any files, batches, and what a log holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from broker.config_log import LogConfig
from broker.storage.files import Files
from broker.storage.log import Log
from broker.storage.recovery import LogLoading, load_log
from wire.primitives import TopicPartition
from wire.records import NewRecord, Record, batches, build_batch

TOPIC_PARTITION = TopicPartition("topic", 0)
DIRECTORY = "/logs/topic-0"
NOW_MS = 1_700_000_000_000


def open_log(
    files: Files,
    config: LogConfig | None = None,
    *,
    directory: str = DIRECTORY,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    now_ms: int = NOW_MS,
    **settings: Any,
) -> Log:
    """The log of a directory, made if missing; ``settings`` replace those of ``config``."""
    files.make_directory(directory)
    return load_log(
        LogLoading(
            files,
            directory,
            TOPIC_PARTITION,
            replace(config or LogConfig(), **settings),
            now_ms,
            clean,
            recovery_point,
            log_start_offset,
        )
    )


def batch_of(
    values: Iterable[bytes | None], *, timestamp: int | list[int] = NOW_MS, key: bytes | None = b"key", **settings: Any
) -> bytes:
    """A batch as a producer sends it; ``timestamp`` for all records, or one each."""
    listed = list(values)
    stamps = timestamp if isinstance(timestamp, list) else [timestamp] * len(listed)
    return build_batch(
        [NewRecord(key, value, (), stamp) for value, stamp in zip(listed, stamps, strict=True)], **settings
    )


def numbered(count: int, size: int = 20, **settings: Any) -> bytes:
    """A batch of ``count`` records of ``size`` bytes."""
    return batch_of([b"%0*d" % (size, index) for index in range(count)], **settings)


def idempotent(first_sequence: int, count: int = 1, *, producer_id: int = 7, epoch: int = 0, **settings: Any) -> bytes:
    """A batch of an idempotent producer."""
    return batch_of(
        [b"%d" % (first_sequence + index) for index in range(count)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=first_sequence,
        **settings,
    )


def append(log: Log, batch: bytes, *, leader_epoch: int = 0, now_ms: int = NOW_MS, **settings: Any) -> int:
    """Append as the leader; the first offset."""
    return log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=now_ms, **settings).first_offset


def all_batches(log: Log, start: int | None = None) -> list[bytes]:
    """Every batch from ``start`` on, read in small fetches as a consumer would."""
    found: list[bytes] = []
    offset = log.log_start_offset if start is None else start
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes=3000)
        views = list(batches(read.records))
        if not views:
            break
        found += [view.to_bytes() for view in views]
        offset = views[-1].next_offset
    return found


def all_records(log: Log, start: int | None = None) -> list[Record]:
    """Every record from ``start`` on."""
    start = log.log_start_offset if start is None else start
    return [
        record
        for content in all_batches(log, start)
        for view in batches(content)
        for record in view.records()
        if record.offset >= start
    ]


def offsets_and_values(log: Log) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every record."""
    return [(record.offset, record.value) for record in all_records(log)]
