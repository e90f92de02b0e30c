"""The rule for clients: of what is served, at least 95 % of what passes on Apache Kafka; every miss is explained."""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "compat-tests"))

from page import cells_in, lines_of, rest_of
from verdicts import Allowed, explained
from waiting import awaited, waits_for

from broker.handlers.dispatch import API_ROWS
from wire.api import API_SPECS

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT / "compat-tests"
PAGE = ROOT / "docs" / "compatibility.md"
AT_LEAST_PERCENT = 95
UPSTREAM_AT_LEAST = 300
MATRIX = yaml.safe_load((SUITES / "matrix.yaml").read_text(encoding="utf-8"))["suites"]
FOLDERS = sorted({row["folder"] for row in MATRIX})
SERVED = {API_SPECS[row.key].name for row in API_ROWS}
NAMES = {spec.name for spec in API_SPECS.values()}


def folder_of(cell: str) -> str:
    found = re.search(r"\(\.\./compat-tests/([^)]+)\)", cell)
    assert found is not None, cell
    return found[1]


def test_the_page_speaks_of_suites_of_the_matrix_only() -> None:
    known = {(row["folder"], str(version)) for row in MATRIX for version in row["versions"]}
    assert {(folder_of(line[0]), line[1]) for line in lines_of(PAGE)} <= known


@pytest.mark.parametrize("line", [pytest.param(c, id=f"{folder_of(c[0])}@{c[1]}") for c in lines_of(PAGE).values()])
def test_of_what_is_served_nearly_all_passes(line: list[str]) -> None:
    found = re.fullmatch(r"(\d+) of (\d+) \(\d+ %\)", line[6])
    if found is None:
        assert line[6] == "-"
        return
    passed, served = int(found[1]), int(found[2])
    assert passed * 100 >= served * AT_LEAST_PERCENT


@pytest.mark.parametrize("line", [pytest.param(cells, id=f"{cells[1]} {cells[0]}") for cells in rest_of(PAGE)])
def test_every_miss_is_explained(line: list[str]) -> None:
    """By an API that is not served, which its folder names, or by name in FINDINGS.md."""
    apis, client, _, tests = line
    folder = SUITES / folder_of(client)
    patterns = explained(folder)
    for test in re.findall(r"`([^`]+)`", tests):
        if apis == "-":
            assert any(fnmatchcase(test, pattern) for pattern in patterns), f"{folder.name}: {test}"
        else:
            assert ", ".join(awaited(waits_for(folder), test)) == apis


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_waited_for_is_an_api_that_is_not_served(folder: str) -> None:
    for api, tests in waits_for(SUITES / folder).items():
        assert api in NAMES, f"there is no {api}"
        assert api not in SERVED, f"{api} is served: take {tests} out of waits_for.yaml"


def test_hundreds_of_tests_of_clients_themselves_must_pass() -> None:
    own = {row["folder"] for row in MATRIX if row["what"].startswith("own ")}
    assert sum(len(Allowed.read(SUITES / folder).lines) for folder in own) >= UPSTREAM_AT_LEAST


def test_a_cell_may_hold_what_a_test_is_called() -> None:
    assert cells_in("| - | [a](b) | 1 | `x y` |") == ["-", "[a](b)", "1", "`x y`"]
