"""A whole node in a world of virtual time: the production code over files in memory, killed and restarted.

What a node runs in production runs here: `NodeState`, the handlers through `Dispatcher`, logs and
coordinators. Clients are tasks of the simulation; what they ask runs in tasks of the node, so that
killing the node takes those along and leaves the clients with a broken connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from broker.chance import SystemIds
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.handlers.context import Node
from broker.handlers.dispatch import Dispatcher
from broker.network.listener import Address, ListenerSet
from broker.network.peer import CloseConnection
from broker.node_state import NodeState
from broker.security.authorizer import AllowAllAuthorizer
from broker.storage.faulty_files import Crash, Fault, FaultyFiles
from tests.broker.message_client import MessageClient
from tests.simulation.transport import Disconnected
from tests.simulation.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from broker.storage.memory_files import MemoryFiles
    from wire.message import Message

SETTINGS = {
    "listeners": "PLAINTEXT://node:9092",
    "log.dirs": "/data",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


class SimulatedNode:
    """One node that can be killed at any write and started again over what it left."""

    def __init__(
        self,
        loop: VirtualLoop,
        random: Random,
        settings: Mapping[str, str] | None = None,
        *,
        power_loss: bool = False,
    ) -> None:
        """`power_loss`: deaths take what was not synced; the node then syncs before it acknowledges."""
        settings = {**(settings or {}), **({"odradek.flush.on.acknowledge": "true"} if power_loss else {})}
        self.loop = loop
        self._power_loss = power_loss
        self._random = random
        self._settings = {**SETTINGS, **settings}
        self._files = FaultyFiles(clock_ms=loop.now_ms)
        self._state: NodeState | None = None
        self._dispatcher: Dispatcher | None = None
        # In order: which client hears first that the node is gone is part of what a seed repeats.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._clients = 0
        self.starts = 0
        self.is_up = asyncio.Event()

    @property
    def state(self) -> NodeState:
        """The running node's parts, for checks; a node that is down has none."""
        assert self._state is not None, "the node is down"
        return self._state

    def time(self) -> float:
        """Virtual seconds."""
        return self.loop.time()

    def now_ms(self) -> int:
        """Virtual wall time in milliseconds."""
        return self.loop.now_ms()

    # --- life -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start over what is there."""
        config = BrokerConfig(self._settings)
        clock = Clock(self.loop.now_ms, self.loop)
        listener = SimpleNamespace(
            name="PLAINTEXT",
            advertised=Address("node", 9092),
            config=SimpleNamespace(security_protocol="PLAINTEXT"),
        )
        listeners = cast(ListenerSet, SimpleNamespace(all=lambda: [listener]))
        state = NodeState(config, clock, listeners, self._files, on_fault=self._fault, cluster_id=CLUSTER_ID)
        state.ids = SystemIds(self._random.randbytes)
        await self._own(state.open())
        node = Node(clock=clock, authorizer=AllowAllAuthorizer(), broker_id=config.node_id, cluster_id=CLUSTER_ID)
        node.config = config
        node.listeners = listeners
        state.fill(node)
        node.dispatcher = self._dispatcher = Dispatcher(node)
        self._state = state
        self.starts += 1
        self.is_up.set()

    def _fault(self, error: Exception) -> None:
        raise AssertionError(f"the metadata log failed: {error}")

    def kill(self, *, power_loss: Random | None = None) -> None:
        """End the process here and now; `power_loss` also takes what was not synced, as chance has it."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            task.cancel()
        own = asyncio.current_task()
        for task in sorted(asyncio.all_tasks(self.loop), key=_age):
            # Tasks that the node's own code made: markers, loading, releases.
            if task is not own and not task.get_name().startswith("sim:"):
                task.cancel()
        self.is_up.clear()
        self._files.crashed = True
        synced = self._files.synced
        content: MemoryFiles = self._files.survivor(power_loss=power_loss)
        self._files = FaultyFiles(content=content, clock_ms=self.loop.now_ms)
        # What outlived a loss of power is on the device; else what was synced before still is.
        self._files.synced = synced if power_loss is None else {each: each.size for each in content.all_files()}
        if self._state is not None:
            # Its timers must not fire into the next life.
            self._state._clock.close()
        self._state = None
        self._dispatcher = None

    def kill_at_write(self, after_writes: int) -> None:
        """Let the node die at a write to come, perhaps in the middle of it."""
        number = len(self._files.calls) + after_writes
        self._files.faults[number] = Fault("crash", written=self._random.choice([0, 0, 17, 61, 100_000]))

    async def go_down(self, random: Random, note: Callable[[str], None]) -> None:
        """Die at once or at a write, or stop."""
        way = random.choice(["at once", "at a write", "at a write", "cleanly"])
        if way == "cleanly":
            note("the node is stopped")
            await self.stop()
            return
        if way == "at a write":
            await self._die_at_a_write(random.randint(0, 120))
        note("the node dies")
        self.kill(power_loss=random if self._power_loss else None)

    async def _die_at_a_write(self, after_writes: int) -> None:
        self.kill_at_write(after_writes)
        for _ in range(200):
            await asyncio.sleep(0.05)
            if self._files.crashed:
                return

    async def stop(self) -> None:
        """A clean end."""
        if self._state is not None:
            self.is_up.clear()
            state, self._state, self._dispatcher = self._state, None, None
            await self._own(state.close())

    # --- clients ----------------------------------------------------------------------------------

    def client(self) -> SimulatedClient:
        """A connection that comes back by itself."""
        self._clients += 1
        return SimulatedClient(self, f"client-{self._clients}")

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """A task of the simulation, which outlives the node."""
        return self.loop.create_task(coroutine, name=f"sim:{name}")

    async def _own(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run in a task of the node. Raises Disconnected if the node dies meanwhile."""
        task: asyncio.Task[Any] = self.loop.create_task(coroutine, name="node")
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled():
            raise Disconnected("the node died")
        with contextlib.suppress(Crash):
            return task.result()
        raise Disconnected("the node died at a write")


def _age(task: asyncio.Task[Any]) -> tuple[int, str]:
    """Tasks without a name of their own are numbered as they are made."""
    return len(task.get_name()), task.get_name()


class SimulatedClient:
    """A client whose requests and answers may be lost on the way."""

    def __init__(self, node: SimulatedNode, client_id: str) -> None:
        self._node = node
        self._client_id = client_id
        self._connection: MessageClient | None = None
        self._connected_to = 0

    async def call(
        self, request: Message, version: int, *, lose_request: bool = False, lose_answer: bool = False
    ) -> Any:
        """The answer; raises Disconnected where none comes."""
        node = self._node
        await asyncio.sleep(node._random.choice([0, 0.0003, 0.002]))
        if node._dispatcher is None or lose_request:
            raise Disconnected("not reached")
        if self._connection is None or self._connected_to != node.starts:
            self._connection = MessageClient(node._dispatcher, client_id=self._client_id)
            self._connected_to = node.starts
        node.state.upkeep.touched()
        try:
            answer = await node._own(self._connection.call(request, version))
        except CloseConnection as closed:
            raise AssertionError(f"{type(request).__name__} v{version}: {closed}") from closed
        await asyncio.sleep(node._random.choice([0, 0.0002]))
        if lose_answer:
            raise Disconnected("the answer is lost")
        return answer
