"""A node as the only thing in its process: event loop, signals, what is said on stdout and stderr.

stdout gets the ready line only. stderr gets what a person reads: a few lines at start, then one
line for each cause of a group's rebalance and for each fault (`ODRADEK_DEBUG=1` shows where), with
a traceback where the node itself is at fault: what nobody awaited failed. Exit codes: 0 stopped,
1 a failure, 2 a bad setting.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.server import Server

logger = logging.getLogger(__name__)

REBALANCES = "broker.runtime.rebalance_log"
"""The one logger that says more than faults: why groups rebalance is what people ask first."""
STOP_LIMIT_SECONDS = 60.0
"""A stop that has not ended by then is given up; the disk is as after a crash, and recovered."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def log_to_stderr() -> None:
    """One line for each warning or fault; with ODRADEK_DEBUG everything."""
    is_debugging = bool(os.environ.get("ODRADEK_DEBUG"))
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if is_debugging else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s" if is_debugging else "%(levelname)s: %(message)s",
    )
    if not is_debugging:
        logging.getLogger(REBALANCES).setLevel(logging.INFO)


def report_fault(loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """What the loop does with a fault that reaches nobody else: one line that names it, and where it came from."""
    fault = context.get("exception")
    if isinstance(fault, OSError) and "transport" in context:
        logger.debug("a connection failed: %s", fault)  # Its client is gone, in a way that uvloop tells of.
    elif fault is not None:
        logger.error("%s: %s: %s", context["message"], type(fault).__name__, fault, exc_info=fault)
    else:
        what = next((context[key] for key in ("task", "future", "handle", "transport") if key in context), "")
        logger.error("%s %r", context["message"], what)


def run(
    server: Server,
    *,
    on_ready: Callable[[Mapping[str, Any]], None],
    stop_with_stdin: bool = False,
) -> None:
    """Start the node, tell `on_ready` its ready line, serve until SIGTERM, SIGINT or (if asked) the
    end of standard input, then stop. Raises what `Server.start` raises, and StorageFault where the
    node had to stop because it cannot keep its data any more."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(server, on_ready, stop_with_stdin))


async def _serve(server: Server, on_ready: Callable[[Mapping[str, Any]], None], stop_with_stdin: bool) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(report_fault)
    stop = asyncio.Event()
    _stop_on_signals(loop, stop)
    if stop_with_stdin:
        _stop_on_end_of_stdin(loop, stop)
    try:
        await server.start()
        # What was loaded to start lives as long as the node: the collector need not look at it.
        gc.freeze()
        on_ready(server.ready_line())
        stopped = asyncio.ensure_future(stop.wait())
        failed = asyncio.ensure_future(server.failed.wait())
        await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
        for waiter in (stopped, failed):
            waiter.cancel()
    finally:
        await _stop(server)
    if server.failure is not None:
        from broker.storage.files import StorageFault

        raise StorageFault(f"The node has stopped: {server.failure.message}.")


async def _stop(server: Server) -> None:
    """Stop, but not for ever. Raises StorageFault where it takes too long, so that nobody believes it was clean."""
    try:
        async with asyncio.timeout(STOP_LIMIT_SECONDS):
            await server.stop()
    except TimeoutError:
        from broker.storage.files import StorageFault

        raise StorageFault(
            f"The node did not stop within {STOP_LIMIT_SECONDS:g} s and was left as it was: its next start looks at "
            "its logs as after a crash."
        ) from None


def _stop_on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))


def _stop_on_end_of_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """The starting process holds the other end of a pipe; the system closes it however that ends."""

    def watch() -> None:
        try:
            while os.read(0, 4096):
                pass
        except OSError:
            pass
        try:
            loop.call_soon_threadsafe(stop.set)
        except RuntimeError:
            pass  # The loop is closed: the node has stopped already.

    threading.Thread(target=watch, name="stdin", daemon=True).start()
