"""What the `run` programs share: get a client's own tests once, run them, print one line a test.

A `run` is started by run.py with these in its environment, and prints, for each test, one of

    ok NAME (1.2 s)
    FAILED NAME (1.2 s)
    skipped NAME (why)

Whatever else it prints is kept in the log. Upstream code lies in COMPAT_DIRECTORY, outside the tree.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
STEP_TIMEOUT_S = 1800
DETAIL_LINES = 6
LAST_WORDS = 8000  # characters in which a failed step says why
NOT_REACHED = re.compile(
    r"connection (?:refused|reset|timed out)|network is unreachable|no such host|i/o timeout|could(?:n't| not) resolve"
    r"|E(?:CONNREFUSED|CONNRESET|NOTFOUND|AI_AGAIN|TIMEDOUT|NETUNREACH|HOSTUNREACH)|socket hang up"
    r"|TLS handshake timeout|NewConnectionError|Max retries exceeded|Temporary failure in name resolution"
    r"|Name or service not known|Unknown ?host|read timed out|could(?:n't| not) connect to server"
    r"|failed to download from|spurious network error|tunnel connection failed|could not transfer artifact",
    re.IGNORECASE,
)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Broken(Exception):
    """The suite cannot be had or cannot run; the text is one sentence."""


class Unreachable(Broken):
    """What the suite needs cannot be fetched from here: no fault of anything that is tested."""


@dataclass(slots=True)
class Suite:
    """What a `run` is told: which version, where its files lie, which broker, and which tests (none: all)."""

    version: str
    directory: Path
    address: str
    tests: list[str] = field(default_factory=list)
    full: bool = True

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def wants(self, name: str) -> bool:
        return not self.tests or name in self.tests


# --- the lines ---------------------------------------------------------------------------------


def tell(verdict: str, name: str, seconds: float = 0.0, detail: str = "") -> None:
    """Print the line of one test: `ok`, `FAILED` or `skipped`; a detail follows, indented."""
    if verdict == "skipped":
        print(f"skipped {name} ({' '.join(detail.split()) or 'by itself'})", flush=True)
        return
    print(f"{verdict} {name} ({seconds:.1f} s)", flush=True)
    if detail and verdict == "FAILED":
        detail = "\n".join(line for line in ANSI.sub("", detail).splitlines() if line.strip())
        print("".join(f"       {line}\n" for line in detail.splitlines()[-DETAIL_LINES:]), end="", flush=True)


def main(prepare: Callable[[Suite], None], test: Callable[[Suite], None]) -> None:
    """Run a `run` program: get what it needs, then test unless only that was asked (COMPAT_PREPARE_ONLY)."""
    environment = os.environ
    suite = Suite(
        environment["COMPAT_VERSION"],
        Path(environment["COMPAT_DIRECTORY"]),
        environment.get("BOOTSTRAP_SERVERS", ""),
        [*filter(None, environment.get("COMPAT_TESTS", "").split("\n"))],
        environment.get("COMPAT_FULL", "1") == "1",
    )
    suite.directory.mkdir(parents=True, exist_ok=True)
    try:
        prepare(suite)
        if not environment.get("COMPAT_PREPARE_ONLY"):
            test(suite)
    except Broken as fault:
        print(f"{'unreachable' if isinstance(fault, Unreachable) else 'broken'}: {fault}", flush=True)
        sys.exit(2)


# --- steps -------------------------------------------------------------------------------------


def once(directory: Path, name: str, *inputs: str) -> Callable[[Callable[[], None]], None]:
    """Do a step of the preparation unless it was done with the same inputs; its stamp lies in the directory."""

    def decorate(step: Callable[[], None]) -> None:
        stamp = directory / f"{name}.done"
        wanted = hashlib.sha256("\n".join(inputs).encode()).hexdigest()
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"preparing: {name}", flush=True)
        step()
        stamp.write_text(wanted)

    return decorate


def step(command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run one step of a preparation, giving way to whatever else runs; raises Broken with its last lines."""
    gentle = ["nice", "-n", "10"] if shutil.which("nice") else []
    try:
        done = subprocess.run(
            [*gentle, *map(str, command)], cwd=cwd, env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=STEP_TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise Broken(f"{' '.join(map(str, command[:4]))} took longer than {STEP_TIMEOUT_S} s") from late
    if done.returncode:
        print(done.stdout[-4000:], flush=True)
        said = f"{' '.join(map(str, command[:4]))} ended with {done.returncode}"
        if NOT_REACHED.search(done.stdout[-LAST_WORDS:]):
            raise Unreachable(f"{said}, it reached no registry")
        raise Broken(said)
    return done.stdout


def finish(
    command: Sequence[str | Path],
    cwd: Path,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    output: IO[str] | None = None,
) -> tuple[int | None, str]:
    """Run a program to its end, or end it and its children at the timeout; returns its code (None then) and output."""
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                list(map(str, command)),
                cwd=cwd,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output or subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        )
        stack.callback(end_group, process)
        try:
            said, _ = process.communicate(timeout=timeout_s)
            return process.returncode, said or ""
        except subprocess.TimeoutExpired:
            end_group(process)
            said, _ = process.communicate()
            return None, (said or "") + f"\nended after {timeout_s:g} s"


