"""A whole node in this process, in memory, on a free port: what tests of handlers and clients start.

    async with running_node() as node:
        client = await RawClient.connect(node.port)

`settings` are Kafka's names with texts. Clients that block (kafka-python, confluent-kafka) run in a
thread: `await asyncio.to_thread(...)`. The node's parts are at `node.server.node`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.server import Server

if TYPE_CHECKING:
    from broker.handlers.dispatch import Interceptor
    from broker.storage.files import Files

DEFAULT_SETTINGS = {
    "odradek.memory": "true",
    "odradek.control.enable": "false",
    "listeners": "PLAINTEXT://127.0.0.1:0",
}


class RunningNode:
    """A started node and how to reach it."""

    def __init__(self, server: Server) -> None:
        self.server = server

    @property
    def port(self) -> int:
        """Port of the first listener."""
        return self.server.listeners.all()[0].port

    @property
    def bootstrap_servers(self) -> str:
        """What clients are given."""
        return str(self.server.ready_line()["bootstrap_servers"])

    @property
    def clock(self) -> Clock:
        """The node's clock; `move` it where time is the subject."""
        return self.server.clock


@asynccontextmanager
async def running_node(
    settings: Mapping[str, str] | None = None,
    *,
    clock: Clock | None = None,
    interceptors: Sequence[Interceptor] = (),
    files: Files | None = None,
) -> AsyncIterator[RunningNode]:
    """Start a node with `settings` over `DEFAULT_SETTINGS`; stops it at the end, cleanly.

    A node on disk: `{"odradek.memory": "false", "log.dirs": str(tmp_path)}`.
    """
    config = BrokerConfig({**DEFAULT_SETTINGS, **(settings or {})})
    server = Server(config, clock=clock, interceptors=interceptors, files=files)
    try:
        await server.start()
        yield RunningNode(server)
    finally:
        await server.stop()
