"""A small synchronous Kafka client over `wire`, for the command line: one connection to each node it needs.

It speaks to any Kafka: for every API it takes the highest version that both sides have. Nothing here retries except
what Kafka calls retriable and a person would retry by hand (a coordinator that is still loading, a leader just moved).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from struct import Struct
from typing import Any, Self, TypeVar

from odradek.address import parse_address
from odradek.failure import Failure
from wire.api import API_SPECS
from wire.errors import ErrorCode, WireError
from wire.frames import decode_response, encode_request
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

CLIENT_ID = "odradek-cli"
FRAME_BYTES_MAX = 256 * 1024 * 1024  # an answer longer than this is no broker's (a web server on the port, say)
RETRY_PAUSE_S = 0.05

_size = Struct(">i")
Result = TypeVar("Result")


def check(error_code: int, doing: str, message: str | None = None) -> None:
    """Raise Failure naming Kafka's error where an answer carries one."""
    if error_code:
        why = f" ({message.strip().rstrip('.')})" if message else ""
        raise Failure(f"{doing}: {error_name(error_code)}{why}.")


def error_name(error_code: int) -> str:
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"


class Unreachable(Failure):
    """Nothing listens at an address; `why` is the reason the system gives."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"No broker can be reached at {address}: {why}.")
        self.why = why


class Connection:
    """One connection to one node, with the API versions it offers."""

    def __init__(self, host: str, port: int, timeout_ms: int) -> None:
        self.name = f"{host}:{port}"
        self.timeout_ms = timeout_ms
        self._correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout_ms / 1000)
        except OSError as error:
            raise Unreachable(self.name, error.strerror or str(error)) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def highest_version(self, api_key: int, most: int | None = None) -> int:
        """The highest version of an API that both sides have; raises Failure where they share none."""
        if not self._versions:
            self._learn_versions()
        spec = API_SPECS[api_key]
        ours = spec.max_version - 1 if spec.latest_unstable else spec.max_version
        low, high = self._versions.get(api_key, (0, -1))
        version = min(high, ours if most is None else min(ours, most))
        if version < max(low, spec.min_version):
            raise Failure(f"The broker at {self.name} does not serve {spec.name} in a version known here.")
        return version

    def _learn_versions(self) -> None:
        request = ApiVersionsRequest(client_software_name="odradek-cli", client_software_version="0.1.0")
        response = self._exchange(request, 3)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:  # answered in version 0 (KIP-511)
            response = self._exchange(ApiVersionsRequest(), 0)
        check(response.error_code, f"The broker at {self.name} does not tell its API versions")
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    def request(self, message: Any, most: int | None = None, wait_ms: int = 0) -> Any:
        """Send a request at the highest shared version (at most `most`) and return its answer.

        `wait_ms` is how long the broker itself may hold the request, on top of the time for an answer.
        """
        return self._exchange(message, self.highest_version(message.API_KEY, most), wait_ms)

    def _exchange(self, message: Any, version: int, wait_ms: int = 0) -> Any:
        self._correlation_id += 1
        name = API_SPECS[message.API_KEY].name
        try:
            self._socket.settimeout((self.timeout_ms + wait_ms) / 1000)
            self._socket.sendall(b"".join(encode_request(message, version, self._correlation_id, CLIENT_ID)))
            frame = self._receive_frame()
            # An ApiVersions answer that refuses the version comes in version 0, which newer layouts cannot read.
            if message.API_KEY == 18 and frame[4:6] == b"\x00\x23":
                version = 0
            correlation_id, response = decode_response(frame, message.API_KEY, version)
        except TimeoutError:
            raise Failure(f"The broker at {self.name} did not answer {name} within {self.timeout_ms} ms.") from None
        except OSError as error:
            raise Failure(f"The connection to {self.name} broke during {name}: {error.strerror or error}.") from None
        except WireError as error:
            raise Failure(f"The answer of {self.name} to {name} is not Kafka's protocol: {error}.") from None
        if correlation_id != self._correlation_id:
            raise Failure(f"The answer of {self.name} to {name} belongs to another request.")
        return response

    def _receive_frame(self) -> bytes:
        (size,) = _size.unpack(self._receive(4))
        if not 4 <= size <= FRAME_BYTES_MAX:
            raise Failure(f"What listens at {self.name} is no Kafka broker: its answer does not start with a size.")
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise Failure(f"The broker at {self.name} closed the connection instead of answering.")
            data += part
        return bytes(data)


class Client:
    """Reaches a cluster through its bootstrap addresses; as a context manager it closes what it opened."""

    def __init__(self, bootstrap_servers: str, timeout_ms: int = 10_000) -> None:
        self.timeout_ms = timeout_ms
        self.bootstrap_servers = bootstrap_servers
        self._addresses = [parse_address(part) for part in bootstrap_servers.split(",")]
        self._bootstrap: Connection | None = None
        self._nodes: dict[int, Connection] = {}
        self._endpoints: dict[int, tuple[str, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in [self._bootstrap, *self._nodes.values()]:
            if connection is not None:
                connection.close()

    def any_node(self) -> Connection:
        """A connection to the first bootstrap address that answers."""
        if self._bootstrap is None:
            for place, (host, port) in enumerate(self._addresses):
                try:
                    self._bootstrap = Connection(host, port, self.timeout_ms)
                    break
                except Failure:
                    if place == len(self._addresses) - 1:
                        raise
        assert self._bootstrap is not None
        return self._bootstrap

    def node(self, node_id: int) -> Connection:
        """A connection to a node by its id, as the newest metadata names its address."""
        if node_id not in self._nodes:
            if node_id not in self._endpoints:
                raise Failure(f"The cluster at {self.bootstrap_servers} does not say where node {node_id} is.")
            host, port = self._endpoints[node_id]
            try:
                self._nodes[node_id] = Connection(host, port, self.timeout_ms)
            except Unreachable as error:
                raise Failure(
                    f"The broker at {self.any_node().name} advertises {host}:{port} for node {node_id}"
                    f" (advertised.listeners), where no broker can be reached: {error.why}."
                ) from None
        return self._nodes[node_id]

    def metadata(self, topics: list[str] | None = None) -> MetadataResponse:
        """The cluster's nodes and the named topics (None: all); looking never creates a topic."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        response: MetadataResponse = self.any_node().request(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        )
        self._endpoints = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        return response

    def controller(self) -> Connection:
        """The node that takes requests which change the cluster."""
        return self.node(self.metadata([]).controller_id)

    def leaders(self, topic: str) -> dict[int, int]:
        """Leader by partition of one topic; raises Failure where the topic or a leader is missing."""
        (found,) = self.metadata([topic]).topics
        check(found.error_code, f"Topic {topic!r}")
        for partition in found.partitions:
            check(partition.error_code, f"Partition {partition.partition_index} of topic {topic!r}")
        return {partition.partition_index: partition.leader_id for partition in found.partitions}

    def coordinator(self, group_id: str) -> Connection:
        """The node that coordinates a group."""
        from wire.messages.find_coordinator import FindCoordinatorRequest

        def ask() -> tuple[int, Connection | None]:
            response = self.any_node().request(FindCoordinatorRequest(key=group_id, key_type=0), most=3)
            if response.error_code:
                return response.error_code, None
            self._endpoints[response.node_id] = (response.host, response.port)
            return 0, self.node(response.node_id)

        connection = self.retrying(ask, f"Group {group_id!r} has no coordinator")
        assert connection is not None
        return connection

    def retrying(self, ask: Callable[[], tuple[int, Result]], doing: str) -> Result:
        """Ask until the error code is none or not retriable, or the time is over; then raises Failure."""
        deadline = time.monotonic() + self.timeout_ms / 1000
        while True:
            error_code, result = ask()
            if not is_retriable(error_code) or time.monotonic() > deadline:
                check(error_code, doing)
                return result
            time.sleep(RETRY_PAUSE_S)


def is_retriable(error_code: int) -> bool:
    try:
        return ErrorCode(error_code).retriable
    except ValueError:
        return False
