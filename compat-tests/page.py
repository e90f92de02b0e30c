"""The table at the end of a run, and docs/compatibility.md, both from what the suites said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from verdicts import Outcome, Results

HEAD = """# Which clients work, and how it is known

Made by `python3 dev.py compat --report` from whole runs (`--full`) of clients' own test suites, and of scenarios
written in a client's language where it brings none, against a node of this tree and against Apache Kafka 4.4.0, by the
same programs on the same machine. What does not pass is explained in the folder's FINDINGS.md in `compat-tests/`; what
passes must go on passing (`tests.allow`).

| client | version | suite | tests | passed | passed on Apache Kafka | skipped | time |
|---|---|---|---:|---:|---:|---:|---:|
"""

NEVER = "-"


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
                outcome.broken if outcome.broken and not outcome.results else duration(outcome.seconds),
            )
        )  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 100 else f"{seconds:.0f} s"


def write_page(file: Path, entries: Iterable[Row], results: Results) -> None:
    """Write the page from the latest whole runs. A suite that never ran whole here keeps the line that it has on the
    page, from a machine where it did; without one it has dashes."""
    before = lines_of(file)
    lines = []
    for entry in entries:
        cells = cells_of(entry, results)
        lines.append(before.get(tuple(cells[:3]), cells) if cells[-1] == NEVER else cells)
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    file.write_text(HEAD + text, encoding="utf-8")
    print(f"{file.name} written")


def cells_of(entry: Row, results: Results) -> list[str]:
    """The cells of one line of the page."""
    here = results.latest(entry.name, entry.version, "odradek")
    reference = results.latest(entry.name, entry.version, "reference")
    cells = [f"[{entry.row['client']}](../compat-tests/{entry.name})", entry.version, str(entry.row["what"])]
    if here is None:
        return cells + [NEVER] * 5
    on_reference = str(reference.count("ok")) if reference else NEVER
    counts = [str(len(here.results)), str(here.count("ok")), on_reference, str(here.count("skipped"))]
    return [*cells, *counts, duration(here.seconds)]


def lines_of(file: Path) -> dict[tuple[str, ...], list[str]]:
    """The lines of the page as it is, each as its cells, by client, version and suite."""
    lines = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("| ["):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            lines[tuple(cells[:3])] = cells
    return lines
