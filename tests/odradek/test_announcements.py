"""Files by which nodes of this machine are found, and what nodes that were killed leave behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.cli.running import announced, control_url_of, running_folder
from odradek.failure import Failure


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    running_folder().mkdir(mode=0o700)
    return running_folder()


@pytest.fixture
def ended_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def ready(port: int, pid: int) -> dict[str, object]:
    return {"bootstrap_servers": f"127.0.0.1:{port}", "control_url": f"http://127.0.0.1/{port}", "pid": pid}


def test_a_node_is_found_from_ready_to_stop(folder: Path) -> None:
    own_pid = os.getpid()
    with announced(ready(9092, own_pid)):
        assert control_url_of("localhost:9092") == "http://127.0.0.1/9092"
    assert list(folder.iterdir()) == []


def test_what_killed_nodes_left_goes_when_another_starts(folder: Path, ended_pid: int) -> None:
    own_pid = os.getpid()
    running = json.dumps(ready(9001, own_pid))
    (folder / "9001.json").write_text(running)
    (folder / "9002.json").write_text(json.dumps(ready(9002, ended_pid)))
    (folder / f"9003.json.{ended_pid}").write_text("{")
    (folder / "9004.json").write_text("of another version")
    with announced(ready(9005, own_pid)):
        left = sorted(file.name for file in folder.iterdir())
    assert left == ["9001.json", "9004.json", "9005.json"]
    assert (folder / "9001.json").read_text() == running


def test_a_node_that_was_killed_is_not_found(folder: Path, ended_pid: int) -> None:
    (folder / "9002.json").write_text(json.dumps(ready(9002, ended_pid)))
    with pytest.raises(Failure, match=r"No node of yours runs at 127\.0\.0\.1:9002"):
        control_url_of("127.0.0.1:9002")
