"""Let Apache Kafka compact, delete and retain what `compat-tests/directories/what_stays.py` writes, and keep what it
then tells: `what-stays.json.gz`. Needs Java.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPAT = HERE.parents[2] / "compat-tests"
sys.path[:0] = [str(COMPAT), str(COMPAT / "reference"), str(COMPAT / "directories")]

from scenarios import Kafka  # noqa: E402 - the path had to be laid first
from what_stays import SETTINGS, played  # noqa: E402


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        kafka = Kafka(Path(home), static_quorum=True, settings=SETTINGS)
        kafka.start()
        told = played(kafka.bootstrap_servers, Path(home) / "data")
        kafka.end()
    (HERE / "what-stays.json.gz").write_bytes(gzip.compress(json.dumps(told, indent=1).encode(), mtime=0))


if __name__ == "__main__":
    main()
