"""A listener with an answer function of the test's own, on a free port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.clock import Clock
from broker.network.connection import Answer
from broker.network.connection_set import ConnectionLimits, ConnectionSet
from broker.network.listener import Listener, ListenerConfig


class Network:
    """One listener, its connections and the clock they live by."""

    def __init__(self, answer: Answer, limits: ConnectionLimits, host: str) -> None:
        self.clock = Clock()
        self.connections = ConnectionSet(self.clock, limits, asyncio.get_running_loop())
        self.listener = Listener(ListenerConfig("PLAINTEXT", host, 0), self.connections, answer)

    @property
    def port(self) -> int:
        return self.listener.port


@asynccontextmanager
async def network(
    answer: Answer, limits: ConnectionLimits | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Network]:
    """Start a listener; closes it and all its connections at the end."""
    running = Network(answer, limits or ConnectionLimits(), host)
    running.listener.bind()
    await running.listener.start()
    try:
        yield running
    finally:
        await running.listener.close()
        await running.connections.close()
        running.clock.close()


async def eventually(condition: object, what: str) -> None:
    """Let the loop run until `condition()` holds; fails after a guard against hanging."""
    assert callable(condition)
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0.0005)
    raise AssertionError(f"never happened: {what}")
