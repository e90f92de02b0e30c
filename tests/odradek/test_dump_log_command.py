"""`odradek dump-log` says what Apache Kafka's own tool says of Apache Kafka's files, and points at what is corrupt."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from odradek.__main__ import main
from tests.broker.disk_node import batch_positions, flip_bit
from tests.odradek.test_golden_nodes import GOLDEN, unpacked

KAFKA_FILES = ("log", "index", "timeindex", "txnindex", "snapshot")
LAST_CODECS = f"{80:020d}"


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A copy of the partitions of a stopped Apache Kafka."""
    return Path(shutil.copytree(GOLDEN / "stopped", tmp_path / "stopped"))


class Dump:
    """Runs the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object, code: int = 0) -> list[str]:
        """What it prints, by line; the exit code must be `code`."""
        assert main(["dump-log", *map(str, arguments)]) == code
        captured = self._capsys.readouterr()
        self.errors = captured.err
        assert captured.err.count("\n") == (code != 0)
        return captured.out.splitlines()

    def faults(self, *arguments: object) -> list[dict[str, Any]]:
        """What it finds corrupt."""
        return [json.loads(line) for line in self("--check", "--json", *arguments, code=1)]


@pytest.fixture
def dump(capsys: pytest.CaptureFixture[str]) -> Dump:
    return Dump(capsys)


# --- what Apache Kafka's tool says ----------------------------------------------------------------


def kafkas_lines(text: str) -> list[str]:
    without = re.compile(r"Log starting offset|Snapshot end offset")
    return [line for line in text.splitlines() if not without.match(line)]


def test_segments_indexes_and_snapshots_are_shown_as_kafka_dump_log_shows_them(dump: Dump) -> None:
    files = sorted(path for path in (GOLDEN / "stopped").rglob("*") if path.suffix[1:] in KAFKA_FILES)
    ours = [line.replace(f"{GOLDEN}/stopped/", "") for line in dump("--records", *files)]
    golden = gzip.decompress((GOLDEN / "stopped-dump.txt.gz").read_bytes()).decode()
    assert [line for line in ours if not line.startswith("note:")] == kafkas_lines(golden)


def decoded(line: str) -> dict[str, Any]:
    """The JSON texts of a record's line by their names."""
    found: dict[str, Any] = {}
    for name in ("key", "payload", "LeaderChange", "SnapshotHeader", "SnapshotFooter"):
        at = re.search(rf" {name}:? (?={{)", line)  # Kafka leaves the colon out before a snapshot's
        if at is not None:
            found[name] = json.JSONDecoder().raw_decode(line[at.end() :])[0]
    return found


