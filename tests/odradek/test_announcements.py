"""Files by which nodes of this machine are found, and what nodes that were killed leave behind."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.cli.running import HALF_WRITTEN_S, announced, control_url_of, running_folder
from odradek.failure import Failure


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    running_folder().mkdir(mode=0o700)
    return running_folder()


@pytest.fixture
def listening() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def left() -> Iterator[int]:
    """A port that nobody listens on, and nobody else is given meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def announce(folder: Path, port: int) -> Path:
    file = folder / f"{port}.json"
    file.write_text(json.dumps(ready(port)))
    return file


def ready(port: int) -> dict[str, object]:
    return {"bootstrap_servers": f"127.0.0.1:{port}", "control_url": f"http://127.0.0.1/{port}", "pid": os.getpid()}


def test_a_node_is_found_from_ready_to_stop(folder: Path, listening: int) -> None:
    with announced(ready(listening)):
        assert control_url_of(f"localhost:{listening}") == f"http://127.0.0.1/{listening}"
    assert list(folder.iterdir()) == []


def test_what_killed_nodes_left_goes_when_another_starts(folder: Path, listening: int, left: int) -> None:
    running, killed = announce(folder, listening), announce(folder, left)
    half, old_half, foreign = folder / "1.json.7", folder / "2.json.8", folder / "3.json"
    for file in (half, old_half, foreign):
        file.write_text("{")
    long_ago = old_half.stat().st_mtime - HALF_WRITTEN_S - 1
    os.utime(old_half, (long_ago, long_ago))
    content = running.read_text()
    with announced(ready(9092)):
        assert not killed.exists()
        assert not old_half.exists()
        assert sorted(folder.iterdir()) == sorted([running, half, foreign, folder / "9092.json"])
    assert running.read_text() == content


def test_a_node_that_was_killed_is_not_found(folder: Path, left: int) -> None:
    announce(folder, left)
    with pytest.raises(Failure, match=rf"No node of yours runs at 127\.0\.0\.1:{left}"):
        control_url_of(f"127.0.0.1:{left}")