def end_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def each(names: Iterable[str], run_one: Callable[[str], None], workers: int) -> None:
    """Run the tests that are processes of their own, a few at a time."""
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(run_one, names):
            pass


def unpack(archive: Path, into: Path) -> None:
    with tarfile.open(archive) as file:
        file.extractall(into, filter="data")


def only(directory: Path, pattern: str) -> Path:
    """The one file of that pattern; raises Broken if there is none."""
    found = sorted(directory.glob(pattern))
    if not found:
        raise Broken(f"{directory.name} has no {pattern}")
    return found[-1]


# --- Python clients ----------------------------------------------------------------------------


def satisfied(packages: Sequence[str]) -> bool:
    """Whether the interpreter that runs this holds these packages already, pinned ones at that very version."""
    for package in packages:
        name, _, version = package.partition("==")
        try:
            if version not in ("", metadata.version(name)):
                return False
        except metadata.PackageNotFoundError:
            return False
    return True


def python_of(suite: Suite, *packages: str, newest: tuple[int, int] | None = None) -> Path:
    """An interpreter that holds these packages: the one that runs this, else one of an environment made once.

    `newest` is the last version of Python that the packages work with, None if they work with any.
    """
    if satisfied(packages):
        return Path(sys.executable)
    environment = suite.directory / "venv"
    python = environment / "bin" / "python"

    @once(suite.directory, "venv", *packages)
    def _() -> None:
        shutil.rmtree(environment, ignore_errors=True)
        step([interpreter_until(newest), "-m", "venv", environment], suite.directory)
        step([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], suite.directory)

    return python


def interpreter_until(newest: tuple[int, int] | None) -> str:
    """This interpreter, or an older one where it is too new; raises Broken if there is none."""
    if newest is None or sys.version_info[:2] <= newest:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(newest[1], 7, -1)]
    for name in filter(shutil.which, names):
        if subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode == 0:
            return name
    raise Broken(f"this version works with Python {newest[0]}.{newest[1]} and older, of which this machine has none")


def scenarios(client: str, *packages: str, newest: Mapping[str, tuple[int, int]] | None = None) -> None:
    """A `run` that runs the folder's scenarios.py with a client's packages; `{version}` in them is the version.

    `newest` are the last versions of Python that single versions of the client work with.
    """

    def python_for(suite: Suite) -> Path:
        wanted = (package.format(version=suite.version) for package in packages)
        return python_of(suite, *wanted, newest=(newest or {}).get(suite.version))

    def prepare(suite: Suite) -> None:
        python_for(suite)

    def test(suite: Suite) -> None:
        python = python_for(suite)
        chosen = [argument for name in suite.tests for argument in ("--only", name)]
        subprocess.run([python, HERE / client / "scenarios.py", suite.address, *chosen], check=False)

    main(prepare, test)


# --- JavaScript clients ------------------------------------------------------------------------


def node_scenarios(client: str, *packages: str, environment: Mapping[str, str] | None = None) -> None:
    """A `run` that runs the folder's scenarios.js, or scenarios.js of all with the folder's client.js, with npm
    packages, installed with this in their environment; `{version}` in them is the version."""
    own = HERE / client / "scenarios.js"
    script = [own] if own.exists() else [HERE / "scenarios.js", HERE / client / "client.js"]

    def prepare(suite: Suite) -> None:
        wanted = [package.format(version=suite.version) for package in packages]

        @once(suite.directory, "packages", *wanted)
        def _() -> None:
            (suite.directory / "package.json").write_text('{"private": true}')
            step(["npm", "install", "--loglevel=error", "--no-save", *wanted], suite.directory, environment)

    def test(suite: Suite) -> None:
        path = f"{suite.directory / 'node_modules'}{os.pathsep}{HERE}"
        subprocess.run(["node", *script], env={**os.environ, "NODE_PATH": path}, check=False)

    main(prepare, test)


# --- what test runners print -------------------------------------------------------------------


