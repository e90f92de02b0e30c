"""The composition root: puts a node together, starts its parts in order, stops them in reverse.

Order of start: ports bound → control endpoint → logs and metadata quorum → partitions →
coordinators → registration → listeners. Ports are bound first, so that a taken one is told at
once and port 0 has a number to register; they are listened on last, so that whoever connects finds
a node that works.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from broker.clock import Clock
from broker.handlers.context import Node
from broker.handlers.dispatch import Dispatcher
from broker.handlers.sent_requests import SentRequests
from broker.http.endpoint import ControlEndpoint, Refused, Route
from broker.network.connection_set import ConnectionSet
from broker.network.listener import Listener, ListenerSet
from broker.node_state import NodeState
from broker.security.authorizer import AllowAllAuthorizer
from broker.server_settings import LIMIT_SETTINGS, connection_limits, listener_configs
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from broker.handlers.dispatch import Interceptor
    from broker.network.peer import Peer
    from broker.storage.files import Files

logger = logging.getLogger(__name__)

KEPT_FILES = ("meta.properties", ".lock")
"""What a reset leaves in a log directory."""


class Server:
    """One node. `start` it, `stop` it; between them it answers, and `reset` empties it.

    `config` are the node's effective settings; `clock`, `interceptors` and `files` are for tests and faults.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        interceptors: Sequence[Interceptor] = (),
        files: Files | None = None,
    ) -> None:
        self.config = config
        self.clock = clock or Clock()
        self.failed = asyncio.Event()
        """Set when the node cannot go on; whoever runs it stops it."""
        self.failure: KafkaError | None = None
        """Why: its metadata log, or its last log directory, has failed."""
        self.node: Node
        self.connections: ConnectionSet | None = None
        self._touched: Callable[[], None]
        self._interceptors = interceptors
        self._files = new_files(config) if files is None else files
        self._state: NodeState | None = None
        self.listeners = ListenerSet(())
        self._control: ControlEndpoint | None = None
        self._sent: SentRequests | None = None
        self._is_ready = False
        self._resetting: asyncio.Future[None] | None = None

    # --- start and stop --------------------------------------------------------------------

    async def start(self) -> None:
        """Start every part. Raises CannotListen, StorageFault, OSError with one sentence each; the
        parts started before are then stopped by `stop`."""
        config = self.config
        loop = asyncio.get_running_loop()
        connections = self.connections = ConnectionSet(self.clock, connection_limits(config), loop)
        self.listeners = ListenerSet([Listener(entry, connections, self._answer) for entry in listener_configs(config)])
        self.listeners.bind()
        await self._start_control()
        self._state = NodeState(config, self.clock, self.listeners, self._files, on_fault=self._on_fault)
        await self._state.open()
        self.node = Node(
            clock=self.clock,
            authorizer=AllowAllAuthorizer(),
            broker_id=config.node_id,
            cluster_id=self._state.cluster_id,
        )
        self.node.config = config
        self.node.listeners = self.listeners
        self._use(self._state)
        self.node.dispatcher = Dispatcher(
            self.node, release=config["odradek.kafka.release"], interceptors=self._interceptors
        )
        config.subscribe(LIMIT_SETTINGS, self._limits_changed)
        await self.listeners.start()
        self._is_ready = True

    async def stop(self) -> None:
        """Stop every part that was started, in reverse: no new requests, then a clean close."""
        self._is_ready = False
        await self.listeners.close()
        if self._control is not None:
            await self._control.close()
            self._control = None
        if self.connections is not None:
            await self.connections.close()
        if self._state is not None:
            await self._state.close()
            self._state = None
        self.clock.close()

    def _use(self, state: NodeState) -> None:
        """Let requests reach the parts of an opened state."""
        state.fill(self.node)
        self._touched = state.upkeep.touched

    def _limits_changed(self, config: BrokerConfig) -> None:
        if self.connections is not None:
            self.connections.limits = connection_limits(config)

    def _on_fault(self, error: KafkaError) -> None:
        if self.failure is None:
            self.failure = error
            self.failed.set()

    def ready_line(self) -> dict[str, Any]:
        """What the process that started the node is told once it answers."""
        return {
            "event": "ready",
            "bootstrap_servers": ",".join(str(listener.numeric) for listener in self.listeners.all()),
            "control_url": None if self._control is None else self._control.url,
            "node_id": self.config.node_id,
            "cluster_id": self.node.cluster_id,
            "pid": os.getpid(),
        }

    # --- requests ----------------------------------------------------------------------------

    def _answer(self, frame: bytes, peer: Peer) -> Awaitable[list[Any] | None]:
        if self._resetting is not None:
            return self._answer_after(self._resetting, frame, peer)
        self._touched()
        return self.node.dispatcher.answer(frame, peer)

    async def _answer_after(self, resetting: asyncio.Future[None], frame: bytes, peer: Peer) -> list[Any] | None:
        await asyncio.shield(resetting)
        return await self._answer(frame, peer)

    # --- control -----------------------------------------------------------------------------

    async def _start_control(self) -> None:
        if not self.config["odradek.control.enable"]:
            return
        routes = (
            Route("GET", "/ready", self._tell_ready, needs_token=False),
            Route("POST", "/reset", self._reset),
            Route("POST", "/compact", self._compact),
            Route("POST", "/retention", self._retain),
            Route("GET", "/group-events", self._group_events),
            Route("POST", "/sent-requests", self._count_requests),
            Route("GET", "/sent-requests", self._sent_requests),
        )
        self._control = ControlEndpoint(routes, self.config["odradek.control.port"])
        self._control.bind()
        await self._control.start()

    async def _tell_ready(self, _parameters: dict[str, str]) -> dict[str, Any]:
        self._opened()
        return {"ready": True, "node_id": self.config.node_id, "cluster_id": self.node.cluster_id}

    async def _reset(self, _parameters: dict[str, str]) -> dict[str, Any]:
        self._opened()
        await self.reset()
        return {"reset": True}

    async def _compact(self, parameters: dict[str, str]) -> dict[str, Any]:
        """Compact `topic`, or every compacted log, up to its last stable offset."""
        upkeep = self._opened().upkeep
        if "topic" not in parameters:
            return {"passes": await upkeep.cleaner.clean_now()}
        try:
            return (await upkeep.compact_now(parameters["topic"]))._asdict()
        except KafkaError as error:
            raise refused(error) from error

    async def _retain(self, parameters: dict[str, str]) -> dict[str, Any]:
        """Apply retention to `topic`, or to every log, instead of at the next log.retention.check.interval.ms."""
        upkeep = self._opened().upkeep
        if "topic" not in parameters:
            upkeep.delete_old_segments()
            return {"retained": True}
        try:
            return upkeep.retain_now(parameters["topic"])._asdict()
        except KafkaError as error:
            raise refused(error) from error

    async def _group_events(self, parameters: dict[str, str]) -> dict[str, Any]:
        """Why `group`, which this node coordinates, changed lately; oldest first."""
        group_id, groups = parameters.get("group", ""), self._opened().groups
        if groups is None:
            raise Refused(503, "the node is starting or stopping")
        try:
            events = groups.read(group_id, lambda shard: shard.group_events(group_id))
        except KafkaError as error:
            raise refused(error) from error
        return {"events": [{"at_ms": event.at_ms, "text": event.text} for event in events]}

    async def _count_requests(self, _parameters: dict[str, str]) -> dict[str, Any]:
        """From now on requests are counted, from none."""
        self._opened()
        interceptors = self.node.dispatcher.interceptors
        interceptors[:] = [each for each in interceptors if each is not self._sent]
        self._sent = SentRequests()
        interceptors.append(self._sent)
        return {"counting": True}

    async def _sent_requests(self, _parameters: dict[str, str]) -> dict[str, Any]:
        if self._sent is None:
            raise Refused(409, "nobody has asked for requests to be counted (POST /sent-requests)")
        return {"sent_requests": self._sent.told()}

    def _opened(self) -> NodeState:
        if not self._is_ready or self._state is None:
            raise Refused(503, "the node is starting or stopping")
        return self._state

    async def reset(self) -> None:
        """Empty the node: topics, groups, producers, transactions, dynamic settings. Clients stay
        connected; requests that were waiting get the errors of a coordinator or leader that moved."""
        if self._resetting is not None:
            await asyncio.shield(self._resetting)
            return
        assert self._state is not None, "only a started node is reset"
        self._resetting = asyncio.get_running_loop().create_future()
        try:
            await self._replace_state(self._state)
        finally:
            self._resetting.set_result(None)
            self._resetting = None

    async def _replace_state(self, old: NodeState) -> None:
        await old.abandon()
        directories = {self.config.metadata_log_dir, *self.config.log_dirs}
        if self.config.in_memory:
            for directory in directories:
                # The parts of the old state refer to each other until the collector looks at them, which may be
                # never: what was there at the start is exempt. Their records must not stay that long.
                self._files.delete_directory(directory)
            self._files = new_files(self.config)
        else:
            set_aside(self._files, directories, old.ids.uuid().hex())
        self.config.apply_dynamic({}, {})
        self._state = NodeState(
            self.config,
            self.clock,
            self.listeners,
            self._files,
            on_fault=self._on_fault,
            cluster_id=old.cluster_id,
            first_producer_id=old.metadata.image.next_producer_id,
        )
        await self._state.open()
        self._use(self._state)


