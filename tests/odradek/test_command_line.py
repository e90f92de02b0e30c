"""The command line where no node is needed: what it says, and its exit codes."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from odradek.address import parse_address
from odradek.cli.arguments import key_values
from odradek.cli.produce import READ_BYTES, lines_at_hand, murmur2
from odradek.failure import Failure

ROOT = Path(__file__).resolve().parents[2]


def odradek(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
    command = [sys.executable, "-m", "odradek", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def test_without_a_command_it_tells_the_commands() -> None:
    done = odradek()
    assert done.returncode == 0
    assert "start" in done.stdout
    assert "consume" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["nonsense"], 2, "there is no command 'nonsense'"),
        (["topics"], 2, "list | describe | create | delete"),
        (["topics", "create", "t", "--partitions", "0"], 2, "'0' is not a whole number above 0"),
        (["topics", "create", "t", "--config", "retention.ms"], 2, "--config takes KEY=VALUE, not 'retention.ms'"),
        (["health", "-b", "localhost"], 2, "'localhost' is no address"),
        (["health", "-b", "127.0.0.1:1"], 1, "No broker can be reached at 127.0.0.1:1"),
        (["configs", "alter", "topic", "t"], 2, "Nothing to alter"),
        (
            ["configs", "alter", "topic", "t", "--sett", "a=b", "--x"],
            2,
            "arguments: --sett a=b --x (odradek configs alter",
        ),
        (
            ["groups", "delete-offsets", "g", "--topic", "t", "u"],
            2,
            "arguments: u (odradek groups delete-offsets --help",
        ),
        (["groups", "delete-offsets", "g"], 2, "--topic (odradek groups delete-offsets --help tells"),
        (["groups", "--x", "list"], 2, "--x"),
        (["produce", "t", "--x"], 2, "unrecognized arguments: --x (odradek produce --help tells the options)."),
        (["produce", "t", "--header", "h"], 2, "--header takes NAME=VALUE, not 'h'"),
        (["topics", "describe", "t\udcff"], 2, "the arguments are not text"),
        (["consume", "t", "--count", "x"], 2, "'x' is not a whole number above 0"),
        (["reset", "-b", "127.0.0.1:1"], 1, "No node of yours runs at 127.0.0.1:1"),
        (["reset", "--control-url", "http://127.0.0.1:1/?token=x"], 1, "control endpoint does not answer"),
    ],
)
def test_u14_a_fault_is_one_sentence_and_an_exit_code(arguments: list[str], exit_code: int, said: str) -> None:
    if arguments[0] == "topics" and "--config" in arguments:
        arguments = [*arguments, "-b", "127.0.0.1:1"]  # the settings are read before anything is asked
    done = odradek(*arguments)
    assert done.returncode == exit_code, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_web_server_on_the_port_is_told_from_a_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_as_http() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer_as_http)
        thread.start()
        done = odradek("health", "-b", f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert done.returncode == 1
    assert "is no Kafka broker" in done.stderr


def test_a_port_that_closes_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_at_once() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)

        thread = threading.Thread(target=close_at_once)
        thread.start()
        done = odradek("health", "-b", f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert done.returncode == 1
    assert "closed the connection instead of answering" in done.stderr


@pytest.mark.parametrize(
    ("text", "address"),
    [("localhost:9092", ("localhost", 9092)), ("[::1]:9092", ("::1", 9092)), (" 10.0.0.1:1 ", ("10.0.0.1", 1))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "host", "host:", ":9092", "host:0", "host:65536", "host:x", "host:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="is no address") as refused:
        parse_address(text)
    assert refused.value.exit_code == 2


def test_settings_keep_what_follows_the_first_equals_sign() -> None:
    assert key_values(["a=b=c", " d = e "], "--set") == {"a": "b=c", "d": "e"}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_go_to_the_partition_that_kafka_chooses(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF
    assert murmur2(key) == kafka_python_murmur2(key)


def test_naming_a_command_imports_only_that_command() -> None:
    program = (
        "import sys, odradek.__main__ as m; m.main([]); "
        "print([n for n in sys.modules if n.startswith(('odradek.cli', 'wire', 'broker', 'asyncio', 'argparse'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize("stream", [1, 2])
def test_a_node_runs_with_a_standard_stream_closed(stream: int) -> None:
    command = f"exec {sys.executable} -m odradek start --port 0 --stop-with-stdin < /dev/null {stream}>&-"
    assert subprocess.run(["sh", "-c", command], cwd=ROOT, check=False, timeout=60).returncode == 0


def test_a_ready_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    for file, why in ((tmp_path / "none" / "ready", "No such file or directory"), (tmp_path / "here", "directory")):
        (tmp_path / "here").mkdir(exist_ok=True)
        done = odradek("start", "--port", "0", "--ready-file", str(file))
        assert done.returncode == 1
        assert f"The file of --ready-file {file} cannot be written" in done.stderr
        assert why in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["here"], "nothing half written is left"


def test_lines_at_hand_are_bounded_and_keep_their_bytes() -> None:
    long = b"x" * (3 * READ_BYTES)
    text = b"one\r\n\n\xff\r\r\n" + long + b"\n" + b"line\n" * 100_000 + b"last"
    groups = list(lines_at_hand(io.BytesIO(text)))
    assert [line for group in groups for line in group] == [b"one", b"", b"\xff\r", long, *[b"line"] * 100_000, b"last"]
    assert all(sum(map(len, group)) <= READ_BYTES for group in groups if long not in group)


def test_lines_at_hand_come_without_waiting_for_more() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as typed:
        lines = lines_at_hand(source)
        typed.write(b"first\n")
        assert next(lines) == [b"first"]
        typed.write(b"second\nthi")
        assert next(lines) == [b"second"]
        typed.write(b"rd\n")
        assert next(lines) == [b"third"]
