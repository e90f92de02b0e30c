"""Which tests wait for requests that a node does not serve, and what of the others passes: the share on the page.

A folder's `waits_for.yaml` says `API name: [tests]`, tests as in FINDINGS.md (`*` and `?` stand for what they stand for
in file names). A test that needs several APIs stands under each.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from verdicts import Outcome


def waits_for(folder: Path) -> dict[str, list[str]]:
    """API name → the tests of the folder, as patterns, that wait for it."""
    file = folder / "waits_for.yaml"
    found: dict[str, list[str]] = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def awaited(waiting: dict[str, list[str]], test: str) -> tuple[str, ...]:
    """The APIs that a test waits for; none if all it needs is served."""
    return tuple(api for api, patterns in waiting.items() if any(fnmatchcase(test, pattern) for pattern in patterns))


@dataclass(frozen=True, slots=True)
class Share:
    """What passes here of what passes on Apache Kafka, as far as it is served."""

    served: int
    """Tests that pass on Apache Kafka and wait for no API."""
    passed: int
    """How many of them pass here."""
    missed: tuple[tuple[str, tuple[str, ...]], ...]
    """Every test that passes on Apache Kafka and not here, with the APIs it waits for; none: it is a miss."""

    def __str__(self) -> str:
        percent = 100 * self.passed // self.served if self.served else 100
        return f"{self.passed} of {self.served} ({percent} %)"


def share(folder: Path, here: Outcome, reference: Outcome) -> Share:
    """Compare a whole run here with one on Apache Kafka."""
    waiting = waits_for(folder)
    apis = {test: awaited(waiting, test) for test in reference.names("ok")}
    served = [test for test, needed in apis.items() if not needed]
    missed = tuple((test, needed) for test, needed in sorted(apis.items()) if here.results.get(test) != "ok")
    return Share(len(served), sum(here.results.get(test) == "ok" for test in served), missed)
