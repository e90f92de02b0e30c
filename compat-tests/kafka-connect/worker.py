"""A Connect worker as a process: started, asked over its REST interface, stopped or killed, started again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "java"), str(HERE.parent / "reference")]

from jvm import END_TIMEOUT_S, java
from reference import free_port
from scenario import until

PATIENCE_S = 120.0
REST_TIMEOUT_S = 30.0
QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true")
COMMON = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "plugin.discovery": "service_load",
    "offset.flush.interval.ms": "500",
}
# A killed worker is missed within seconds, and its tasks are given away at once.
DISTRIBUTED = {
    "offset.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
}


def properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


class Place:
    """A directory of one scenario, which goes with it, and the connectors' jar where a worker looks for plugins."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = Path(tempfile.mkdtemp(prefix="connect-"))
        libraries = Path(os.environ["CONNECT_LIBRARIES"])
        plugin = next(libraries.glob("connect-file-*.jar"))
        (self.path / "plugins" / "file").mkdir(parents=True)
        shutil.copy(plugin, self.path / "plugins" / "file")
        jars = [jar for jar in sorted(libraries.glob("*.jar")) if jar != plugin]
        self.class_path = [Path(os.environ["CONNECT_CLASSES"]), *jars]
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.kill()
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name: str, text: str = "") -> Path:
        file = self.path / name
        file.write_text(text, encoding="utf-8")
        return file

    def standalone(self, address: str, connectors: Mapping[str, Mapping[str, str]]) -> Worker:
        """A worker that keeps its offsets in a file and is told its connectors at its start."""
        files = [self.file(f"{name}.connector", properties({"name": name, **c})) for name, c in connectors.items()]
        own = {"offset.storage.file.filename": str(self.path / "offsets")}
        return self.keep(Worker(self, "ConnectStandalone", {"bootstrap.servers": address, **own}, files))

    def distributed(self, address: str, cluster: str, **settings: str) -> Worker:
        """A worker of a cluster, which keeps offsets, settings and states in topics of the cluster's name."""
        own = {"bootstrap.servers": address, "group.id": cluster}
        own |= {f"{what}.storage.topic": f"{cluster}-{what}" for what in ("offset", "config", "status")}
        own |= {name.replace("_", "."): value for name, value in settings.items()}
        return self.keep(Worker(self, "ConnectDistributed", {**DISTRIBUTED, **own}))

    def keep(self, worker: Worker) -> Worker:
        self.workers.append(worker)
        return worker


class Worker:
    """One worker; its log lies in the suite's directory."""

    def __init__(self, place: Place, main_class: str, settings: Mapping[str, str], files: list[Path] | None = None):
        self.url = f"http://127.0.0.1:{free_port()}"
        name = f"{os.environ.get('COMPAT_AGAINST', 'broker')}-{place.name}-{len(place.workers)}"
        everything = {**COMMON, "plugin.path": str(place.path / "plugins"), "listeners": self.url, **settings}
        config = place.file(f"{name}.properties", properties(everything))
        main = f"org.apache.kafka.connect.cli.{main_class}"
        self.command = java(place.class_path, main, config, *(files or []), options=QUIET)
        self.log = Path(os.environ.get("COMPAT_DIRECTORY") or tempfile.gettempdir()) / f"{name}.log"
        self.log.unlink(missing_ok=True)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it; returns when it answers over REST."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.is_ready, f"a worker that answers ({self.log})", PATIENCE_S)
        return self

    def is_ready(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"the worker ended with {self.process.returncode} while it started ({self.log})")
        time.sleep(0.2)
        try:
            self.ask("/connectors")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def stop(self) -> None:
        """Ask it to end, as its service would."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(END_TIMEOUT_S)
        self.process = None

    def kill(self) -> None:
        """End it with 9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, path: str, method: str = "GET", body: Mapping[str, object] | None = None) -> Any:
        """What its REST interface answers; raises HTTPError where it refuses."""
        request = urllib.request.Request(
            f"{self.url}{path}", method=method, headers={"Content-Type": "application/json"}
        )
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, REST_TIMEOUT_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Make a connector or change its settings; tried again while the cluster shifts its tasks (409)."""

        def accepted() -> bool:
            try:
                self.ask(f"/connectors/{name}/config", "PUT", config)
            except urllib.error.HTTPError as refusal:
                if refusal.code != 409:
                    raise AssertionError(f"{name} is refused: {refusal.read().decode()[:300]}") from refusal
                time.sleep(0.3)
                return False
            return True

        until(accepted, f"the connector {name} is taken", PATIENCE_S)

    def states(self, name: str) -> tuple[str, list[str]]:
        """The state of a connector, and of each of its tasks."""
        try:
            status = self.ask(f"/connectors/{name}/status")
        except urllib.error.HTTPError as refusal:
            if refusal.code != 404:
                raise
            return "unknown", []
        return status["connector"]["state"], [task["state"] for task in status["tasks"]]

    def wait_for(self, name: str, connector: str, *tasks: str) -> None:
        """Until a connector and its tasks are in these states."""

        def reached() -> bool:
            time.sleep(0.2)
            return self.states(name) == (connector, list(tasks))

        until(reached, f"{name} is {connector} with tasks {tasks}", PATIENCE_S)