def tell_junit(file: Path, name_of: Callable[[str, str], str] = lambda _class_name, name: name) -> None:
    """Tell the tests of a JUnit report; a name comes from the class name and the test's."""
    for case in ET.parse(file).iter("testcase"):
        name = name_of(case.get("classname", ""), case.get("name", ""))
        seconds = float(case.get("time", 0))
        faults = [child for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if faults:
            text = faults[0].text or faults[0].get("message", "")
            told = [line for line in text.splitlines() if re.match(r"E\s+\S", line)]  # as pytest marks what it found
            tell("FAILED", name, seconds, "\n".join(told) or text)
        elif skipped is not None:
            tell("skipped", name, detail=skipped.get("message", ""))
        else:
            tell("ok", name, seconds)


GO_LINE = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)$")
GO_VERDICTS = {"PASS": "ok", "FAIL": "FAILED", "SKIP": "skipped"}


def go_test(
    binary: Path, cwd: Path, name: str, timeout_s: float, environment: Mapping[str, str], arguments: Sequence[str] = ()
) -> None:
    """Run one top-level test of a compiled Go test program in a process of its own, and tell it."""
    began = time.monotonic()
    command = [binary, "-test.v", f"-test.run=^{name}$", f"-test.timeout={timeout_s:g}s", *arguments]
    code, said = finish(command, cwd, timeout_s + 10, environment)
    for line in said.splitlines():
        if (found := GO_LINE.match(line)) and found[2] == name:
            detail = go_faults(said) if found[1] == "FAIL" else go_skip_reason(said)
            tell(GO_VERDICTS[found[1]], name, float(found[3]), detail)
            return
    tell("FAILED", name, time.monotonic() - began, f"{go_faults(said)}\nended with {code}")


def go_faults(said: str) -> str:
    """The lines of a failed Go test that tell why, as far as they can be told from its log."""
    print(said, flush=True)
    lines = said.splitlines()
    parts = [line for line in lines if re.search(r"--- FAIL: \S+/|^panic: ", line)]
    words = [line for line in lines if re.search(r"_test\.go:\d+: |\bgot\b|Error:", line)]
    return "\n".join([*words[-DETAIL_LINES // 2 :], *parts[: DETAIL_LINES // 2]]) or said


def go_skip_reason(said: str) -> str:
    found = re.search(r"^\s+\w+_test\.go:\d+: (.+)$", said, re.MULTILINE)
    return found[1] if found else ""


def go_module(suite: Suite, module: str) -> Path:
    """A writable copy of a Go module at the suite's version, fetched by go; made once."""
    source = suite.directory / "source"

    @once(suite.directory, "source", module, suite.version)
    def _() -> None:
        shutil.rmtree(source, ignore_errors=True)
        told = step(["go", "mod", "download", "-json", f"{module}@v{suite.version}"], suite.directory)
        found = re.search(r'"Dir": "(.+)"', told)
        if found is None:
            raise Broken(f"go did not say where {module} lies")
        shutil.copytree(found[1], source)
        step(["chmod", "-R", "u+w", source], suite.directory)

    return source


def go_names(binary: Path, cwd: Path) -> list[str]:
    """The top-level tests of a compiled Go test program, in their order."""
    return [line for line in step([binary, "-test.list=^Test"], cwd).splitlines() if line.startswith("Test")]


def go_scenarios(client: str, module: str, tags: Mapping[str, str] | None = None) -> None:
    """A `run` that compiles scenarios.go with the folder's Go files and a Go module, and runs the program.

    `tags` are build tags of single versions of the module.
    """

    def prepare(suite: Suite) -> None:
        program = suite.directory / "program"
        sources = [HERE / "scenario.go", HERE / "scenarios.go", *sorted((HERE / client).glob("*.go"))]
        texts = [source.read_text(encoding="utf-8") for source in sources]

        @once(suite.directory, "program", module, suite.version, *texts)
        def _() -> None:
            shutil.rmtree(program, ignore_errors=True)
            program.mkdir()
            for source in sources:
                shutil.copy(source, program)
            step(["go", "mod", "init", "scenarios"], program)
            step(["go", "get", f"{module}@v{suite.version}"], program)
            step(["go", "mod", "tidy"], program)
            step(["go", "build", "-tags", (tags or {}).get(suite.version, ""), "-o", "scenarios", "."], program)

    def test(suite: Suite) -> None:
        environment = {**os.environ, "BOOTSTRAP_SERVERS": suite.address}
        subprocess.run([suite.directory / "program" / "scenarios"], env=environment, check=False)

    main(prepare, test)
