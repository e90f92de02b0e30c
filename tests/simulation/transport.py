"""What clients need of the world they are in: connections, the time, and a node that goes and comes back.

The same clients work on a node in virtual time (`simulated_node`) and on a node that is a process of its own
(`tests/crash/socket_transport.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from wire.message import Message


class Disconnected(Exception):
    """The node is down, or the answer was lost: the client cannot know what has happened."""


class Client(Protocol):
    """A connection that comes back by itself."""

    async def call(
        self, request: Message, version: int, *, lose_request: bool = False, lose_answer: bool = False
    ) -> Any:
        """The answer; raises Disconnected where none comes. What is to be lost is lost on the way."""


class Transport(Protocol):
    """A node's life, and the way to it."""

    is_up: asyncio.Event
    starts: int
    """How often the node was started."""

    def time(self) -> float:
        """Seconds that only rise."""

    def now_ms(self) -> int:
        """Wall time in milliseconds."""

    def client(self) -> Client:
        """Another client."""

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """A task that outlives the node."""

    async def start(self) -> None:
        """Start the node over what is there."""

    async def go_down(self, random: Random, note: Callable[[str], None]) -> None:
        """Let the node end, in a way that chance takes, and note which."""

    async def stop(self) -> None:
        """End the node cleanly."""