def refused(error: KafkaError) -> Refused:
    """A refusal of the control endpoint for what a part of the node has refused."""
    status = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404, ErrorCode.POLICY_VIOLATION: 409}.get(error.code, 500)
    return Refused(status, error.message or str(error))


def new_files(config: BrokerConfig) -> Files:
    """Where a node keeps its files: on disk, or in memory up to `odradek.memory.max.bytes`."""
    if config.in_memory:
        from broker.storage.memory_files import MemoryFiles

        return MemoryFiles(config["odradek.memory.max.bytes"], setting="odradek.memory.max.bytes")
    from broker.storage.files import DiskFiles

    return DiskFiles()


def set_aside(files: Files, directories: Iterable[str], mark: str) -> None:
    """Rename what an abandoned node kept in its log directories, so that it counts as deleted.

    The names are those of deleted partitions: whoever loads the directories next removes them, after
    a crash too. What is left says whose the directories are.
    """
    for directory in directories:
        names = [name for name in files.list(directory) if name not in KEPT_FILES and not name.endswith("-delete")]
        # The metadata log goes first: logs that it does not know would be set aside, never served.
        names.sort(key=lambda name: not name.startswith("__cluster_metadata"))
        for number, name in enumerate(names):
            path = f"{directory}/{name}"
            if files.is_directory(path):
                files.rename(path, f"{directory}/reset-{number}.{mark}-delete")
            else:
                files.delete(path)
