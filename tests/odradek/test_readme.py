"""The README's code works as pasted, its table says what the settings say, and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import dev
from coordinator.settings.kinder import KINDER_DEFAULTS
from odradek import Broker
from odradek.__main__ import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run(folder: Path, *command: str) -> str:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_clients_code_works_as_pasted(tmp_path: Path) -> None:
    code = BLOCKS[0]
    assert "127.0.0.1:9092" in code
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    with Broker() as broker:
        said = run(tmp_path, "-c", code.replace("127.0.0.1:9092", broker.bootstrap_servers))
    assert said == "orders 0 b'alice' b'one espresso'\n"


def test_the_fixtures_code_works_as_pasted(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(BLOCKS[1])
    assert "1 passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "odradek.pytest_plugin", "-p", "no:cacheprovider")


def test_the_context_managers_code_works_as_pasted(tmp_path: Path) -> None:
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", run(tmp_path, "-c", BLOCKS[2]))


def test_the_table_of_kinder_defaults_is_whole_and_true() -> None:
    table = README[README.index("## Kinder than Kafka") : README.index("## What is served")]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines() if line.startswith("| `")]
    told = {}
    for names, values in rows:
        told |= dict(zip(re.findall(r"`(.*?)`", names), re.findall(r"`(.*?)`", values), strict=True))
    assert told == {name: default.value for name, default in KINDER_DEFAULTS.items()}


def test_the_commands_it_names_exist() -> None:
    for command in re.findall(r"python3 dev\.py (\w+)", README):
        assert command in dev.COMMANDS
    for command in re.findall(r"`odradek ([\w-]+)", README):
        assert command in COMMANDS


def test_its_table_names_every_command() -> None:
    table = README[README.index("## On the command line") : README.index("## Kinder than Kafka")]
    named = {name for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"[a-z-]+", row)}
    assert set(COMMANDS) <= named
