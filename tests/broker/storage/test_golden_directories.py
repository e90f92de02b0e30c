"""Directories written by Apache Kafka load completely, and what we write from the same batches is the same.

The directories are under tests/golden/log_directories; a README there says how they were made.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from log_fixture import all_batches, all_records, open_log

from broker.config_log import LogConfig
from broker.storage.files import DiskFiles
from broker.storage.log import AppendOrigin, Log
from broker.storage.log_manager import LogManager
from wire.primitives import TopicPartition, uuid_text
from wire.producer_snapshot import decode_snapshot
from wire.records import RecordBatch

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "log_directories"
CONFIG = LogConfig(index_interval_bytes=100, segment_index_bytes=1200, segment_ms=60_000)
NOW_MS = 1_790_000_300_000
"""Shortly after the timestamps of the records, so that their producers have not expired."""


def copy_of(kind: str, tmp_path: Path) -> str:
    target = tmp_path / kind
    shutil.copytree(GOLDEN / kind, target)
    return str(target)


def loaded(kind: str, tmp_path: Path) -> LogManager:
    manager = LogManager(DiskFiles(), [copy_of(kind, tmp_path)], config_for_topic=lambda topic: CONFIG)
    manager.open(cluster_id="AAAAAAAAAAAAAAAAAAAAAA", node_id=1)
    manager.load(now_ms=NOW_MS)
    return manager


def log_of(manager: LogManager, topic: str) -> Log:
    log = manager.log(TopicPartition(topic, 0))
    assert log is not None
    return log


@pytest.mark.parametrize("kind", ["stopped", "running"])
def test_identity_and_checkpoints_of_a_directory_of_apache_kafka(kind: str, tmp_path: Path) -> None:
    manager = loaded(kind, tmp_path)
    assert [uuid_text(value) for value in manager.directory_ids.values()] == ["fo7uFPs_c9NXell9dCmBIw"]
    assert manager.previous_broker_epoch == (11 if kind == "stopped" else -1)
    assert uuid_text(log_of(manager, "codecs").topic_id or b"") == "uqb7y9kOQDCQzsfPsHb5Mw"
    assert [log_of(manager, name).high_watermark for name in ("codecs", "transactions")] == [100, 19]
    assert log_of(manager, "codecs").recovery_point == (100 if kind == "stopped" else 0)
    manager.close(now_ms=NOW_MS)


@pytest.mark.parametrize("kind", ["stopped", "running"])
def test_every_codec_of_apache_kafka_is_read(kind: str, tmp_path: Path) -> None:
    manager = loaded(kind, tmp_path)
    log = log_of(manager, "codecs")
    assert log.segments.base_offsets == [0, 20, 40, 60, 80]
    records = all_records(log)
    assert [record.offset for record in records] == list(range(100))
    for number, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        for index in range(20):
            record = records[number * 20 + index]
            assert record.key == (f"{codec}-{index}".encode() if index % 3 else None)
            assert record.value == (f"value {index} of {codec}".encode() * 4 if index % 5 else None)
            assert record.headers == ((("codec", codec.encode()), ("empty", None)) if index % 4 == 0 else ())
    # Every timestamp is found at its own record, across the segments.
    for record in records:
        found = log.offset_for_timestamp(record.timestamp)
        assert found is not None
        assert (found.offset, found.timestamp_ms, found.leader_epoch) == (record.offset, record.timestamp, 0)
    manager.close(now_ms=NOW_MS)


@pytest.mark.parametrize("kind", ["stopped", "running"])
def test_producers_and_transactions_of_apache_kafka_are_known(kind: str, tmp_path: Path) -> None:
    manager = loaded(kind, tmp_path)
    idempotent = log_of(manager, "idempotent").producer_state
    assert sorted((entry.producer_epoch, entry.last_sequence) for entry in idempotent.entries.values()) == [
        (0, 23),
        (0, 23),
    ]
    log = log_of(manager, "transactions")
    log.set_high_watermark(log.log_end_offset)
    assert log.log_end_offset == 19
    assert log.producer_state.first_undecided_offset == log.first_unstable_offset == log.last_stable_offset == 16
    # As kafka-dump-log shows the index: producers 3 and 4 aborted 4..7 and 8..11.
    assert log.aborted_transactions(0, 19) == [(3, 4, 7, 8), (4, 8, 11, 12)]
    assert log.aborted_transactions(8, 9) == [(4, 8, 11, 12)]
    assert log.aborted_transactions(12, 19) == []
    manager.close(now_ms=NOW_MS)


@pytest.mark.parametrize("topic", ["codecs", "idempotent", "transactions"])
def test_indexes_rebuilt_by_scanning_are_those_of_apache_kafka(topic: str, tmp_path: Path) -> None:
    directory = copy_of("stopped", tmp_path) + f"/{topic}-0"
    indexes = sorted(path for path in Path(directory).iterdir() if path.suffix in (".index", ".timeindex", ".txnindex"))
    assert len(indexes) >= 2
    for path in indexes:
        path.unlink()
    open_log(DiskFiles(), CONFIG, directory=directory, clean=True, now_ms=NOW_MS).close()
    for path in indexes:
        assert path.read_bytes() == (GOLDEN / "stopped" / f"{topic}-0" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("topic", ["codecs", "idempotent", "transactions"])
def test_appending_the_same_batches_writes_the_same_files(topic: str, tmp_path: Path) -> None:
    golden = open_log(DiskFiles(), CONFIG, directory=copy_of("stopped", tmp_path) + f"/{topic}-0", now_ms=NOW_MS)
    ours = open_log(
        DiskFiles(), CONFIG, directory=str(tmp_path / "ours"), now_ms=NOW_MS, message_timestamp_after_max_ms=2**63 - 1
    )
    ours.producer_state.settings.verification_enabled = False  # There is no coordinator to ask here.
    for content in all_batches(golden):
        sent = bytearray(content)
        sent[0:8] = bytes(8)
        view = RecordBatch(bytes(sent))
        origin = AppendOrigin.COORDINATOR if view.is_control else AppendOrigin.CLIENT
        info = ours.append_as_leader(
            bytes(sent), leader_epoch=0, now_ms=NOW_MS, origin=origin, transaction_version=0 if view.is_control else -1
        )
        assert info.first_offset == RecordBatch(content).base_offset
    golden.close()
    ours.close()
    written = {path.name: path.read_bytes() for path in (tmp_path / "ours").iterdir()}
    expected = {path.name: path.read_bytes() for path in (GOLDEN / "stopped" / f"{topic}-0").iterdir()}
    del expected["partition.metadata"]  # Written by the log manager.
    assert sorted(written) == sorted(expected)
    for name, content in expected.items():
        if name.endswith(".snapshot"):  # Kafka writes the producers in the order of a hash map.
            assert sorted(decode_snapshot(written[name])) == sorted(decode_snapshot(content)), name
        else:
            assert written[name] == content, name
