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
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if "](../compat-tests/" in line]
    assert lines[2:] == ["| - | [first](../compat-tests/first) | 1.0 | `b` |"]
    assert lines[:2] == [
        "| [first](../compat-tests/first) | 1.0 | scenarios | 2 | 1 | 2 | 1 of 2 (50 %) | 0 | 3 s |",
        "| [second](../compat-tests/second) | 1.0 | scenarios | 3 | 2 | - | - | 1 | 2.5 min |",
    ]


def test_a_suite_that_never_ran_has_dashes(tmp_path: Path) -> None:
    page = tmp_path / "compatibility.md"
    write_page(page, CLIENTS[:1], Results(tmp_path / "none"))
    line = "| [first](../compat-tests/first) | 1.0 | scenarios | - | - | - | - | - | - |"
    assert line in page.read_text(encoding="utf-8")


def test_what_does_not_pass_here_is_listed_by_what_it_waits_for(tmp_path: Path) -> None:
    page = tmp_path / "compatibility.md"
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "waits_for.yaml").write_text("ShareFetch: [s*, both]\nAlterClientQuotas: [both]\n")
    results = Results(tmp_path / "results")
    here = Outcome({"a": "ok", "b": "FAILED", "s1": "skipped", "s2": "FAILED", "both": "FAILED", "c": "FAILED"}, 3.0)
    there = Outcome({"a": "ok", "b": "ok", "s1": "ok", "s2": "ok", "both": "ok", "c": "FAILED"}, 3.0)
    results.keep("first", "1.0", "odradek", here, whole=True)
    results.keep("first", "1.0", "reference", there, whole=True)
    write_page(page, CLIENTS[:1], results, tmp_path)
    link = "[first](../compat-tests/first) | 1.0"
    written = page.read_text(encoding="utf-8")
    assert f"| {link} | scenarios | 6 | 1 | 5 | 1 of 2 (50 %) | 1 | 3 s |" in written
    assert written.splitlines()[-3:] == [
        f"| - | {link} | `b` |",
        f"| ShareFetch | {link} | `s1`, `s2` |",
        f"| ShareFetch, AlterClientQuotas | {link} | `both` |",
    ]
    write_page(page, CLIENTS[:1], Results(tmp_path / "none"), tmp_path)
    assert page.read_text(encoding="utf-8") == written
