"""The seam to the file system: real files, memory, and the faulty twin. Failures first."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import pytest

from broker.storage.faulty_files import Crash, Fault, FaultyFiles
from broker.storage.files import DiskFiles, Files, replace_file
from broker.storage.memory_files import MemoryFiles


@pytest.fixture(params=["disk", "disk with two descriptors", "memory", "faulty"])
def files(request: pytest.FixtureRequest) -> Files:
    return {
        "disk": DiskFiles,
        "disk with two descriptors": lambda: DiskFiles(max_open=2),
        "memory": MemoryFiles,
        "faulty": FaultyFiles,
    }[request.param]()


@pytest.fixture
def root(files: Files, tmp_path: Path) -> str:
    files.make_directory(str(tmp_path))
    return str(tmp_path)


def write(files: Files, path: str, content: bytes) -> None:
    file = files.open(path)
    file.append([content])
    file.release()


def test_what_is_not_there_is_not_found(files: Files, root: str) -> None:
    for missing in (
        lambda: files.read(f"{root}/x"),
        lambda: files.list(f"{root}/x"),
        lambda: files.open(f"{root}/x/y"),
    ):
        with pytest.raises(FileNotFoundError):
            missing()
    with pytest.raises(OSError):
        files.rename(f"{root}/x", f"{root}/y")
    files.delete(f"{root}/x")
    files.delete_directory(f"{root}/x")
    assert not files.exists(f"{root}/x")


def test_appends_reads_and_truncates(files: Files, root: str) -> None:
    file = files.open(f"{root}/a")
    file.append([b"hello", bytearray(b" "), memoryview(b"world")])
    assert (file.size, file.read_at(0, 100), file.read_at(6, 3), file.read_at(11, 5)) == (
        11,
        b"hello world",
        b"wor",
        b"",
    )
    file.truncate(5)
    file.append([b"!"])
    file.sync()
    assert files.read(f"{root}/a") == b"hello!"
    assert files.size(f"{root}/a") == 6
    file.release()


def test_many_buffers_at_once(files: Files, root: str) -> None:
    file = files.open(f"{root}/a")
    file.append([b"x"] * 3000)
    assert file.read_at(0, 5000) == b"x" * 3000
    file.release()


def test_readers_are_not_disturbed_by_rename_replacement_and_deletion(files: Files, root: str) -> None:
    file = files.open(f"{root}/a")
    file.append([b"first"])
    file.acquire()
    files.rename(f"{root}/a", f"{root}/b")
    assert file.path == f"{root}/b"
    write(files, f"{root}/a", b"second")
    files.rename(f"{root}/a", f"{root}/b")
    assert files.read(f"{root}/b") == b"second"
    assert file.read_at(0, 9) == b"first"
    files.delete(f"{root}/b")
    for number in range(5):  # Push every spare descriptor out.
        write(files, f"{root}/other-{number}", b"x")
    assert file.read_at(0, 9) == b"first"
    file.release()
    assert file.read_at(0, 9) == b"first"
    file.release()
    assert files.list(root) == [f"other-{number}" for number in range(5)]


def test_open_files_follow_their_directory(files: Files, root: str) -> None:
    files.make_directory(f"{root}/old")
    file = files.open(f"{root}/old/a")
    file.append([b"content"])
    for number in range(5):
        write(files, f"{root}/other-{number}", b"x")
    files.rename(f"{root}/old", f"{root}/new")
    assert file.read_at(0, 9) == b"content"
    file.append([b"!"])
    assert files.read(f"{root}/new/a") == b"content!"
    assert files.list(f"{root}/new") == ["a"]
    files.delete_directory(f"{root}/new")
    assert not files.is_directory(f"{root}/new")
    file.release()


def test_a_path_that_is_open_is_shared(files: Files, root: str) -> None:
    one, two = files.open(f"{root}/a"), files.open(f"{root}/a")
    one.append([b"x"])
    assert two.size == 1
    one.release()
    two.append([b"y"])
    assert two.read_at(0, 2) == b"xy"
    two.release()


def test_a_lock_has_one_holder(files: Files, root: str) -> None:
    assert files.lock(f"{root}/.lock")
    assert not files.lock(f"{root}/.lock")
    files.unlock(f"{root}/.lock")
    assert files.lock(f"{root}/.lock")
    files.unlock(f"{root}/.lock")


def test_two_objects_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    one, two = DiskFiles(), DiskFiles()
    assert one.lock(f"{tmp_path}/.lock")
    assert not two.lock(f"{tmp_path}/.lock")
    one.unlock(f"{tmp_path}/.lock")
    assert two.lock(f"{tmp_path}/.lock")
    two.unlock(f"{tmp_path}/.lock")


def test_replacing_a_file_leaves_no_temporary_one(files: Files, root: str) -> None:
    for content in (b"one", b"two"):
        replace_file(files, f"{root}/text", content)
        assert files.read(f"{root}/text") == content
    assert files.list(root) == ["text"]


def test_descriptors_stay_within_their_bound(tmp_path: Path) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("counts open descriptors in /proc, which this system does not have")
    before = len(os.listdir("/proc/self/fd"))
    files = DiskFiles(max_open=10)
    opened = [files.open(f"{tmp_path}/{number}") for number in range(200)]
    for turn in range(3):
        for number, file in enumerate(opened):
            file.append([b"%d:%d," % (turn, number)])
            assert len(os.listdir("/proc/self/fd")) - before <= 12
    assert opened[7].read_at(0, 100) == b"0:7,1:7,2:7,"
    for file in opened:
        file.release()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_vanished_file_fails_and_does_not_come_back_empty(tmp_path: Path) -> None:
    files = DiskFiles(max_open=1)
    file = files.open(f"{tmp_path}/a")
    file.append([b"content"])
    for number in range(20):
        files.open(f"{tmp_path}/other-{number}")
    os.unlink(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        file.read_at(0, 1)


def test_memory_past_its_cap_is_refused_and_freed_by_deletion() -> None:
    files = MemoryFiles(100, setting="memory.max.bytes")
    files.make_directory("/m")
    file = files.open("/m/a")
    file.append([b"x" * 90])
    with pytest.raises(OSError, match=r"memory\.max\.bytes is 100") as caught:
        file.append([b"x" * 11])
    assert caught.value.errno == errno.ENOSPC
    assert file.size == 90
    file.truncate(50)
    file.append([b"y" * 50])
    files.delete("/m/a")
    assert files.used_bytes == 100  # still read by the holder
    file.release()
    assert files.used_bytes == 0


# --- the faulty twin ------------------------------------------------------------------------------


def test_an_error_at_the_nth_call_writes_what_it_says() -> None:
    files = FaultyFiles({1: Fault("error", written=3, error_number=errno.ENOSPC)})
    file = files.open("/a")
    with pytest.raises(OSError) as caught:
        file.append([b"hello"])
    assert caught.value.errno == errno.ENOSPC
    assert (file.size, files.content.read("/a")) == (0, b"hel")
    file.append([b"x"])
    assert (file.read_at(0, 9), files.content.read("/a")) == (b"x", b"x")


def test_after_a_crash_nothing_runs_on_and_the_survivor_holds_what_was_written() -> None:
    files = FaultyFiles({2: Fault("crash", written=2)})
    file = files.open("/a")
    file.append([b"one"])
    with pytest.raises(Crash):
        file.append([b"two"])
    with pytest.raises(Crash):
        file.read_at(0, 1)
    with pytest.raises(Crash):
        files.open("/b")
    assert files.survivor().read("/a") == b"onetw"


def test_a_loss_of_power_keeps_what_was_synced_and_maybe_more() -> None:
    seen = set()
    for seed in range(50):
        files = FaultyFiles()
        file = files.open("/a")
        file.append([b"synced"])
        file.sync()
        file.append([b" and not"])
        content = files.survivor(power_loss=Random(seed)).read("/a")
        assert content.startswith(b"synced")
        assert len(content) <= 14
        seen.add(content)
    assert {b"synced", b"synced and not"} < seen
