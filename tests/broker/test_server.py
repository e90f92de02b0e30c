"""A whole node: start and stop, its addresses, its disk, its reset."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import signal
import socket
import struct
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from broker import process as node_process
from broker.http.endpoint import Refused
from broker.network.listener import CannotListen
from broker.storage.files import StorageFault
from broker.storage.memory_files import MemoryFiles
from tests.broker.disk_node import on_disk, topic_client
from tests.broker.network.network_fixture import eventually
from tests.broker.node_fixture import DEFAULT_SETTINGS, RunningNode, running_node
from tests.broker.raw_client import RawClient, frame, string
from tests.broker.test_wire_cases import TOPIC, end_offset, fetch, metadata, produce, record_batch
from wire.frames import encode_request
from wire.message import Message
from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.metadata import MetadataResponse
from wire.primitives import TopicPartition

REPOSITORY = Path(__file__).resolve().parents[2]


def metadata_answer(said: bytes, version: int = 12) -> MetadataResponse:
    """The body behind correlation id and, in a flexible version, the header's tags."""
    return MetadataResponse.decode(said[5 if version >= 9 else 4 :], version)


async def topics_of(client: RawClient) -> dict[str | None, bytes]:
    """Every topic by name, with its id."""
    answer = metadata_answer(await client.call(frame(3, 12, b"\x00\x01\x00\x00", flexible=True)))
    return {topic.name: topic.topic_id for topic in answer.topics}


async def create_topics(node: RunningNode, count: int) -> None:
    """Topics t0, t1, … with three partitions each."""
    topics = [CreatableTopic(name=f"t{number}", num_partitions=3, replication_factor=1) for number in range(count)]
    response = await node.server.node.controller.request(CreateTopicsRequest(topics=topics))
    assert {result.error_code for result in response.topics} == {0}


