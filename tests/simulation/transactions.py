"""Transactions on a node in virtual time: random producers, zombies, processors, readers, and a node that dies.

    python -m tests.simulation.transactions --seed 7

A seed decides everything: who does what, which answers are lost, at which write the node dies. The same
workload runs against a process that is killed: python3 dev.py crash --workload transactions.
"""

from __future__ import annotations

import sys

from tests.simulation.seeds import on_a_node, run_seeds
from tests.simulation.simulated_node import SimulatedNode
from tests.simulation.transaction_workload import Plan, Report, Workload

SECONDS = 60.0


def simulate(plan: Plan) -> Report:
    """Run a plan; raises AssertionError naming the invariant that does not hold."""

    async def work(node: SimulatedNode) -> Report:
        return await Workload(node, plan).run()

    return on_a_node(plan.seed, {}, work, power_loss=plan.power_loss)


def main(arguments: list[str]) -> int:
    """Run one seed, or several; the exit code is 1 if an invariant does not hold."""

    def run_seed(seed: int, duration_s: float) -> Report:
        return simulate(Plan.of_seed(seed, duration_s))

    return run_seeds(arguments, "transactions", __doc__, run_seed, seconds=SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
