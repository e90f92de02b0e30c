"""Compaction, retention and DeleteRecords leave what they leave with Apache Kafka 4.4.0, seen through a client."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from odradek import Broker

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "log_directories" / "what-stays.json.gz"
sys.path[:0] = [str(ROOT / "compat-tests"), str(ROOT / "compat-tests" / "directories")]

from content import difference  # noqa: E402 - the client's side imports nothing of ours
from what_stays import SETTINGS, TOPICS, played  # noqa: E402


def test_what_stays_of_a_log_is_what_stays_with_apache_kafka(tmp_path: Path) -> None:
    expected = json.loads(gzip.decompress(GOLDEN.read_bytes()))
    assert expected.keys() == TOPICS.keys()
    with Broker(data=tmp_path, settings=dict(setting.split("=") for setting in SETTINGS)) as broker:
        assert difference(expected, played(broker.bootstrap_servers, tmp_path)) == []
        assert broker.log() == ""
