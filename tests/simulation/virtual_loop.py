"""An asyncio event loop whose time is virtual: waiting costs nothing and order is repeatable.

The selector never sleeps. Where the loop would wait for its next timer, the clock jumps to that
timer instead; where nothing at all is scheduled, every task waits for something that can no
longer happen, and the run stops with the tasks that hang.

Production code runs on it unchanged as long as it takes its time from the loop and its chance
from a seed. Threads have no place in it: work handed to an executor runs inline.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

T = TypeVar("T")

START_MS = 1_700_000_000_000
"""Wall time at which every simulated world begins."""


class Deadlock(AssertionError):
    """No timer is set and nothing is ready: the tasks named here wait for ever."""


class _JumpingSelector(selectors.SelectSelector):
    """Reports nothing ready, and turns the wait for the next timer into a jump of the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            tasks = [str(task.get_coro()) for task in asyncio.all_tasks(asyncio.get_event_loop())]
            raise Deadlock("nothing is scheduled; waiting: " + "; ".join(sorted(tasks)))
        self.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; ``time()`` is virtual seconds since the world began."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now_s

    def now_ms(self) -> int:
        """Virtual wall time in milliseconds."""
        return START_MS + int(self._jumping.now_s * 1000)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, call: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run inline: a simulation has one thread."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(call(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a fresh virtual loop; raises Deadlock when it cannot end."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main(loop))
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
