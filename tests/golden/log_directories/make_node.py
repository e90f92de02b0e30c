"""Let Apache Kafka fill a node's directory with all that `compat-tests/directories/content.py` writes, and pack it.

Makes `node-killed.tar.gz` (as it was when the broker was killed), `node-stopped.tar.gz` (after a clean stop),
`node-seen.json.gz` (what a client saw) and `node-dump.txt.gz` (what kafka-dump-log says of the internal topics of the
stopped one). Needs Java.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPAT = HERE.parents[2] / "compat-tests"
sys.path[:0] = [str(COMPAT), str(COMPAT / "reference"), str(COMPAT / "directories")]

from content import fill, plain, seen  # noqa: E402 - the path had to be laid first
from reference import tool_command  # noqa: E402
from scenarios import Kafka  # noqa: E402

DUMPS = {
    "__consumer_offsets-*/*.log": "--offsets-decoder",
    "__transaction_state-*/*.log": "--transaction-log-decoder",
    "__cluster_metadata-0/*.log": "--cluster-metadata-decoder",
    "__cluster_metadata-0/*.checkpoint": "--cluster-metadata-decoder",
}


def pack(data: Path, name: str) -> None:
    def cleaned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(HERE / f"{name}.tar.gz", "w:gz", compresslevel=9) as archive:
        archive.add(data, name, filter=cleaned)


def dumped(data: Path) -> str:
    said = []
    for pattern, decoder in DUMPS.items():
        for file in sorted(data.glob(pattern)):
            command = tool_command("kafka-dump-log", ["--files", str(file.relative_to(data)), decoder])
            done = subprocess.run(command, cwd=data, capture_output=True, text=True, check=True)
            said.append(done.stdout)
    return "".join(said)


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        kafka = Kafka(Path(home), static_quorum=True)
        kafka.settings += ["log.index.size.max.bytes=4800"]
        kafka.start()
        fill(kafka.bootstrap_servers, "golden")
        told = json.dumps(plain(seen(kafka.bootstrap_servers))).encode()
        (HERE / "node-seen.json.gz").write_bytes(gzip.compress(told, 9, mtime=0))
        kafka.kill()
        pack(Path(home) / "data", "node-killed")
        kafka.start()
        kafka.end()
        pack(Path(home) / "data", "node-stopped")
        (HERE / "node-dump.txt.gz").write_bytes(gzip.compress(dumped(Path(home) / "data").encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
