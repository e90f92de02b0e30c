"""The groups of `tests.simulation` on a node that is killed; their sessions last as long as clients' do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.crash.killed_workloads import run_campaigns_of, run_to_its_end
from tests.crash.socket_transport import SocketTransport
from tests.simulation.groups import Plan, Report, Simulation

SECONDS_PER_KILL = 12.0
LATENCY_MS = 3_000.0
"""A busy machine answers within this, and timers are late by no more."""


def plan_of(seed: int, kills: int) -> Plan:
    """What a seed draws, with deaths that are sure to come; a process loses no power."""
    drawn = Plan.of_seed(seed, duration_s=SECONDS_PER_KILL * (kills + 1))
    return replace(drawn, deaths=kills, power_loss=False)


async def run_groups(home: Path, plan: Plan) -> tuple[Report, SocketTransport]:
    """A whole run over one directory: its report, and the node's life. Raises as `run_to_its_end`."""
    transport = SocketTransport(home, Random(plan.seed + 1), plan.settings)
    simulation = Simulation(transport, plan, latency_ms=LATENCY_MS, slack_ms=LATENCY_MS)
    return await run_to_its_end(home, transport, simulation.run(), simulation.world.trace), transport


async def run_group_campaigns(home: Path, cycles: int, seed: int, tell: Callable[[str], None]) -> None:
    """`cycles` kills in all; the n-th run has the seed `seed + n`. Raises Broken."""
    await run_campaigns_of(home, cycles, seed, tell, plan_of, run_groups)
