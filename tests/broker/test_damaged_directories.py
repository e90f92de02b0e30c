"""What lies in a log directory is missing, damaged or not ours: the node mends what it may, nothing kept is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.disk_node import (
    EARLIEST,
    TOPIC,
    as_after_a_kill,
    batch_positions,
    contents,
    flip_bit,
    on_disk,
    topic_client,
)
from tests.broker.node_fixture import running_node

ROOT = Path(__file__).resolve().parents[2]
VALUES = 40
VALUE_BYTES = 60_000


def value(number: int) -> bytes:
    return b"%04d" % number + bytes(VALUE_BYTES)


WRITTEN = [(number, value(number)) for number in range(VALUES)]


async def fill(directory: Path) -> Path:
    """A partition of three segments, closed cleanly; its directory."""
    async with running_node(on_disk(directory)) as node, topic_client(node) as topic:
        await topic.create(segment_bytes=str(1024 * 1024), index_interval_bytes="100000")
        for number, content in WRITTEN:
            assert await topic.write(content) == number
    partition = directory / f"{TOPIC}-0"
    assert len(list(partition.glob("*.log"))) == 3
    return partition


async def reads_all_and_goes_on(directory: Path) -> None:
    """A node over the directory has every record, finds each by its offset and takes another; all files are sound."""
    async with running_node(on_disk(directory)) as node, topic_client(node) as topic:
        assert await topic.read() == WRITTEN
        for number in range(VALUES):
            assert await topic.first(number) == WRITTEN[number]
        assert await topic.offset(topic.now_ms + 3_600_000) == -1
        assert await topic.write(b"one more") == VALUES
    is_sound(directory)


def is_sound(directory: Path) -> None:
    command = [sys.executable, "-m", "odradek", "dump-log", "--check", str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def deleted(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def of_odd_size(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\x01\x02\x03")


def of_garbage(path: Path) -> None:
    path.write_bytes(bytes(range(1, 25)) * 20)


def preallocated(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(24_000))


DAMAGE = [deleted, emptied, of_odd_size, of_garbage, preallocated]


@pytest.mark.parametrize("was_killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
async def test_a_damaged_index_is_made_anew(
    tmp_path: Path, suffix: str, damage: Callable[[Path], None], was_killed: bool
) -> None:
    partition = await fill(tmp_path)
    for path in sorted(partition.glob(f"*.{suffix}")):
        damage(path)
    if was_killed:
        as_after_a_kill(tmp_path)
    await reads_all_and_goes_on(tmp_path)


async def test_an_index_that_lies_is_found_out_when_it_is_used(tmp_path: Path) -> None:
    """Indexes carry no checksum: entries that lead elsewhere are noticed by what they lead to."""
    partition = await fill(tmp_path)
    for path in partition.glob("*.index"):
        content = bytearray(path.read_bytes())
        assert len(content) >= 16
        content[4:8], content[12:16] = (7).to_bytes(4, "big"), (1000).to_bytes(4, "big")
        path.write_bytes(content)
    await reads_all_and_goes_on(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x00\x01garbage that is no snapshot of producers"])
async def test_a_damaged_producer_snapshot_is_made_anew(tmp_path: Path, content: bytes) -> None:
    partition = await fill(tmp_path)
    for path in partition.glob("*.snapshot"):
        path.write_bytes(content)
    as_after_a_kill(tmp_path)
    await reads_all_and_goes_on(tmp_path)


CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint")


@pytest.mark.parametrize("content", [b"", b"0\n9\nkept 0", b"\xff\xfe\x00", None])
async def test_damaged_or_missing_checkpoints_cost_a_scan_and_no_record(tmp_path: Path, content: bytes | None) -> None:
    partition = await fill(tmp_path)
    for path in [*(tmp_path / name for name in CHECKPOINTS), partition / "leader-epoch-checkpoint"]:
        path.unlink(missing_ok=True) if content is None else path.write_bytes(content)
    as_after_a_kill(tmp_path)
    await reads_all_and_goes_on(tmp_path)


async def test_stray_files_are_removed_or_left_alone(tmp_path: Path) -> None:
    partition = await fill(tmp_path)
    newest = max(partition.glob("*.log"))
    ours = {
        partition / f"{newest.stem}.log.cleaned": b"half a segment",
        partition / f"{newest.stem}.index.cleaned": b"",
        partition / f"{newest.stem}.log.swap": b"the rest of the same replacement",
        partition / f"{0:020d}.log.deleted": b"gone already",
        partition / f"{9000:020d}.index": bytes(8),
        partition / f"{9000:020d}.timeindex": bytes(12),
        tmp_path / "__cluster_metadata-0" / f"{77:020d}-{1:010d}.checkpoint.part": b"half a snapshot",
    }
    foreign = {
        partition / "notes.txt": b"not ours",
        partition / "leader-epoch-checkpoint.tmp": b"half a checkpoint",
        tmp_path / "replication-offset-checkpoint.tmp": b"half a checkpoint",
        tmp_path / "letter.txt": b"not ours",
    }
    for path, content in (ours | foreign).items():
        path.write_bytes(content)
    async with running_node(on_disk(tmp_path)) as node, topic_client(node) as topic:
        assert await topic.read() == WRITTEN
        assert [path.name for path in ours if path.exists()] == []
    for name in ("notes.txt", "letter.txt"):
        (path,) = [path for path in foreign if path.name == name]
        assert path.read_bytes() == foreign[path]


async def test_a_finished_replacement_of_the_cleaner_is_put_in_place(tmp_path: Path) -> None:
    """Killed between the renames: `.swap` is whole, the segments it replaces are still there."""
    partition = await fill(tmp_path)
    first = min(partition.glob("*.log"))
    swap = first.with_name(first.name + ".swap")
    swap.write_bytes(first.read_bytes())
    as_after_a_kill(tmp_path)
    await reads_all_and_goes_on(tmp_path)
    assert not swap.exists()


@pytest.mark.parametrize("torn_bytes", [1, 11, 17, 60, 61, 30_000])
async def test_a_torn_last_write_is_cut_off(tmp_path: Path, torn_bytes: int) -> None:
    partition = await fill(tmp_path)
    newest = max(partition.glob("*.log"))
    content = newest.read_bytes()
    torn = bytearray(content[batch_positions(newest)[-1] :][:torn_bytes])
    torn[:8] = VALUES.to_bytes(8, "big")[: len(torn)]
    newest.write_bytes(content + torn)
    as_after_a_kill(tmp_path)
    await reads_all_and_goes_on(tmp_path)


@pytest.mark.parametrize("position", [-1, -VALUE_BYTES - 30, 8, 12, 16, 20, 57])
async def test_a_flipped_bit_in_the_last_batch_costs_that_batch_alone(tmp_path: Path, position: int) -> None:
    """What was never synced may be torn in any way; the log ends before it."""
    partition = await fill(tmp_path)
    newest = max(partition.glob("*.log"))
    last = batch_positions(newest)[-1]
    flip_bit(newest, position if position < 0 else last + position)
    as_after_a_kill(tmp_path)
    async with running_node(on_disk(tmp_path)) as node, topic_client(node) as topic:
        kept = VALUES if 12 <= position < 16 else VALUES - 1  # the leader epoch is not under the checksum
        assert await topic.read() == WRITTEN[:kept]
        assert await topic.offset() == kept
        assert await topic.write(b"in its place") == kept
    is_sound(tmp_path)


async def test_a_hole_in_the_middle_ends_the_log_there(tmp_path: Path) -> None:
    """What follows bytes that were lost cannot stand without them, as with Apache Kafka."""
    partition = await fill(tmp_path)
    middle = sorted(partition.glob("*.log"))[1]
    place = 3
    flip_bit(middle, batch_positions(middle)[place] + 100)
    as_after_a_kill(tmp_path)
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    kept = int(middle.stem) + place
    async with running_node(on_disk(tmp_path)) as node, topic_client(node) as topic:
        assert await topic.read() == WRITTEN[:kept]
        assert await topic.write(b"in its place") == kept
    is_sound(tmp_path)


async def test_an_emptied_newest_segment_leaves_the_others(tmp_path: Path) -> None:
    partition = await fill(tmp_path)
    newest = max(partition.glob("*.log"))
    newest.write_bytes(b"")
    as_after_a_kill(tmp_path)
    kept = int(newest.stem)
    async with running_node(on_disk(tmp_path)) as node, topic_client(node) as topic:
        assert await topic.read() == WRITTEN[:kept]
        assert await topic.offset(EARLIEST) == 0
    is_sound(tmp_path)


async def test_an_unclean_stop_of_a_node_at_rest_changes_no_log(tmp_path: Path) -> None:
    partition = await fill(tmp_path)
    before = {name: content for name, content in contents(partition).items() if name.endswith(("log", "index"))}
    as_after_a_kill(tmp_path)
    async with running_node(on_disk(tmp_path)):
        pass
    after = {name: content for name, content in contents(partition).items() if name.endswith(("log", "index"))}
    assert after == before
