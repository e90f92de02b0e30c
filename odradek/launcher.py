"""A broker of one's own, as a context manager: `with odradek.Broker() as broker: broker.bootstrap_servers`.

The node runs as a process of its own, isolated from the user's modules, on a free port, and is gone when this process
is gone however that ends: it watches the pipe that is its standard input, and the operating system closes that pipe.
Only the standard library is imported here, so nothing of ours can meet a user's `broker` or `wire` package.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from odradek.failure import Failure
from odradek.node_home import LIBRARIES

BOOT = Path(__file__).resolve().parent / "boot.py"
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 65.0
"""The node gives itself a minute: a busy disk may take long to write what it holds."""
RESET_TIMEOUT_S = 30.0
COMPACT_TIMEOUT_S = 600.0


class Broker:
    """One node in memory (or in `data`), from `start` to `stop`; both are what `with` does.

    `settings` are Kafka's broker settings by name. `port` 0 takes a free one, unless `settings` name the listeners.
    `config` is a settings file.
    Raises Failure, with the node's own sentence, where it does not start.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str | int | bool] | None = None,
        port: int = 0,
        data: str | os.PathLike[str] | None = None,
        config: str | os.PathLike[str] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self._arguments = ["--json", "--stop-with-stdin"]
        if port or "listeners" not in (settings or {}):
            self._arguments += ["--port", str(port)]
        if data is not None:
            self._arguments += ["--data", os.fspath(data)]
        if config is not None:
            self._arguments += ["--config", os.fspath(config)]
        for name, value in (settings or {}).items():
            self._arguments += ["--set", f"{name}={setting_text(value)}"]
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._log_path: Path | None = None
        self._ready: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The address clients are given, as HOST:PORT."""
        return str(self._running("bootstrap_servers"))

    @property
    def pid(self) -> int:
        """The process id of the node."""
        return int(self._running("pid"))

    @property
    def cluster_id(self) -> str:
        """The id clients see as the cluster's."""
        return str(self._running("cluster_id"))

    @property
    def alive(self) -> bool:
        """Whether the node's process is running."""
        return self._process is not None and self._process.poll() is None

    def _running(self, name: str) -> Any:
        if not self._ready:
            raise Failure("The broker is not running: start it, or use it in a with statement.")
        return self._ready[name]

    def start(self) -> Self:
        """Start the node and return when it answers clients; starting a running one changes nothing."""
        if self.alive:
            return self
        if not sys.executable:
            raise Failure("This Python does not tell where its interpreter is, so no node can be started with it.")
        descriptor, log_path = tempfile.mkstemp(prefix="odradek-", suffix=".log")
        self._log_path = Path(log_path)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(BOOT), "start", *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=descriptor,
                env=node_environment(),
            )
        finally:
            os.close(descriptor)
        started.add(self)
        atexit.register(self.stop)
        try:
            self._ready = self._read_ready_line()
        except BaseException:
            self.stop()
            raise
        return self

    def _read_ready_line(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        lines: list[bytes] = []
        reader = threading.Thread(target=lambda out: lines.append(out.readline()), args=(self._process.stdout,))
        reader.daemon = True
        reader.start()
        reader.join(self._start_timeout_s)
        if not lines:
            raise Failure(f"The broker was not ready within {self._start_timeout_s:g} s. {self.log()[-2000:]}".rstrip())
        if not lines[0]:
            self._process.wait()
            said = self.log().strip().splitlines()
            sentence = said[-1].removeprefix("odradek start: ") if said else "The broker ended without a word."
            raise Failure(sentence, self._process.returncode)
        ready: dict[str, Any] = json.loads(lines[0])
        return ready

    def log(self) -> str:
        """What the node has written to standard error so far."""
        return "" if self._log_path is None else self._log_path.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """End the node and wait until it is gone; stopping a stopped one changes nothing."""
        process, self._process, self._ready = self._process, None, {}
        atexit.unregister(self.stop)
        started.discard(self)
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()  # the node ends at the end of its standard input
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        if self._log_path is not None:
            self._log_path.unlink(missing_ok=True)
            self._log_path = None

    def forget(self) -> None:
        """In a forked child: let go of the node without ending it."""
        atexit.unregister(self.stop)
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process.returncode = 0  # its parent is another process: nothing to wait for here
        self._process, self._ready, self._log_path = None, {}, None

    def reset(self) -> None:
        """Empty the node: topics, groups, transactions, producers, settings. Clients may stay connected."""
        self._ask("reset", RESET_TIMEOUT_S)

    def compact(self, topic: str) -> None:
        """Compact a topic now, up to its last stable offset: the newest record of each key stays. Raises Failure for a
        topic that is not there or has no compact in its cleanup.policy."""
        self._ask("compact", COMPACT_TIMEOUT_S, topic=topic)

    def retention(self, topic: str) -> None:
        """Apply a topic's retention now instead of at the next check. Raises Failure for a topic that is not there."""
        self._ask("retention", COMPACT_TIMEOUT_S, topic=topic)

    def _ask(self, action: str, timeout_s: float, **parameters: str) -> None:
        control_url = str(self._running("control_url"))
        if self._process is not None and self._process.poll() is not None:
            raise Failure(f"The broker's process has ended, with {self._process.returncode}: start it anew.")
        post(control_url, action, timeout_s, **parameters)


# Brokers whose nodes this process started. A forked child must let go of them: it would keep the nodes alive by holding
# the other ends of their pipes, and must not end them when it ends.
started: weakref.WeakSet[Broker] = weakref.WeakSet()


def forget_started() -> None:
    """Runs in a forked child."""
    for broker in list(started):
        broker.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_started)


