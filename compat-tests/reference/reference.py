"""Apache Kafka 4.4.0 as the reference broker: one KRaft node, resolved by Maven, for comparison only.

    reference start [--port N] [--set key=value ...] [--jvm OPTION ...]   run in the foreground until interrupted
    reference tool NAME [arguments]                                       run a tool, e.g. kafka-topics --help
    reference path                                                        resolve the jars, print their class path

The jars are kept outside the tree, in the user's cache directory. Needs Java 17 or newer and Maven.
Used as a module: `with Reference(port=0) as kafka: kafka.bootstrap_servers`.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Self

VERSION = "4.4.0"
HERE = Path(__file__).resolve().parent
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0

# As kafka-server-start.sh runs a broker, so that a comparison compares with what people run.
JVM = (
    "-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip

TOOLS = {
    "kafka-acls": "AclCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-client-metrics": "ClientMetricsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "ConfigCommand",
    "kafka-console-consumer": "consumer.ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-share-consumer": "consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "ConsumerPerformance",
    "kafka-delegation-tokens": "DelegationTokenCommand",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-dump-log": "DumpLogSegments",
    "kafka-e2e-latency": "EndToEndLatency",
    "kafka-features": "FeatureCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-groups": "GroupsCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-metadata-quorum": "MetadataQuorumCommand",
    "kafka-producer-perf-test": "ProducerPerformance",
    "kafka-reassign-partitions": "reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "ReplicaVerificationTool",
    "kafka-share-consumer-perf-test": "ShareConsumerPerformance",
    "kafka-share-groups": "consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-application-reset": "StreamsResetter",
    "kafka-streams-groups": "streams.StreamsGroupCommand",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
    "kafka-verifiable-consumer": "VerifiableConsumer",
    "kafka-verifiable-producer": "VerifiableProducer",
    "transactional-message-copier": "TransactionalMessageCopier",  # no shell script: of the system tests
}


class NotStarted(Exception):
    """The reference cannot be had or did not start; the text is one sentence for a person."""


def class_path() -> str:
    """The class path of Kafka's jars, fetched by Maven once and kept in the user's cache directory."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek" / f"kafka-{VERSION}"
    if not (cache / "complete").exists():
        maven = program("mvn", "Maven (mvn) is needed once to fetch Apache Kafka")
        print(f"fetching Apache Kafka {VERSION} with Maven", file=sys.stderr, flush=True)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={cache / 'libs'}"]
        command = [maven, "-q", "-B", "-f", str(HERE / "pom.xml"), *goal]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotStarted(f"Maven could not fetch Apache Kafka {VERSION}: {last_line(done.stdout + done.stderr)}")
        (cache / "complete").touch()
    return str(cache / "libs" / "*")


