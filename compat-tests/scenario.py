"""What the scenario scripts share: they are functions that get a broker's address and raise where it disappoints.

A script registers its functions with `@scenario` and ends with `main()`; it takes the address as its argument or from
BOOTSTRAP_SERVERS, and names of scenarios to run only those. Nothing of the broker under test is imported here.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable

Scenario = Callable[[str], None]
SCENARIO_TIMEOUT_S = 120.0

registered: dict[str, Scenario] = {}


class Lacking(Exception):
    """The client cannot do this with any broker; the text says what it lacks."""


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under its function's name."""
    registered[function.__name__] = function
    return function


def unique(what: str) -> str:
    """A name for a topic or group that no other run has."""
    return f"compat-{what}-{uuid.uuid4().hex[:8]}"


def expect(actual: object, expected: object, what: str) -> None:
    """Raise with both values where they differ."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {shortened(expected)}, got {shortened(actual)}")


def shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text)} characters)"


def until(done: Callable[[], bool], what: str, timeout_s: float = 60.0, *, pause_s: float = 0.0) -> None:
    """Call `done` until it says so; raises after the timeout. `pause_s`: between calls of what does not itself wait
    a little, as a poll does."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(pause_s)


def run_one(function: Scenario, address: str, timeout_s: float) -> str | None:
    """Run one scenario; returns why it failed, or None; raises Lacking. One that hangs ends the script: nothing can
    stop it."""

    def give_up() -> None:
        print(f"FAILED {function.__name__} ({timeout_s:.1f} s)\n       still running", flush=True)
        os._exit(3)

    watch = threading.Timer(timeout_s, give_up)
    watch.daemon = True
    watch.start()
    try:
        function(address)
        return None
    except Lacking:
        raise
    except Exception as error:
        if os.environ.get("COMPAT_TRACE"):
            traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    finally:
        watch.cancel()


def main(timeout_s: float = SCENARIO_TIMEOUT_S) -> None:
    """Run the script's scenarios, each until a timeout; the exit code is 1 if any failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address", nargs="?", default=os.environ.get("BOOTSTRAP_SERVERS"), metavar="HOST:PORT")
    parser.add_argument("--only", action="append", default=[], choices=list(registered), metavar="SCENARIO")
    options = parser.parse_args()
    if not options.address:
        parser.error("give the broker's address as HOST:PORT or in BOOTSTRAP_SERVERS")
    failed = skipped = 0
    chosen = options.only or list(registered)
    for name in chosen:
        began = time.monotonic()
        try:
            fault = run_one(registered[name], options.address, timeout_s)
        except Lacking as lacking:
            skipped += 1
            print(f"skipped {name} ({lacking})", flush=True)
            continue
        failed += fault is not None
        print(f"{'ok    ' if fault is None else 'FAILED'} {name} ({time.monotonic() - began:.1f} s)", flush=True)
        if fault is not None:
            print(f"       {fault}", flush=True)
    print(f"{len(chosen) - failed - skipped} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # clients' background threads do not hold up the end
