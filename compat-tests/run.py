"""Runs real clients' scenarios against a broker: `python3 dev.py compat [CLIENT ...] [--against HOST:PORT]`.

Without --against, a node of this tree is started for each client, in memory. `durability` runs brokers of its own,
which it kills. With --reference all run against Apache Kafka instead. Exit code 1 if any scenario failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "reference"))

from reference import NotStarted, Reference

CLIENTS = ("kafka-python", "confluent-kafka", "aiokafka", "kcat", "kafka-tools")
OWN_BROKERS = ("durability",)
NEEDS = {"kcat": "kcat", "kafka-tools": "java"}  # programs that a machine may lack
STOP_TIMEOUT_S = 30
TOTALS = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)


@contextlib.contextmanager
def own_node() -> Iterator[str]:
    """A node of this tree, as a person starts it; yields its address."""
    command = [sys.executable, "-m", "odradek", "start", "--json", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise NotStarted(f"The node did not start: it ended with {process.wait()}.")
            yield json.loads(line)["bootstrap_servers"]
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def run_script(client: str, arguments: list[str]) -> tuple[int, int]:
    """Run a client's scenarios, passing its output on; returns how many passed and failed."""
    command = [sys.executable, str(HERE / client / "scenarios.py"), *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        if not line.startswith("%"):  # librdkafka's log
            print(f"  {line}", end="", flush=True)
            said += line
    process.wait()
    totals = TOTALS.findall(said)
    if not totals:
        print(f"  FAILED {client} ended with {process.returncode} before its last scenario", flush=True)
        return len(re.findall(r"^ok ", said, re.MULTILINE)), 1 + len(re.findall(r"^FAILED ", said, re.MULTILINE))
    return int(totals[-1][0]), int(totals[-1][1])


def run_client(client: str, options: argparse.Namespace) -> tuple[int, int]:
    if client in OWN_BROKERS:
        return run_script(client, ["--broker", "kafka" if options.reference else "odradek"])
    if options.against:
        return run_script(client, [options.against])
    with Reference() if options.reference else contextlib.nullcontext() as kafka:
        if kafka is not None:
            return run_script(client, [kafka.bootstrap_servers])
        with own_node() as address:
            return run_script(client, [address])


def main() -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="dev.py compat", description=__doc__, formatter_class=layout)
    names = ", ".join(CLIENTS + OWN_BROKERS)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"of {names}; default all")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--against", metavar="HOST:PORT", help="a broker that is running")
    where.add_argument("--reference", action="store_true", help="Apache Kafka, started for this")
    options = parser.parse_args()
    for client in options.clients:
        if client not in CLIENTS + OWN_BROKERS:
            parser.error(f"there is no client {client!r}; there are {', '.join(CLIENTS + OWN_BROKERS)}")
    passed = failed = 0
    for client in options.clients or CLIENTS + (() if options.against else OWN_BROKERS):
        if client in NEEDS and shutil.which(NEEDS[client]) is None:
            print(f"{client}: not run, the program {NEEDS[client]} is not installed")
            if client in options.clients:
                failed += 1
            continue
        print(f"{client}:", flush=True)
        counts = run_client(client, options)
        passed, failed = passed + counts[0], failed + counts[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotStarted as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
