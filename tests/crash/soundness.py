"""Whether the files of a node that stopped cleanly are what a scan of the logs would make of them."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import time
from pathlib import Path

from broker.config_log import LogConfig
from broker.storage.files import DiskFiles
from broker.storage.recovery import LogLoading, load_log
from odradek.__main__ import main as odradek
from tests.crash.damage import is_partition
from tests.crash.node import SETTINGS
from tests.crash.requests import Broken
from wire.primitives import TopicPartition

CONFIG = LogConfig(index_interval_bytes=int(SETTINGS["log.index.interval.bytes"]))
METADATA_CONFIG = LogConfig()


def require_sound(data: Path) -> None:
    """Raises Broken for a file that `odradek dump-log` finds corrupt, or an index that is not that of a rebuild."""
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = odradek(["dump-log", "--check", *map(str, files_in_use(data))])
    if code:
        raise Broken(f"dump-log found: {said.getvalue()[:1000]} {errors.getvalue()}")
    for partition in sorted(path for path in data.iterdir() if path.is_dir() and is_partition(path)):
        require_rebuilt_indexes(partition)


def files_in_use(data: Path) -> list[Path]:
    """All but older producer snapshots, which are read only where the newest cannot be, and may have been damaged."""
    found = [data / "meta.properties"]
    for directory in (path for path in data.iterdir() if path.is_dir() and is_partition(path)):
        snapshots = sorted(directory.glob("*.snapshot"))
        found += [path for path in directory.iterdir() if path not in snapshots[:-1] and not path.name.endswith(".tmp")]
    return found


def require_rebuilt_indexes(partition: Path) -> None:
    """Offset indexes are byte for byte those of a scan. (A time index has an entry more for each clean stop.)"""
    before = {path.name: path.read_bytes() for path in partition.glob("*.index")}
    with tempfile.TemporaryDirectory() as place:
        copy = Path(shutil.copytree(partition, Path(place) / partition.name))
        for path in copy.glob("*.index"):
            path.unlink()
        topic, _, index = partition.name.rpartition("-")
        loading = LogLoading(
            DiskFiles(),
            str(copy),
            TopicPartition(topic, int(index)),
            METADATA_CONFIG if topic == "__cluster_metadata" else CONFIG,
            int(time.time() * 1000),
            was_closed_cleanly=True,
        )
        load_log(loading).close()
        after = {path.name: path.read_bytes() for path in copy.glob("*.index")}
    different = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if different:
        raise Broken(f"{partition.name} has indexes unlike those of a rebuild: {different}")
