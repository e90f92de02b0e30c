"""Plays the corpus to a broker and stores the answers as golden files, or compares with them.

``python -m tests.parity.record HOST:PORT`` records (the broker is Apache Kafka);
``--compare`` prints the first difference of each scenario instead of storing.
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

from tests.parity.corpus import Scenario, scenarios
from tests.parity.differences import without_kinder_texts
from tests.parity.player import Player

GOLDEN = Path(__file__).parents[1] / "golden" / "parity"


def play(name: str, scenario: Scenario, address: tuple[str, int]) -> list[dict[str, Any]]:
    """Play one scenario; returns its normalised exchanges."""
    player = Player(address, name, secrets.token_hex(4))
    try:
        scenario(player)
    finally:
        player.close()
    return player.transcript.entries


def stored(name: str) -> list[dict[str, Any]]:
    """The recorded exchanges of a scenario; raises FileNotFoundError when never recorded."""
    entries: list[dict[str, Any]] = json.loads((GOLDEN / f"{name}.json").read_text())["exchanges"]
    return entries


def difference(name: str, answers: list[dict[str, Any]]) -> str:
    """A readable difference between the recorded exchanges and these; empty when equal."""
    recorded = stored(name)
    expected, actual = (
        json.dumps(entries, indent=1, sort_keys=True).splitlines()
        for entries in (recorded, without_kinder_texts(recorded, answers))
    )
    return "\n".join(difflib.unified_diff(expected, actual, "recorded", "answered", lineterm=""))


def _record(name: str, answers: list[dict[str, Any]], broker: str) -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    content = {"broker": broker, "recorded": today, "exchanges": answers}
    (GOLDEN / f"{name}.json").write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def main(arguments: list[str]) -> int:
    """Record or compare; returns the exit code."""
    parser = argparse.ArgumentParser(prog="parity", description=__doc__)
    parser.add_argument("address", metavar="HOST:PORT")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    parser.add_argument("--broker", default="Apache Kafka 4.4.0")
    options = parser.parse_args(arguments)
    host, _, port = options.address.rpartition(":")
    differing = 0
    for name, scenario in scenarios().items():
        if options.only not in name:
            continue
        answers = play(name, scenario, (host, int(port)))
        if not options.compare:
            _record(name, answers, options.broker)
            print(f"{name}: {len(answers)} exchanges recorded")
        elif text := difference(name, answers):
            differing += 1
            print(f"{name}: differs\n{text}")
        else:
            print(f"{name}: equal")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
