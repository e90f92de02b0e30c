"""The control endpoint's socket. It listens from the start; HTTP is imported at the first request.

Only loopback is bound. Whoever knows the token may act; the token is in the address of the ready
line, which only the process that started the node reads.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

LOOPBACK = "127.0.0.1"
OPEN_CONNECTIONS_MAX = 64


class Route(NamedTuple):
    """One action: `act` gets the query's parameters and returns what is sent back as JSON.

    It raises Refused for a request that cannot be done. A route with `needs_token` False may be
    asked by anyone on this machine.
    """

    method: str
    path: str
    act: Callable[[dict[str, str]], Awaitable[Any]]
    needs_token: bool = True


class Refused(Exception):
    """An action that is not done, with its HTTP status and one sentence why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class ControlEndpoint:
    """Listens on a loopback port and hands connections to `broker.http.serving`."""

    def __init__(self, routes: Sequence[Route], port: int = 0) -> None:
        self.routes = routes
        self.token = secrets.token_urlsafe(16)
        self._port = port
        self._socket: socket.socket | None = None
        self._server: asyncio.AbstractServer | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._is_closing = False

    @property
    def url(self) -> str:
        """The address with the token, once bound: `http://127.0.0.1:PORT/?token=...`."""
        return f"http://{LOOPBACK}:{self._port}/?token={self.token}"

    def bind(self) -> None:
        """Take the port. Raises OSError."""
        sock = socket.socket()
        sock.setblocking(False)
        try:
            sock.bind((LOOPBACK, self._port))
        except OSError:
            sock.close()
            raise
        self._socket = sock
        self._port = sock.getsockname()[1]

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, sock=self._socket, backlog=16)

    async def close(self) -> None:
        """Stop listening and drop open connections."""
        self._is_closing = True
        if self._server is not None:
            self._server.close()
        elif self._socket is not None:
            self._socket.close()
        for task in tuple(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            if len(self._open) <= OPEN_CONNECTIONS_MAX:
                from broker.http.serving import serve

                await serve(reader, writer, self.routes, self.token)
        except (ConnectionError, TimeoutError):
            pass  # The other end is gone, or says nothing: there is nobody to tell.
        except asyncio.CancelledError:
            # Cancelled by `close` alone, it ends here: asyncio's own callback takes a cancelled task for a fault.
            if not self._is_closing:
                raise
        finally:
            self._open.discard(task)
            writer.close()
