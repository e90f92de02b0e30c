"""Transactions on a node in virtual time: random producers, zombies, processors, readers, and a node that dies.

    python -m tests.simulation.transactions --seed 7

A seed decides everything: who does what, which answers are lost, at which write the node dies. The same
workload runs against a process that is killed: python3 dev.py crash --workload transactions.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from random import Random
from typing import Any

from broker.storage.faulty_files import Crash
from tests.simulation.simulated_node import SimulatedNode
from tests.simulation.transaction_workload import Plan, Report, Workload
from tests.simulation.transport import Disconnected
from tests.simulation.virtual_loop import VirtualLoop, run


def simulate(plan: Plan) -> Report:
    """Run a plan; raises AssertionError naming the invariant that does not hold."""
    logging.getLogger("broker").setLevel(logging.CRITICAL)

    async def main(loop: VirtualLoop) -> Report:
        faults: list[str] = []

        def noticed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            """Something failed in a task or timer of the node that nobody waits for."""
            error = context.get("exception")
            if not isinstance(error, Crash | Disconnected | asyncio.CancelledError):
                faults.append(f"{context.get('message')}: {error!r}")

        loop.set_exception_handler(noticed)
        node = SimulatedNode(loop, Random(plan.seed + 1), power_loss=plan.power_loss)
        task = asyncio.current_task()
        assert task is not None
        task.set_name("sim:main")
        report = await Workload(node, plan).run()
        assert not faults, faults
        return report

    return run(main)


def main(arguments: list[str]) -> int:
    """Run one seed, or several; the exit code is 1 if an invariant does not hold."""
    parser = argparse.ArgumentParser(prog="dev.py simulate --workload transactions", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, metavar="COUNT", help="how many, one after the other")
    parser.add_argument("--seconds", type=float, default=60.0, help="of virtual time under load")
    parser.add_argument("--trace", action="store_true", help="print what happened, moment by moment")
    options = parser.parse_args(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of strings is part of what a seed repeats.
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation.transactions", *arguments],
                  {**os.environ, "PYTHONHASHSEED": "0"})  # fmt: skip
    failed = 0
    for seed in range(options.seed, options.seed + options.seeds):
        plan = Plan.of_seed(seed, options.seconds)
        try:
            report = simulate(plan)
        except AssertionError as broken:
            failed += 1
            print(f"FAILED {plan}\n  {broken}", flush=True)
        else:
            if options.trace:
                print("\n".join(report.trace))
            print(f"{report}, fingerprint {report.fingerprint}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
