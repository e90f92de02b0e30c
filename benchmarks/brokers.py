"""The brokers that are measured: a node of this tree and Apache Kafka, each over a directory of its own on disk.

Both can be started, ended by a signal and started again over the same directory, until `remove`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "compat-tests" / "reference")]

from reference import NotStarted, Reference, free_port

__all__ = ["TIMEOUT_S", "Kafka", "NotStarted", "Odradek", "prepared"]

TIMEOUT_S = 300.0


class Odradek:
    """A node of this tree. `descriptors_max` is what the process may open; None leaves it to the machine."""

    def __init__(self, settings: Sequence[str] = (), descriptors_max: int | None = None) -> None:
        self.port = free_port()
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.directory = tempfile.mkdtemp(prefix="odradek-bench-")
        self.data = Path(self.directory)
        self.process: subprocess.Popen[bytes] | None = None
        self._log = Path(f"{self.directory}.log")
        self._settings = [argument for setting in settings for argument in ("--set", setting)]
        limit = f"ulimit -n {descriptors_max} && " if descriptors_max else ""
        self._limited = ["bash", "-c", f'{limit}exec "$@"', "bash"] if descriptors_max else []

    def start(self) -> None:
        """Return when it has answered a Metadata request."""
        place = ["--port", str(self.port), "--data", self.directory]
        command = [*self._limited, sys.executable, "-m", "odradek", "start", "--json", *place, *self._settings]
        # Where bytecode may not be kept, every start would compile the tree.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
            )
        self.process = process
        wait_for_metadata(self.port, lambda: process.poll() is None)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it with a signal; the directory stays."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(TIMEOUT_S)
        self.process = None

    def remove(self) -> None:
        """End it, and its directory goes. What it complained of is printed."""
        if self.process is not None:
            self.end()
        if self._log.exists():
            said = self._log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
            sys.stderr.writelines(line for line in said if not line.startswith("INFO"))
            self._log.unlink()
        shutil.rmtree(self.directory, ignore_errors=True)


class Kafka(Reference):
    """Apache Kafka, as its start script runs it."""

    @property
    def data(self) -> Path:
        assert self.directory is not None
        return self.directory / "data"

    def wait_until_it_answers(self) -> None:
        """Return when it has answered a Metadata request."""
        process = self.process
        assert process is not None
        wait_for_metadata(self.port, lambda: process.poll() is None)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it with a signal; the directory stays."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(TIMEOUT_S)
        self.process = None

    def remove(self) -> None:
        """End it, and its directory goes."""
        self.stop()


def prepared(kind: str, settings: Sequence[str] = (), descriptors_max: int | None = None) -> Odradek | Kafka:
    """A broker that is ready to be started: Apache Kafka's directory must be formatted once, which does not count.
    `descriptors_max` is the node's alone: Apache Kafka needs more than one for each partition."""
    if kind == "odradek":
        return Odradek(settings, descriptors_max)
    kafka = Kafka(settings=settings)
    kafka.format()
    return kafka


def wait_for_metadata(port: int, alive: Callable[[], bool]) -> None:
    """Return when a broker at the port has answered a Metadata request (version 1, no topics) that names a broker."""
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
    deadline = time.monotonic() + TIMEOUT_S
    while alive() and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            head = connection.recv(12, socket.MSG_WAITALL)
            if len(head) == 12 and struct.unpack(">iii", head)[2] > 0:
                return
        time.sleep(0.002)
    raise NotStarted(f"No broker answered at port {port}.")


def memory_mb(pid: int) -> float:
    """Resident memory of a process and its children."""
    pages = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid), "--ppid", str(pid)], capture_output=True, text=True, check=True
    )
    return sum(int(line) for line in pages.stdout.split()) / 1024


def descriptors(pid: int) -> int:
    """How many files and sockets a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def processor_s(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
