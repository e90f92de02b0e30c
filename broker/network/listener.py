"""Listeners: the addresses a node answers on, and those it tells clients to use.

Ports are bound early, so that port 0 has a number before the broker registers itself, and listened
on last, so that whoever connects finds a node that works. `localhost` means both loopbacks.
Source: `SocketServer.Acceptor`, `EndPoint`; settings `listeners`, `advertised.listeners`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from broker.network.connection import Answer, Connection
from broker.network.connection_set import ConnectionSet

BIND_ATTEMPTS = 20
"""With port 0 the second loopback wants the number the first was given; another process may have it."""

LOOPBACKS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class CannotListen(Exception):
    """A listener's address cannot be had; the text is one sentence naming it and the setting."""

    def __init__(self, sentence: str, *, is_taken: bool = False) -> None:
        super().__init__(sentence)
        self.is_taken = is_taken
        """Another process has the port."""


class Address(NamedTuple):
    """A host and a port as told to clients."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """One entry of `listeners` with its entry of `advertised.listeners`.

    `host` "" means every address of the machine, "localhost" both loopbacks. Without
    `advertised_host` or `advertised_port` the listener's own are told to clients, "localhost" as a number.
    """

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"
    advertised_host: str | None = None
    advertised_port: int | None = None


class Listener:
    """One named listener on one or more sockets of the same port."""

    def __init__(self, config: ListenerConfig, connection_set: ConnectionSet, answer: Answer) -> None:
        self.config = config
        self.name = config.name
        self._connection_set = connection_set
        self._answer = answer
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.AbstractServer] = []
        self.port = config.port

    @property
    def advertised(self) -> Address:
        """What clients are told to connect to, once bound."""
        host = self.config.advertised_host
        if host is None:
            host = self.config.host
            if host == "localhost":
                # The number is what people are shown, the same for every client: the name leads some to ::1 and some
                # to 127.0.0.1, and this machine may have one of them only.
                host = self._sockets[0].getsockname()[0]
        port = self.config.advertised_port
        return Address(host or socket.gethostname(), self.port if port is None else port)

    @property
    def numeric(self) -> Address:
        """A numeric address that reaches the listener from this machine, for people and scripts."""
        host = self._sockets[0].getsockname()[0]
        return Address({"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host), self.port)

    def bind(self) -> None:
        """Take the port without listening yet. Raises CannotListen."""
        attempts = BIND_ATTEMPTS if self.config.port == 0 else 1
        for attempt in range(attempts):
            try:
                self._bind_all()
                return
            except OSError as error:
                self._close_sockets()
                if attempt + 1 < attempts and error.errno == errno.EADDRINUSE:
                    continue
                raise self._cannot_listen(error) from error

    def _bind_all(self) -> None:
        self.port = self.config.port
        for family, host in self._wanted_addresses():
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError:
                continue  # This machine has no such addresses at all.
            try:
                _prepare(sock, family, dual_stack=self.config.host == "")
                sock.bind((host, self.port))
            except OSError as error:
                sock.close()
                if error.errno in NO_SUCH_ADDRESS and self.config.host in ("", "localhost"):
                    continue
                raise
            self._sockets.append(sock)
            self.port = sock.getsockname()[1]
            if self.config.host == "":
                return
        if not self._sockets:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))

    def _wanted_addresses(self) -> Sequence[tuple[int, str]]:
        host = self.config.host
        if host == "localhost":
            return LOOPBACKS
        if host == "":
            return ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0"))
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))

    async def start(self) -> None:
        """Listen: from now on clients are answered. Raises CannotListen."""
        loop = self._connection_set.loop
        backlog = self._connection_set.limits.socket_listen_backlog_size
        config = self.config

        def new_connection() -> Connection:
            return Connection(self._connection_set, config.name, config.security_protocol, self._answer)

        for sock in self._sockets:
            try:
                server = await loop.create_server(new_connection, sock=sock, backlog=backlog)
            except OSError as error:
                await self.close()
                raise self._cannot_listen(error) from error
            self._servers.append(server)

    async def close(self) -> None:
        """Stop listening and free the port; connections stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        self._close_sockets()

    def _close_sockets(self) -> None:
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()

    def _cannot_listen(self, error: OSError) -> CannotListen:
        address = Address(self.config.host or "*", self.config.port)
        is_taken = error.errno == errno.EADDRINUSE
        cause = "the port is taken" if is_taken else (error.strerror or str(error))
        return CannotListen(f"cannot listen on {address} (setting listeners, {self.name}): {cause}", is_taken=is_taken)


class ListenerSet:
    """All listeners of a node, bound, started and closed together."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._by_name = {listener.name: listener for listener in listeners}

    def __iter__(self) -> object:
        return iter(self._by_name.values())

    def advertised(self, listener_name: str) -> Address | None:
        """The address clients of this listener are told; None for an unknown name."""
        listener = self._by_name.get(listener_name)
        return None if listener is None else listener.advertised

    def all(self) -> list[Listener]:
        """In the order of the settings."""
        return list(self._by_name.values())

    def bind(self) -> None:
        """Take every port. Raises CannotListen."""
        for listener in self._by_name.values():
            listener.bind()

    async def start(self) -> None:
        """Listen on every port. Raises CannotListen."""
        for listener in self._by_name.values():
            await listener.start()

    async def close(self) -> None:
        """Free every port."""
        for listener in self._by_name.values():
            await listener.close()


def _prepare(sock: socket.socket, family: int, *, dual_stack: bool) -> None:
    sock.setblocking(False)
    if os.name == "posix":
        # A port is free at once after a stop, connections in TIME_WAIT or not.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    elif hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if dual_stack else 1)
