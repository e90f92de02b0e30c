"""The runner itself, on a suite made for this: what it calls a failure, what it skips, and what it says at its end."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "compat-tests"))

import run
from page import table

HEAD = "import os, pathlib, threading\nonly = os.environ.get('COMPAT_PREPARE_ONLY')\n"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> run.Runner:
    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setenv("ODRADEK_COMPAT_CACHE", str(tmp_path / "cache"))
    return runner_of()


def runner_of(**more: Any) -> run.Runner:
    options = {"against": "odradek", "only": [], "accept": False, "minutes": None, "prepare_minutes": 1.0}
    return run.Runner(argparse.Namespace(**{**options, **more}), {})


def suite(folder: Path, program: str, allowed: str = "", **row: Any) -> run.Entry:
    """A suite whose `run` is this program; it starts its own broker, that is: none."""
    folder.mkdir(exist_ok=True)
    (folder / "run").write_text(HEAD + program)
    (folder / "tests.allow").write_text(allowed)
    return run.Entry({"folder": folder.name, "client": "c", "what": "w", "own_brokers": True, **row}, "1")


def test_what_must_pass_and_fails_is_a_failure(
    runner: run.Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "if not only: print('ok a (0.1 s)'); print('FAILED b (0.1 s)'); print('       because')"
    runner.run(suite(tmp_path / "s", program, "a\nb\n"), ["a", "b"])
    assert run.closing(runner) == 1
    said = capsys.readouterr().out
    assert "       because" in said
    assert said.splitlines()[-1] == "1 passed, 1 failed"


def test_what_passes_at_the_second_try_is_told(
    runner: run.Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = """if not only:
    tried = pathlib.Path('tried')
    print('ok b (0.1 s)' if tried.exists() else 'FAILED b (0.1 s)')
    tried.touch()
"""
    runner.run(suite(tmp_path / "s", program, "b\n"), ["b"])
    assert run.closing(runner) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["UNSTEADY: 1 passed at the second try", "1 passed, 0 failed"]
    assert "passed at the second try: b" in table(runner.outcomes, runner.results, "odradek")[1]


def test_a_program_that_ends_in_the_middle_is_tried_once_more(runner: run.Runner, tmp_path: Path) -> None:
    program = """if not only:
    tried = pathlib.Path('tried')
    print('ok a (0.1 s)', flush=True)
    if not tried.exists():
        tried.touch()
        os._exit(7)
    print('ok b (0.1 s)')
"""
    runner.run(suite(tmp_path / "s", program, "a\nb\n"), ["a", "b"])
    assert run.closing(runner) == 0


def test_a_test_that_skips_itself_and_must_pass_is_a_failure(runner: run.Runner, tmp_path: Path) -> None:
    program = "if not only: print('ok a (0.1 s)'); print('skipped b (no version 9)')"
    runner.run(suite(tmp_path / "s", program, "a\nb\n"), ["a", "b"])
    assert run.closing(runner) == 1


@pytest.mark.parametrize(
    ("program", "row", "why"),
    [
        ("print('unreachable: npm ended with 1, it reached no registry'); raise SystemExit(2)", {}, "no registry"),
        ("threading.Event().wait(60)", {}, "not fetched and built in"),
        ("", {"needs": ["no-such-program"]}, "no no-such-program"),
    ],
    ids=["no-registry", "slow-to-build", "no-tool"],
)
def test_what_cannot_be_had_is_skipped_and_told(
    runner: run.Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, row: dict[str, Any], why: str
) -> None:
    runner.options.prepare_minutes = 0.01
    runner.run(suite(tmp_path / "s", program, "a\n", **row), ["a"])
    runner.options.prepare_minutes = 1.0
    runner.run(suite(tmp_path / "t", "if not only: print('ok a (0.1 s)')", "a\n"), ["a"])
    line = table(runner.outcomes, runner.results, "odradek")[1]
    assert "SKIPPED: " in line
    assert why in line
    assert run.closing(runner) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["SKIPPED 1 of 2 suites: s@1", "1 passed, 0 failed"]


def test_a_build_that_fails_is_a_failure(runner: run.Runner, tmp_path: Path) -> None:
    runner.run(suite(tmp_path / "s", "print('broken: make ended with 2'); raise SystemExit(2)", "a\n"), ["a"])
    assert run.closing(runner) == 1


def test_suites_that_begin_too_late_are_skipped(runner: run.Runner, tmp_path: Path) -> None:
    late = runner_of(minutes=1e-9)
    late.run(suite(tmp_path / "s", "if not only: print('ok a (0.1 s)')", "a\n"), ["a"])
    assert next(iter(late.outcomes.values())).skipped
