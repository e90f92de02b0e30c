"""A node that cannot have its directory ends at once, with code 1 and one sentence that names the thing, the value and
the way out; nothing in the directory has changed (U08)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek import Broker
from tests.broker.disk_node import contents
from wire.messages.records.cluster_metadata import FeatureLevelRecord
from wire.record_builder import NewRecord, build_batch
from wire.record_framing import metadata_frame

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek", "start", "--port", "0", "--json", *arguments]
    return subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )


def refusal(directory: Path, *arguments: str, code: int = 1) -> str:
    """What a refused start says; the directory must be as it was."""
    before = contents(directory)
    done = start("--data", str(directory), *arguments)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    (sentence,) = done.stderr.splitlines()
    assert contents(directory) == before
    return sentence


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory of node 1 of a cluster, stopped cleanly."""
    with Broker(data=tmp_path / "data", settings={"odradek.cluster.id": CLUSTER}):
        pass
    return tmp_path / "data"


def test_u08_the_same_directory_has_the_same_cluster(directory: Path) -> None:
    with Broker(data=directory) as broker:
        assert broker.cluster_id == CLUSTER


def test_u08_another_clusters_directory(directory: Path) -> None:
    said = refusal(directory, "--set", "odradek.cluster.id=bG9uZ2VyLXRoYW4tYSBjYQ")
    for words in (CLUSTER, "bG9uZ2VyLXRoYW4tYSBjYQ", str(directory / "meta.properties"), "--data"):
        assert words in said


def test_u08_another_nodes_directory(directory: Path) -> None:
    said = refusal(directory, "--set", "node.id=7")
    for words in ("node 1", "node.id is 7", str(directory / "meta.properties"), "node.id=1", "--data"):
        assert words in said


def test_a_directory_in_use(tmp_path: Path) -> None:
    with Broker(data=tmp_path):
        said = refusal(tmp_path)
    for words in (str(tmp_path), "is locked", "stop that one", "--data"):
        assert words in said


def test_a_directory_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "sea.jpg").write_bytes(b"blue")
    said = refusal(tmp_path)
    assert str(tmp_path / "photos") in said
    assert "--data" in said


def append_to_metadata(directory: Path, value: bytes) -> None:
    """Go on with the metadata log as a newer broker would."""
    log = directory / "__cluster_metadata-0" / f"{0:020d}.log"
    with log.open("ab") as file:
        file.write(build_batch([NewRecord(None, value, (), 0)], base_offset=10_000, partition_leader_epoch=9))


@pytest.mark.parametrize(("name", "level"), [("share.version", 99), ("metadata.version", 999), ("of.tomorrow", 1)])
def test_a_feature_that_is_not_served(directory: Path, name: str, level: int) -> None:
    record = FeatureLevelRecord(name=name, feature_level=level)
    append_to_metadata(directory, b"".join([*metadata_frame(record, 0), record.encode(0)]))
    said = refusal(directory)
    for words in (name, f"level {level}", str(directory / "__cluster_metadata-0"), "kafka-features", "--data"):
        assert words in said


def test_all_features_that_are_not_served_are_named_with_the_command_that_lowers_them(directory: Path) -> None:
    """A directory that Apache Kafka 4.4 has formatted with its defaults."""
    records = [FeatureLevelRecord(name=name, feature_level=1) for name in ("share.version", "streams.version")]
    values = [b"".join([*metadata_frame(record, 0), record.encode(0)]) for record in records]
    log = directory / "__cluster_metadata-0" / f"{0:020d}.log"
    batch = build_batch(
        [NewRecord(None, value, (), 0) for value in values], base_offset=10_000, partition_leader_epoch=9
    )
    with log.open("ab") as file:
        file.write(batch)
    said = refusal(directory)
    assert "share.version is finalized at level 1" in said
    assert "streams.version is finalized at level 1" in said
    assert "downgrade --feature share.version=0 --feature streams.version=0 helps" in said


