"""What a run of a client's tests amounts to: which must pass, which were explained, what is kept for the page."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

LINE = re.compile(r"^(ok|FAILED|skipped)\s+(.+?) \(([^()]*(?:\([^()]*\)[^()]*)*)\)$")
NAMES_SHOWN = 20


@dataclass(slots=True)
class Outcome:
    """The tests of one client's version against one broker."""

    results: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    broken: str = ""
    """Why it could not run to its end; empty when it did."""
    skipped: bool = False
    """Whether that is so because this machine lacks what it needs, or cannot have it in time."""
    second_try: list[str] = field(default_factory=list)
    """Tests that passed at their second try only."""

    def count(self, verdict: str) -> int:
        return sum(found == verdict for found in self.results.values())

    def names(self, verdict: str) -> list[str]:
        return [name for name, found in self.results.items() if found == verdict]

    def take(self, line: str) -> bool:
        """Take in a line of a `run`; returns whether it was a test's."""
        found = LINE.match(line)
        if found is None:
            return False
        # A test told twice (it ran, then its tear-down failed) is as bad as its worst.
        if self.results.get(found[2]) != "FAILED":
            self.results[found[2]] = found[1]
        return True


@dataclass(frozen=True, slots=True)
class Allowed:
    """A folder's tests.allow: the tests that must pass. A line `NAME @VERSION ...` holds for those versions only."""

    lines: dict[str, tuple[str, ...]]

    @classmethod
    def read(cls, folder: Path) -> Allowed:
        file = folder / "tests.allow"
        lines: dict[str, tuple[str, ...]] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            text = line.split("#")[0].strip()
            if text:
                name, *versions = text.split(" @")
                lines[name.strip()] = tuple(version.strip() for version in versions)
        return cls(lines)

    def names(self, version: str) -> set[str]:
        return {name for name, versions in self.lines.items() if not versions or version in versions}


def explained(folder: Path) -> list[str]:
    """The tests that FINDINGS.md speaks of, as patterns: what stands in backticks at the start of a list item."""
    file = folder / "FINDINGS.md"
    if not file.exists():
        return []
    items = re.findall(r"^- ((?:`[^`]+`,?\s*)+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    return [name for item in items for name in re.findall(r"`([^`]+)`", item)]


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with a run against a node of this tree, and what is new in it."""

    regressed: list[str]
    missing: list[str]
    unexplained: list[str]
    new: list[str]

    def __bool__(self) -> bool:
        return bool(self.regressed or self.missing or self.unexplained)

    def sentences(self) -> list[str]:
        found = []
        for names, what in (
            (self.regressed, "must pass (tests.allow) and failed or skipped itself"),
            (self.missing, "must pass (tests.allow) and did not run"),
            (self.unexplained, "failed without a word in FINDINGS.md"),
            (self.new, "passed and can go into tests.allow (--accept)"),
        ):
            if names:
                more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
                found.append(f"{len(names)} {what}: {', '.join(names[:NAMES_SHOWN])}{more}")
        return found


def judge(folder: Path, version: str, outcome: Outcome, expected: set[str] | None) -> Faults:
    """Compare a run with what the folder says; `expected` are the tests that were asked for, None for all."""
    must = Allowed.read(folder).names(version)
    patterns = explained(folder)
    failed = outcome.names("FAILED")
    absent = must - outcome.results.keys() if expected is None else (must & expected) - outcome.results.keys()
    return Faults(
        regressed=[name for name in (*failed, *outcome.names("skipped")) if name in must],
        missing=sorted(absent),
        unexplained=[
            name for name in failed if name not in must and not any(fnmatchcase(name, pattern) for pattern in patterns)
        ],
        new=[name for name in outcome.names("ok") if name not in must],
    )


def accept(folder: Path, names: list[str]) -> None:
    """Add tests to a folder's tests.allow, which is kept sorted."""
    file = folder / "tests.allow"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    head = [line for line in lines if line.startswith("#")]
    body = {line for line in lines if line and not line.startswith("#")} | set(names)
    file.write_text("\n".join([*head, *sorted(body)]) + "\n", encoding="utf-8")


class Results:
    """The latest whole run of each client's version against each broker, kept in the cache for the page."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def _file(self, name: str, version: str, broker: str) -> Path:
        return self.directory / f"{name}@{version}.{broker}.json"

    def keep(self, name: str, version: str, broker: str, outcome: Outcome, *, whole: bool) -> None:
        """Keep a whole run, or what a run of some tests changes in the latest whole one."""
        if not whole:
            latest = self.latest(name, version, broker)
            if latest is None:
                return
            outcome = Outcome({**latest.results, **outcome.results}, latest.seconds)
        self.directory.mkdir(parents=True, exist_ok=True)
        content = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "seconds": round(outcome.seconds, 1),
            "results": outcome.results,
        }
        self._file(name, version, broker).write_text(json.dumps(content, indent=1), encoding="utf-8")

    def latest(self, name: str, version: str, broker: str) -> Outcome | None:
        file = self._file(name, version, broker)
        if not file.exists():
            return None
        content = json.loads(file.read_text(encoding="utf-8"))
        return Outcome(results=content["results"], seconds=content["seconds"])
