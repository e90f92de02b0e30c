"""Plays random sequences of requests to Apache Kafka and to a node of this tree, and compares each answer.

A sequence that is answered differently is shortened and printed as the steps of a scenario (tests/parity/corpus).
The run's seed is printed: with it the same sequences are played again. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import secrets
import sys
from collections.abc import Iterator
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Flaky, FlakyStrategyDefinition
from hypothesis.stateful import run_state_machine_as_test

import odradek
from tests.parity.brokers import NotStarted, Reference, address_of
from tests.parity.live.data_machine import DataMachine, FrameMachine
from tests.parity.live.group_machine import GroupMachine
from tests.parity.live.lapse_machine import LapseMachine
from tests.parity.live.machine import Machine
from tests.parity.live.shorten import shortened
from tests.parity.live.stage import SETTINGS, Address, Stage
from tests.parity.live.twins import Difference

MACHINES: dict[str, type[Machine]] = {
    "groups": GroupMachine,
    "lapses": LapseMachine,
    "data": DataMachine,
    "frames": FrameMachine,
}
STEPS = 40
"""Rules in one sequence; many of them are several requests."""


def play(
    machine: type[Machine],
    stage: Stage,
    *,
    examples: int,
    seed: int,
    survey: bool = False,
    set_aside: tuple[str, ...] = (),
    steps: int = STEPS,
) -> list[Difference]:
    """Play sequences of a machine; the differences found, each with a sequence as short as could be found.

    Played up to the first difference; a `survey` plays all sequences, each up to its own.
    """
    kept: dict[str, Difference] = {}
    fields = {"stage": stage, "set_aside": set_aside, "survey": kept if survey else None, "last": None, "begun": 0}
    chosen: Any = type(machine.__name__, (machine,), fields)
    for attempt in itertools.count():
        try:
            _play(chosen, examples=examples - chosen.begun, seed=seed + attempt, steps=steps)
        except (Flaky, FlakyStrategyDefinition):
            # What the brokers answer decides what is drawn next, so a sequence may go differently the second
            # time, which Hypothesis does not expect: the rest is played from another seed.
            if chosen.last is None and chosen.begun < examples:
                continue
        except Difference:
            pass  # the last
        found = list(kept.values()) if survey else [chosen.last] if chosen.last is not None else []
        return [shortened(stage, each) for each in found]
    raise AssertionError("unreachable")


def _play(machine: type[Machine], *, examples: int, seed: int, steps: int) -> None:
    settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    with contextlib.redirect_stdout(None):
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings)


def run(options: argparse.Namespace, stage: Stage) -> int:
    """Play the chosen machines and print what differs; returns the exit code."""
    seed = options.seed if options.seed is not None else secrets.randbelow(1 << 32)
    failed = False
    for name, machine in MACHINES.items():
        if options.only not in name:
            continue
        examples = -(-options.examples // machine.share)
        print(f"{name}: {examples} sequences, --seed {seed}", flush=True)
        before = Machine.steps
        found = play(
            machine,
            stage,
            examples=examples,
            seed=seed,
            survey=options.survey,
            set_aside=tuple(options.set_aside),
        )
        for difference in found:
            print(f"\n{difference}\n", flush=True)
        failed = failed or bool(found)
        print(f"{name}: {Machine.steps - before} steps, {len(found)} differences (--seed {seed})", flush=True)
    return 1 if failed else 0


@contextlib.contextmanager
def reference(running: str | None) -> Iterator[Address]:
    """Apache Kafka with the settings that sequences need, or one that runs already."""
    if running:
        yield address_of(running)
        return
    with Reference(settings=[f"{name}={value}" for name, value in SETTINGS.items()]) as kafka:
        yield address_of(kafka.bootstrap_servers)


def main(arguments: list[str]) -> int:
    """Play; returns the exit code."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="dev.py parity --live", description=__doc__, formatter_class=layout)
    settings = " ".join(f"{name}={value}" for name, value in SETTINGS.items())
    parser.add_argument("--against", metavar="HOST:PORT", help=f"Apache Kafka that runs already, with {settings}")
    parser.add_argument("--examples", type=int, default=50, metavar="N", help="sequences of each machine (50)")
    parser.add_argument("--seed", type=int, metavar="S", help="play the sequences of that run")
    parser.add_argument("--only", default="", choices=["", *MACHINES], help="one machine")
    parser.add_argument("--survey", action="store_true", help="do not end at the first difference: find every kind")
    parser.add_argument(
        "--set-aside", action="append", default=[], metavar="TEXT", help="end sequences quietly at a difference with it"
    )
    options = parser.parse_args(arguments)
    try:
        with reference(options.against) as kafka, odradek.Broker(settings=SETTINGS) as broker:
            return run(options, Stage(kafka, address_of(broker.bootstrap_servers)))
    except NotStarted as fault:
        print(fault, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
