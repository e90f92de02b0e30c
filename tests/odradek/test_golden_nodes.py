"""Whole directories of a node of Apache Kafka 4.4.0, opened here: a client sees what it saw there."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from odradek import Broker

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "log_directories"
sys.path[:0] = [str(ROOT / "compat-tests"), str(ROOT / "compat-tests" / "directories")]

from content import difference, fill, plain, seen  # noqa: E402 - the client's side imports nothing of ours

# The groups are empty and were left long ago: their offsets would expire.
SETTINGS: dict[str, str | int | bool] = {"offsets.retention.minutes": 2_147_483_647}


def unpacked(kind: str, directory: Path) -> Path:
    """A copy of a directory of Apache Kafka."""
    with tarfile.open(GOLDEN / f"node-{kind}.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return directory / f"node-{kind}"


def told_by_apache_kafka() -> Any:
    return json.loads(gzip.decompress((GOLDEN / "node-seen.json.gz").read_bytes()))


@pytest.mark.parametrize("kind", ["stopped", "killed"])
def test_a_node_of_apache_kafka_is_taken_over(kind: str, tmp_path: Path) -> None:
    before = told_by_apache_kafka()
    if kind == "killed":  # where a log starts is noted once a minute, and this broker was killed before that
        without_start(before)
    directory = unpacked(kind, tmp_path)
    with Broker(data=directory, settings=SETTINGS) as broker:
        assert broker.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg"
        after = plain(seen(broker.bootstrap_servers, before["start_ms"]))
        if kind == "killed":
            without_start(after)
        assert difference(before, after) == []
        # It goes on as a node of ours: topics, records, transactions, offsets.
        fill(broker.bootstrap_servers, "ours")
        more = plain(seen(broker.bootstrap_servers))
        # Why groups rebalance is told; there is nothing to complain of.
        assert [line for line in broker.log().splitlines() if not line.startswith("INFO: group ")] == []
    with Broker(data=directory, settings=SETTINGS) as broker:
        assert difference(more, plain(seen(broker.bootstrap_servers))) == []
    command = [sys.executable, "-m", "odradek", "dump-log", "--check", str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def without_start(told: Any) -> None:
    for what in ("records", "offsets"):
        for name in [name for name in told[what] if name.startswith("trimmed")]:
            del told[what][name]
