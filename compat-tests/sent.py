"""Which requests each client sends: counted by the node that a suite runs against, kept for docs/support.md.

A node counts from when it is asked to (POST /sent-requests of its control endpoint). What a run adds is kept in the
cache; `--report` writes all that is known into sent_requests.json, which is part of the tree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit
from urllib.request import Request, urlopen

HERE = Path(__file__).resolve().parent
FILE = HERE / "sent_requests.json"
TIMEOUT_S = 10
MIXED = ("groups",)
"""Suites in which a second client looks at what the first does: what they send says nothing of either."""

Sent = dict[str, list[int]]
"""API name → the versions that were sent."""


class Row(Protocol):
    """What of an entry of the matrix is told."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def row(self) -> dict[str, object]: ...


def count(control_url: str) -> None:
    """Have a node count requests from now on."""
    _ask(control_url, "POST")


def keep(control_url: str, file: Path) -> None:
    """Add what the node has been sent to what the file has of earlier runs."""
    counts: dict[str, dict[str, int]] = json.loads(_ask(control_url, "GET"))["sent_requests"]
    known = read(file)
    for name, versions in counts.items():
        known[name] = sorted({*known.get(name, ()), *map(int, versions)})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")


def read(file: Path) -> Sent:
    found: Sent = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def file_of(results: Path, entry: Row) -> Path:
    """Where the runs of an entry are kept."""
    return results / f"{entry.name}@{entry.version}.sent.json"


def report(entries: Iterable[Row], results: Path) -> None:
    """Write sent_requests.json: of suites that ran on this machine anew, of others as it was."""
    told = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    kept = {}
    for entry in entries:
        suite = f"{entry.name}@{entry.version}"
        sent = read(file_of(results, entry)) or told.get(suite, {}).get("sent", {})
        if sent and entry.name not in MIXED:
            kept[suite] = {"client": str(entry.row["client"]), "sent": {name: sent[name] for name in sorted(sent)}}
    lines = [f" {json.dumps(suite)}: {json.dumps(kept[suite])}" for suite in sorted(kept)]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{FILE.name} written")


def _ask(control_url: str, method: str) -> str:
    address = urlsplit(control_url)
    url = urlunsplit(address._replace(path="/sent-requests"))
    with urlopen(Request(url, method=method), timeout=TIMEOUT_S) as answer:
        said: bytes = answer.read()
    return said.decode()
