"""The one clock of a node: wall time, monotonic time, timers; movable.

Everything that waits or dates something asks here, so that a test (or the control endpoint) can
move time forward and simulation can run on a loop of its own. Moving shifts both wall and
monotonic time, and fires the timers that have become due in the order of their deadlines.
One timer of the event loop serves all timers of the node; with none pending there is none.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Any


def system_wall_ms() -> int:
    """Milliseconds since 1970 by the system's clock."""
    return time.time_ns() // 1_000_000


class Timer:
    """A callback that runs once at its deadline unless cancelled first."""

    __slots__ = ("_arguments", "_callback", "_clock", "deadline_ms")

    def __init__(
        self, clock: Clock, deadline_ms: float, callback: Callable[..., object], arguments: tuple[Any, ...]
    ) -> None:
        self._clock = clock
        self.deadline_ms = deadline_ms
        self._callback: Callable[..., object] | None = callback
        self._arguments = arguments

    @property
    def is_pending(self) -> bool:
        """False once it ran or was cancelled."""
        return self._callback is not None

    def cancel(self) -> None:
        """The callback will not run; calling this twice, or after it ran, does nothing."""
        if self._callback is not None:
            self._callback = None
            self._arguments = ()
            self._clock._forget_cancelled()

    def _run(self) -> None:
        callback, arguments = self._callback, self._arguments
        if callback is not None:
            self._callback = None
            self._arguments = ()
            callback(*arguments)


class Clock:
    """Wall and monotonic time in milliseconds, and timers on the running event loop.

    `wall_ms` is the source of wall time; monotonic time is the loop's own (`loop.time()`), so a
    simulation hands in a loop with virtual time and a wall source that follows it.
    """

    def __init__(
        self,
        wall_ms: Callable[[], int] = system_wall_ms,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._wall_ms = wall_ms
        self._loop = loop
        self._moved_ms = 0
        self._heap: list[tuple[float, int, Timer]] = []
        self._timers_made = 0
        self._timers_cancelled = 0
        self._wakeup: asyncio.TimerHandle | None = None
        self._wakeup_deadline_ms = 0.0

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop the timers run on: the one given, else the one running at first use."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    @property
    def pending_timers(self) -> int:
        """How many timers wait for their deadline."""
        return len(self._heap) - self._timers_cancelled

    def now_ms(self) -> int:
        """Wall time, milliseconds since 1970; may be asked from any thread."""
        return self._wall_ms() + self._moved_ms

    def monotonic_ms(self) -> float:
        """Milliseconds that never run backwards; the base of every timer."""
        return self.loop.time() * 1000.0 + self._moved_ms

    def move(self, forward_ms: int) -> None:
        """Move time forward by so many milliseconds and run the timers now due.

        Raises ValueError for a negative number: time never runs backwards.
        """
        if forward_ms < 0:
            raise ValueError(f"the clock moves forward only, not by {forward_ms} ms")
        self._moved_ms += forward_ms
        self._run_due()

    def call_later(self, delay_ms: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        """Run `callback(*arguments)` on the loop once `delay_ms` have passed."""
        timer = Timer(self, self.monotonic_ms() + max(delay_ms, 0), callback, arguments)
        self._timers_made += 1
        heapq.heappush(self._heap, (timer.deadline_ms, self._timers_made, timer))
        if self._heap[0][2] is timer:
            self._arm()
        return timer

    def call_at(self, when_ms: int, callback: Callable[..., object], *arguments: Any) -> Timer:
        """Run the callback when wall time reaches `when_ms` (as `now_ms` counts)."""
        return self.call_later(when_ms - self.now_ms(), callback, *arguments)

    async def sleep(self, delay_ms: float) -> None:
        """Wait until `delay_ms` have passed on this clock."""
        woken = self.loop.create_future()
        timer = self.call_later(delay_ms, _set_woken, woken)
        try:
            await woken
        finally:
            timer.cancel()

    async def wait_for(self, future: asyncio.Future[Any], timeout_ms: float) -> bool:
        """Wait until the future is done or `timeout_ms` have passed: True if it is done.

        The future is not cancelled at the deadline; its result or exception stays in it.
        """
        if future.done():
            return True
        woken = self.loop.create_future()

        def wake(_: object = None) -> None:
            _set_woken(woken)

        timer = self.call_later(timeout_ms, wake)
        future.add_done_callback(wake)
        try:
            await woken
        finally:
            timer.cancel()
            future.remove_done_callback(wake)
        return future.done()

    def close(self) -> None:
        """Drop every timer."""
        self._heap.clear()
        self._timers_cancelled = 0
        if self._wakeup is not None:
            self._wakeup.cancel()
            self._wakeup = None

    def _arm(self) -> None:
        deadline_ms = self._heap[0][0]
        if self._wakeup is not None:
            if self._wakeup_deadline_ms <= deadline_ms:
                return
            self._wakeup.cancel()
        self._wakeup_deadline_ms = deadline_ms
        self._wakeup = self.loop.call_at((deadline_ms - self._moved_ms) / 1000.0, self._on_wakeup)

    def _on_wakeup(self) -> None:
        self._wakeup = None
        self._run_due()

    def _run_due(self) -> None:
        heap = self._heap
        # A loop may wake a timer up to its clock's resolution early: such a timer is due.
        due_ms = self.monotonic_ms() + 0.5
        try:
            while heap and heap[0][0] <= due_ms:
                timer = heapq.heappop(heap)[2]
                if timer.is_pending:
                    timer._run()
                else:
                    self._timers_cancelled -= 1
            self._drop_cancelled_head()
        finally:
            if self._wakeup is not None:
                self._wakeup.cancel()
                self._wakeup = None
            if heap:
                self._arm()

    def _drop_cancelled_head(self) -> None:
        heap = self._heap
        while heap and not heap[0][2].is_pending:
            heapq.heappop(heap)
            self._timers_cancelled -= 1

    def _forget_cancelled(self) -> None:
        """Cancelled timers leave the heap when they are more than half of it (or all)."""
        self._timers_cancelled += 1
        if self._timers_cancelled * 2 <= len(self._heap) and len(self._heap) > 1:
            return
        self._heap[:] = [entry for entry in self._heap if entry[2].is_pending]
        heapq.heapify(self._heap)
        self._timers_cancelled = 0
        if not self._heap and self._wakeup is not None:
            self._wakeup.cancel()
            self._wakeup = None


def _set_woken(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
