"""What a Java program says of its scenarios (Scenarios.java), compared with what it said against Apache Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from masks import differences, masked
from suite import tell


@dataclass(frozen=True, slots=True)
class Expected:
    """The lines that were said against Apache Kafka: `NAME.txt`, or `VERSION/NAME.txt` where a version differs."""

    directory: Path
    version: str

    def lines(self, name: str) -> list[str] | None:
        for file in (self.directory / self.version / f"{name}.txt", self.directory / f"{name}.txt"):
            if file.exists():
                return file.read_text(encoding="utf-8").splitlines()
        return None

    def record(self, name: str, lines: list[str]) -> None:
        """Write the lines; beside those of the other versions where they are not the same."""
        file = self.directory / f"{name}.txt"
        own = self.directory / self.version / f"{name}.txt"
        anew = os.environ["COMPAT_RECORD"] == "anew"
        if not anew and file.exists() and file.read_text(encoding="utf-8").splitlines() != lines:
            file = own
        else:
            own.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def follow(output: Iterable[str], expected: Expected) -> None:
    """Tell each scenario as its end comes; one that was begun and has no end failed."""
    name, said = "", []
    for line in output:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "begin":
            name, said = rest, []
        elif word == "|":
            said.append(rest)
        elif word == "end":
            _, seconds, fault = (*rest.split(" ", 2), "")[:3]
            judge(name, float(seconds), said, fault, expected)
            name = ""
    if name:
        tell("FAILED", name, detail="the program ended in it")


def judge(name: str, seconds: float, said: list[str], fault: str, expected: Expected) -> None:
    lines = masked("\n".join(said))
    if os.environ.get("COMPAT_RECORD") and not fault:
        expected.record(name, lines)
    wanted = expected.lines(name)
    different = [*differences(wanted, lines)] if wanted is not None else ["nothing was recorded against Apache Kafka"]
    for line in [fault, *different] if fault else different:
        print(f"| {name}: {line}", flush=True)
    faults = [fault, *different[:8]] if fault else different[:10]
    tell("FAILED" if faults else "ok", name, seconds, "\n".join(faults))
