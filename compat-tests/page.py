"""The table at the end of a run, and docs/compatibility.md, both from what the suites said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from verdicts import Outcome, Results
from waiting import Share, share

HERE = Path(__file__).resolve().parent
HEAD = """# Which clients work, and how it is known

Made by `python3 dev.py compat --report` from whole runs (`--full`) of clients' own test suites, and of scenarios
written in a client's language where it brings none, against a node of this tree and against Apache Kafka 4.4.0, by the
same programs on the same machine. What does not pass is explained in the folder's FINDINGS.md in `compat-tests/`; what
passes must go on passing (`tests.allow`).

*Of served* are the tests that pass on Apache Kafka and wait for no request that a node does not serve: how many of them
pass here. At least 95 % of them must, in every suite, and each of the others is explained. A suite that runs both
brokers at once has no number for Apache Kafka alone.

| client | version | suite | tests | passed | passed on Apache Kafka | of served | skipped | time |
|---|---|---|---:|---:|---:|---:|---:|---:|
"""
REST = """
## What passes on Apache Kafka and not here

By the requests that the tests wait for ([what is served](support.md)). Where there is none, the folder's FINDINGS.md
says why.

| waits for | client | version | tests |
|---|---|---|---|
"""
NEVER = "-"
COUNTS = 6


class Row(Protocol):
    """What the page needs to know of an entry of the matrix."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def row(self) -> dict[str, object]: ...


def table(outcomes: Mapping[Row, Outcome], results: Results, against: str) -> list[str]:
    """The lines of the table for a person at a terminal; results on the reference come from its latest whole run."""
    rows = [("client", "version", "suite", "passed", "failed", "skipped", "passed on the reference", "time")]
    for entry, outcome in outcomes.items():
        reference = outcome if against == "reference" else results.latest(entry.name, entry.version, "reference")
        same = sum(reference.results.get(name) == "ok" for name in outcome.results) if reference else None
        rows.append(
            (
                str(entry.row["client"]), entry.version, str(entry.row["what"]),
                *(str(outcome.count(verdict)) for verdict in ("ok", "FAILED", "skipped")),
                "-" if same is None else str(same),
                note(outcome),
            )
        )  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def note(outcome: Outcome) -> str:
    """The last cell of a line: the time, or why there is none, and what passed at the second try only."""
    if outcome.skipped:
        return f"SKIPPED: {outcome.broken}"
    time = f"BROKEN: {outcome.broken}" if outcome.broken else duration(outcome.seconds)
    again = f", passed at the second try: {', '.join(outcome.second_try)}" if outcome.second_try else ""
    return time + again


def duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 100 else f"{seconds:.0f} s"


def write_page(file: Path, entries: Iterable[Row], results: Results, folders: Path = HERE) -> None:
    """Write the page from the latest whole runs. A suite that never ran whole here keeps the lines that it has on the
    page, from a machine where it did; without one it has dashes."""
    known, known_rest = lines_of(file), rest_of(file)
    lines, rest = [], []
    for entry in entries:
        found = share_of(entry, results, folders)
        cells = cells_of(entry, results, found)
        kept = known.get(tuple(cells[:3]))
        if cells[-1] == NEVER and kept and len(kept) == len(cells):
            cells = kept
            rest += [line for line in known_rest if line[1:3] == cells[:2]]
        lines.append(cells)
        rest += rest_lines(cells, found)
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    rest_text = "".join(f"| {' | '.join(cells)} |\n" for cells in sorted(rest))
    file.write_text(HEAD + text + (REST + rest_text if rest else ""), encoding="utf-8")
    print(f"{file.name} written")


def share_of(entry: Row, results: Results, folders: Path) -> Share | None:
    """What passes of what is served; None without whole runs against both brokers."""
    here = results.latest(entry.name, entry.version, "odradek")
    reference = results.latest(entry.name, entry.version, "reference")
    return share(folders / entry.name, here, reference) if here and reference else None


def cells_of(entry: Row, results: Results, found: Share | None) -> list[str]:
    """The cells of one line of the page."""
    here = results.latest(entry.name, entry.version, "odradek")
    reference = results.latest(entry.name, entry.version, "reference")
    cells = [f"[{entry.row['client']}](../compat-tests/{entry.name})", entry.version, str(entry.row["what"])]
    if here is None:
        return cells + [NEVER] * COUNTS
    on_reference = str(reference.count("ok")) if reference else NEVER
    counts = [str(len(here.results)), str(here.count("ok")), on_reference, str(found) if found else NEVER]
    return [*cells, *counts, str(here.count("skipped")), duration(here.seconds)]


def rest_lines(cells: list[str], found: Share | None) -> list[list[str]]:
    """The lines of a suite's tests that pass on Apache Kafka alone, one for each set of APIs they wait for."""
    by_apis: dict[tuple[str, ...], list[str]] = {}
    for test, apis in found.missed if found else ():
        by_apis.setdefault(apis, []).append(f"`{test}`")
    return [[", ".join(apis) or NEVER, *cells[:2], ", ".join(tests)] for apis, tests in by_apis.items()]


def rest_of(file: Path) -> list[list[str]]:
    """The lines of the second table, each as its cells."""
    _, _, rest = (file.read_text(encoding="utf-8") if file.exists() else "").partition(REST)
    return [cells_in(line) for line in rest.splitlines() if line.startswith("| ")]


def cells_in(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def lines_of(file: Path) -> dict[tuple[str, ...], list[str]]:
    """The lines of the first table as it is, each as its cells, by client, version and suite."""
    lines = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("| ["):
            cells = cells_in(line)
            lines[tuple(cells[:3])] = cells
    return lines
