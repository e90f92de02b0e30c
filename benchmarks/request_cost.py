"""What one request costs a node, without sockets: `python benchmarks/request_cost.py [--profile KIND]`.

A node in memory runs in this process. Frames go into its connections as a transport would give them and answers come
out as buffers, so the processor time per request is that of the node alone: splitting, decoding, deciding, encoding.
Every connection sends one request per turn of the loop, as clients at a slow pace do. Rounds of the kinds alternate;
the median of each is printed. `--profile` shows where the time of one kind goes (cProfile).
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from broker.config import load_config
from broker.network.connection import Connection
from broker.process import new_event_loop
from broker.server import Server
from wire.frames import decode_response, encode_request
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.sync_group import SyncGroupRequest
from wire.records import NewRecord, build_batch

CONNECTIONS = 50
TURNS = 40
TURNS_MAX = 1_000_000
ROUNDS = 15


class Collector(asyncio.Transport):
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 50_000)})
        self.written: list[Any] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is ever held back."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def write(self, data: Any) -> None:
        self.written.append(data)

    def writelines(self, list_of_data: Any) -> None:
        self.written.extend(list_of_data)

    def close(self) -> None:
        raise SystemExit("the node closed a connection")


class Client:
    """One connection of the node, spoken to in its process."""

    def __init__(self, server: Server) -> None:
        assert server.connections is not None
        self.transport = Collector()
        self.connection = Connection(server.connections, "PLAINTEXT", "PLAINTEXT", server._answer)
        self.connection.connection_made(self.transport)

    def send(self, frame: bytes) -> None:
        """Have the connection receive a frame."""
        view = self.connection.get_buffer(-1)
        view[: len(frame)] = frame
        self.connection.buffer_updated(len(frame))

    async def call(self, request: Any, version: int) -> Any:
        """Send a request and wait for its answer."""
        self.send(framed(request, version))
        await answered([self])
        answer = b"".join(self.transport.written)
        self.transport.written.clear()
        return decode_response(answer[4:], request.API_KEY, version)[1]


def framed(request: Any, version: int) -> bytes:
    return b"".join(encode_request(request, version, 1, "benchmark"))


async def answered(clients: list[Client]) -> None:
    """Let the loop turn until every client has its answer."""
    for _ in range(TURNS_MAX):
        if all(client.transport.written for client in clients):
            return
        await asyncio.sleep(0)
    raise SystemExit("a request is not answered")


async def turn(clients: list[Client], frames: list[bytes]) -> None:
    """Every client sends its frame; returns when all are answered."""
    for client, frame in zip(clients, frames, strict=True):
        client.send(frame)
    await answered(clients)
    for client in clients:
        client.transport.written.clear()


async def round_us(clients: list[Client], frames: list[bytes]) -> float:
    """Processor time of one request in a round of TURNS turns, in microseconds."""
    start = time.process_time()
    for _ in range(TURNS):
        await turn(clients, frames)
    return (time.process_time() - start) * 1e6 / (TURNS * len(clients))


# --- the kinds of requests --------------------------------------------------------------------------


async def resting_members(clients: list[Client]) -> list[bytes]:
    """Heartbeats of members of consumer groups at rest, five in each group."""
    frames = []
    for number, client in enumerate(clients):
        who = {"group_id": f"consumer-{number // 5}", "member_id": f"m{number}"}
        joining = {"subscribed_topic_names": ["small"], "rebalance_timeout_ms": 60_000, "topic_partitions": []}
        answer = await client.call(ConsumerGroupHeartbeatRequest(**who, member_epoch=0, **joining), 1)
        frames.append((client, who, answer))
    await asyncio.sleep(1.1)  # group.consumer.assignment.interval.ms
    for _ in range(6):
        for place, (client, who, before) in enumerate(frames):
            owned = [] if before.assignment is None else before.assignment.topic_partitions
            answer = await client.call(
                ConsumerGroupHeartbeatRequest(
                    **who,
                    member_epoch=before.member_epoch,
                    topic_partitions=[
                        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                        for each in owned
                    ],
                ),
                1,
            )
            answer.assignment = answer.assignment or before.assignment
            frames[place] = client, who, answer
    return [framed(ConsumerGroupHeartbeatRequest(**who, member_epoch=last.member_epoch), 1) for _, who, last in frames]


async def classic_members(clients: list[Client]) -> list[bytes]:
    """Heartbeats of members of classic groups, one in each group."""
    frames = []
    for number, client in enumerate(clients):
        group = f"classic-{number}"
        joining = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\3" + b"\0" * 10)],
        )
        joining.member_id = (await client.call(joining, 9)).member_id
        joined = await client.call(joining, 9)
        who = {"group_id": group, "member_id": joined.member_id, "generation_id": joined.generation_id}
        await client.call(SyncGroupRequest(**who), 5)
        frames.append(framed(HeartbeatRequest(**who), 4))
    return frames


async def topic_id(client: Client) -> bytes:
    answer = await client.call(MetadataRequest(topics=[MetadataRequestTopic(name="small")]), 12)
    return bytes(answer.topics[0].topic_id)


async def one_record(clients: list[Client]) -> list[bytes]:
    """Produce of one small record, acks=1."""
    batch = build_batch([NewRecord(key=None, value=b"x" * 100, timestamp=int(time.time() * 1000))])
    data = TopicProduceData(
        topic_id=await topic_id(clients[0]), partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    return [framed(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]), 13)] * len(clients)


async def nothing_new(clients: list[Client]) -> list[bytes]:
    """Fetch of one empty partition that does not wait, in no session."""
    partition = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1_048_576)
    topic = FetchTopic(topic_id=await topic_id(clients[0]), partitions=[partition])
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=52_428_800, session_epoch=-1, topics=[topic])
    return [framed(request, 17)] * len(clients)


async def api_versions(clients: list[Client]) -> list[bytes]:
    """ApiVersions: the longest answer of a request that does nothing."""
    request = ApiVersionsRequest(client_software_name="benchmark", client_software_version="1")
    return [framed(request, 3)] * len(clients)


KINDS: dict[str, Callable[[list[Client]], Any]] = {
    "ConsumerGroupHeartbeat": resting_members,
    "Heartbeat": classic_members,
    "Produce": one_record,
    "Fetch": nothing_new,
    "ApiVersions": api_versions,
}


async def measure(profiled: str | None) -> None:
    server = Server(load_config(sets=["odradek.memory=true", "listeners=PLAINTEXT://127.0.0.1:0"]))
    await server.start()
    clients = [Client(server) for _ in range(CONNECTIONS)]
    topic = CreatableTopic(name="small", num_partitions=5, replication_factor=1)
    await clients[0].call(CreateTopicsRequest(topics=[topic]), 7)
    await clients[0].call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    frames = {kind: await make(clients) for kind, make in KINDS.items() if profiled in (None, kind)}
    taken: dict[str, list[float]] = {kind: [] for kind in frames}
    profile = cProfile.Profile()
    if profiled:
        profile.enable()
    for _ in range(ROUNDS):
        for kind, each in frames.items():
            taken[kind].append(await round_us(clients, each))
    profile.disable()
    for kind, rounds in taken.items():
        print(f"{kind:24} {statistics.median(rounds):6.1f} us  (least {min(rounds):.1f})", flush=True)
    if profiled:
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
    for client in clients:
        client.connection.connection_lost(None)
    await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=list(KINDS))
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(measure(options.profile))


if __name__ == "__main__":
    main()
