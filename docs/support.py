"""Writes docs/support.md from the dispatch table: what is advertised is what is registered, and this page says so.

python docs/support.py           write the page
python docs/support.py --check   exit with 1 if the page is not what the table says
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "support.md"
sys.path.insert(0, str(ROOT))

from broker.handlers.dispatch import API_ROWS
from wire.api import API_SPECS, ApiSpec

HEAD = """# Which requests are served

Made by `python docs/support.py` from the table that answers ApiVersions (`broker/handlers/dispatch.py`): do not edit.
An API is in the table when its handler is whole; what is not there is neither advertised nor answered.

## Served

| key | API | versions | Apache Kafka 4.4 | what it does here |
|---:|---|---|---|---|
"""


def stable_max(spec: ApiSpec) -> int:
    return spec.max_version - 1 if spec.latest_unstable else spec.max_version


def span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def purpose(module: str) -> str:
    """The first sentence of a handler module's docstring, on one line."""
    source = (ROOT / "broker" / "handlers" / f"{module}.py").read_text(encoding="utf-8")
    text = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split())
    sentence = text.split(". ")[0].rstrip(".").replace("|", "\\|")
    return re.sub(r"^\w+ \((key )?\d+\)(, versions \d+(-\d+)?)?[:,]\s*", "", sentence)


def served_rows() -> list[str]:
    lines = []
    for row in sorted(API_ROWS, key=lambda row: row.key):
        spec = API_SPECS[row.key]
        low = spec.min_version if row.min_version is None else row.min_version
        high = stable_max(spec) if row.max_version is None else row.max_version
        versions = span(low, high)
        kafka = span(spec.min_version, stable_max(spec))
        lines.append(f"| {int(row.key)} | {spec.name} | {versions} | {kafka} | {purpose(row.module)} |")
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
            sys.stderr.write("docs/support.md is not what the dispatch table says: run python docs/support.py.\n")
            return 1
        return 0
    if arguments:
        sys.stderr.write(f"support.py takes --check or nothing, not {arguments[0]!r}.\n")
        return 2
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
