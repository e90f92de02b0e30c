"""All connections of a node: who may come in, who has been idle too long, what they share.

Source: `ConnectionQuotas`, `Selector`'s idle expiry, `SocketServer.Processor.closeExcessConnections`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from broker.network.connection import Connection, ReadBuffer
from broker.network.creation_rate import CreationRate
from broker.network.request_budget import RequestBudget

if TYPE_CHECKING:
    from broker.clock import Clock, Timer
    from broker.network.peer import Peer

logger = logging.getLogger(__name__)

INT_MAX = 2**31 - 1
HTTP_METHODS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
REPORTED_HOSTS_MAX = 256


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The settings that bound connections, under Kafka's names; defaults are those of a node.

    `request_budget_bytes` (`queued.max.request.bytes`, without limit in Kafka) is finite here:
    a node must not be filled by what clients send.
    """

    socket_request_max_bytes: int = 104_857_600
    request_budget_bytes: int = 268_435_456
    connections_max_idle_ms: int = 600_000
    max_connections: int = INT_MAX
    listener_max_connections: dict[str, int] = field(default_factory=dict)
    max_connections_per_ip: int = INT_MAX
    max_connections_per_ip_overrides: dict[str, int] = field(default_factory=dict)
    max_connection_creation_rate: int = INT_MAX
    listener_max_connection_creation_rate: dict[str, int] = field(default_factory=dict)
    protected_listener: str | None = None
    """The inter-broker listener where it is not the only one: never refused for `max.connections`."""
    socket_listen_backlog_size: int = 1024


