"""A finite budget for the bytes of requests a node has in hand.

A request is charged from the moment its size is known until it is answered. As Kafka's memory
pool (`SimpleMemoryPool`, not strict) the budget may be overdrawn by the one frame that was let
in while something was left: so a single frame as large as `socket.request.max.bytes` always
gets through, and the node never holds more than the budget and that frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

SMALL_FRAME_BYTES = 64 * 1024
"""Frames up to this size never wait for the budget: fetches of followers are among them, and the
large produce requests that fill the budget may be waiting for just those."""


class RequestBudget:
    """Counts request bytes in hand; large frames wait their turn when the budget is used up."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def waiting_count(self) -> int:
        """How many large frames wait for their turn."""
        return len(self._waiting)

    def may_begin(self, size_bytes: int) -> bool:
        """Whether reading a frame of this size may go on now; if not, `wait` for it."""
        return size_bytes <= SMALL_FRAME_BYTES or (self.used_bytes < self.limit_bytes and not self._waiting)

    def take(self, size_bytes: int) -> None:
        """Charge a frame."""
        self.used_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Return what a frame was charged, and let the next that waits go on."""
        self.used_bytes -= size_bytes
        while self._waiting and self.used_bytes < self.limit_bytes:
            self._waiting.popleft()()

    def wait(self, let_in: Callable[[], None]) -> None:
        """Call `let_in` once there is room, first come first served; it takes its charge itself."""
        self._waiting.append(let_in)

    def forget(self, let_in: Callable[[], None]) -> None:
        """Stop waiting: the connection is gone."""
        if let_in in self._waiting:
            self._waiting.remove(let_in)
