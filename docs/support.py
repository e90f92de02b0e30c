"""Writes docs/support.md from the dispatch table: what is advertised is what is registered, and this page says so.

What each API leaves out is told by its handler's docstring. What proves it is looked up in the answers recorded from
Apache Kafka (tests/golden/parity) and in what clients were seen to send (compat-tests/sent_requests.json).

python docs/support.py           write the page
python docs/support.py --check   exit with 1 if the page is not what the table says
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "support.md"
GOLDEN = ROOT / "tests" / "golden" / "parity"
SENT = ROOT / "compat-tests" / "sent_requests.json"
sys.path.insert(0, str(ROOT))

from broker.handlers.dispatch import API_ROWS
from wire.api import API_SPECS, ApiSpec

HEAD = """# Which requests are served

Made by `python docs/support.py` from the table that answers ApiVersions (`broker/handlers/dispatch.py`): do not edit.
An API is in the table when its handler is whole; what is not there is neither advertised nor answered.

Versions are *compared* where `tests/parity/` sends them and finds Apache Kafka's answer, field by field. Clients are
those of [compatibility.md](compatibility.md) that sent the request to a node while their tests ran.

## Served

| key | API | versions | Apache Kafka 4.4 | what it does here | left out | compared | sent by |
|---:|---|---|---|---|---|---|---|
"""


def stable_max(spec: ApiSpec) -> int:
    return spec.max_version - 1 if spec.latest_unstable else spec.max_version


def span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def paragraphs(module: str) -> list[str]:
    """The paragraphs of a handler module's docstring, each on one line."""
    source = (ROOT / "broker" / "handlers" / f"{module}.py").read_text(encoding="utf-8")
    text = (ast.get_docstring(ast.parse(source)) or "").replace("|", "\\|")
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def left_out(module: str) -> str:
    """What the docstring says is left out."""
    found = re.search(r"Left out: (.+?)\.?(?: Source: .+)?$", "\n".join(paragraphs(module)), re.MULTILINE)
    return found[1] if found else ""


def compared_versions() -> dict[str, set[int]]:
    """API name → the versions whose answers are compared with those recorded from Apache Kafka."""
    found: dict[str, set[int]] = defaultdict(set)
    for file in GOLDEN.glob("*.json"):
        for exchange in json.loads(file.read_text(encoding="utf-8"))["exchanges"]:
            found[exchange["api"]].add(exchange["version"])
    return found


def spans(versions: Sequence[int]) -> str:
    """Versions, as few words as they need: 0 to 3, 5."""
    parts: list[list[int]] = []
    for version in versions:
        if parts and version == parts[-1][1] + 1:
            parts[-1][1] = version
        else:
            parts.append([version, version])
    return ", ".join(span(low, high) for low, high in parts) or "-"


def senders() -> dict[str, list[str]]:
    """API name → the clients that sent it."""
    found: dict[str, set[str]] = defaultdict(set)
    for suite in json.loads(SENT.read_text(encoding="utf-8")).values():
        for name in suite["sent"]:
            found[name].add(suite["client"])
    return {name: sorted(clients, key=str.lower) for name, clients in found.items()}


def purpose(module: str) -> str:
    """The first sentence of a handler module's docstring, on one line."""
    sentence = paragraphs(module)[0].split(". ")[0].rstrip(".")
    return re.sub(r"^\w+ \((key )?\d+\)(, versions \d+(-\d+)?)?[:,]\s*", "", sentence)


def served_rows() -> list[str]:
    lines, compared, sent_by = [], compared_versions(), senders()
    for row in sorted(API_ROWS, key=lambda row: row.key):
        spec = API_SPECS[row.key]
        low = spec.min_version if row.min_version is None else row.min_version
        high = stable_max(spec) if row.max_version is None else row.max_version
        versions = span(low, high)
        kafka = span(spec.min_version, stable_max(spec))
        cells = [str(int(row.key)), spec.name, versions, kafka, purpose(row.module), left_out(row.module)]
        cells.append(spans([version for version in range(low, high + 1) if version in compared[spec.name]]))
        cells.append(", ".join(sent_by.get(spec.name, ())) or "-")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def missing_names() -> list[str]:
    """APIs that a broker of Apache Kafka 4.4 serves to clients and this one does not, by name."""
    served = {int(row.key) for row in API_ROWS}
    return [
        f"{spec.name} ({key})"
        for key, spec in sorted(API_SPECS.items())
        if "broker" in spec.listeners and key not in served and stable_max(spec) >= spec.min_version
    ]


def page() -> str:
    missing = missing_names()
    text = HEAD + "\n".join(served_rows()) + "\n"
    if missing:
        text += f"\n## Not served\n\n{', '.join(missing)}.\n"
    return text


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
            sys.stderr.write("docs/support.md is not what the tree says: run python docs/support.py.\n")
            return 1
        return 0
    if arguments:
        sys.stderr.write(f"support.py takes --check or nothing, not {arguments[0]!r}.\n")
        return 2
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
