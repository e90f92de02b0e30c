"""The support page says what the dispatch table serves, and nothing is served that is not in the page."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from broker.handlers.dispatch import API_ROWS
from wire.api import API_SPECS

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| (\d+) \| (\w+) \| ", re.MULTILINE)


def test_the_page_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "docs/support.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_page_lists_each_served_api_once() -> None:
    listed = ROW.findall((ROOT / "docs" / "support.md").read_text(encoding="utf-8"))
    assert listed == [(str(int(row.key)), API_SPECS[row.key].name) for row in sorted(API_ROWS, key=lambda row: row.key)]


def test_each_row_has_a_handler_and_says_what_it_does() -> None:
    for row in API_ROWS:
        module = import_module(f"broker.handlers.{row.module}")
        assert callable(module.handle), row.module
        assert module.__doc__, row.module


def test_versions_served_are_within_those_of_the_schema() -> None:
    for row in API_ROWS:
        spec = API_SPECS[row.key]
        low = spec.min_version if row.min_version is None else row.min_version
        high = spec.max_version if row.max_version is None else row.max_version
        assert spec.min_version <= low <= high <= spec.max_version, row.module


def test_what_proves_an_api_is_looked_up_not_claimed() -> None:
    spec = importlib.util.spec_from_file_location("support_page", ROOT / "docs" / "support.py")
    assert spec is not None
    assert spec.loader is not None
    support = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(support)
    assert support.spans([0, 1, 2, 5]) == "0 to 2, 5"
    assert support.spans([]) == "-"
    compared = support.compared_versions()
    without = [API_SPECS[row.key].name for row in API_ROWS if not compared[API_SPECS[row.key].name]]
    assert not without, "no scenario of tests/parity sends them"
    known = {API_SPECS[row.key].name for row in API_ROWS}
    assert set(support.senders()) <= {spec.name for spec in API_SPECS.values()}
    assert known & set(support.senders()), "no client was seen to send anything"
