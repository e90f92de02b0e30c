"""Steps of a preparation: what could not be fetched is told apart from what went wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "compat-tests"))

from suite import Broken, Unreachable, step


def failing(said: str) -> list[str | Path]:
    return [sys.executable, "-c", f"import sys; sys.exit({said!r})"]


def test_a_registry_that_is_not_reached_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="it reached no registry"):
        step(failing("dial tcp 127.0.0.1:9: connect: connection refused"), tmp_path)


def test_a_build_that_fails_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Broken) as fault:
        step(failing("client.go:7: undefined: lack"), tmp_path)
    assert not isinstance(fault.value, Unreachable)
