"""Workloads of `tests.simulation` on a node that is killed: runs over one directory each, until enough kills."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tests.crash.requests import Broken
from tests.crash.socket_transport import SocketTransport
from tests.crash.soundness import require_sound

KILLS_PER_RUN = 10
"""Each run has a new directory, a new draw of clients, and ends with a rest in which all that is open times out."""
TRACE = "trace.txt"

P = TypeVar("P")
R = TypeVar("R")


async def run_to_its_end(home: Path, transport: SocketTransport, run: Awaitable[R], trace: list[str]) -> R:
    """A whole run over one directory, which also keeps what happened, moment by moment: its report. Raises
    AssertionError naming the invariant that does not hold, or Broken."""
    try:
        report = await run
    finally:
        await transport.end()
        (home / TRACE).write_text("\n".join(trace))
    require_sound(transport.node.data)
    if said := transport.node.complaints():
        raise Broken(f"the node complained: {said[-3:]}")
    return report


async def run_campaigns_of(
    home: Path,
    cycles: int,
    seed: int,
    tell: Callable[[str], None],
    plan_of: Callable[[int, int], P],
    run: Callable[[Path, P], Awaitable[tuple[object, SocketTransport]]],
) -> None:
    """`cycles` kills in all; the n-th run has the seed `seed + n`. Raises Broken."""
    kills = number = 0
    while kills < cycles:
        directory = home / str(seed + number)
        directory.mkdir()
        began = time.monotonic()
        plan = plan_of(seed + number, min(KILLS_PER_RUN, cycles - kills))
        try:
            report, life = await run(directory, plan)
        except AssertionError as broken:
            raise Broken(f"{plan}: {broken}") from broken
        except TimeoutError as nothing:
            raise Broken(f"{plan}: the node lives and does not answer, start or stop in time") from nothing
        kills += life.kills
        number += 1
        took_s = time.monotonic() - began
        tell(f"{report}, {life.kills} kills ({kills} in all), {life.cuts} connections cut ({took_s:.0f} s)")