def setting_text(value: str | int | bool) -> str:
    """A setting's value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def node_environment() -> dict[str, str]:
    """This process's environment without variables that are settings of a node: a test's broker has its own only."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_") and name != "CLUSTER_ID"}
    return kept | {"ODRADEK_LIBRARY_PATH": os.pathsep.join(library_folders())}


def library_folders() -> list[str]:
    """The folders of this process's path that hold what the node needs beyond the standard library."""
    return [folder for folder in sys.path if folder and any(holds(folder, name) for name in LIBRARIES)]


def holds(folder: str, package: str) -> bool:
    return os.path.isdir(os.path.join(folder, package))


def post(control_url: str, action: str, timeout_s: float, **parameters: str) -> dict[str, Any]:
    """Ask a node's control endpoint for an action; what it says when that is done. Raises Failure where it is not."""
    return _ask_control(control_url, "POST", action, timeout_s, parameters)


def get(control_url: str, question: str, timeout_s: float, **parameters: str) -> dict[str, Any]:
    """Ask a node's control endpoint for something that changes nothing. Raises Failure where it does not answer."""
    return _ask_control(control_url, "GET", question, timeout_s, parameters)


def _ask_control(
    control_url: str, method: str, action: str, timeout_s: float, parameters: Mapping[str, str]
) -> dict[str, Any]:
    # Imported here: who only starts a broker and stops it does not wait for it.
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlencode, urlsplit

    address = urlsplit(control_url)
    query = "&".join(filter(None, [address.query, urlencode(parameters)]))
    connection = HTTPConnection(address.hostname or "", address.port, timeout=timeout_s)
    try:
        connection.request(method, f"{address.path.rstrip('/')}/{action}{'?' if query else ''}{query}")
        answer = connection.getresponse()
        said = answer.read().decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        raise Failure(f"The node's control endpoint does not answer: {error or type(error).__name__}.") from None
    finally:
        connection.close()
    if answer.status >= 300:
        raise Failure(f"The node refused {action}: {refusal(said) or answer.reason}.")
    done: dict[str, Any] = json.loads(said)
    return done


def refusal(body: str) -> str:
    """The sentence in a refusal's JSON body; the body itself where it is something else."""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body
