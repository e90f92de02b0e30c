"""Brokers that a scenario kills and starts again over the same directory and port, and the end of such scripts."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "reference"))

from reference import Reference, free_port
from scenario import expect


class Node(Protocol):
    """A broker that can be killed and started again."""

    bootstrap_servers: str

    def start(self) -> object: ...
    def kill(self) -> None: ...
    def stop(self) -> None: ...


class Odradek:
    """Our node, as a person starts it."""

    def __init__(self, settings: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.directory = Path(tempfile.mkdtemp(prefix="odradek-killable-"))
        self.process: subprocess.Popen[str] | None = None
        self.settings = [part for setting in settings for part in ("--set", setting)]

    def start(self) -> None:
        place = ["--port", str(self.port), "--data", str(self.directory)]
        command = [sys.executable, "-m", "odradek", "start", "--json", *place, *self.settings]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        expect(json.loads(self.process.stdout.readline() or "{}").get("event"), "ready", "the ready line")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None

    def stop(self) -> None:
        """Ask it to end; its directory goes with it."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(65)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        shutil.rmtree(self.directory, ignore_errors=True)


Scenario = Callable[[Node], None]


def main(scenarios: Sequence[Scenario], settings: Sequence[str] = ()) -> None:
    """Run scenarios, each on a broker of its own with these settings; the exit code is 1 if any failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--broker", choices=["odradek", "kafka"], default="odradek")
    parser.add_argument("--only", action="append", default=[], choices=[function.__name__ for function in scenarios])
    options = parser.parse_args()
    chosen = [function for function in scenarios if not options.only or function.__name__ in options.only]
    failed = 0
    for function in chosen:
        node: Node = Odradek(settings) if options.broker == "odradek" else Reference(settings=settings)
        began = time.monotonic()
        try:
            node.start()
            function(node)
            print(f"ok     {function.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED {function.__name__}: {type(error).__name__}: {error}", flush=True)
        finally:
            node.stop()
    print(f"{len(chosen) - failed} passed, {failed} failed", flush=True)
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # clients' background threads do not hold up the end
