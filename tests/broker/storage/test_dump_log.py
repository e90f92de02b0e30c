"""Apache Kafka's own tool reads our directories: kafka-dump-log, deep and by index.

Needs Java and the jars of Apache Kafka 4.4.0: the environment variable ODRADEK_KAFKA_LIBS names their folder,
else the cache of compat-tests/reference is used (`python compat-tests/reference/reference.py path` fills it).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from log_fixture import NOW_MS, append, batch_of, idempotent, numbered, open_log

from broker.storage.cleaner import cleanable_range
from broker.storage.compaction import compact
from broker.storage.files import DiskFiles
from broker.storage.log import AppendOrigin, Log
from wire.records import Compression, end_transaction_marker

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek" / "kafka-4.4.0" / "libs"
LIBS = Path(os.environ.get("ODRADEK_KAFKA_LIBS") or CACHE)
JAVA = shutil.which("java")

pytestmark = pytest.mark.skipif(
    JAVA is None or not any(LIBS.glob("kafka*.jar")),
    reason=f"kafka-dump-log cannot run: java is {JAVA}, jars of Apache Kafka are looked for in {LIBS} "
    "(set ODRADEK_KAFKA_LIBS, or run compat-tests/reference/reference.py path)",
)


def dump(paths: list[Path], *options: str) -> str:
    command = [
        str(JAVA),
        "-Xshare:auto",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{LIBS}/*",
        "org.apache.kafka.tools.DumpLogSegments",
        "--files",
        ",".join(map(str, paths)),
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fill(log: Log) -> None:
    """Every kind of batch, over several segments."""
    for number in range(60):
        append(
            log, numbered(3, timestamp=NOW_MS + number, compression=Compression(number % 5)), leader_epoch=number // 20
        )
        append(log, idempotent(number, timestamp=NOW_MS + number), leader_epoch=number // 20)
    append(log, batch_of([None, b""], timestamp=NOW_MS - 5), leader_epoch=3)
    for commit in (True, False):
        guard = log.start_verification(9, 0, int(not commit), supports_epoch_bump=False, now_ms=NOW_MS)
        data = idempotent(0, 2, producer_id=9, epoch=int(not commit), is_transactional=True)
        append(log, data, leader_epoch=3, verification_guard=guard)
        marker = end_transaction_marker(
            is_commit=commit, producer_id=9, producer_epoch=int(not commit), coordinator_epoch=0, timestamp=NOW_MS
        )
        append(log, marker, leader_epoch=3, origin=AppendOrigin.COORDINATOR, transaction_version=0)


def test_kafka_dump_log_reads_every_file_of_a_log(tmp_path: Path) -> None:
    log = open_log(
        DiskFiles(),
        directory=str(tmp_path / "topic-0"),
        segment_bytes=3000,
        index_interval_bytes=200,
        segment_index_bytes=8000,
    )
    fill(log)
    end = log.log_end_offset
    log.close()
    names = sorted((tmp_path / "topic-0").iterdir())
    logs = [path for path in names if path.suffix == ".log"]
    assert len(logs) > 3
    deep = dump(logs, "--deep-iteration")
    records = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", deep, re.MULTILINE)]
    assert records == list(range(end))
    assert "isvalid: false" not in deep
    assert "endTxnMarker: COMMIT" in deep
    assert "endTxnMarker: ABORT" in deep
    indexes = dump([path for path in names if path.suffix in (".index", ".timeindex")], "--verify-index-only")
    assert re.findall("[Mm]ismatch|[Oo]ut of order|[Ii]nvalid|[Cc]orrupt|not found", indexes) == [], indexes
    others = dump([path for path in names if path.suffix in (".txnindex", ".snapshot")])
    assert re.findall(r"producerId: 9 firstOffset: (\d+) lastOffset: (\d+)", others) == [(str(end - 3), str(end - 1))]
    newest = [line for line in others.splitlines() if line.startswith("producerId: 7 ")][-1]
    assert "producerEpoch: 0 " in newest
    assert f"lastTimestamp: {NOW_MS + 59} firstSequence: 59 lastSequence: 59 " in newest


def test_kafka_dump_log_reads_a_compacted_log(tmp_path: Path) -> None:
    log = open_log(
        DiskFiles(),
        directory=str(tmp_path / "topic-0"),
        segment_bytes=3000,
        index_interval_bytes=200,
        cleanup_policy=frozenset({"compact"}),
    )
    fill(log)
    log.set_high_watermark(log.log_end_offset)
    log.roll(now_ms=NOW_MS)
    size = log.size_bytes
    assert compact(log, cleanable_range(log, now_ms=NOW_MS), now_ms=NOW_MS, keys_max=1000)
    assert log.size_bytes < size // 2
    log.segments.delete_due(NOW_MS + 60_000)
    log.close()
    names = sorted((tmp_path / "topic-0").iterdir())
    deep = dump([path for path in names if path.suffix == ".log"], "--deep-iteration")
    assert "isvalid: false" not in deep
    assert len(re.findall(r"^\| offset: ", deep, re.MULTILINE)) < 20
    indexes = dump([path for path in names if path.suffix in (".index", ".timeindex")], "--verify-index-only")
    assert re.findall("[Mm]ismatch|[Oo]ut of order|[Ii]nvalid|[Cc]orrupt|not found", indexes) == [], indexes


def test_kafka_dump_log_reads_a_log_after_a_kill_and_recovery(tmp_path: Path) -> None:
    settings = {"segment_bytes": 3000, "index_interval_bytes": 200}
    directory = tmp_path / "topic-0"
    fill(open_log(DiskFiles(), directory=str(directory), **settings))
    newest = max(path for path in directory.iterdir() if path.suffix == ".log")
    newest.write_bytes(newest.read_bytes()[:-7])
    log = open_log(DiskFiles(), directory=str(directory), clean=False, **settings)
    end = log.log_end_offset
    log.close()
    logs = sorted(path for path in directory.iterdir() if path.suffix == ".log")
    deep = dump(logs, "--deep-iteration")
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+)", deep, re.MULTILINE)] == list(range(end))
    indexes = dump(
        [path for path in sorted(directory.iterdir()) if path.suffix in (".index", ".timeindex")], "--verify-index-only"
    )
    assert re.findall("[Mm]ismatch|[Oo]ut of order|[Ii]nvalid|[Cc]orrupt|not found", indexes) == [], indexes
