"""Which clients have a member program, how it is built and started, and which protocols and assignors each has."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEMBERS = HERE / "members"
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "java")]

from jvm import compiled, jars, java
from suite import Suite, once, python_of, step

DRIVER = "confluent-kafka==2.16.1"
"""What the driver itself fills topics and asks with"""


@dataclass(frozen=True, slots=True)
class Flavour:
    """A protocol with one of its assignors: `classic-range`, `consumer-uniform`."""

    protocol: str
    assignor: str

    def __str__(self) -> str:
        return f"{self.protocol}-{self.assignor}"


RANGE = Flavour("classic", "range")
ROUND_ROBIN = Flavour("classic", "roundrobin")
STICKY = Flavour("classic", "sticky")
COOPERATIVE = Flavour("classic", "cooperative-sticky")
UNIFORM = Flavour("consumer", "uniform")
SERVER_RANGE = Flavour("consumer", "range")

FLAVOURS = {
    "kafka-python": [RANGE, COOPERATIVE, ROUND_ROBIN, STICKY],
    "aiokafka": [RANGE, ROUND_ROBIN, STICKY],
    "confluent-kafka": [RANGE, COOPERATIVE, UNIFORM, SERVER_RANGE],
    "java": [RANGE, COOPERATIVE, UNIFORM, SERVER_RANGE],
    "franz-go": [RANGE, COOPERATIVE, UNIFORM, SERVER_RANGE],
}
PYTHON_PROGRAMS = {"kafka-python": "kafka_python", "aiokafka": "aiokafka_member", "confluent-kafka": "confluent"}


@dataclass(frozen=True, slots=True)
class Client:
    """A client at a version: `franz-go-1.22.3`, and how its member program is started."""

    name: str
    version: str
    command: tuple[str, ...]

    @property
    def flavours(self) -> list[Flavour]:
        return FLAVOURS[self.name]


def split(version: str) -> tuple[str, str]:
    """A version of the matrix, `java-4.4.0`, as client and version."""
    name, _, number = version.rpartition("-")
    return name, number


def prepared(suite: Suite) -> Client:
    """Fetch and build what a client's members need."""
    name, version = split(suite.version)
    if name in PYTHON_PROGRAMS:
        command = [str(driver_python(suite)), str(MEMBERS / f"{PYTHON_PROGRAMS[name]}.py")]
    elif name == "java":
        library = Suite(version, suite.directory, suite.address)
        libraries = jars(library, HERE.parent / "java-clients" / "pom.xml")
        classes = compiled(library, [MEMBERS / "Member.java"], libraries)
        quiet = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command = java([classes, libraries / "*"], "Member", options=quiet)
    else:
        command = [str(go_program(suite, version))]
    return Client(name, version, tuple(command))


def go_program(suite: Suite, version: str) -> Path:
    """The members with franz-go, built."""
    source = MEMBERS / "member.go"
    program = suite.directory / "member"

    @once(suite.directory, "build", source.read_text(encoding="utf-8"), version)
    def _() -> None:
        place = suite.directory / "source"
        place.mkdir(exist_ok=True)
        for file in (source, MEMBERS / "clock.s"):
            shutil.copy(file, place)
        module = f"module members\n\ngo 1.26\n\nrequire github.com/twmb/franz-go v{version}\n"
        (place / "go.mod").write_text(module)
        step(["go", "mod", "tidy"], place)
        step(["go", "build", "-o", program, "."], place)

    return program


def driver_python(suite: Suite) -> Path:
    """The interpreter that has what the driver needs, and the client if it is one of Python."""
    name, version = split(suite.version)
    client = [f"{name}=={version}"] if name in PYTHON_PROGRAMS else []
    return python_of(suite, *client, *([] if name == "confluent-kafka" else [DRIVER]))


def environment() -> dict[str, str]:
    """For the members' processes."""
    return {**os.environ, "PYTHONUNBUFFERED": "1"}