class ConnectionSet:
    """The connections of all listeners of one node, on one loop."""

    def __init__(self, clock: Clock, limits: ConnectionLimits, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.read_buffer = ReadBuffer()
        self.budget = RequestBudget(limits.request_budget_bytes)
        self._limits = limits
        self.clock = clock
        self._connections: set[Connection] = set()
        self._held: deque[Connection] = deque()
        self._by_listener: Counter[str] = Counter()
        self._by_host: Counter[str] = Counter()
        self._idle_timer: Timer | None = None
        self._rate: CreationRate | None = None
        self._listener_rates: dict[str, CreationRate] = {}
        self._rate_timer: Timer | None = None
        self._set_rates()
        self._reported: set[tuple[str, str]] = set()
        self._closed = asyncio.Event()
        self._is_closing = False
        self._accepted = 0

    def __len__(self) -> int:
        return len(self._connections)

    def all(self) -> list[Connection]:
        """The connections there are, held ones too."""
        return list(self._connections)

    @property
    def requests_in_progress(self) -> int:
        """How many connections have a request that is being answered."""
        return sum(connection.is_answering for connection in self._connections)

    @property
    def limits(self) -> ConnectionLimits:
        """The limits in force; assigning new ones (dynamic settings) applies them at once."""
        return self._limits

    @limits.setter
    def limits(self, limits: ConnectionLimits) -> None:
        changed_rates = (
            limits.max_connection_creation_rate != self._limits.max_connection_creation_rate
            or limits.listener_max_connection_creation_rate != self._limits.listener_max_connection_creation_rate
        )
        self._limits = limits
        self.budget.limit_bytes = limits.request_budget_bytes
        if changed_rates:
            self._set_rates()
        self._let_in_held()

    # --- coming and going --------------------------------------------------------------------

    def admit(self, connection: Connection) -> None:
        """Let a new connection in, hold it until there is a place, or close it."""
        host = connection.peer.client_host
        limits = self._limits
        self._accepted += 1
        connection.peer.connection_id = (
            f"{connection.listener_name}-{host}:{connection.peer.client_port}-{self._accepted}"
        )
        self._connections.add(connection)
        self._by_host[host] += 1
        if self._is_closing:
            # Accepted before the listener was closed, seen by the loop after all others were told to go.
            connection.abort()
            return
        per_host_max = limits.max_connections_per_ip_overrides.get(host, limits.max_connections_per_ip)
        if self._by_host[host] > per_host_max:
            self._report_once(
                "max.connections.per.ip",
                host,
                f"connection from {host} closed: it has {per_host_max} already (setting max.connections.per.ip)",
            )
            connection.close("more connections from one address than max.connections.per.ip")
            return
        if not self._held and self._wait_ms(connection.listener_name) == 0.0:
            self._place(connection)
        elif len(self._held) < limits.socket_listen_backlog_size:
            connection.hold()
            self._held.append(connection)
            if self._rate_timer is None:
                self._let_in_held()
        else:
            connection.close("more connections than max.connections")

    def remove(self, connection: Connection) -> None:
        """A connection is gone; the first one held takes its place."""
        self._connections.discard(connection)
        host = connection.peer.client_host
        self._by_host[host] -= 1
        if self._by_host[host] <= 0:
            del self._by_host[host]
        if connection in self._held:
            self._held.remove(connection)
        elif connection.is_placed:
            self._by_listener[connection.listener_name] -= 1
        self._let_in_held()
        if not self._connections:
            self._closed.set()
            if self._idle_timer is not None:
                self._idle_timer.cancel()
                self._idle_timer = None

    def _wait_ms(self, listener_name: str) -> float:
        """How long a connection has to wait for its place: 0 not at all, infinite for one to be free."""
        limits, now_ms = self._limits, self.clock.monotonic_ms()
        if self._by_listener[listener_name] >= limits.listener_max_connections.get(listener_name, INT_MAX):
            return inf
        is_protected = listener_name == limits.protected_listener
        if not is_protected and self._by_listener.total() >= limits.max_connections:
            return inf
        rates = [self._listener_rates.get(listener_name), None if is_protected else self._rate]
        return max(0.0 if rate is None else rate.wait_ms(now_ms) for rate in rates)

    def _place(self, connection: Connection) -> None:
        listener_name = connection.listener_name
        self._by_listener[listener_name] += 1
        connection.is_placed = True
        for rate in (self._rate, self._listener_rates.get(listener_name)):
            if rate is not None:
                rate.count()
        self._arm_idle_timer(self._limits.connections_max_idle_ms)
        if listener_name == self._limits.protected_listener:
            self._close_least_recently_used()

    def _let_in_held(self) -> None:
        """Give free places to those that wait, in their order; come back when the rate allows the next."""
        soonest_ms = inf
        for connection in tuple(self._held):
            wait_ms = self._wait_ms(connection.listener_name)
            if wait_ms == 0.0:
                self._held.remove(connection)
                self._place(connection)
                connection.let_in()
            soonest_ms = min(soonest_ms, wait_ms or inf)
        self._arm_rate_timer(soonest_ms)

    def _arm_rate_timer(self, wait_ms: float) -> None:
        if self._rate_timer is not None:
            self._rate_timer.cancel()
            self._rate_timer = None
        if wait_ms != inf:
            self._rate_timer = self.clock.call_later(wait_ms, self._let_in_held)

    def _set_rates(self) -> None:
        limits, now_ms = self._limits, self.clock.monotonic_ms()
        per_second = limits.max_connection_creation_rate
        self._rate = CreationRate(per_second, now_ms) if per_second < INT_MAX else None
        self._listener_rates = {
            name: CreationRate(rate, now_ms)
            for name, rate in limits.listener_max_connection_creation_rate.items()
            if rate < INT_MAX
        }

    def _close_least_recently_used(self) -> None:
        if self._by_listener.total() <= self._limits.max_connections:
            return
        candidates = [
            connection
            for connection in self._connections
            if connection.is_placed and connection.listener_name != self._limits.protected_listener
        ]
        if candidates:
            least_recently_used = min(candidates, key=lambda connection: connection.last_active_ms)
            least_recently_used.drop("its place was needed on the inter-broker listener (max.connections)")

    # --- idle ----------------------------------------------------------------------------------

    def _arm_idle_timer(self, delay_ms: float) -> None:
        if self._idle_timer is None:
            self._idle_timer = self.clock.call_later(delay_ms, self._close_idle)

    def _close_idle(self) -> None:
        """Close what was idle too long; come back when the next one may be."""
        self._idle_timer = None
        limit_ms = self._limits.connections_max_idle_ms
        now_ms = self.clock.monotonic_ms()
        oldest_ms = now_ms
        for connection in tuple(self._connections):
            if connection.is_taking_bytes():
                connection.last_active_ms = now_ms
            if now_ms - connection.last_active_ms >= limit_ms:
                connection.drop(f"idle for {limit_ms} ms (connections.max.idle.ms)")
            else:
                oldest_ms = min(oldest_ms, connection.last_active_ms)
        if self._connections:
            self._arm_idle_timer(oldest_ms + limit_ms - now_ms)

    # --- reports -------------------------------------------------------------------------------

    def report_refused_size(self, peer: Peer, size: int, prefix: bytes) -> None:
        """One line, the first time, naming what most likely came instead of Kafka's protocol."""
        if prefix.startswith(HTTP_METHODS):
            kind = "HTTP"
            text = f"{peer.client_host} spoke HTTP to listener {peer.listener_name}, which speaks Kafka's protocol"
        elif prefix[:2] == b"\x16\x03":
            kind = "TLS"
            text = f"{peer.client_host} spoke TLS to listener {peer.listener_name}, which is {peer.security_protocol}"
        else:
            kind = "size"
            allowed = f"0 to {self._limits.socket_request_max_bytes} (setting socket.request.max.bytes)"
            text = f"{peer.client_host} sent a frame of {size} bytes, allowed are {allowed}"
        self._report_once(kind, peer.client_host, text + "; connection closed")

    def _report_once(self, kind: str, host: str, text: str) -> None:
        known = (kind, host)
        if known in self._reported:
            logger.debug(text)
            return
        if len(self._reported) < REPORTED_HOSTS_MAX:
            self._reported.add(known)
        logger.warning(text)

    # --- stopping ------------------------------------------------------------------------------

    async def drop_all(self, reason: str) -> None:
        """Close every connection; requests in progress run to their ends. Waits until all are gone."""
        for connection in tuple(self._connections):
            connection.drop(reason)
        await self._wait_for_none()

    async def close(self) -> None:
        """Close every connection, and who comes from now on, give up its request, and wait until all are gone."""
        self._is_closing = True
        for connection in tuple(self._connections):
            connection.abort()
        await self._wait_for_none()

    async def _wait_for_none(self) -> None:
        if self._connections:
            self._closed.clear()
            await self._closed.wait()
