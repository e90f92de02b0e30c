"""dev.py: the entry that needs nothing but Python."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dev

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # Isolated and without site-packages: what a bare Python has.
    command = [sys.executable, "-I", "-S", "dev.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_help_names_every_command() -> None:
    done = run()
    assert done.returncode == 0
    for command in dev.COMMANDS:
        assert f"dev.py {command}" in done.stdout


def test_an_unknown_command_gets_one_sentence() -> None:
    done = run("nonsense")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "nonsense" in done.stderr


def test_check_refuses_what_it_does_not_know() -> None:
    done = run("check", "--everything")
    assert done.returncode == 2
    assert "--everything" in done.stderr


def test_it_imports_the_standard_library_only() -> None:
    tree = ast.parse((ROOT / "dev.py").read_text(encoding="utf-8"))
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {
        node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    assert imported <= set(sys.stdlib_module_names)


def test_the_environment_is_made_anew_when_the_dependencies_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    steps: list[list[str]] = []
    monkeypatch.setattr(dev, "VENV", tmp_path / "venv")
    monkeypatch.setattr(dev, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(dev, "run_or_leave", lambda command, _what: steps.append(command))
    monkeypatch.setattr(dev, "remove_stale_kernels", lambda _python: None)
    python = Path(dev.ready_python())
    assert [step[2] for step in steps] == ["venv", "pip"]
    python.parent.mkdir(parents=True)
    python.touch()
    dev.ready_python()
    assert len(steps) == 2, "an environment with the right stamp is taken as it is"
    monkeypatch.setattr(dev, "dependencies", lambda: ["another"])
    dev.ready_python()
    assert [step[2] for step in steps[2:]] == ["pip"]
    assert steps[-1][-1] == "another"


def test_a_step_of_the_set_up_shows_that_it_moves(capfd: pytest.CaptureFixture[str]) -> None:
    dev.run_or_leave([sys.executable, "-c", "print('one\\ntwo\\nthree')"], "It failed")
    assert capfd.readouterr() == ("", "...\n")
    with pytest.raises(SystemExit) as left:
        dev.run_or_leave([sys.executable, "-c", "print('why'); raise SystemExit(3)"], "It failed")
    assert left.value.code == 1
    dots, why, sentence = capfd.readouterr().err.splitlines()
    assert (dots, why) == (".", "why")
    assert sentence.startswith("It failed (")
    assert sentence.endswith("ended with 3).")


def test_dependencies_are_those_of_pyproject() -> None:
    names = " ".join(dev.dependencies())
    assert "crc32c" in names
    assert "pytest" in names
