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

import sent
from reference import NotStarted, Reference, free_port

__all__ = ["ROOT", "NotStarted", "broker", "kind_of"]

STOP_TIMEOUT_S = 30


def kind_of(against: str) -> str:
    """What results are kept under: odradek, reference, or the address of a broker that runs."""
    return against.replace(":", "-") if ":" in against else against


@contextlib.contextmanager
def broker(
    against: str, settings: Mapping[str, object], log: Path, host: str = "127.0.0.1", sent_file: Path | None = None
) -> Iterator[str]:
    """The address of the broker; one started for this has these settings, calls itself by `host`, ends after it.

    What a node of this tree is sent meanwhile is added to `sent_file`.
    """
    lines = [f"{name}={text_of(value)}" for name, value in settings.items()]
    if ":" in against:
        yield against
    elif against == "reference":
        port = free_port()
        with Reference(port, [f"advertised.listeners=PLAINTEXT://{host}:{port}", *lines]):
            yield f"{host}:{port}"
    else:
        with own_node(host, lines, log, sent_file) as address:
            yield address


def text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextlib.contextmanager
def own_node(host: str, settings: list[str], log: Path, sent_file: Path | None) -> Iterator[str]:
    """A node of this tree, as a person starts it, in memory; what it says goes to the log."""
    port = free_port()
    command = [sys.executable, "-m", "odradek", "start", "--json", "--listeners", f"PLAINTEXT://127.0.0.1:{port}"]
    command += ["--advertised-listeners", f"PLAINTEXT://{host}:{port}"]  # as the reference is given them
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
            control_url = json.loads(line)["control_url"]
            if sent_file is not None:
                sent.count(control_url)
            yield f"{host}:{port}"
            if process.poll() is not None:
                raise NotStarted(f"The node ended by itself with {process.returncode}, see {log}.")
            if sent_file is not None:
                sent.keep(control_url, sent_file)
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
