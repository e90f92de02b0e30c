"""The embedded broker: a process of its own that is gone when its parent is gone, and meets no module of the user's."""

from __future__ import annotations

import importlib.metadata
import os
import re
import select
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek import Broker, Failure
from odradek.client import Client
from odradek.node_home import LIBRARIES

ROOT = Path(__file__).resolve().parents[2]
GONE_WITHIN_MS = 30_000

needs_pidfd = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="waiting for a process of others needs pidfd_open"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def wait_until_gone(pid: int) -> None:
    """Return when the process has ended; fails after a while."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(GONE_WITHIN_MS), f"process {pid} still runs after {GONE_WITHIN_MS} ms"
    finally:
        os.close(descriptor)


def run_python(program: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_it_answers_as_soon_as_it_is_there(broker: Broker) -> None:
    with Client(broker.bootstrap_servers) as client:
        metadata = client.metadata([])
    assert metadata.cluster_id == broker.cluster_id
    assert [f"{node.host}:{node.port}" for node in metadata.brokers] != []


def test_u05_what_it_advertises_is_where_it_listens(broker: Broker) -> None:
    with Client(broker.bootstrap_servers) as client:
        (node,) = client.metadata([]).brokers
        assert str(node.port) == broker.bootstrap_servers.rsplit(":", 1)[1]
        assert client.node(node.node_id).highest_version(3) >= 12


def test_u06_reset_is_done_when_it_returns(broker: Broker) -> None:
    broker.reset()
    with Client(broker.bootstrap_servers) as client:
        assert client.metadata(None).topics == []


def test_brokers_run_side_by_side(broker: Broker) -> None:
    with Broker() as other:
        assert other.bootstrap_servers != broker.bootstrap_servers
        assert other.pid != broker.pid
        assert broker.alive


def test_it_is_gone_after_stop() -> None:
    with Broker() as running:
        pid = running.pid
        assert running.alive
    assert not running.alive
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(Failure, match="not running"):
        _ = running.bootstrap_servers


def test_it_can_be_started_again() -> None:
    broker = Broker()
    with broker:
        first = broker.pid
    with broker:
        assert broker.pid != first


@needs_pidfd
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_it_is_gone_when_its_parent_is_killed(end: signal.Signals) -> None:
    program = "import odradek, sys; b = odradek.Broker().start(); print(b.pid, flush=True); sys.stdin.read()"
    with run_python(program) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(end)
        parent.wait()
        wait_until_gone(pid)


@needs_pidfd
def test_it_is_gone_when_its_parent_forgets_it() -> None:
    program = "import odradek; print(odradek.Broker().start().pid, flush=True)"
    with run_python(program) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
    wait_until_gone(pid)


@needs_pidfd
def test_a_forked_child_of_the_parent_does_not_keep_it() -> None:
    program = """
import odradek, os, sys
broker = odradek.Broker().start()
child = os.fork()
if child == 0:
    sys.stdin.read()  # outlives its parent
    os._exit(0)
print(broker.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    with run_python(program) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_until_gone(pid)
        assert parent.stdin is not None
        parent.stdin.close()


def test_a_forked_child_that_ends_does_not_end_it() -> None:
    program = """
import odradek, os, sys
with odradek.Broker() as broker:
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    print(broker.alive, flush=True)
"""
    with run_python(program) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "True\n"


def test_a_reset_of_one_whose_process_was_killed_says_so() -> None:
    with Broker() as broker:
        os.kill(broker.pid, signal.SIGKILL)
        wait_until_gone(broker.pid)
        with pytest.raises(Failure, match="process has ended, with -9"):
            broker.reset()
        broker.stop()
        assert broker.start().alive


def test_it_has_the_listeners_that_its_settings_name() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    with Broker(settings=settings) as named:
        assert named.bootstrap_servers.count(",") == 1
    with pytest.raises(Failure, match="listeners is given twice"):
        Broker(port=1, settings={"listeners": "PLAINTEXT://127.0.0.1:0"}).start()


def test_its_libraries_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {re.split(r"[^\w-]", requirement)[0].lower() for requirement in project["dependencies"]}
    modules = importlib.metadata.packages_distributions()
    of_module = {module: {name.lower() for name in names} for module, names in modules.items()}
    found = set().union(*(of_module.get(module, set()) for module in LIBRARIES))
    assert required == found & required


def test_a_bad_setting_is_told_in_the_nodes_own_sentence() -> None:
    with (
        pytest.raises(Failure, match=r"nu\.partitions.*did you mean num\.partitions"),
        Broker(settings={"nu.partitions": 3}),
    ):
        pass


def test_u05_a_taken_port_is_told(broker: Broker) -> None:
    port = int(broker.bootstrap_servers.rsplit(":", 1)[1])
    with pytest.raises(Failure, match=f"{port}.*taken.*--port"), Broker(port=port):
        pass


def test_settings_are_kafkas(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("num.partitions: 5\n")
    with Broker(config=file, settings={"auto.create.topics.enable": False}, data=tmp_path / "data") as broker:
        assert (tmp_path / "data" / "meta.properties").exists()
        assert broker.alive


def test_settings_of_the_environment_are_not_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_LOG_DIRS", str(tmp_path))
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "many")
    with Broker():
        assert list(tmp_path.iterdir()) == []


def test_a_users_packages_of_the_same_names_are_never_met(tmp_path: Path) -> None:
    for name in ("broker", "wire", "coordinator", "asyncio"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('a decoy was imported')")
    program = f"""
import os, sys
os.chdir({str(tmp_path)!r})
import odradek
with odradek.Broker() as node:
    print(node.alive, flush=True)
assert not [name for name in ("broker", "wire", "coordinator", "asyncio") if name in sys.modules]
"""
    with run_python(program, PYTHONPATH=os.pathsep.join([str(ROOT), str(tmp_path)])) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "True\n"
    assert parent.returncode == 0
