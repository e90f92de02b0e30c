"""Runs `async def` tests, each on an event loop of its own.

The loop is uvloop where it exists, as the node's is; a test that takes the fixture `loop_factory`
says which. Leftovers are faults: a task that is still pending at the end fails the test, and so does
what the loop is told of because nobody else saw it fail.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def loop_factories() -> dict[str, LoopFactory]:
    """The event loops of this machine by name."""
    factories: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    try:
        import uvloop
    except ImportError:
        return factories
    return {"uvloop": uvloop.new_event_loop, **factories}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test to its end."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    factory: Any = pyfuncitem.funcargs.get("loop_factory") or next(iter(loop_factories().values()))

    async def run() -> Any:
        unseen: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
        await pyfuncitem.obj(**arguments)
        leftovers = asyncio.all_tasks() - {asyncio.current_task()}
        if leftovers:
            await asyncio.sleep(0.01)
        left = [task for task in leftovers if not task.done()]
        assert not left, f"the test left tasks running: {left}"
        assert not unseen, f"nobody saw these faults: {unseen}"

    with warnings.catch_warnings(), asyncio.Runner(loop_factory=factory) as runner:
        try:
            runner.run(run())
        except BaseException:
            # What a failed test left open is no second fault; as errors such warnings would keep
            # uvloop from closing its handles, and it would wait for them for ever.
            warnings.simplefilter("ignore", ResourceWarning)
            raise
    return True
