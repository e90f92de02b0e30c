"""The transactions of `tests.simulation` on a node that is killed: runs over one directory each, until enough kills."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.crash.requests import Broken
from tests.crash.socket_transport import SocketTransport
from tests.crash.soundness import require_sound
from tests.simulation.transaction_workload import Plan, Report, Workload

PACE = 0.1
"""Seconds here for a second of virtual time: transactions time out after 0.5, 1 and 6 seconds."""
SECONDS_PER_KILL = 18.0
"""Of the plan: the load between two kills, and the start after one."""
KILLS_PER_RUN = 10
"""Each run has a new directory, a new draw of clients, and ends with a rest in which all that is open times out."""
TRACE = "trace.txt"
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


def plan_of(seed: int, kills: int) -> Plan:
    """What a seed draws, with deaths that are sure to come; a process loses no power."""
    drawn = Plan.of_seed(seed, duration_s=SECONDS_PER_KILL * (kills + 1))
    return replace(drawn, deaths=kills, power_loss=False, loss=drawn.loss or 0.005)


async def run_transactions(home: Path, plan: Plan) -> tuple[Report, SocketTransport]:
    """A whole run over one directory, which also keeps what happened, moment by moment: its report, and the
    node's life. Raises AssertionError naming the invariant that does not hold, or Broken."""
    transport = SocketTransport(home, Random(plan.seed + 1), SETTINGS)
    workload = Workload(transport, plan, pace=PACE)
    try:
        report = await workload.run()
    finally:
        await transport.end()
        (home / TRACE).write_text("\n".join(workload.world.trace))
    require_sound(transport.node.data)
    said = [line for line in transport.node.complaints() if "WARNING" not in line]
    if said:
        raise Broken(f"the node complained: {said[-3:]}")
    return report, transport


async def run_transaction_campaigns(home: Path, cycles: int, seed: int, tell: Callable[[str], None]) -> None:
    """`cycles` kills in all; the n-th run has the seed `seed + n`. Raises as `run_transactions`."""
    kills = number = 0
    while kills < cycles:
        directory = home / str(seed + number)
        directory.mkdir()
        began = time.monotonic()
        plan = plan_of(seed + number, min(KILLS_PER_RUN, cycles - kills))
        try:
            report, life = await run_transactions(directory, plan)
        except AssertionError as broken:
            raise Broken(f"{plan}: {broken}") from broken
        except TimeoutError as nothing:
            raise Broken(f"{plan}: the node lives and does not answer, start or stop in time") from nothing
        kills += life.kills
        number += 1
        took_s = time.monotonic() - began
        tell(f"{report}, {life.kills} kills ({kills} in all), {life.cuts} connections cut ({took_s:.0f} s)")
