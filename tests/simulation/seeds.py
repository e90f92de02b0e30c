"""What every workload in virtual time shares: a loop with a node on it, and the command line of seeds."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Protocol, TypeVar

from broker.storage.faulty_files import Crash
from tests.simulation.simulated_node import SimulatedNode
from tests.simulation.transport import Disconnected
from tests.simulation.virtual_loop import VirtualLoop, run


class Report(Protocol):
    """What a run came to; as a string it is one line."""

    trace: list[str]

    @property
    def fingerprint(self) -> str:
        """Equal for two runs that did the same at the same moments."""


R = TypeVar("R")


def on_a_node(
    seed: int, settings: Mapping[str, str], work: Callable[[SimulatedNode], Awaitable[R]], *, power_loss: bool = False
) -> R:
    """Run a workload on a node in virtual time. Raises AssertionError if anything of the node failed unseen."""
    logging.getLogger("broker").setLevel(logging.CRITICAL)

    async def main(loop: VirtualLoop) -> R:
        faults: list[str] = []

        def noticed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if not isinstance(error, Crash | Disconnected | asyncio.CancelledError):
                faults.append(f"{context.get('message')}: {error!r}")

        loop.set_exception_handler(noticed)
        node = SimulatedNode(loop, Random(seed + 1), settings, power_loss=power_loss)
        task = asyncio.current_task()
        assert task is not None
        task.set_name("sim:main")
        result = await work(node)
        assert not faults, faults
        return result

    return run(main)


def run_seeds(
    arguments: list[str],
    workload: str,
    description: str | None,
    simulate: Callable[[int, float], Report],
    *,
    seconds: float,
) -> int:
    """The command line of a workload: one seed, or several. The exit code is 1 if an invariant does not hold."""
    parser = argparse.ArgumentParser(prog=f"dev.py simulate --workload {workload}", description=description)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, metavar="COUNT", help="how many, one after the other")
    parser.add_argument("--seconds", type=float, default=seconds, help="of virtual time under load")
    parser.add_argument("--trace", action="store_true", help="print what happened, moment by moment")
    options = parser.parse_args(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of strings is part of what a seed repeats.
        os.execve(sys.executable, [sys.executable, "-m", f"tests.simulation.{workload}", *arguments],
                  {**os.environ, "PYTHONHASHSEED": "0"})  # fmt: skip
    failed = 0
    for seed in range(options.seed, options.seed + options.seeds):
        try:
            report = simulate(seed, options.seconds)
        except AssertionError as broken:
            failed += 1
            print(f"FAILED seed {seed}\n  {broken}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED seed {seed}\n{traceback.format_exc()}", flush=True)
        else:
            told = f"{report}, fingerprint {report.fingerprint}"
            print("\n".join([*(report.trace if options.trace else ()), told]), flush=True)
    return 1 if failed else 0
