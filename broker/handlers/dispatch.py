"""The one table of served APIs, and the way of a request through it.

A row in `API_ROWS` registers an API: what is registered is what ApiVersions advertises and what
the support page lists. Handler modules and messages are imported at the first request of their
API, so that a node starts without them.

The way: frame → key and version looked up in the table → header and body decoded in full →
interceptors before → handler → interceptors after → answer encoded at the request's version.
Source: `SocketServer.Processor.parseRequestHeader`, `RequestHandlerHelper`, `KafkaApis.handle`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from struct import Struct
from typing import Any, NamedTuple, Protocol

from broker.handlers.context import Node, RequestContext
from broker.network.peer import CloseConnection, Peer
from broker.security.authorizer import Operation, ResourceType
from wire.api import API_SPECS, ApiKey, ApiSpec
from wire.errors import KafkaError, WireError
from wire.frames import decode_request_header, encode_response

logger = logging.getLogger(__name__)

_KEY_AND_VERSION = Struct(">hh")
API_VERSIONS_KEY = int(ApiKey.API_VERSIONS)

Handler = Callable[[Any, RequestContext], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ApiRow:
    """One served API.

    `module` is the module's name in `broker.handlers`, imported at first use. The versions are the
    schema's stable ones unless narrowed here. `advertised_min` is what ApiVersions says where that
    differs from what is accepted. `authorizes` declares what the handler asks of the authorizer.
    """

    key: ApiKey
    module: str
    authorizes: tuple[tuple[Operation, ResourceType], ...] = ()
    min_version: int | None = None
    max_version: int | None = None
    advertised_min: int | None = None


ALTERS_CONFIGS = (
    (Operation.ALTER_CONFIGS, ResourceType.TOPIC),
    (Operation.ALTER_CONFIGS, ResourceType.GROUP),
    (Operation.ALTER_CONFIGS, ResourceType.CLUSTER),
)

# Sorted by key. Add a row when the handler is whole, never before.
API_ROWS: tuple[ApiRow, ...] = (
    ApiRow(
        ApiKey.PRODUCE,
        "produce",
        ((Operation.WRITE, ResourceType.TRANSACTIONAL_ID), (Operation.WRITE, ResourceType.TOPIC)),
        # Versions 0 to 2 are advertised for old librdkafka (KAFKA-18659), and refused.
        advertised_min=0,
    ),
    ApiRow(
        ApiKey.FETCH, "fetch", ((Operation.CLUSTER_ACTION, ResourceType.CLUSTER), (Operation.READ, ResourceType.TOPIC))
    ),
    ApiRow(ApiKey.LIST_OFFSETS, "list_offsets", ((Operation.DESCRIBE, ResourceType.TOPIC),)),
    ApiRow(
        ApiKey.METADATA, "metadata", ((Operation.DESCRIBE, ResourceType.TOPIC), (Operation.CREATE, ResourceType.TOPIC))
    ),
    ApiRow(
        ApiKey.OFFSET_COMMIT,
        "offset_commit",
        ((Operation.READ, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)),
    ),
    ApiRow(
        ApiKey.OFFSET_FETCH,
        "offset_fetch",
        ((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
    ),
    ApiRow(
        ApiKey.FIND_COORDINATOR,
        "find_coordinator",
        ((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)),
    ),
    ApiRow(ApiKey.JOIN_GROUP, "join_group", ((Operation.READ, ResourceType.GROUP),)),
    ApiRow(ApiKey.HEARTBEAT, "heartbeat", ((Operation.READ, ResourceType.GROUP),)),
    ApiRow(ApiKey.LEAVE_GROUP, "leave_group", ((Operation.READ, ResourceType.GROUP),)),
    ApiRow(ApiKey.SYNC_GROUP, "sync_group", ((Operation.READ, ResourceType.GROUP),)),
    ApiRow(ApiKey.DESCRIBE_GROUPS, "describe_groups", ((Operation.DESCRIBE, ResourceType.GROUP),)),
    ApiRow(
        ApiKey.LIST_GROUPS,
        "list_groups",
        ((Operation.DESCRIBE, ResourceType.CLUSTER), (Operation.DESCRIBE, ResourceType.GROUP)),
    ),
    ApiRow(ApiKey.SASL_HANDSHAKE, "sasl_handshake"),
    ApiRow(ApiKey.API_VERSIONS, "api_versions"),
    ApiRow(
        ApiKey.CREATE_TOPICS,
        "create_topics",
        ((Operation.CREATE, ResourceType.CLUSTER), (Operation.CREATE, ResourceType.TOPIC)),
    ),
    ApiRow(
        ApiKey.DELETE_TOPICS,
        "delete_topics",
        ((Operation.DESCRIBE, ResourceType.TOPIC), (Operation.DELETE, ResourceType.TOPIC)),
    ),
    ApiRow(ApiKey.DELETE_RECORDS, "delete_records", ((Operation.DELETE, ResourceType.TOPIC),)),
    ApiRow(
        ApiKey.INIT_PRODUCER_ID,
        "init_producer_id",
        ((Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER), (Operation.WRITE, ResourceType.TRANSACTIONAL_ID)),
    ),
    ApiRow(ApiKey.OFFSET_FOR_LEADER_EPOCH, "offset_for_leader_epoch", ((Operation.DESCRIBE, ResourceType.TOPIC),)),
    ApiRow(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "add_partitions_to_txn",
        (
            (Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
            (Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
            (Operation.WRITE, ResourceType.TOPIC),
        ),
    ),
    ApiRow(
        ApiKey.ADD_OFFSETS_TO_TXN,
        "add_offsets_to_txn",
        ((Operation.WRITE, ResourceType.TRANSACTIONAL_ID), (Operation.READ, ResourceType.GROUP)),
    ),
    ApiRow(ApiKey.END_TXN, "end_txn", ((Operation.WRITE, ResourceType.TRANSACTIONAL_ID),)),
    ApiRow(
        ApiKey.WRITE_TXN_MARKERS,
        "write_txn_markers",
        ((Operation.ALTER, ResourceType.CLUSTER), (Operation.CLUSTER_ACTION, ResourceType.CLUSTER)),
    ),
    ApiRow(
        ApiKey.TXN_OFFSET_COMMIT,
        "txn_offset_commit",
        (
            (Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
            (Operation.READ, ResourceType.GROUP),
            (Operation.READ, ResourceType.TOPIC),
        ),
    ),
    ApiRow(ApiKey.DESCRIBE_ACLS, "describe_acls", ((Operation.DESCRIBE, ResourceType.CLUSTER),)),
    ApiRow(ApiKey.CREATE_ACLS, "create_acls", ((Operation.ALTER, ResourceType.CLUSTER),)),
    ApiRow(ApiKey.DELETE_ACLS, "delete_acls", ((Operation.ALTER, ResourceType.CLUSTER),)),
    ApiRow(
        ApiKey.DESCRIBE_CONFIGS,
        "describe_configs",
        (
            (Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
            (Operation.DESCRIBE_CONFIGS, ResourceType.GROUP),
            (Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
        ),
    ),
    ApiRow(ApiKey.ALTER_CONFIGS, "alter_configs", ALTERS_CONFIGS),
    ApiRow(ApiKey.DESCRIBE_LOG_DIRS, "describe_log_dirs", ((Operation.DESCRIBE, ResourceType.CLUSTER),)),
    ApiRow(ApiKey.SASL_AUTHENTICATE, "sasl_authenticate"),
    ApiRow(ApiKey.CREATE_PARTITIONS, "create_partitions", ((Operation.ALTER, ResourceType.TOPIC),)),
    ApiRow(ApiKey.DELETE_GROUPS, "delete_groups", ((Operation.DELETE, ResourceType.GROUP),)),
    ApiRow(ApiKey.ELECT_LEADERS, "elect_leaders", ((Operation.ALTER, ResourceType.CLUSTER),)),
    ApiRow(ApiKey.INCREMENTAL_ALTER_CONFIGS, "incremental_alter_configs", ALTERS_CONFIGS),
    ApiRow(
        ApiKey.OFFSET_DELETE,
        "offset_delete",
        ((Operation.DELETE, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)),
    ),
    ApiRow(ApiKey.DESCRIBE_QUORUM, "describe_quorum", ((Operation.DESCRIBE, ResourceType.CLUSTER),)),
    ApiRow(ApiKey.UPDATE_FEATURES, "update_features", ((Operation.ALTER, ResourceType.CLUSTER),)),
    ApiRow(ApiKey.DESCRIBE_CLUSTER, "describe_cluster", ((Operation.DESCRIBE, ResourceType.CLUSTER),)),
    ApiRow(ApiKey.DESCRIBE_PRODUCERS, "describe_producers", ((Operation.READ, ResourceType.TOPIC),)),
    ApiRow(
        ApiKey.DESCRIBE_TRANSACTIONS,
        "describe_transactions",
        ((Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID), (Operation.DESCRIBE, ResourceType.TOPIC)),
    ),
    ApiRow(ApiKey.LIST_TRANSACTIONS, "list_transactions", ((Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),)),
    ApiRow(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "consumer_group_heartbeat",
        ((Operation.READ, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
    ),
    ApiRow(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        "consumer_group_describe",
        ((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
    ),
    ApiRow(
        ApiKey.LIST_CONFIG_RESOURCES,
        "list_config_resources",
        ((Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),),
    ),
    ApiRow(ApiKey.UNREGISTER_BROKER, "unregister_broker", ((Operation.ALTER, ResourceType.CLUSTER),)),
    ApiRow(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "describe_topic_partitions", ((Operation.DESCRIBE, ResourceType.TOPIC),)),
)


class VersionRange(NamedTuple):
    """One API as ApiVersions lists it."""

    key: int
    min_version: int
    max_version: int


class Interceptor(Protocol):
    """Stands around every request's effect: fault injection, tracing.

    `before` may return a response, which then answers in the handler's place without any effect,
    raise KafkaError (answered as the handler's would be) or CloseConnection; None lets the
    request pass. `after` returns the response to send, usually the one it was given (None: no
    answer, for Produce with acks=0).
    """

    async def before(self, request: Any, context: RequestContext) -> Any | None:
        """Called once the request is decoded, before the handler."""

    async def after(self, request: Any, response: Any, context: RequestContext) -> Any:
        """Called with the response before it is encoded."""


class _Route:
    """A row with its versions worked out, its classes loaded at first use."""

    __slots__ = ("advertised_min", "handle", "max_version", "min_version", "request_class", "row", "spec")

    def __init__(self, row: ApiRow, spec: ApiSpec, released: tuple[int, int]) -> None:
        self.row = row
        self.spec = spec
        stable_max = spec.max_version - 1 if spec.latest_unstable else spec.max_version
        lowest = spec.min_version if row.min_version is None else row.min_version
        highest = stable_max if row.max_version is None else row.max_version
        self.min_version = max(lowest, released[0])
        self.max_version = min(highest, released[1])
        self.advertised_min = self.min_version if row.advertised_min is None else row.advertised_min
        self.request_class: Any = None
        self.handle: Handler

    def load(self) -> Any:
        """Import messages and handler; returns the request class."""
        self.handle = import_module(f"broker.handlers.{self.row.module}").handle
        self.request_class = self.spec.load()[0]
        return self.request_class


class Dispatcher:
    """Answers requests on one type of listener ("broker" or "controller").

    `release` is the Kafka release whose version ranges are answered with ("4.4"; older ones narrow
    the table, see `release_versions`). Raises ValueError for a release that is not known.
    """

    def __init__(
        self,
        node: Node,
        *,
        rows: Sequence[ApiRow] = API_ROWS,
        listener_type: str = "broker",
        release: str = "4.4",
        interceptors: Sequence[Interceptor] = (),
    ) -> None:
        self.node = node
        self.interceptors: list[Interceptor] = list(interceptors)
        self._routes: dict[int, _Route] = {}
        released = released_versions(release)
        # Features that this release did not have: ApiVersions leaves them out.
        self.unknown_features = unknown_features(release)
        for row in rows:
            spec = API_SPECS[row.key]
            versions = released.get(row.key, (0, 32767))
            if versions is None or listener_type not in spec.listeners:
                continue
            route = _Route(row, spec, versions)
            if route.min_version <= route.max_version:
                self._routes[int(row.key)] = route

    def versions(self) -> list[VersionRange]:
        """What ApiVersions advertises, in the order of the keys."""
        return [
            VersionRange(key, route.advertised_min, route.max_version) for key, route in sorted(self._routes.items())
        ]

    def version_range(self, key: int) -> VersionRange | None:
        """The advertised range of one API; None where it is not served."""
        route = self._routes.get(key)
        return None if route is None else VersionRange(key, route.advertised_min, route.max_version)

    async def answer(self, frame: bytes, peer: Peer) -> list[Any] | None:
        """Answer one request frame (without its size prefix).

        Returns the answer's buffers, size prefix included, or None where the protocol has no
        answer. Raises CloseConnection where Kafka closes without one (A6, A7, A13, A14).
        """
        if len(frame) < 4:
            raise CloseConnection(f"a frame of {len(frame)} bytes holds no request header")
        key, version = _KEY_AND_VERSION.unpack_from(frame)
        route = self._routes.get(key)
        if route is None:
            raise CloseConnection(f"API key {key} is not served on listener {peer.listener_name}")
        is_supported = route.min_version <= version <= route.max_version
        if not is_supported and key != API_VERSIONS_KEY:
            raise CloseConnection(f"{route.spec.name} version {version} is not supported")
        request_class = route.request_class or route.load()
        try:
            header, position = decode_request_header(frame)
            # The body of an ApiVersions request from the future is not read (KIP-511).
            request = request_class.decode(frame, version, position) if is_supported else None
        except WireError as error:
            raise CloseConnection(f"{route.spec.name} version {version} cannot be parsed: {error}") from error
        context = RequestContext(header, peer, self.node)
        handle = self._handle_intercepted(route) if self.interceptors else route.handle
        try:
            response = await handle(request, context)
        except CloseConnection:
            raise
        except Exception as error:
            response = _error_answer(route, request, context, error)
        if response is None:
            return None
        # An answer to an unsupported ApiVersions version has the layout every client can read.
        response_version = version if is_supported else 0
        try:
            return encode_response(route.spec, header.correlation_id, response, response_version)
        except WireError as error:
            response = _error_answer(route, request, context, error)
            return encode_response(route.spec, header.correlation_id, response, response_version)

    def _handle_intercepted(self, route: _Route) -> Handler:
        """The route's handler with the interceptors around it."""
        interceptors = tuple(self.interceptors)

        async def handle(request: Any, context: RequestContext) -> Any:
            response = None
            for interceptor in interceptors:
                response = await interceptor.before(request, context)
                if response is not None:
                    break
            if response is None:
                response = await route.handle(request, context)
            for interceptor in reversed(interceptors):
                response = await interceptor.after(request, response, context)
            return response

        return handle


def _error_answer(route: _Route, request: Any, context: RequestContext, error: Exception) -> Any:
    """The request type's own error response (A14); CloseConnection where it has none."""
    from broker.handlers.error_responses import error_response

    if not isinstance(error, KafkaError):
        logger.error(
            "%s version %d of client '%s' failed: %s: %s",
            route.spec.name,
            context.api_version,
            context.client_id,
            type(error).__name__,
            error,
        )
        logger.debug("where it failed", exc_info=error)
    response = error_response(request, context.api_version, error)
    if response is None:
        raise CloseConnection(f"{route.spec.name} failed and has no error answer: {error}") from error
    return response


def unknown_features(release: str) -> frozenset[str]:
    """Names of features that a release did not have."""
    if release == "4.4":
        return frozenset()
    from broker.handlers.release_versions import UNKNOWN_FEATURES

    return UNKNOWN_FEATURES.get(release, frozenset())


def released_versions(release: str) -> dict[int, tuple[int, int] | None]:
    """Ranges by API key where a release's differ from 4.4's; None: the API did not exist.

    Raises ValueError for a release that is not known.
    """
    if release == "4.4":
        return {}
    from broker.handlers.release_versions import RELEASE_VERSIONS

    if release not in RELEASE_VERSIONS:
        known = ", ".join([*RELEASE_VERSIONS, "4.4"])
        raise ValueError(f"no versions are known of Kafka release {release}; known are {known}")
    return RELEASE_VERSIONS[release]
