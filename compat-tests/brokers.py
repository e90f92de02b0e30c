"""The broker that a suite is run against: a node of this tree, Apache Kafka, or one that runs already."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "reference"))

from reference import NotStarted, Reference, free_port

__all__ = ["ROOT", "NotStarted", "broker", "kind_of"]

STOP_TIMEOUT_S = 30


def kind_of(against: str) -> str:
    """What results are kept under: odradek, reference, or the address of a broker that runs."""
    return against.replace(":", "-") if ":" in against else against


@contextlib.contextmanager
def broker(against: str, settings: Mapping[str, object], log: Path) -> Iterator[str]:
    """The address of the broker; one that is started for this has these settings and ends after it."""
    lines = [f"{name}={text_of(value)}" for name, value in settings.items()]
    if ":" in against:
        yield against
    elif against == "reference":
        with Reference(settings=lines) as kafka:
            yield kafka.bootstrap_servers
    else:
        with own_node(lines, log) as address:
            yield address


def text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextlib.contextmanager
def own_node(settings: list[str], log: Path) -> Iterator[str]:
    """A node of this tree, as a person starts it, in memory; what it says goes to the log."""
    listeners = f"PLAINTEXT://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "odradek", "start", "--json", "--listeners", listeners]
    command += ["--advertised-listeners", listeners]  # as the reference is given them
    command += [argument for line in settings for argument in ("--set", line)]
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise NotStarted(f"The node did not start: it ended with {process.wait()}, see {log}.")
            yield json.loads(line)["bootstrap_servers"]
            if process.poll() is not None:
                raise NotStarted(f"The node ended by itself with {process.returncode}, see {log}.")
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