def program(name: str, need: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotStarted(f"{need}, and {name} is not on the PATH.")
    return found


def java() -> str:
    return program("java", "Java 17 or newer is needed to run Apache Kafka")


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether a broker answers an ApiVersions request (version 0) at the port, within a second."""
    request = struct.pack(">hhih", 18, 0, 7, -1)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            head = b""
            while len(head) < 10:
                part = connection.recv(10 - len(head))
                if not part:
                    return False
                head += part
    except OSError:
        return False
    _size, correlation_id, error_code = struct.unpack(">iih", head)
    return correlation_id == 7 and error_code == 0


class Reference:
    """One node of Apache Kafka, running from `with` to the end of it; its data directory goes with it."""

    def __init__(self, port: int = 0, settings: Sequence[str] = (), jvm: Sequence[str] = JVM) -> None:
        self.port = port or free_port()
        self.settings = list(settings)
        self.jvm = list(jvm)
        self.process: subprocess.Popen[bytes] | None = None
        self.directory: Path | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self.process is None:
            raise NotStarted("The reference is not running.")
        return self.process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and return when it answers; after `kill` it comes back with what its disk holds."""
        if answers(self.port):
            raise NotStarted(f"Port {self.port} is taken: a broker answers there already.")
        try:
            if self.directory is None:
                self.format()
            self.run()
            self.wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def format(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="odradek-reference-"))
        properties = self.directory / "server.properties"
        properties.write_text("\n".join(self.properties()) + "\n", encoding="utf-8")
        cluster_id = base64.urlsafe_b64encode(b"\x01" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        command = [
            java(), "-cp", class_path(), "kafka.tools.StorageTool", "format",
            "--standalone", "-t", cluster_id, "-c", str(properties),
        ]  # fmt: skip
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotStarted(f"Apache Kafka refused the settings: {last_line(done.stdout + done.stderr)}")

    def run(self) -> None:
        assert self.directory is not None
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [java(), *self.jvm, "-cp", class_path(), "kafka.Kafka", str(self.directory / "server.properties")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def properties(self) -> list[str]:
        """One node, both roles; only what one node cannot do without differs from Kafka's defaults."""
        controller = free_port()
        return [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}",
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            f"log.dirs={self.directory}/data",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "share.coordinator.state.topic.replication.factor=1",
            "share.coordinator.state.topic.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
            *self.settings,
        ]

    def wait_until_it_answers(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(self.port):
            if self.process.poll() is not None:
                raise NotStarted(f"Apache Kafka ended while starting: {last_line(self.log())}")
            if time.monotonic() > deadline:
                raise NotStarted(f"Apache Kafka did not answer within {START_TIMEOUT_S:.0f} s: {last_line(self.log())}")
            time.sleep(0.05)

    def log(self) -> str:
        assert self.directory is not None
        return (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")

    def wait(self) -> None:
        assert self.process is not None
        self.process.wait()

    def kill(self) -> None:
        """End it at once, as a crash would; its directory stays for the next start."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self) -> None:
        """Ask it to end, insist after a while, remove its directory."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = None


def tool_command(name: str, arguments: Sequence[str]) -> list[str]:
    """The command that runs one of Kafka's tools, named as its shell script."""
    main_class = TOOLS.get(name.removesuffix(".sh"))
    if main_class is None:
        raise NotStarted(f"There is no tool {name!r}; there are {', '.join(TOOLS)}.")
    if not main_class.startswith("kafka."):
        main_class = f"org.apache.kafka.tools.{main_class}"
    return [java(), "-Xmx256M", "-cp", class_path(), main_class, *arguments]


def start(options: argparse.Namespace) -> int:
    for setting in options.settings:
        if "=" not in setting:
            raise NotStarted(f"--set takes key=value, not {setting!r}.")
    kafka = Reference(options.port, options.settings, options.jvm or JVM)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # while starting too, an end must clean up
    kafka.start()
    try:
        print(f"Apache Kafka {VERSION} answers at {kafka.bootstrap_servers}")
        print(f"pid {kafka.pid}, data in {kafka.directory}")
        print("Stop it with Ctrl-C; its data goes with it.", flush=True)
        kafka.wait()
        raise NotStarted(f"Apache Kafka ended by itself: {last_line(kafka.log())}")
    except KeyboardInterrupt:
        return 0
    finally:
        kafka.stop()


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["tool"]:
        if len(arguments) < 2:
            raise NotStarted(f"Name the tool: {', '.join(TOOLS)}.")
        command = tool_command(arguments[1], arguments[2:])
        os.execv(command[0], command)
    parser = argparse.ArgumentParser(
        prog="dev.py reference", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="start | tool | path")
    starting = commands.add_parser("start", help="run one node in the foreground")
    starting.add_argument("--port", type=int, default=29092, help="default 29092; 0 takes a free one")
    starting.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    starting.add_argument(
        "--jvm",
        action="append",
        default=[],
        metavar="OPTION",
        help="as --jvm=-Xmx512m, in place of Kafka's own JVM options",
    )
    commands.add_parser("path", help="print the class path")
    options = parser.parse_args(arguments)
    if options.command == "path":
        print(class_path())
        return 0
    return start(options)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except NotStarted as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
