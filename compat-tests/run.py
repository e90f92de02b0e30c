"""Runs existing clients and their own test suites against a broker: `python3 dev.py compat [CLIENT ...]`.

Without options: the sample of each suite, against a node of this tree, in memory, started for each.
Which suites, which versions and which sample: matrix.yaml. What must pass: tests.allow in each folder.
Exit code 1 if a test that must pass did not, if one failed that FINDINGS.md does not explain, or if nothing ran.
Clients are fetched by their registries' own programs and kept, built, outside the tree (ODRADEK_COMPAT_CACHE).
A suite whose tools or registry this machine lacks, or that cannot be had in time (--minutes, --prepare-minutes), is
skipped: the table says so, and it is no failure. What must pass and did not is tried once more, as it also says.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

import sent
import yaml
from brokers import ROOT, NotStarted, broker, kind_of
from page import table, write_page
from verdicts import Allowed, Outcome, Results, accept, judge

HERE = Path(__file__).resolve().parent
DETAIL_WIDTH = 300
TRIED_AGAIN_MAX = 5
LOG_LINES = 30
PREPARE_MINUTES = 45.0
SAMPLE_MINUTES = 6.0
VERSION_OPTIONS = {"java": "-version", "javac": "-version", "go": "version", "kcat": "-V"}


@functools.cache
def usable(program: str) -> bool:
    """Whether a program is here and runs: a launcher of a toolchain that this user has not is none."""
    if shutil.which(program) is None:
        return False
    command = [program, VERSION_OPTIONS.get(program, "--version")]
    try:
        return not subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One row of the matrix at one version."""

    row: dict[str, Any]
    version: str

    @property
    def name(self) -> str:
        return str(self.row["folder"])

    @property
    def folder(self) -> Path:
        return HERE / self.name

    @property
    def missing_programs(self) -> list[str]:
        return [program for program in self.row.get("needs", ()) if not usable(program)]

    def sample(self) -> list[str] | None:
        """The tests of the sample; empty: all of them; None: this version is not in it."""
        sample = self.row.get("sample")
        if sample is None or self.version not in map(str, self.row.get("sample_versions", self.row["versions"])):
            return None
        if sample == "allowed":
            without = self.row.get("sample_without", ())
            names = Allowed.read(self.folder).names(self.version)
            return sorted(name for name in names if not any(fnmatchcase(name, pattern) for pattern in without)) or None
        return [] if sample == "all" else list(sample)


def cache() -> Path:
    """Where clients and results are kept: ODRADEK_COMPAT_CACHE, else in the user's cache directory."""
    if chosen := os.environ.get("ODRADEK_COMPAT_CACHE"):
        return Path(chosen).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "odradek" / "compat"


def matrix() -> tuple[dict[str, Any], list[Entry]]:
    """The settings that every broker gets, and the rows, one for each version."""
    content = yaml.safe_load((HERE / "matrix.yaml").read_text(encoding="utf-8"))
    entries = [Entry(row, str(version)) for row in content["suites"] for version in row["versions"]]
    return content["broker"], entries


def chosen_entries(entries: list[Entry], names: list[str], full: bool) -> Iterator[tuple[Entry, list[str]]]:
    """The entries to run, each with its tests (empty: all)."""
    for entry in entries:
        wanted = {entry.name, f"{entry.name}@{entry.version}", str(entry.row["client"])}
        if names and not wanted & set(names):
            continue
        sample = entry.sample()
        if full or (names and sample is None):
            yield entry, []
        elif sample is not None:
            yield entry, sample


