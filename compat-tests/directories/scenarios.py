"""One data directory, two brokers: what Apache Kafka wrote is read by Odradek, and the other way round.

    scenarios.py [--only SCENARIO]

Needs Java; Apache Kafka comes as for the reference. A client takes down all that it can see, the directory changes
hands (after a clean stop, and after a kill), and a client of the other broker must see the same.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "reference")]

from content import difference, fill, forget_log_start, seen
from reference import Reference, class_path, free_port, java, tool_command
from scenario import expect
from what_stays import SETTINGS, played

# Not served by Odradek: a cluster that has finalized them is refused by name until they are lowered.
UNSERVED_FEATURES = ("share.version", "streams.version")
SMALL = [
    "offsets.topic.num.partitions=3",
    "transaction.state.log.num.partitions=3",
    "log.index.size.max.bytes=65536",
    "log.initial.task.delay.ms=500",
]
QUICK = ["-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
"""Java is started some twenty times here, and never runs for long."""


class Kafka(Reference):
    """Apache Kafka over a directory that may hold another's data; `home` has its settings and `home/data` the data."""

    def __init__(
        self, home: Path, *, static_quorum: bool, all_features: bool = False, settings: Sequence[str] = ()
    ) -> None:
        super().__init__(settings=[*SMALL, *settings], jvm=QUICK)
        self.directory = home
        self._static_quorum = static_quorum
        self._all_features = all_features

    def properties(self) -> list[str]:
        lines = super().properties()
        if self._static_quorum:
            name = "controller.quorum.bootstrap.servers="
            lines = [line.replace(name, "controller.quorum.voters=1@") for line in lines]
        return lines

    def prepare(self) -> None:
        """Write its settings, and format the directory if it is new."""
        assert self.directory is not None
        properties = self.directory / "server.properties"
        properties.write_text("\n".join(self.properties()) + "\n", encoding="utf-8")
        if not (self.directory / "data" / "meta.properties").exists():
            lowered = [part for feature in UNSERVED_FEATURES for part in ("--feature", f"{feature}=0")]
            if self._all_features:
                lowered = []
            how = [] if self._static_quorum else ["--standalone"]
            command = [java(), *QUICK, "-cp", class_path(), "kafka.tools.StorageTool", "format", *how, *lowered]
            command += ["-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties)]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            expect(done.returncode, 0, f"the format: {done.stdout}{done.stderr}")

    def start(self) -> None:
        self.prepare()
        super().start()

    def end(self) -> None:
        """A clean stop; the directory stays."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process = None


class Odradek:
    """Our node over `home/data`."""

    def __init__(self, home: Path, settings: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.settings = [*SMALL, *settings]
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.home = home
        self.process: subprocess.Popen[str] | None = None
        self.errors = home / "odradek.log"

    def start(self) -> None:
        settings = [part for setting in self.settings for part in ("--set", setting) if "initial.task" not in setting]
        place = ["--port", str(self.port), "--data", str(self.home / "data")]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "odradek", "start", "--json", *place, *settings],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"Odradek did not start: {self.errors.read_text()[-500:]}")
        expect(json.loads(line).get("event"), "ready", "the ready line")

    def end(self) -> None:
        assert self.process is not None
        self.process.terminate()
        expect(self.process.wait(30), 0, "the exit code of a clean stop")
        self.process = None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None


Broker = Kafka | Odradek


def there_and_back(first: Broker, second: Broker, *, kill: bool) -> None:
    """`first` is filled and ends; `second` must show the same, is filled as well, and hands back."""
    first.start()
    for mark, giver, taker in (("there", first, second), ("back", second, first)):
        fill(giver.bootstrap_servers, mark)
        if kill:
            # Where a log starts is noted once a minute by both brokers; a kill before that forgets it.
            forget_log_start(giver.bootstrap_servers)
        before = seen(giver.bootstrap_servers)
        giver.kill() if kill else giver.end()
        taker.start()
        expect(difference(before, seen(taker.bootstrap_servers)), [], "what has changed with the broker")
    first.end()


def a_stopped_kafka_is_taken_over_and_handed_back(home: Path) -> None:
    """A cluster formatted as a static quorum (kraft.version 0)."""
    there_and_back(Kafka(home, static_quorum=True), Odradek(home), kill=False)


def a_killed_kafka_is_taken_over_and_handed_back(home: Path) -> None:
    there_and_back(Kafka(home, static_quorum=True), Odradek(home), kill=True)


def a_standalone_kafka_is_taken_over_and_handed_back(home: Path) -> None:
    """A cluster whose voters are in its metadata (kraft.version 1)."""
    there_and_back(Kafka(home, static_quorum=False), Odradek(home), kill=False)


def a_stopped_odradek_is_taken_over_and_handed_back(home: Path) -> None:
    there_and_back(Odradek(home), Kafka(home, static_quorum=True), kill=False)


def a_killed_odradek_is_taken_over_and_handed_back(home: Path) -> None:
    there_and_back(Odradek(home), Kafka(home, static_quorum=True), kill=True)


# --- Kafka's tool over our files ------------------------------------------------------------------


def kafka_dump_log_reads_all_files_of_odradek(home: Path) -> None:
    """Every file that the tool knows, deep, with the decoders; indexes verified and sane."""
    node = Odradek(home)
    node.start()
    fill(node.bootstrap_servers, "dump")
    node.end()
    data = home / "data"
    for pattern, options in {
        "[!_]*/*.log": ["--print-data-log"],
        "__consumer_offsets-*/*.log": ["--offsets-decoder"],
        "__transaction_state-*/*.log": ["--transaction-log-decoder"],
        "__cluster_metadata-0/*.log": ["--cluster-metadata-decoder"],
        "__cluster_metadata-0/*.checkpoint": ["--cluster-metadata-decoder"],
        "*/*.index": ["--verify-index-only"],
        "*/*.timeindex": ["--verify-index-only"],
        "*/*.txnindex": [],
        "*/*.snapshot": [],
    }.items():
        files = sorted(data.glob(pattern))
        expect(bool(files), True, f"files of {pattern}")
        said = dumped(files, options)
        for word in ("mismatch", "isvalid: false", "out of order", "corrupt", "Could not", "Exception", "Failed"):
            expect(word.lower() in said.lower(), False, f"{word!r} in what the tool says of {pattern}: {said[-400:]}")
        if pattern.endswith("index") and options:
            sane = dumped(files, ["--index-sanity-check"])
            fine = sane.count("passed sanity check") + sane.count("is empty.")
            expect(fine, len(files), f"sane files of {pattern}")


def dumped(files: list[Path], options: list[str]) -> str:
    command = tool_command("kafka-dump-log", ["--files", ",".join(map(str, files)), *options])
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    expect(done.returncode, 0, f"the tool's exit code: {done.stderr[-300:]}")
    return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("SLF4J"))


def a_feature_that_is_not_served_is_refused_by_name(home: Path) -> None:
    """A cluster of Apache Kafka with all that it finalizes; once lowered there, it can be opened here."""
    kafka, node = Kafka(home, static_quorum=True, all_features=True), Odradek(home)
    kafka.start()
    fill(kafka.bootstrap_servers, "features")
    before = seen(kafka.bootstrap_servers)
    kafka.end()
    taken = contents(home / "data")
    try:
        node.start()
        raise RuntimeError("Odradek opened a cluster whose features it does not serve")
    except AssertionError as refusal:
        said = str(refusal)
    expect([feature for feature in UNSERVED_FEATURES if feature in said] != [], True, f"the refusal names it: {said}")
    expect(changes(taken, contents(home / "data")), [], "files that the refusal has changed")
    kafka.start()
    lowered = [part for feature in UNSERVED_FEATURES for part in ("--feature", f"{feature}=0")]
    arguments = ["--bootstrap-server", kafka.bootstrap_servers, "downgrade", *lowered]
    done = subprocess.run(tool_command("kafka-features", arguments), capture_output=True, text=True, check=False)
    expect(done.returncode, 0, f"kafka-features downgrade: {done.stdout}{done.stderr}")
    kafka.end()
    node.start()
    expect(difference(before, seen(node.bootstrap_servers)), [], "what has changed with the broker")
    node.end()


# --- what stays of a log --------------------------------------------------------------------------


def compaction_and_retention_leave_the_same(home: Path) -> None:
    """Each broker over a directory of its own: after compaction, retention and deletion both tell the same."""
    told = {}
    for name in ("kafka", "odradek"):
        own = home / name
        own.mkdir()
        kafka = name == "kafka"
        broker = Kafka(own, static_quorum=True, settings=SETTINGS) if kafka else Odradek(own, SETTINGS)
        broker.start()
        try:
            told[name] = played(broker.bootstrap_servers, own / "data")
        finally:
            broker.end()
    expect(difference(told["kafka"], told["odradek"]), [], "what differs of the logs")


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def changes(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


SCENARIOS: list[Callable[[Path], None]] = [
    kafka_dump_log_reads_all_files_of_odradek,
    a_feature_that_is_not_served_is_refused_by_name,
    compaction_and_retention_leave_the_same,
    a_stopped_kafka_is_taken_over_and_handed_back,
    a_killed_kafka_is_taken_over_and_handed_back,
    a_standalone_kafka_is_taken_over_and_handed_back,
    a_stopped_odradek_is_taken_over_and_handed_back,
    a_killed_odradek_is_taken_over_and_handed_back,
]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="leave the directory of a scenario that failed")
    parser.add_argument("--only", action="append", default=[], choices=[function.__name__ for function in SCENARIOS])
    options = parser.parse_args()
    chosen = [function for function in SCENARIOS if not options.only or function.__name__ in options.only]
    failed = 0
    for function in chosen:
        home = Path(tempfile.mkdtemp(prefix="odradek-directories-"))
        began = time.monotonic()
        try:
            function(home)
            print(f"ok     {function.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
            shutil.rmtree(home, ignore_errors=True)
        except Exception as error:
            failed += 1
            if os.environ.get("COMPAT_TRACE"):
                traceback.print_exc()
            print(f"FAILED {function.__name__}: {type(error).__name__}: {error}", flush=True)
            print(f"       its directory is {home}" if options.keep else "", flush=True)
            if not options.keep:
                shutil.rmtree(home, ignore_errors=True)
    print(f"{len(chosen) - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
