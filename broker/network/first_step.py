"""Coroutines that are run where they are called, up to their first wait.

Most requests never wait: what they ask for is in memory. Such a coroutine ends within the call, and costs neither a
task nor another turn of the loop. One that waits goes on in a task. (`asyncio.eager_task_factory` does the same from
Python 3.12 on. Here `asyncio.current_task()` is None until the first wait, so `asyncio.timeout` has no place there.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any


def run_to_first_wait(
    running: Coroutine[Any, None, None], loop: asyncio.AbstractEventLoop
) -> asyncio.Task[None] | None:
    """Run a coroutine now; returns the task that does the rest, None if the coroutine has ended."""
    try:
        waits_for = running.send(None)
    except StopIteration:
        return None
    is_future = asyncio.isfuture(waits_for)
    if is_future:
        # It says that a coroutine is handing it to a task, which none is yet: until then others may await it too.
        waits_for._asyncio_future_blocking = False
    rest = _rest(running, waits_for, is_future)
    rest.send(None)
    return loop.create_task(rest)


async def _rest(running: Coroutine[Any, None, None], waits_for: Any, is_future: bool) -> None:
    await _continued(running, waits_for, is_future)


@coroutine
def _continued(running: Coroutine[Any, None, None], waits_for: Any, is_future: bool) -> Generator[Any, None, None]:
    """Hand on what the coroutine waits for, and tell it what came of that, until it ends.

    The empty yield is taken before there is a task: one that is cancelled before its first step would never tell the
    coroutine, which has begun and has an end of its own to see to.
    """
    try:
        try:
            yield
            if is_future:
                waits_for._asyncio_future_blocking = True
        except BaseException as error:
            waits_for = running.throw(error)
        while True:
            try:
                yield waits_for
            except BaseException as error:
                waits_for = running.throw(error)
            else:
                waits_for = running.send(None)
    except StopIteration:
        return