class Runner:
    """Runs entries against one broker and keeps what they said."""

    def __init__(self, options: argparse.Namespace, settings: dict[str, Any]) -> None:
        self.options = options
        self.settings = settings
        self.results = Results(cache() / "results")
        self.outcomes: dict[Entry, Outcome] = {}
        self.faults: list[str] = []
        self.failed = 0
        self.after_failure = False
        self.end = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")

    def run(self, entry: Entry, tests: list[str]) -> None:
        against = self.options.against
        title = f"{entry.name} {entry.version}: {entry.row['what']}, against {against}"
        outcome = self.outcomes[entry] = Outcome()
        if missing := entry.missing_programs:
            skip(outcome, f"this machine has no {', '.join(missing)} that runs")
        elif time.monotonic() > self.end:
            skip(outcome, f"{self.options.minutes:g} minutes have passed")
        else:
            print(f"== {title}", flush=True)
            self.prepare_and_test(entry, tests, outcome)
        if outcome.skipped:
            print(f"== SKIPPED {title}: {outcome.broken}", flush=True)
            return
        if not outcome.broken:
            self.results.keep(entry.name, entry.version, kind_of(against), outcome, whole=not tests)
        self.verdict(entry, tests, outcome)

    def prepare_and_test(self, entry: Entry, tests: list[str], outcome: Outcome) -> None:
        began = time.monotonic()
        try:
            self.prepare(entry, outcome)
            began = time.monotonic()
            if not outcome.broken:
                self.test(entry, tests, outcome)
                self.try_again(entry, tests, outcome)
        except NotStarted as fault:
            outcome.broken = str(fault)
        outcome.seconds = time.monotonic() - began

    def prepare(self, entry: Entry, outcome: Outcome) -> None:
        """Fetch and build before a broker runs, so that builds take nothing from it."""
        minutes = min(self.options.prepare_minutes, (self.end - time.monotonic()) / 60)
        if not self.follow(entry, outcome, {"COMPAT_PREPARE_ONLY": "1"}, minutes, "prepare"):
            skip(outcome, f"it was not fetched and built in {minutes:.1f} minutes")

    def test(self, entry: Entry, tests: list[str], outcome: Outcome) -> None:
        environment = {"COMPAT_TESTS": "\n".join(tests), "COMPAT_FULL": "0" if tests and not self.options.only else "1"}
        minutes = float(entry.row.get("minutes", 10))
        if tests and not self.options.only:
            minutes = min(minutes, SAMPLE_MINUTES)
        if entry.row.get("own_brokers"):
            self.follow(entry, outcome, environment, minutes, kind_of(self.options.against))
            return
        settings = {**self.settings, **entry.row.get("broker", {})}
        log = self.directory(entry) / f"{kind_of(self.options.against)}.broker.log"
        host = str(entry.row.get("host", "127.0.0.1"))
        sent_file = sent.file_of(self.results.directory, entry)
        with broker(self.options.against, settings, log, host, sent_file) as address:
            environment["BOOTSTRAP_SERVERS"] = address
            self.follow(entry, outcome, environment, minutes, kind_of(self.options.against))

    def try_again(self, entry: Entry, tests: list[str], outcome: Outcome) -> None:
        """Run a few that must pass and did not once more, alone: these suites watch the clock, on busy machines too."""
        if self.options.against == "reference":
            return
        faults = judge(entry.folder, entry.version, outcome, set(tests) or None)
        again = [*faults.regressed, *faults.missing]
        if not again or len(faults.regressed) > TRIED_AGAIN_MAX:
            return
        print(f"  once more, alone: {', '.join(again[:TRIED_AGAIN_MAX])}", flush=True)
        second = Outcome()
        self.test(entry, again, second)
        outcome.broken = second.broken
        outcome.results |= second.results
        outcome.second_try = [name for name in again if outcome.results.get(name) == "ok"]
        for name in outcome.second_try:
            print(f"  UNSTEADY: {name} passed at the second try only", flush=True)

    def directory(self, entry: Entry) -> Path:
        directory = cache() / f"{entry.name}-{entry.version}"
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def follow(self, entry: Entry, outcome: Outcome, more: dict[str, str], minutes: float, log_name: str) -> bool:
        """Run the folder's `run`, print the lines of its tests as they come, keep everything in a log.

        Returns whether it came to its end by itself within its minutes.
        """
        directory = self.directory(entry)
        environment = {
            "HOME": str(Path.home()),
            **os.environ,
            "PYTHONPATH": str(HERE),
            "COMPAT_VERSION": entry.version,
            "COMPAT_DIRECTORY": str(directory),
            "COMPAT_AGAINST": self.options.against,
            **more,
        }
        with (
            (directory / f"{log_name}.log").open("w", encoding="utf-8") as log,
            subprocess.Popen(
                [sys.executable, str(entry.folder / "run")], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            ) as process,
        ):  # fmt: skip
            assert process.stdout is not None
            with Deadline(process, minutes) as deadline:
                for line in process.stdout:
                    log.write(line)
                    log.flush()
                    self.take(line, outcome)
            code = process.wait()
        if deadline.passed:
            outcome.broken = f"not at its end after {minutes:g} minutes"
        elif code and not outcome.broken:
            outcome.broken = f"ended with {code}, see {log.name}"
        if outcome.broken and not outcome.skipped:
            print("".join(f"       {line}\n" for line in last_lines(Path(log.name))), end="", flush=True)
        return not deadline.passed

    def take(self, line: str, outcome: Outcome) -> None:
        text = line.rstrip("\n")
        if text.startswith(("broken: ", "unreachable: ")):
            kind, _, outcome.broken = text.partition(": ")
            outcome.skipped = kind == "unreachable"
        elif outcome.take(text):
            self.after_failure = text.startswith("FAILED")
            print(f"  {text}", flush=True)
        elif text.startswith("preparing:") or (self.after_failure and text.startswith("       ")):
            print(f"  {text[:DETAIL_WIDTH]}", flush=True)
        else:
            self.after_failure = False

    def verdict(self, entry: Entry, tests: list[str], outcome: Outcome) -> None:
        if outcome.broken:
            print(f"  BROKEN: {outcome.broken}", flush=True)
            self.faults.append(f"{entry.name} {entry.version}: {outcome.broken}")
            self.failed += 1
        if self.options.against == "reference":
            self.failed += outcome.count("FAILED")  # what fails there is found out, no fault
            return
        faults = judge(entry.folder, entry.version, outcome, set(tests) or None)
        for sentence in faults.sentences():
            print(f"  {sentence}", flush=True)
        if faults:
            self.faults.append(f"{entry.name} {entry.version}: {faults.sentences()[0]}")
            self.failed += len(faults.regressed) + len(faults.missing) + len(faults.unexplained)
        if self.options.accept and faults.new:
            accept(entry.folder, faults.new)