def test_a_feature_that_was_lowered_again(directory: Path) -> None:
    for level in (99, 0):
        record = FeatureLevelRecord(name="share.version", feature_level=level)
        append_to_metadata(directory, b"".join([*metadata_frame(record, 0), record.encode(0)]))
    # The second batch has the offset of the first: only the check before the start is asked here.
    log = directory / "__cluster_metadata-0" / f"{0:020d}.log"
    content = log.read_bytes()
    last = content.rindex((10_000).to_bytes(8, "big"))
    log.write_bytes(content[:last] + (10_001).to_bytes(8, "big") + content[last + 8 :])
    with Broker(data=directory) as broker:
        assert broker.cluster_id == CLUSTER


def test_metadata_of_a_newer_version(directory: Path) -> None:
    append_to_metadata(directory, b"\x01\xd2\x09\x00")  # frame version 1, record type 1234
    said = refusal(directory)
    for words in ("type 1234", "newer version", str(directory / "__cluster_metadata-0"), "--data"):
        assert words in said


def test_meta_properties_that_cannot_be_read(directory: Path) -> None:
    (directory / "meta.properties").write_text("version=7\ncluster.id=x\nnode.id=1\n")
    assert f"{directory}/meta.properties has version 7; known are 0 and 1" in refusal(directory)
    (directory / "meta.properties").write_text("version=1\ncluster.id=x\n")
    assert f"{directory}/meta.properties has version 1 but lacks cluster.id or node.id" in refusal(directory)


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("a file")
    done = start("--data", str(path))
    assert done.returncode == 1
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("odradek start")]
    for words in (str(path), "is a file, not a directory", "--data"):
        assert words in sentence
    assert path.read_text() == "a file"


def mount(directory: Path, *options: str) -> None:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", *options, "none", str(directory)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")


@pytest.fixture
def mount_point(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    point = tmp_path / "mounted"
    point.mkdir()
    yield point
    subprocess.run(["umount", str(point)], capture_output=True, check=False)


def test_u08_a_read_only_file_system(mount_point: Path, directory: Path) -> None:
    mount(mount_point, "-o", "size=4m")
    shutil.copytree(directory, mount_point, dirs_exist_ok=True)
    subprocess.run(["mount", "-o", "remount,ro", str(mount_point)], check=True)
    before = contents(mount_point)
    done = start("--data", str(mount_point))
    assert done.returncode == 1
    sentence = done.stderr.splitlines()[-1]
    for words in (str(mount_point), "Read-only file system", "--data"):
        assert words in sentence
    assert contents(mount_point) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write where it likes")
def test_u08_a_directory_without_the_right_to_write(directory: Path) -> None:
    for path in [directory, *directory.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = contents(directory)
    done = start("--data", str(directory))
    assert done.returncode == 1
    assert "Permission denied" in done.stderr.splitlines()[-1]
    assert contents(directory) == before
    for path in [directory, *directory.rglob("*")]:
        path.chmod(0o755)


def test_a_full_disk_refuses_to_start_and_says_so(mount_point: Path, directory: Path) -> None:
    mount(mount_point, "-o", "size=1m")
    shutil.copytree(directory, mount_point, dirs_exist_ok=True)
    (mount_point / "ballast").write_bytes(b"")
    with (mount_point / "ballast").open("ab", buffering=0) as ballast:
        try:
            while ballast.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
    done = start("--data", str(mount_point))
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    (mount_point / "ballast").unlink()
    with Broker(data=mount_point) as broker:
        assert broker.cluster_id == CLUSTER


@pytest.mark.parametrize("module", ["immutables", "re2"])
def test_a_library_that_is_missing_is_named_with_the_way_to_have_it(module: str) -> None:
    without = (
        "import importlib.util as util, sys\n"
        "find = util.find_spec\n"
        f"util.find_spec = lambda name, *more: None if name == {module!r} else find(name, *more)\n"
        f"sys.modules[{module!r}] = None\n"
        "from odradek.__main__ import main; sys.exit(main(['start', '--port', '0', '--json', '--stop-with-stdin']))"
    )
    command = [sys.executable, "-c", without]
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert f"module {module} is missing" in sentence
    assert "python3 dev.py start" in sentence
