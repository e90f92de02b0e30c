"""The client end of one connection, as requests see it."""

from __future__ import annotations

from collections.abc import Callable

from broker.principal import ANONYMOUS, Principal


class Peer:
    """Who is at the other end, learned once per connection and shared by its requests.

    `client_software_name` and `client_software_version` are empty until an ApiVersions v3+
    names them (KIP-511). `disconnect_listeners` are called once, with this peer, when the
    connection is gone: share sessions are released so (`ConnectionDisconnectListener`).
    """

    __slots__ = (
        "client_host",
        "client_port",
        "client_software_name",
        "client_software_version",
        "connection_id",
        "disconnect_listeners",
        "is_connected",
        "listener_name",
        "principal",
        "security_protocol",
    )

    def __init__(
        self,
        *,
        listener_name: str,
        client_host: str,
        client_port: int = 0,
        connection_id: str = "",
        principal: Principal = ANONYMOUS,
        security_protocol: str = "PLAINTEXT",
    ) -> None:
        self.listener_name = listener_name
        self.client_host = client_host
        self.client_port = client_port
        self.connection_id = connection_id
        self.principal = principal
        self.security_protocol = security_protocol
        self.client_software_name = ""
        self.client_software_version = ""
        self.is_connected = True
        self.disconnect_listeners: list[Callable[[Peer], None]] = []


class CloseConnection(Exception):
    """The request's connection is to be closed without an answer, as Kafka does (A6, A7, A13).

    `reason` is one clause for the debug log, such as "produce with acks=0 failed".
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
