"""A node as a process of its own that is killed and started over the same directory and port."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.crash.requests import Broken

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
NO_FAULT = ("INFO: ", "WARNING: ")
"""How lines begin that a node may say of what goes on."""

SETTINGS = {
    "log.segment.bytes": "1048576",
    "log.index.interval.bytes": "512",
    "log.segment.delete.delay.ms": "200",
    "log.cleaner.backoff.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "log.retention.check.interval.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "offsets.retention.minutes": "2147483647",
}
"""What happens seldom with Kafka's defaults happens in every round here."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Node:
    """`start`, then `kill` or `stop`; what it said on standard error is kept in a file."""

    def __init__(self, home: Path, settings: Mapping[str, str] | None = None) -> None:
        """`settings` go over those that all nodes here have."""
        self.data = home / "data"
        self.port = free_port()
        self.said = home / "node.log"
        self._process: asyncio.subprocess.Process | None = None
        chosen = {**SETTINGS, **(settings or {})}
        self._settings = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]

    async def spawn(self) -> asyncio.subprocess.Process:
        """Begin to start it."""
        place = ["--port", str(self.port), "--data", str(self.data)]
        with self.said.open("ab") as said:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "odradek", "start", "--json", *place, *self._settings,
                cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=said,
            )  # fmt: skip
        return self._process

    async def start(self) -> str:
        """Start it and wait until it is ready; its control address. Raises Broken where it does not start."""
        process = await self.spawn()
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_S)
        if not line:
            raise Broken(f"the node did not start: {self.last_words()}")
        return str(json.loads(line)["control_url"])

    async def kill(self) -> None:
        """End it at once, wherever it is. It must have lived until now."""
        assert self._process is not None
        if self._process.returncode is not None:
            raise Broken(f"the node ended by itself with {self._process.returncode}: {self.last_words()}")
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Ask it to end; it must do so cleanly."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(self._process.wait(), STOP_TIMEOUT_S)
        if code or not (self.data / ".kafka_cleanshutdown").exists():
            raise Broken(f"the node did not stop cleanly, it ended with {code}: {self.last_words()}")

    async def end(self) -> None:
        """Whatever became of it, it is gone afterwards."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def last_words(self) -> str:
        return self.said.read_text(errors="replace").strip()[-600:] or "it said nothing"

    def complaints(self) -> list[str]:
        """What it wrote to standard error of faults, tracebacks whole; a node that was killed has none to tell of."""
        lines = self.said.read_text(errors="replace").splitlines()
        return [line for line in lines if not line.startswith(NO_FAULT)]
