"""What the suites in Java share: jars by Maven, sources compiled where they run, one JVM for many commands.

Jars and classes lie in the suite's directory, outside the tree.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "reference")]

from reference import TOOLS, NotStarted, class_path
from suite import Broken, Suite, once, only, step

# Short runs on few cores: no second compiler, the smallest collector.
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
END_TIMEOUT_S = 20


def jars(suite: Suite, pom: Path) -> Path:
    """The directory of the jars that a pom names, at the suite's version (`kafka.version` in it); fetched once."""
    directory = suite.directory / "libs"

    @once(suite.directory, "jars", pom.read_text(encoding="utf-8"), suite.version)
    def _() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        if shutil.which("mvn") is None:
            raise Broken("Maven (mvn) is needed once to fetch the jars")
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={directory}", f"-Dkafka.version={suite.version}"]
        step(["mvn", "-q", "-B", "-f", pom, *goal], suite.directory)

    return directory


def reference_jars() -> Path:
    """The directory of Apache Kafka's own jars: broker, tools and what they need; fetched once."""
    try:
        return Path(class_path()).parent
    except NotStarted as fault:
        raise Broken(str(fault).rstrip(".")) from fault


def compiled(suite: Suite, sources: Sequence[Path], libraries: Path) -> Path:
    """The directory of the classes of these sources; compiled where they or the jars have changed."""
    classes = suite.directory / "classes"
    texts = [source.read_text(encoding="utf-8") for source in sources]

    @once(suite.directory, "classes", *texts, *sorted(jar.name for jar in libraries.glob("*.jar")))
    def _() -> None:
        shutil.rmtree(classes, ignore_errors=True)
        options = ["-nowarn", "-encoding", "UTF-8", "-Xlint:none", "-d", classes, "-cp", libraries / "*"]
        step(["javac", *options, *sources], suite.directory)

    return classes


def java(class_path: Sequence[object], *arguments: object, options: Sequence[str] = ()) -> list[str]:
    """The command that runs a main class."""
    place = os.pathsep.join(map(str, class_path))
    return ["java", *JVM, *options, "-cp", place, *map(str, arguments)]


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


def tool_class(name: str) -> str:
    """The main class of one of Apache Kafka's tools, by the name of its script or of the class."""
    main_class = TOOLS.get(name, name)
    return main_class if main_class.startswith("kafka.") else f"org.apache.kafka.tools.{main_class}"


class Tools:
    """Apache Kafka's tools, run one after another in one JVM; each as if it had its own."""

    def __init__(self, suite: Suite, log: IO[str]) -> None:
        libraries = reference_jars()
        classes = compiled(suite, [HERE / "Launcher.java"], libraries)
        self.tools_jar = only(libraries, "kafka-tools-[0-9]*.jar")
        others = [jar for jar in sorted(libraries.glob("*.jar")) if jar != self.tools_jar]
        self.command = java([classes, *others], "Launcher", self.tools_jar)
        self.directory = suite.directory
        self.log = log
        self.process: subprocess.Popen[str] | None = None

    def run(self, name: str, arguments: Sequence[str], stdin: str = "", timeout_s: float = 40.0) -> Said:
        """Run one tool; one that has not ended in time is ended, with code 124 as `timeout` has it."""
        process = self.process or self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        command = {"main": tool_class(name), "arguments": list(arguments), "stdin": stdin}
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                self.kill()
                return Said(124, "", f"not ended after {timeout_s:g} s\n")
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            self.process = None
            return Said(code, "", "the JVM ended\n")
        answer = json.loads(line)
        return Said(answer["code"], answer["out"], answer["err"])

    def start(self) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            self.command, cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        return self.process

    def alone(self, name: str, arguments: Sequence[str], timeout_s: float = 40.0) -> Said:
        """Run one tool in a process of its own, for those that work in the hooks of its end."""
        command = java([reference_jars() / "*"], tool_class(name), *arguments)
        try:
            done = subprocess.run(
                command, cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Said(124, "", f"not ended after {timeout_s:g} s\n")
        return Said(done.returncode, done.stdout, done.stderr)

    def in_background(self, name: str, arguments: Sequence[str], output: IO[str]) -> subprocess.Popen[str]:
        """A tool in a process of its own, which the caller ends."""
        command = java([reference_jars() / "*"], tool_class(name), *arguments)
        return subprocess.Popen(
            command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=output, stderr=self.log, text=True
        )

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_TIMEOUT_S)
        self.kill()


def end(process: subprocess.Popen[str]) -> int:
    """Ask a process to end as a person's Ctrl-C would; insist after a while. Returns its exit code."""
    process.terminate()
    try:
        return process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def wait_until(done: Callable[[], bool], timeout_s: float, pause_s: float = 0.2) -> bool:
    """Ask until it is so; returns whether it came to be in time."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
    return True
