"""Compacting what Apache Kafka wrote gives what Apache Kafka made of it, three passes in a row.

The folders say before and after each pass (tests/golden/log_directories/README.md).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from log_fixture import open_log

from broker.config_log import LogConfig
from broker.storage.cleaner import cleanable_range
from broker.storage.compaction import compact
from broker.storage.files import DiskFiles
from wire.records import Compression, RecordBatch, batches

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "log_directories" / "compaction"
DELETE_RETENTION_MS = 2000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=4000,
    index_interval_bytes=100,
    segment_index_bytes=2400,
    delete_retention_ms=DELETE_RETENTION_MS,
)
BEFORE_PRODUCERS_EXPIRE_MS = 1_790_000_000_000


def batches_of(directory: Path) -> dict[str, list[RecordBatch]]:
    """The batches of each segment."""
    return {path.name: list(batches(path.read_bytes())) for path in sorted(directory.glob("*.log"))}


def time_of_cleaning(turn: str) -> int:
    """When Apache Kafka cleaned: the newest horizon it set is that plus delete.retention.ms."""
    horizons = [
        view.delete_horizon_ms
        for views in batches_of(GOLDEN / f"{turn}-after").values()
        for view in views
        if view.delete_horizon_ms is not None
    ]
    return max(horizons) - DELETE_RETENTION_MS


@pytest.mark.parametrize(("turn", "first_dirty"), [("first", 0), ("second", 75), ("third", 129)])
def test_the_cleaned_log_is_that_of_apache_kafka(turn: str, first_dirty: int, tmp_path: Path) -> None:
    directory = tmp_path / "compaction-0"
    shutil.copytree(GOLDEN / f"{turn}-before", directory)
    log = open_log(DiskFiles(), CONFIG, directory=str(directory), clean=False, now_ms=BEFORE_PRODUCERS_EXPIRE_MS)
    log.set_high_watermark(log.log_end_offset)
    log.first_dirty_offset = first_dirty
    now_ms = time_of_cleaning(turn)
    found = cleanable_range(log, now_ms=now_ms)
    assert compact(log, found, now_ms=now_ms, keys_max=1000)
    active = f"{log.segments.active.base_offset:020d}"
    log.segments.delete_due(now_ms + 60_000)
    log.close()
    expected = batches_of(GOLDEN / f"{turn}-after")
    ours = batches_of(directory)
    assert list(ours) == list(expected)
    for name, theirs in expected.items():
        assert [view.base_offset for view in ours[name]] == [view.base_offset for view in theirs]
        for our, their in zip(ours[name], theirs, strict=True):
            assert list(our.records()) == list(their.records())
            assert (our.delete_horizon_ms, our.max_timestamp) == (their.delete_horizon_ms, their.max_timestamp)
            if our.compression is Compression.NONE:  # Compressors differ in their bytes.
                assert our.to_bytes() == their.to_bytes()
    indexes = sorted(path.name for path in (GOLDEN / f"{turn}-after").iterdir() if "index" in path.name)
    assert sorted(path.name for path in directory.iterdir() if "index" in path.name) == indexes
    for name in indexes:
        stem = name.partition(".")[0]
        same_bytes = [view.to_bytes() for view in ours[stem + ".log"]] == [
            view.to_bytes() for view in expected[stem + ".log"]
        ]
        if stem != active and (same_bytes or name.endswith(".txnindex")):
            assert (directory / name).read_bytes() == (GOLDEN / f"{turn}-after" / name).read_bytes(), name
