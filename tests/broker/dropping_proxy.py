"""A proxy between clients and a node that cuts every connection now and then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class DroppingProxy:
    """Passes bytes on until it is told to cut."""

    def __init__(self) -> None:
        self.target_port = 0
        self.cuts = 0
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Where clients connect to."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)

    def cut(self) -> None:
        """End every connection here and now, in the middle of whatever it carries."""
        self.cuts += len(self._tasks)
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Stop."""
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pass_on(reader, inner_writer))
                    both.create_task(_pass_on(inner_reader, writer))
            finally:
                inner_writer.transport.abort()
        except* (OSError, _Ended):
            pass
        except* asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()
            self._tasks.discard(task)


class _Ended(Exception):
    """One side has closed."""


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    raise _Ended


@asynccontextmanager
async def dropping_proxy() -> AsyncIterator[DroppingProxy]:
    """A started proxy; stops it at the end."""
    proxy = DroppingProxy()
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()