def is_part_of(part: Any, whole: Any) -> bool:
    """Whether everything Kafka shows is there: it leaves out what a record's version does not have."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and is_part_of(part[name], whole[name]) for name in part)
    if isinstance(part, list):
        return len(part) == len(whole) and all(is_part_of(*pair) for pair in zip(part, whole, strict=True))
    return bool(part == whole)


def test_internal_topics_are_decoded_as_kafka_dump_log_decodes_them(dump: Dump, tmp_path: Path) -> None:
    directory = unpacked("stopped", tmp_path)
    golden = kafkas_lines(gzip.decompress((GOLDEN / "node-dump.txt.gz").read_bytes()).decode())
    files = [directory / line.removeprefix("Dumping ") for line in golden if line.startswith("Dumping ")]
    ours = dump("--records", *files)
    assert len(ours) == len(golden) > 200
    for mine, kafkas in zip(ours, golden, strict=True):
        if kafkas.startswith("| "):
            assert mine.split("headerKeys")[0] == kafkas.split("headerKeys")[0]
            assert is_part_of(decoded(kafkas), decoded(mine)), (kafkas, mine)
            assert bool(decoded(kafkas)) == bool(decoded(mine))
        elif not kafkas.startswith("Dumping") and not kafkas.endswith(" is empty."):
            assert mine == kafkas
    types = {decoded(line).get("payload", {}).get("type") for line in ours if '"type":"' in line}
    assert {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "FEATURE_LEVEL_RECORD"} <= types


@pytest.mark.parametrize("kind", ["stopped", "killed"])
def test_a_whole_directory_of_apache_kafka_is_sound(dump: Dump, kind: str, tmp_path: Path) -> None:
    directory = unpacked(kind, tmp_path)
    assert dump("--check", directory) == []
    shown = "\n".join(dump(directory))
    for words in ("node.id: 1", "epoch: 0 startOffset: 0", "topic: spread partition: 2 offset:", "topicId: "):
        assert words in shown
    if kind == "killed":
        assert "bytes are preallocated room" in shown


def test_every_line_of_json_is_one_object_with_its_file(dump: Dump, stopped: Path) -> None:
    lines = [json.loads(line) for line in dump("--json", "--records", stopped)]
    assert {line["kind"] for line in lines} >= {"batch", "record", "index entry", "producer", "aborted transaction"}
    assert all(Path(line["file"]).is_file() for line in lines)
    headers = [line["headers"] for line in lines if line["kind"] == "record" and line["headers"]]
    assert headers[0] == [{"key": "codec", "value": "none"}, {"key": "empty", "value": None}]


# --- what is corrupt ------------------------------------------------------------------------------


def fault_at(faults: list[dict[str, Any]], **place: int) -> str:
    """The text of the one fault, which must be at this place."""
    (fault,) = faults
    assert {name: fault.get(name) for name in ("position", "offset")} == {"position": None, "offset": None} | place
    return str(fault["text"])


def test_a_flipped_bit_is_pointed_at(dump: Dump, stopped: Path) -> None:
    log = stopped / "codecs-0" / f"{LAST_CODECS}.log"
    position = batch_positions(log)[2]
    flip_bit(log, position + 70)
    faults = dump.faults(log)
    assert faults[0]["position"] == position
    assert faults[0]["offset"] == 88
    assert "CRC" in faults[0]["text"]
    said = dump(log, code=1)
    assert [line for line in said if line.startswith(f"CORRUPT at position {position}, offset 88: ")]
    assert len([line for line in said if line.startswith("baseOffset")]) == 5, "what follows is shown"


def test_a_torn_end_is_pointed_at(dump: Dump, stopped: Path) -> None:
    log = stopped / "codecs-0" / f"{LAST_CODECS}.log"
    last = batch_positions(log)[-1]
    content = log.read_bytes()
    for size in (1, 13, 60, 100):
        log.write_bytes(content[: last + size])
        text = fault_at(dump.faults(log), position=last)
        assert f"the last {size} bytes are no whole batch" in text
        assert text.endswith(", behind offset 95")
    assert dump.errors == "odradek dump-log: 1 fault was found.\n"


def test_garbage_is_pointed_at(dump: Dump, stopped: Path) -> None:
    log = stopped / "codecs-0" / f"{LAST_CODECS}.log"
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + bytes(100))
    assert "bytes that are no batch" in fault_at(dump.faults(log), position=size)


def test_batches_that_do_not_follow_one_another_are_pointed_at(dump: Dump, stopped: Path) -> None:
    log = stopped / "codecs-0" / f"{LAST_CODECS}.log"
    content = log.read_bytes()
    log.write_bytes(content + content[:200])
    faults = dump.faults(log)
    assert (faults[0]["position"], faults[0]["offset"]) == (len(content), 80)
    assert "starts at or below offset 99" in faults[0]["text"]
    wrong = log.with_name(f"{90:020d}.log")
    log.write_bytes(content)
    log.rename(wrong)
    assert "starts at or below offset 89" in dump.faults(wrong)[0]["text"]


def test_an_index_that_leads_elsewhere_is_pointed_at(dump: Dump, stopped: Path) -> None:
    index = stopped / "codecs-0" / f"{LAST_CODECS}.index"
    content = index.read_bytes()
    index.write_bytes(content[:8] + (11).to_bytes(4, "big") + (340).to_bytes(4, "big") + content[16:])
    assert "leads to position 340, where no batch begins" in fault_at(dump.faults(index), position=8)
    index.write_bytes(content[:8] + (10).to_bytes(4, "big") + content[12:])
    assert "ends with offset 90, it ends with 91" in fault_at(dump.faults(index), position=8)
    index.write_bytes(content[8:16] + content[:8] + content[16:])
    assert "(87, 163) does not come after (91, 341)" in fault_at(dump.faults(index), position=8)
    index.write_bytes(content + (50).to_bytes(4, "big") + (90_000).to_bytes(4, "big"))
    assert "position 90000, beyond the last batch" in fault_at(dump.faults(index), position=len(content))
    index.write_bytes(content + b"\x01")
    assert "not a multiple of 8" in dump.faults(index)[0]["text"]


def test_a_time_index_that_lies_is_pointed_at(dump: Dump, stopped: Path) -> None:
    index = stopped / "codecs-0" / f"{LAST_CODECS}.timeindex"
    content = index.read_bytes()
    later = (1_790_000_400_008).to_bytes(8, "big")
    index.write_bytes(later + content[8:])
    assert "its batch has 1790000400007" in fault_at(dump.faults(index), position=0)
    index.write_bytes(content[12:24] + content[:12])
    assert "does not come after" in fault_at(dump.faults(index), position=12)


def test_a_transaction_index_that_lies_is_pointed_at(dump: Dump, stopped: Path) -> None:
    index = stopped / "transactions-0" / f"{3:020d}.txnindex"
    content = bytearray(index.read_bytes())
    content[9] = 9  # the producer's id
    index.write_bytes(content)
    assert "an abort of producer 9 at offset 7, where there is none" in fault_at(dump.faults(index), position=0)
    index.write_bytes(content[:40])
    assert "not a multiple of 34" in dump.faults(index)[0]["text"]


def test_an_index_on_its_way_out_is_held_against_its_own_segment(dump: Dump, stopped: Path) -> None:
    directory = stopped / "codecs-0"
    for suffix in ("log", "index", "timeindex"):
        (directory / f"{LAST_CODECS}.{suffix}").rename(directory / f"{LAST_CODECS}.{suffix}.deleted")
    shutil.copy(directory / f"{60:020d}.log", directory / f"{LAST_CODECS}.log")
    left = sorted(path for path in directory.iterdir() if path.name.endswith(".deleted"))
    assert len(left) == 3
    assert dump("--check", *left) == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (f"{48:020d}.snapshot", b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", "the CRC does not match"),
        ("leader-epoch-checkpoint", b"0\n2\n0 0\n", "announces 2 entries and holds 1"),
        ("leader-epoch-checkpoint", b"0\n2\n1 5\n0 9\n", "epoch 0 from offset 9 on does not come after epoch 1"),
        ("replication-offset-checkpoint", b"7\n0\n", "version '7'"),
        ("recovery-point-offset-checkpoint", b"0\n1\nidempotent zero 5\n", "line 3 is malformed"),
        ("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "the zero topic id"),
        ("meta.properties", b"version=1\nnode.id=1\n", "lacks cluster.id"),
        ("quorum-state", b"{", "no JSON"),
    ],
)
def test_small_files_that_are_not_what_they_should_be(
    dump: Dump, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (fault,) = dump.faults(tmp_path / name)
    assert said in fault["text"]


def test_a_record_that_the_topic_cannot_hold_is_pointed_at(dump: Dump, tmp_path: Path) -> None:
    directory = tmp_path / "__consumer_offsets-0"
    shutil.copytree(GOLDEN / "stopped" / "idempotent-0", directory)
    faults = dump.faults(directory / f"{0:020d}.log")
    assert faults[0]["offset"] == 0
    assert "is not what this topic holds" in faults[0]["text"]
    assert dump("--check", "--topic", "idempotent", directory / f"{0:020d}.log") == []


def test_a_name_that_is_no_file_of_ours(dump: Dump, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    dump(tmp_path / "letter.txt", code=1)
    assert "letter.txt is no file that a log directory holds" in dump.errors
    dump(tmp_path / "nothing.log", code=1)
    assert dump.errors == f"odradek dump-log: There is no file {tmp_path}/nothing.log.\n"
    assert dump(tmp_path) == []
