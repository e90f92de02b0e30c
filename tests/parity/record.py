"""Plays the corpus to Apache Kafka and to a node of this tree, and compares their answers field by field.

Without --record it also says which recordings (tests/golden/parity) are no longer what Apache Kafka answers.
With --live random sequences are played instead (--live --help); --full plays both.
With --record it stores Apache Kafka's answers as those recordings, which the tests play against every node.
Both brokers are started for this unless addresses are given. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import datetime as dt
import difflib
import json
import secrets
import sys
from pathlib import Path
from typing import Any

from broker.handlers.dispatch import API_ROWS
from tests.parity.brokers import VERSION, NotStarted, apache_kafka, own_node
from tests.parity.corpus import Scenario, scenarios
from tests.parity.differences import without_kinder_texts
from tests.parity.live import command as live
from tests.parity.player import Player
from wire.api import API_SPECS

GOLDEN = Path(__file__).parents[1] / "golden" / "parity"
Exchanges = list[dict[str, Any]]


def play(name: str, scenario: Scenario, address: tuple[str, int]) -> Exchanges:
    """Play one scenario; returns its normalised exchanges."""
    player = Player(address, name, secrets.token_hex(4))
    try:
        player.warm_up()
        scenario(player)
    finally:
        player.close()
    return player.transcript.entries


def stored(name: str) -> Exchanges:
    """The recorded exchanges of a scenario; raises FileNotFoundError when never recorded."""
    entries: Exchanges = json.loads((GOLDEN / f"{name}.json").read_text())["exchanges"]
    return entries


def difference(name: str, answers: Exchanges) -> str:
    """A readable difference between the recorded exchanges and these; empty when equal."""
    return difference_between(stored(name), answers, "recorded")


def difference_between(expected: Exchanges, answers: Exchanges, what: str) -> str:
    """A readable difference of answers from Kafka's (`what` they are); empty when equal, kinder texts aside."""
    left, right = (
        json.dumps(entries, indent=1, sort_keys=True).splitlines()
        for entries in (expected, without_kinder_texts(expected, answers))
    )
    return "\n".join(difflib.unified_diff(left, right, what, "answered", lineterm=""))


def unserved(exchanges: Exchanges) -> set[str]:
    """The APIs among these exchanges that a node of this tree does not serve."""
    return {entry["api"] for entry in exchanges if entry["api"]} - {API_SPECS[row.key].name for row in API_ROWS}


def _store(name: str, answers: Exchanges) -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    content = {"broker": f"Apache Kafka {VERSION}", "recorded": today, "exchanges": answers}
    (GOLDEN / f"{name}.json").write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def record(chosen: dict[str, Scenario], kafka: tuple[str, int]) -> int:
    """Store Apache Kafka's answers; a recording that is equal already keeps its date. Returns the exit code."""
    for name, scenario in chosen.items():
        answers = play(name, scenario, kafka)
        if (GOLDEN / f"{name}.json").exists() and stored(name) == answers:
            print(f"{name}: {len(answers)} exchanges, as recorded", flush=True)
            continue
        _store(name, answers)
        print(f"{name}: {len(answers)} exchanges recorded", flush=True)
    return 0


def compare(chosen: dict[str, Scenario], kafka: tuple[str, int], node: tuple[str, int]) -> int:
    """Play to both and print what differs; returns the exit code."""
    counts = {"equal": 0, "differs": 0, "stale": 0, "not served": 0}
    for name, scenario in chosen.items():
        expected = play(name, scenario, kafka)
        if not (GOLDEN / f"{name}.json").exists() or stored(name) != expected:
            counts["stale"] += 1
            print(f"{name}: the recording is not what Apache Kafka answers now; --record --only {name} renews it")
        if missing := unserved(expected):
            counts["not served"] += 1
            print(f"{name}: not compared, {', '.join(sorted(missing))} is not served", flush=True)
            continue
        try:
            text = difference_between(expected, play(name, scenario, node), f"Apache Kafka {VERSION}")
        except (OSError, AssertionError) as fault:  # no answer, none in time, or one that ends the scenario
            text = f"not played to its end: {type(fault).__name__}: {fault}"
        counts["differs" if text else "equal"] += 1
        print(f"{name}: differs\n{text}" if text else f"{name}: equal", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["differs"] or counts["stale"] else 0


def main(arguments: list[str]) -> int:
    """Record, compare, or play random sequences; returns the exit code."""
    if "--live" in arguments:
        return live.main([each for each in arguments if each != "--live"])
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="dev.py parity", description=__doc__, formatter_class=layout)
    parser.add_argument("--record", action="store_true", help="store Apache Kafka's answers")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose names contain this")
    parser.add_argument("--against", metavar="HOST:PORT", help="compare this broker, not a node started for it")
    parser.add_argument("--reference", metavar="HOST:PORT", help="Apache Kafka that runs already")
    parser.add_argument("--full", action="store_true", help="also random sequences, as --live plays them")
    options = parser.parse_args(arguments)
    chosen = {name: scenario for name, scenario in scenarios().items() if options.only in name}
    if not chosen:
        parser.error(f"no scenario's name contains {options.only!r}; there are {', '.join(scenarios())}")
    try:
        with apache_kafka(options.reference) as kafka:
            if options.record:
                return record(chosen, kafka)
            with own_node(options.against) as node:
                code = compare(chosen, kafka, node)
        # With brokers of their own: they need other settings.
        return live.main([]) or code if options.full else code
    except NotStarted as fault:
        print(fault, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