def skip(outcome: Outcome, why: str) -> None:
    outcome.skipped, outcome.broken = True, why


def last_lines(log: Path) -> list[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line[:DETAIL_WIDTH] for line in lines if line.strip()][-LOG_LINES:]


class Deadline:
    """Ends a process and its children when its minutes have passed, and when it is left."""

    def __init__(self, process: subprocess.Popen[str], minutes: float) -> None:
        self.process = process
        self.minutes = minutes
        self.passed = False

    def __enter__(self) -> Self:
        signal.signal(signal.SIGALRM, self.end)
        signal.setitimer(signal.ITIMER_REAL, self.minutes * 60)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.kill()

    def end(self, *_: object) -> None:
        self.passed = True
        self.kill()

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL if self.passed else signal.SIGTERM)
        except ProcessLookupError:
            pass


def parse(entries: list[Entry]) -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="dev.py compat", description=__doc__, formatter_class=layout)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="a client, a folder or FOLDER@VERSION")
    parser.add_argument(
        "--against",
        default="odradek",
        metavar="BROKER",
        help="odradek, reference (Apache Kafka, started for this) or HOST:PORT",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="every test of every version, not the sample")
    size.add_argument("--only", action="append", default=[], metavar="TEST", help="this test of the clients named")
    parser.add_argument("--accept", action="store_true", help="add tests that pass now to tests.allow")
    parser.add_argument("--report", action="store_true", help="write docs/compatibility.md and what clients send")
    parser.add_argument("--minutes", type=float, help="suites that have not begun after so many are skipped")
    parser.add_argument(
        "--prepare-minutes",
        type=float,
        default=PREPARE_MINUTES,
        metavar="MINUTES",
        help="a suite that takes longer to fetch and build is skipped",
    )
    parser.add_argument("--list", action="store_true", help="list the suites and run nothing")
    options = parser.parse_args()
    known = {name for entry in entries for name in (entry.name, f"{entry.name}@{entry.version}", entry.row["client"])}
    for client in options.clients:
        if client not in known:
            parser.error(f"there is no client {client!r}; there are {', '.join(sorted({e.name for e in entries}))}")
    if options.against not in ("odradek", "reference") and ":" not in options.against:
        parser.error(f"--against is odradek, reference or HOST:PORT, not {options.against!r}")
    return options


def main() -> int:
    settings, entries = matrix()
    options = parse(entries)
    if options.list:
        for entry in entries:
            sample = entry.sample()
            size = "none" if sample is None else len(sample) or "all"
            print(f"{entry.name}@{entry.version}: {entry.row['what']}, in the sample: {size}")
        return 0
    runner = Runner(options, settings)
    if not (options.report and not options.clients and not options.full):
        for entry, tests in chosen_entries(entries, options.clients, options.full):
            runner.run(entry, options.only or tests)
        for line in table(runner.outcomes, runner.results, options.against):
            print(line)
    if options.report:
        write_page(ROOT / "docs" / "compatibility.md", entries, runner.results)
        sent.report(entries, runner.results.directory)
        return subprocess.run([sys.executable, ROOT / "docs" / "support.py"], check=False).returncode
    for fault in runner.faults:
        print(f"FAULT {fault}", file=sys.stderr)
    return closing(runner)


def closing(runner: Runner) -> int:
    """The last lines, which say what was not run and how many passed and failed; returns the exit code."""
    outcomes = runner.outcomes.values()
    passed = sum(outcome.count("ok") for outcome in outcomes)
    skipped = [f"{entry.name}@{entry.version}" for entry, outcome in runner.outcomes.items() if outcome.skipped]
    second = sum(len(outcome.second_try) for outcome in outcomes)
    if skipped:
        print(f"SKIPPED {len(skipped)} of {len(outcomes)} suites: {', '.join(skipped)}")
    if second:
        print(f"UNSTEADY: {second} passed at the second try")
    print(f"{passed} passed, {runner.failed} failed")
    return 1 if runner.faults or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotStarted as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
