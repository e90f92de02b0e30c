"""The page of clients: what ran whole is written anew, what did not keeps its line."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "compat-tests"))

from page import write_page
from verdicts import Outcome, Results


@dataclass(frozen=True)
class Entry:
    name: str
    version: str
    row: dict[str, object]


CLIENTS = [Entry(name, "1.0", {"client": name, "what": "scenarios"}) for name in ("first", "second")]


def test_a_suite_that_did_not_run_here_keeps_its_line(tmp_path: Path) -> None:
    page = tmp_path / "compatibility.md"
    elsewhere = Results(tmp_path / "elsewhere")
    for entry in CLIENTS:
        elsewhere.keep(entry.name, "1.0", "odradek", Outcome({"a": "ok", "b": "FAILED"}, 3.0), whole=True)
        elsewhere.keep(entry.name, "1.0", "reference", Outcome({"a": "ok", "b": "ok"}, 9.0), whole=True)
    write_page(page, CLIENTS, elsewhere)
    here = Results(tmp_path / "here")
    here.keep("second", "1.0", "odradek", Outcome({"a": "ok", "b": "ok", "c": "skipped"}, 150.0), whole=True)
    write_page(page, CLIENTS, here)
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
    assert lines == [
        "| [first](../compat-tests/first) | 1.0 | scenarios | 2 | 1 | 2 | 0 | 3 s |",
        "| [second](../compat-tests/second) | 1.0 | scenarios | 3 | 2 | - | 1 | 2.5 min |",
    ]


def test_a_suite_that_never_ran_has_dashes(tmp_path: Path) -> None:
    page = tmp_path / "compatibility.md"
    write_page(page, CLIENTS[:1], Results(tmp_path / "none"))
    line = "| [first](../compat-tests/first) | 1.0 | scenarios | - | - | - | - | - |"
    assert line in page.read_text(encoding="utf-8")
