"""The transactions of `tests.simulation` on a node that is killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.crash.killed_workloads import run_campaigns_of, run_to_its_end
from tests.crash.socket_transport import SocketTransport
from tests.simulation.transaction_workload import Plan, Report, Workload

PACE = 0.1
"""Seconds here for a second of virtual time: transactions time out after 0.5, 1 and 6 seconds."""
SECONDS_PER_KILL = 18.0
"""Of the plan: the load between two kills, and the start after one."""
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


def plan_of(seed: int, kills: int) -> Plan:
    """What a seed draws, with deaths that are sure to come; a process loses no power."""
    drawn = Plan.of_seed(seed, duration_s=SECONDS_PER_KILL * (kills + 1))
    return replace(drawn, deaths=kills, power_loss=False, loss=drawn.loss or 0.005)


async def run_transactions(home: Path, plan: Plan) -> tuple[Report, SocketTransport]:
    """A whole run over one directory: its report, and the node's life. Raises as `run_to_its_end`."""
    transport = SocketTransport(home, Random(plan.seed + 1), SETTINGS)
    workload = Workload(transport, plan, pace=PACE)
    return await run_to_its_end(home, transport, workload.run(), workload.world.trace), transport


async def run_transaction_campaigns(home: Path, cycles: int, seed: int, tell: Callable[[str], None]) -> None:
    """`cycles` kills in all; the n-th run has the seed `seed + n`. Raises Broken."""
    await run_campaigns_of(home, cycles, seed, tell, plan_of, run_transactions)
