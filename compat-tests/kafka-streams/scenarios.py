"""Kafka Streams with processing.guarantee=exactly_once_v2; STREAMS_LIBRARIES is the folder of its jars."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from scenario import expect, main, scenario, unique, until

LINES = 3000
SLOW_S = 100


def command(*arguments: str) -> list[str]:
    libraries = os.environ["STREAMS_LIBRARIES"]
    return ["java", "-Xmx256M", "-cp", f"{libraries}/*", str(HERE / "WordCount.java"), *arguments]


def run(*arguments: str) -> str:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=SLOW_S, check=False)
    if done.returncode:
        raise AssertionError(f"{arguments[0]} ended with {done.returncode}: {done.stderr[-600:]}")
    return done.stdout


def totals(address: str, topic: str) -> dict[str, int]:
    pairs = (line.split() for line in run("totals", address, topic).splitlines())
    return {word: int(count) for word, count in pairs}


@scenario
def words_are_counted_exactly_once_although_the_application_is_killed(address: str) -> None:
    lines, counts, application = unique("lines"), unique("counts"), unique("words")
    run("make", address, lines, counts)
    run("fill", address, lines, str(LINES))
    for round_number in (1, 2):
        with tempfile.TemporaryDirectory() as state:
            counting = subprocess.Popen(
                command("count", address, application, lines, counts, state),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                wanted = 1 if round_number == 1 else 2 * LINES
                until(lambda: totals(address, counts).get("alpha", 0) >= wanted, f"'alpha' counted {wanted} times")  # noqa: B023
            finally:
                counting.kill()
                counting.wait()
        if round_number == 1:
            run("fill", address, lines, str(LINES))
    found = totals(address, counts)
    expect((found["alpha"], found["beta"]), (2 * LINES, 2 * LINES), "words of every line")
    expect({found[f"w{n}"] for n in range(50)}, {2 * LINES // 50}, "the other words")
    expect(len(found), 52, "words")


if __name__ == "__main__":
    main()
