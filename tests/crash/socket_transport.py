"""The clients of `tests.simulation` over real sockets, on a node that is a process of its own and is killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.crash.connection import ANSWER_TIMEOUT_S, Connection, Lost
from tests.crash.node import Node
from tests.simulation.transport import Disconnected

if TYPE_CHECKING:
    from wire.message import Message


class SocketTransport:
    """A node over a directory, the connections to it, and the tasks of whoever uses it."""

    def __init__(self, home: Path, random: Random, settings: Mapping[str, str]) -> None:
        self.node = Node(home, settings)
        self.random = random
        self.is_up = asyncio.Event()
        self.starts = 0
        self.kills = 0
        self.cuts = 0
        """Connections that were cut on purpose, under a request or its answer."""
        self._clients: list[SocketClient] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    def time(self) -> float:
        """Seconds that only rise."""
        return time.monotonic()

    def now_ms(self) -> int:
        """Wall time in milliseconds."""
        return int(time.time() * 1000)

    def client(self) -> SocketClient:
        """A client with a connection of its own."""
        self._clients.append(SocketClient(self))
        return self._clients[-1]

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """A task that outlives the node, but not `end`."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def start(self) -> None:
        """Start over what is there, and wait until it is ready. Raises Broken."""
        # Who is quick is answered before the node says that it is ready.
        self.starts += 1
        await self.node.start()
        self.is_up.set()

    async def go_down(self, random: Random, note: Callable[[str], None]) -> None:
        """Be killed, at times once more in the middle of the start that follows, or stop cleanly. Raises Broken."""
        way = random.choice(["killed", "killed", "killed", "killed twice", "stopped"])
        note(f"the node is {way}")
        if way == "stopped":
            await self.stop()
            return
        await self._kill()
        if way == "killed twice":
            self.starts += 1
            await self.node.spawn()
            await asyncio.sleep(random.uniform(0.05, 0.8))
            await self._kill()

    async def _kill(self) -> None:
        self.is_up.clear()
        await self.node.kill()
        self.kills += 1

    async def stop(self) -> None:
        """A clean end. Raises Broken."""
        self.is_up.clear()
        await self.node.stop()

    async def end(self) -> None:
        """Whatever became of the run, nothing of it is left."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in self._clients:
            await client.close()
        await self.node.end()


class SocketClient:
    """One connection at a time; it is cut where a request or an answer is to be lost."""

    def __init__(self, transport: SocketTransport) -> None:
        self._transport = transport
        self._connection: Connection | None = None

    async def call(
        self, request: Message, version: int, *, lose_request: bool = False, lose_answer: bool = False
    ) -> Any:
        """The answer; raises Disconnected where none comes, TimeoutError where a node that lives says nothing."""
        if lose_request:
            self._transport.cuts += 1
            await self.close()
            raise Disconnected("not reached")
        try:
            answer = (await self._connected()).send(request, version)
            if lose_answer:
                # Cut while the node reads, while it works, or when the answer is there.
                await asyncio.wait([answer], timeout=self._transport.random.choice([0, 0.0005, 0.003, 1]))
                self._transport.cuts += 1
                await self.close()
                raise Disconnected("the answer is lost")
            return await asyncio.wait_for(answer, ANSWER_TIMEOUT_S)
        except Lost as lost:
            await self.close()
            raise Disconnected(str(lost)) from lost
        except asyncio.CancelledError:
            # Whoever has no more patience hangs up: what it asks next does not wait behind this.
            await self.close()
            raise

    async def _connected(self) -> Connection:
        if self._connection is None:
            opened = await Connection.open(self._transport.node.port)
            if self._connection is None:
                self._connection = opened
            else:  # a request of the same client was quicker
                await opened.close()
        return self._connection

    async def close(self) -> None:
        """Cut the connection; the next request makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