def contents(directory: Path) -> dict[Path, bytes]:
    """Every file below a directory."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# --- start and stop -----------------------------------------------------------------------------


async def test_u01_each_listener_tells_its_own_address() -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "advertised.listeners": "INSIDE://broker.internal:9094,OUTSIDE://example.test:29092",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    async with running_node(settings) as node:
        told = {"INSIDE": ("broker.internal", 9094), "OUTSIDE": ("example.test", 29092)}
        for listener in node.server.listeners.all():
            client = await RawClient.connect(listener.port)
            answer = metadata_answer(await client.call(metadata(12)))
            assert [(broker.host, broker.port) for broker in answer.brokers] == [told[listener.name]]
            # FindCoordinator v0 of a group: throttle-less answer of error, node, host, port.
            said = await client.call(frame(10, 0, string("group")))
            host, port = told[listener.name]
            assert said[4:] == struct.pack(">hi", 0, 1) + string(host) + struct.pack(">i", port)
            await client.close()


async def test_u02_metadata_never_names_an_address_that_leads_nowhere() -> None:
    async with running_node({"listeners": "PLAINTEXT://localhost:0"}) as node:
        client = await RawClient.connect(node.port)
        (broker,) = metadata_answer(await client.call(metadata(12))).brokers
        assert (broker.host, broker.port) == ("127.0.0.1", node.port)
        assert node.bootstrap_servers == f"{broker.host}:{broker.port}", "the ready line says the same"
        await client.close()


async def test_u05_the_first_answered_connection_can_do_everything() -> None:
    for _ in range(20):
        async with running_node() as node:
            client = await RawClient.connect(node.port)
            await client.call(metadata(12))
            said = await client.call(produce([b"x"]))
            assert struct.unpack(">hq", said[-22:-12]) == (0, 0)
            said = await client.call(frame(10, 0, string("group")))
            assert said[4:6] == b"\x00\x00"
            await client.close()


async def test_a_taken_port_is_told_before_anything_is_written(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = {
            "odradek.memory": "false",
            "log.dirs": str(tmp_path / "logs"),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }
        with pytest.raises(CannotListen, match=f"127.0.0.1:{port}"):
            async with running_node(settings):
                raise AssertionError("the node started on a port that is taken")
    assert not (tmp_path / "logs").exists()


async def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path)}
    async with running_node(settings) as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        node.clock.move(120_000)
        before = contents(tmp_path)
        with pytest.raises(StorageFault, match=str(tmp_path)):
            async with running_node(settings):
                raise AssertionError("two nodes share a directory")
        assert contents(tmp_path) == before, "the node that was refused has touched the other's files"
        await client.close()


async def test_a_node_that_could_not_read_its_directory_does_not_vouch_for_it(tmp_path: Path) -> None:
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path)}
    async with running_node(settings):
        pass
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    (tmp_path / "topic-0").mkdir()
    (tmp_path / "topic-0" / "partition.metadata").write_text("no metadata")
    (tmp_path / "topic-0" / f"{0:020d}.log").write_bytes(record_batch([b"x"]))
    with pytest.raises(StorageFault, match=r"partition\.metadata is malformed"):
        async with running_node(settings):
            raise AssertionError("the node started over a directory it does not understand")
    shutil.rmtree(tmp_path / "topic-0")
    assert not (tmp_path / ".kafka_cleanshutdown").exists(), "the next start has to look through the logs"
    async with running_node(settings):
        pass


async def test_a_directory_that_holds_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path)}
    (tmp_path / "no topic data").mkdir()
    (tmp_path / "letter.txt").write_text("dear reader")
    before = contents(tmp_path)
    with pytest.raises(StorageFault, match="no topic data"):
        async with running_node(settings):
            raise AssertionError("the node started over a directory it does not understand")
    assert contents(tmp_path) == before


async def test_a_stop_answers_waiting_requests_or_closes_and_leaves_no_task() -> None:
    async with running_node() as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        client.send(fetch(4, max_wait_ms=600_000))
        await eventually(lambda: node.server.connections.requests_in_progress == 1, "the fetch waits")
    await client.rest()
    with pytest.raises(ConnectionRefusedError):
        await RawClient.connect(node.port)


def sent(request: Message, version: int) -> bytes:
    return b"".join(map(bytes, encode_request(request, version, 1, "test")))


async def test_a_stop_amid_requests_and_a_compaction_leaves_no_fault_unseen(tmp_path: Path) -> None:
    """conftest.py fails the test if the loop is told of an exception that nobody saw."""
    group = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[group],
    )
    topic = CreatableTopic(name="made", num_partitions=3, replication_factor=1)
    configs = {"cleanup_policy": "compact", "segment_bytes": "1048576", "min_cleanable_dirty_ratio": "0.0"}
    async with running_node(on_disk(tmp_path)) as node, topic_client(node) as compacted:
        await compacted.create(**configs)
        for number in range(40):
            await compacted.write(*[bytes(1000)] * 50, key=b"key %d" % number)
        clients = [await RawClient.connect(node.port) for _ in range(3)]
        await clients[0].call(sent(FindCoordinatorRequest(key="g", key_type=0), 3))
        await clients[0].call(sent(join, 3))
        compaction = asyncio.ensure_future(node.server._compact({"topic": compacted.topic}))
        clients[0].send(sent(join, 3))  # waits for the first member, which never comes again
        clients[1].send(fetch(4, max_wait_ms=600_000))
        clients[2].send(sent(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7))
        connections = node.server.connections
        assert connections is not None
        await eventually(lambda: connections.requests_in_progress >= 2, "requests wait")
        compaction.cancel()
    await asyncio.wait([compaction])
    for client in clients:
        await client.rest()
        await client.close()
    gc.collect()


async def test_what_a_node_on_disk_was_told_survives_its_stop(tmp_path: Path) -> None:
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path)}
    async with running_node(settings) as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        before = await topics_of(client)
        cluster_id = node.server.node.cluster_id
        await client.call(produce([b"one", b"two"]))
        await client.close()
    async with running_node(settings) as node:
        client = await RawClient.connect(node.port)
        assert node.server.node.cluster_id == cluster_id
        assert await topics_of(client) == before
        assert await end_offset(client) == 2
        await client.call(produce([b"three"]))
        assert await end_offset(client) == 3
        await client.close()


# --- settings ---------------------------------------------------------------------------------------


async def test_an_older_release_is_answered_as() -> None:
    async with running_node({"odradek.kafka.release": "4.0"}) as node:
        client = await RawClient.connect(node.port)
        assert await client.call(frame(18, 5, b"?", flexible=True)) == struct.pack(">ihihhh", 1, 35, 1, 18, 0, 4)
        await client.close()


# --- reset ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_disk", [False, True])
async def test_u06_a_reset_leaves_nothing_and_keeps_clients_connected(on_disk: bool, tmp_path: Path) -> None:
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path)} if on_disk else {}
    async with running_node(settings) as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        await create_topics(node, 20)
        await client.call(produce([b"before"]))
        await client.call(frame(10, 0, string("group")))
        parts = node.server.node
        cluster_id = parts.cluster_id
        producer_id = await parts.producer_ids.next_id()
        old_topic_id = (await topics_of(client))[TOPIC]

        await node.server.reset()

        assert await topics_of(client) == {}
        assert parts.cluster_id == cluster_id, "clients still speak to the cluster they know"
        assert await parts.producer_ids.next_id() > producer_id, "a producer that lives on meets no namesake"
        await client.call(metadata(12))
        assert (await topics_of(client))[TOPIC] != old_topic_id
        assert await end_offset(client) == 0
        await client.call(produce([b"after"]))
        assert await end_offset(client) == 1
        await client.close()


async def test_u06_a_reset_wakes_who_waits() -> None:
    async with running_node() as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        client.send(fetch(4, max_wait_ms=600_000))
        await eventually(lambda: node.server.connections.requests_in_progress == 1, "the fetch waits")
        await node.server.reset()
        await client.answer()
        await client.close()


async def test_u06_what_a_reset_put_aside_on_disk_is_deleted(tmp_path: Path) -> None:
    async with running_node({"odradek.memory": "false", "log.dirs": str(tmp_path)}) as node:
        await create_topics(node, 30)
        await node.server.reset()
        await eventually(lambda: not [name for name in os.listdir(tmp_path) if "reset" in name], "old files are gone")
        assert "__cluster_metadata-0" in os.listdir(tmp_path)


async def test_u06_a_reset_gives_back_the_memory_of_records() -> None:
    files = MemoryFiles()
    async with running_node(files=files) as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        await client.call(produce([bytes(100_000)]))
        assert files.used_bytes > 100_000
        await node.server.reset()
        assert files.used_bytes == 0, "at once, not when the collector comes by"
        await client.close()


async def test_u06_resets_one_after_the_other_and_at_once() -> None:
    async with running_node() as node:
        await create_topics(node, 5)
        await asyncio.gather(*(node.server.reset() for _ in range(5)))
        await node.server.reset()
        client = await RawClient.connect(node.port)
        assert await topics_of(client) == {}
        await client.close()


async def test_the_control_endpoint_tells_ready_and_resets() -> None:
    async with running_node({"odradek.control.enable": "true"}) as node:
        await create_topics(node, 3)
        address = urlsplit(str(node.server.ready_line()["control_url"]))

        async def ask(method: str, path: str, query: str = "") -> tuple[int, dict[str, object]]:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(f"{method} {path}?{query} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
            said = await reader.read(-1)
            writer.close()
            await writer.wait_closed()
            head, _, body = said.partition(b"\r\n\r\n")
            return int(head.split(b" ")[1]), json.loads(body)

        status, content = await ask("GET", "/ready")
        assert (status, content["ready"], content["node_id"]) == (200, True, 1)
        for action in ("/reset", "/compact", "/retention"):
            assert (await ask("POST", action))[0] == 401
        assert len(node.server.node.metadata.image.topics) == 3
        assert await ask("POST", "/reset", address.query) == (200, {"reset": True})
        assert len(node.server.node.metadata.image.topics) == 0


async def test_the_control_endpoint_tells_what_clients_have_sent_since_it_was_asked_to_count() -> None:
    async with running_node() as node:
        client = await RawClient.connect(node.port)
        with pytest.raises(Refused, match="POST /sent-requests"):
            await node.server._sent_requests({})
        await client.call(metadata(12))
        assert await node.server._count_requests({}) == {"counting": True}
        assert await node.server._sent_requests({}) == {"sent_requests": {}}
        for version in (9, 12, 12):
            await client.call(metadata(version))
        await client.call(produce([b"x"]))
        told = (await node.server._sent_requests({}))["sent_requests"]
        assert told["Metadata"] == {"9": 1, "12": 2}
        assert sum(told["Produce"].values()) == 1
        await node.server._count_requests({})
        assert await node.server._sent_requests({}) == {"sent_requests": {}}, "counted anew"
        assert len(node.server.node.dispatcher.interceptors) == 1
        await client.close()


async def test_the_control_endpoint_compacts_and_retains_at_once() -> None:
    async with running_node() as node:
        parts, state = node.server.node, node.server._opened()
        configs = [
            CreatableTopicConfig(name="cleanup.policy", value="compact,delete"),
            CreatableTopicConfig(name="retention.ms", value="60000"),
        ]
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=configs)
        await parts.controller.request(CreateTopicsRequest(topics=[topic]))
        client = await RawClient.connect(node.port)
        log = parts.log_manager.log(TopicPartition(TOPIC, 0))
        for _ in range(3):
            await client.call(produce([b"same key"], key=b"key"))
        assert await node.server._compact({}) == {"passes": 1}
        size_bytes = log.size_bytes
        assert await end_offset(client) == 3
        assert 0 < size_bytes < 3 * len(record_batch([b"same key"], key=b"key"))
        assert await node.server._retain({}) == {"retained": True}
        assert log.size_bytes == 0, "records of 2023 are older than a minute"
        assert state.upkeep.cleaner.is_enabled
        await client.close()


# --- as a process -------------------------------------------------------------------------------------

PROGRAM = """
import json, sys
from broker.config import load_config
from broker.process import log_to_stderr, run
from broker.server import Server
log_to_stderr()
config = load_config(sets=json.loads(sys.argv[1]), environment={})
run(Server(config), on_ready=lambda ready: print(json.dumps(ready), flush=True), stop_with_stdin=True)
"""


async def start_process(settings: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        json.dumps(settings),
        cwd=REPOSITORY,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "stdin"])
async def test_a_process_stops_cleanly_when_told(how: str, tmp_path: Path) -> None:
    settings = DEFAULT_SETTINGS | {"odradek.memory": "false", "log.dirs": str(tmp_path)}
    process = await start_process(settings)
    assert process.stdout is not None
    assert process.stdin is not None
    async with asyncio.timeout(30):
        ready = json.loads(await process.stdout.readline())
        assert set(ready) == {"event", "bootstrap_servers", "control_url", "node_id", "cluster_id", "pid"}
        assert ready["pid"] == process.pid
        client = await RawClient.connect(int(ready["bootstrap_servers"].rpartition(":")[2]))
        await client.call(metadata(12))
        if how == "stdin":
            process.stdin.close()
        else:
            process.send_signal(getattr(signal, how))
        output, errors = await process.communicate()
    await client.close()
    assert (process.returncode, output, errors) == (0, b"", b"")
    assert ".kafka_cleanshutdown" in os.listdir(tmp_path)


async def test_a_stop_that_takes_too_long_is_no_clean_one_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck:
        """Starts and fails at once, and does not stop."""

        failure = None

        def __init__(self) -> None:
            self.failed = asyncio.Event()
            self.failed.set()

        async def start(self) -> None: ...

        def ready_line(self) -> dict[str, object]:
            return {}

        async def stop(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(node_process, "STOP_LIMIT_SECONDS", 0.01)
    with pytest.raises(StorageFault, match=r"did not stop within 0\.01 s .* looks at its logs as after a crash"):
        await node_process._serve(Stuck(), lambda ready: None, False)
