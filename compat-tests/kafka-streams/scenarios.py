"""Kafka Streams with processing.guarantee=exactly_once_v2, over kills; STREAMS_LIBRARIES is the folder of its jars.

    scenarios.py [--broker odradek|kafka] [--only SCENARIO]

Each scenario runs its own broker, to kill it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from confluent_kafka import Consumer, TopicPartition
from killable import Node, main
from scenario import expect, unique, until

LINES = 3000
PARTITIONS = 3
PER_SECOND = 100
"""Lines that flow while application and node are killed."""
ROUNDS = 4
GROWTH = 300
"""Words that must be counted after a kill before the next."""
SLOW_S = 180
SETTINGS = [
    "group.min.session.timeout.ms=1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
]
"""So that a killed application is missed within seconds."""


def command(*arguments: str) -> list[str]:
    libraries = os.environ["STREAMS_LIBRARIES"]
    return [
        "java",
        "-Xmx256M",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{libraries}/*",
        str(HERE / "WordCount.java"),
        *arguments,
    ]


def run(*arguments: str) -> str:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=SLOW_S, check=False)
    if done.returncode:
        raise AssertionError(f"{arguments[0]} ended with {done.returncode}: {done.stderr[-600:]}")
    return done.stdout


def totals(address: str, topic: str) -> dict[str, int]:
    """The newest committed count of each word, read from the beginning by Kafka's own consumer."""
    pairs = (line.split() for line in run("totals", address, topic).splitlines())
    return {word: int(count) for word, count in pairs}


class Application:
    """The word count as a process that is killed."""

    def __init__(self, address: str, lines: str, counts: str) -> None:
        self.arguments = [address, unique("words"), lines, counts]
        self.state = Path(tempfile.mkdtemp(prefix="streams-state-"))
        self.said = Path(os.environ.get("COMPAT_DIRECTORY") or tempfile.gettempdir()) / "application.log"
        self.said.unlink(missing_ok=True)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(
                command("count", *self.arguments, str(self.state)), stdout=subprocess.DEVNULL, stderr=said
            )

    def kill(self, *, forget: bool = False) -> None:
        """End it with 9. With `forget` it loses its state too: what starts next is another instance to the broker."""
        assert self.process is not None
        expect(self.process.poll(), None, f"the exit code of the application before it is killed ({self.said})")
        self.process.kill()
        self.process.wait()
        if forget:
            shutil.rmtree(self.state, ignore_errors=True)

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.state, ignore_errors=True)


class Watcher(threading.Thread):
    """Reads committed counts all the while, over every kill of the node; a word's count must only grow."""

    def __init__(self, address: str, counts: str) -> None:
        super().__init__(daemon=True)
        settings = {"bootstrap.servers": address, "group.id": unique("watch"), "isolation.level": "read_committed"}
        self.consumer = Consumer({**settings, "enable.auto.commit": False, "log_level": 0})
        self.consumer.assign([TopicPartition(counts, partition, 0) for partition in range(PARTITIONS)])
        self.counts: dict[str, int] = {}
        self.fault: str | None = None
        self.ending = threading.Event()

    def run(self) -> None:
        while not self.ending.is_set() and self.fault is None:
            for message in self.consumer.consume(1000, 0.2):
                if message.error() is None:
                    self.take(message.key().decode(), int(message.value()))
        self.consumer.close()

    def take(self, word: str, count: int) -> None:
        before = self.counts.get(word, 0)
        if count <= before:
            self.fault = f"{word} goes from {before} to {count}"
        self.counts[word] = count

    def counted(self) -> int:
        """How many words were counted so far. Raises where a count did not grow."""
        expect(self.fault, None, "a count that does not grow")
        return sum(self.counts.copy().values())

    def wait_for(self, words: int) -> None:
        """Until so many words are counted in all."""

        def enough() -> bool:
            time.sleep(0.1)
            return self.counted() >= words

        until(enough, f"{words} words counted", SLOW_S)


def expect_counts(found: dict[str, int], lines: int) -> None:
    """Every line was counted once: `alpha beta w<number % 50>`."""
    wanted = {"alpha": lines, "beta": lines}
    wanted |= {f"w{word}": (lines - word + 49) // 50 for word in range(50)}
    expect({word: (found.get(word, 0), count) for word, count in wanted.items() if found.get(word, 0) != count}, {},
           f"(counted, wanted) of {lines} lines")  # fmt: skip
    expect(len(found), len(wanted), "words")


def words_are_counted_exactly_once_although_the_application_is_killed(node: Node) -> None:
    """Killed between two heaps of lines; a new instance without its state goes on."""
    address, lines, counts = node.bootstrap_servers, unique("lines"), unique("counts")
    run("make", address, lines, counts)
    run("fill", address, lines, str(LINES))
    application, watcher = Application(address, lines, counts), Watcher(address, counts)
    watcher.start()
    try:
        application.start()
        watcher.wait_for(1)
        application.kill(forget=True)
        run("fill", address, lines, str(LINES))
        application.start()
        watcher.wait_for(6 * LINES)
    finally:
        application.end()
        watcher.ending.set()
    expect_counts(totals(address, counts), 2 * LINES)


def words_are_counted_exactly_once_although_application_and_node_are_killed(node: Node) -> None:
    """Lines flow all the while; application and node are killed in turn, every other time both at once."""
    address, lines, counts = node.bootstrap_servers, unique("lines"), unique("counts")
    run("make", address, lines, counts)
    application, watcher = Application(address, lines, counts), Watcher(address, counts)
    watcher.start()
    pouring = subprocess.Popen(
        command("pour", address, lines, str(PER_SECOND)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        application.start()
        for round_number in range(ROUNDS):
            watcher.wait_for(watcher.counted() + GROWTH)
            node.kill()
            node.start()
            watcher.wait_for(watcher.counted() + GROWTH)
            application.kill(forget=round_number % 2 == 1)
            if round_number % 2 == 1:
                node.kill()
                node.start()
            application.start()
        watcher.wait_for(watcher.counted() + GROWTH)
        poured, complaints = pouring.communicate(timeout=SLOW_S)
        expect(pouring.returncode, 0, f"the exit code of the producer ({complaints[:300]})")
        watcher.wait_for(3 * int(poured))
    finally:
        pouring.kill()
        application.end()
        watcher.ending.set()
    expect_counts(totals(address, counts), int(poured))
    print(f"       {poured.strip()} lines; {ROUNDS} kills of the application, {ROUNDS + ROUNDS // 2} of the node")


if __name__ == "__main__":
    main(
        [
            words_are_counted_exactly_once_although_the_application_is_killed,
            words_are_counted_exactly_once_although_application_and_node_are_killed,
        ],
        SETTINGS,
    )
