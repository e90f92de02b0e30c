"""Kill a node at random moments under load, again and again, and check that everything it promised holds.

A promise is an acknowledged record (there once, in order, at its offset), the end of a transaction, a committed offset,
a member's place in its group, a topic. After kills, files that can be made anew are damaged at random. Afterwards the
node stops cleanly, its files must be sound, and its indexes those of a rebuild. Exit code 1 if a promise did not hold;
the directory is kept then. The same seed takes the same decisions; when the kill strikes is up to the machine.

--workload transactions has clients of transactions alone: producers of both protocols, instances that are fenced,
consume-transform-produce, timeouts, connections that are cut. They are those of dev.py simulate, with its invariants.
--workload groups has the members of dev.py simulate; sessions last 6 s and more, and so a run takes minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.crash.campaign import run_campaigns
from tests.crash.group_campaign import run_group_campaigns
from tests.crash.requests import Broken
from tests.crash.transaction_campaign import run_transaction_campaigns

CYCLES, CYCLES_FULL = 10, 200
WORKLOADS = {"all": run_campaigns, "transactions": run_transaction_campaigns, "groups": run_group_campaigns}


def main() -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="dev.py crash", description=__doc__, formatter_class=layout)
    parser.add_argument("--cycles", type=int, help=f"how many kills (default {CYCLES})")
    parser.add_argument("--full", action="store_true", help=f"{CYCLES_FULL} kills")
    parser.add_argument("--seed", type=int, help="takes the decisions of an earlier run (default: a new one, printed)")
    parser.add_argument("--workload", choices=WORKLOADS, default="all", help="who uses the node (default: all)")
    options = parser.parse_args()
    cycles = options.cycles or (CYCLES_FULL if options.full else CYCLES)
    seed = Random().randrange(1 << 32) if options.seed is None else options.seed
    print(f"{cycles} kills of --workload {options.workload} with --seed {seed}", flush=True)
    home, began = Path(tempfile.mkdtemp(prefix="odradek-crash-")), time.monotonic()
    try:
        asyncio.run(WORKLOADS[options.workload](home, cycles, seed, lambda line: print(f"  {line}", flush=True)))
    except Broken as broken:
        print(f"FAILED with --seed {seed}: {broken}\nThe directory is kept: {home}", flush=True)
        return 1
    except KeyboardInterrupt:
        shutil.rmtree(home, ignore_errors=True)
        return 130
    shutil.rmtree(home, ignore_errors=True)
    print(f"Everything promised held over {cycles} kills ({time.monotonic() - began:.0f} s).", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
