"""The cleaner runs passes in a thread while the loop goes on appending and reading."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from broker.clock import Clock
from broker.config_log import LogConfig
from broker.log_cleaner import LogCleaner
from broker.storage.files import DiskFiles, Files
from broker.storage.log import Log
from broker.storage.log_manager import LogManager
from broker.storage.memory_files import MemoryFiles
from wire.primitives import TopicPartition
from wire.records import NewRecord, batches, build_batch

CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=20_000)
SETTINGS: Any = {"log.cleaner.enable": True, "log.cleaner.dedupe.buffer.size": 1 << 20}


@pytest.fixture(params=["memory", "disk"])
def files(request: pytest.FixtureRequest) -> Files:
    return MemoryFiles() if request.param == "memory" else DiskFiles(max_open=4)


def put(log: Log, key: str, value: str) -> None:
    sent = build_batch([NewRecord(key.encode(), value.encode(), (), 1)])
    log.append_as_leader(sent, leader_epoch=0, now_ms=1)
    log.advance_high_watermark(log.log_end_offset)


def records(log: Log) -> list[tuple[bytes | None, bytes | None]]:
    found, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        views = list(batches(log.read(offset, max_bytes=10_000).records))
        if not views:
            break
        found += [(record.key, record.value) for view in views for record in view.records()]
        offset = views[-1].next_offset
    return found


def opened(files: Files, directory: Path) -> LogManager:
    manager = LogManager(files, [str(directory)], config_for_topic=lambda topic: CONFIG)
    manager.open(cluster_id="cluster", node_id=1)
    manager.load(now_ms=1)
    return manager


def log_of(manager: LogManager, number: int = 0) -> Log:
    return manager.get_or_create(TopicPartition("topic", number), b"0123456789abcdef", CONFIG, now_ms=1)


async def test_every_log_is_cleaned_while_the_loop_goes_on(files: Files, tmp_path: Path) -> None:
    manager = opened(files, tmp_path / "data")
    logs = [log_of(manager, number) for number in range(3)]
    for log in logs:
        for number in range(500):
            put(log, f"key-{number % 50}", str(number))
    cleaner = LogCleaner(manager, Clock(), SETTINGS)
    cleaning = asyncio.ensure_future(cleaner.clean_now())
    written = 0
    while not cleaning.done():
        put(logs[0], f"key-{written % 50}", f"meanwhile {written}")
        assert dict(records(logs[1]))[b"key-49"] == b"499"
        written += 1
        await asyncio.sleep(0)
    assert await cleaning == 3
    assert written > 1
    for log in logs[1:]:
        assert sorted(records(log)) == sorted(
            (f"key-{number % 50}".encode(), str(number).encode()) for number in range(450, 500)
        )
    assert dict(records(logs[0]))[f"key-{(written - 1) % 50}".encode()] == f"meanwhile {written - 1}".encode()
    await cleaner.close()
    manager.close(now_ms=1)
    again = opened(files, tmp_path / "data")
    assert {log.first_dirty_offset for log in again.logs.values()} >= {500}
    again.close(now_ms=1)


async def test_what_is_not_due_is_left_alone(files: Files, tmp_path: Path) -> None:
    manager = opened(files, tmp_path / "data")
    log = log_of(manager)
    for number in range(50):
        put(log, "key", str(number))
    cleaner = LogCleaner(manager, Clock(), SETTINGS)
    cleaner.start()  # The only segment is the active one.
    await asyncio.sleep(0)
    assert len(records(log)) == 50
    await cleaner.close()
    manager.close(now_ms=1)


async def test_closing_stops_a_pass_and_leaves_the_log_whole(files: Files, tmp_path: Path) -> None:
    manager = opened(files, tmp_path / "data")
    log = log_of(manager)
    for number in range(800):
        put(log, f"key-{number % 50}", str(number))
    expected = dict(records(log))
    cleaner = LogCleaner(manager, Clock(), SETTINGS)
    cleaner.start()
    await asyncio.sleep(0)
    await cleaner.close()
    assert dict(records(log)) == expected
    assert [name for name in files.list(log.directory) if name.endswith(".cleaned")] == []
    manager.close(now_ms=1)
    again = opened(files, tmp_path / "data")
    assert dict(records(log_of(again))) == expected
    again.close(now_ms=1)


async def test_who_leaves_a_pass_under_way_stops_nothing_and_its_end_is_seen(files: Files, tmp_path: Path) -> None:
    manager = opened(files, tmp_path / "data")
    log = log_of(manager)
    for number in range(800):
        put(log, f"key-{number % 50}", str(number))
    cleaner = LogCleaner(manager, Clock(), SETTINGS)
    leaving, staying = asyncio.ensure_future(cleaner.clean_now()), asyncio.ensure_future(cleaner.clean_now())
    for _ in range(3):
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    await staying
    assert leaving.cancelled()
    assert len(records(log)) == 50
    await cleaner.close()
    manager.close(now_ms=1)


async def test_a_run_that_is_cancelled_in_a_thread_leaves_no_exception_unseen(tmp_path: Path) -> None:
    manager = opened(DiskFiles(max_open=4), tmp_path / "data")
    log = log_of(manager)
    for number in range(3000):
        put(log, f"key-{number % 50}", str(number))
    cleaner = LogCleaner(manager, Clock(), SETTINGS)
    cleaner.start()
    running = cleaner._running
    assert running is not None
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    gc.collect()
    assert running.cancelled()
    manager.close(now_ms=1)
