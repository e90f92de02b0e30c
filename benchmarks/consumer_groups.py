"""Consumer groups on one node: `python benchmarks/consumer_groups.py [--groups N] [--members N]`.

Prints the processor time that the heartbeats of resting groups cost at the pace of their clients (each member one every
5 s), beside the same number of ApiVersions requests, which is what the sockets alone cost; and how long one group of
200 members takes from the first join until all have their share, each asking again soon after it was answered (targets
are computed once a second at most: group.consumer.assignment.interval.ms).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from odradek import Broker
from wire.frames import decode_response, encode_request
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from wire.messages.find_coordinator import FindCoordinatorRequest

CONNECTIONS = 100
HEARTBEAT_INTERVAL_S = 5.0
MEASURED_S = 15.0
LARGE_GROUP = 200
PARTITIONS = 1_000
ASK_AGAIN_S = 0.1
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Connection:
    """One socket; requests on it wait for each other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._lock = asyncio.Lock()

    async def call(self, request: Any, version: int) -> Any:
        async with self._lock:
            self._writer.write(b"".join(encode_request(request, version, 1, "benchmark")))
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return decode_response(await self._reader.readexactly(size), request.API_KEY, version)[1]


class Member:
    """A member that keeps to the protocol."""

    def __init__(self, connection: Connection, group: str, member_id: str) -> None:
        self.connection, self.group, self.member_id = connection, group, member_id
        self.epoch = 0
        self.owned: list[Any] = []

    async def beat(self, **fields: Any) -> bool:
        """One heartbeat; whether it brought anything new."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, **fields
        )
        answer = await self.connection.call(request, 1)
        if answer.error_code:
            raise SystemExit(f"{self.group} {self.member_id}: error {answer.error_code} {answer.error_message}")
        is_new = answer.member_epoch != self.epoch or answer.assignment is not None
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions
        return is_new

    async def join(self, topic: str) -> None:
        await self.beat(subscribed_topic_names=[topic], rebalance_timeout_ms=60_000, topic_partitions=[])

    async def settle(self) -> bool:
        """A heartbeat that says what is owned."""
        owned = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
            for each in self.owned
        ]
        return await self.beat(topic_partitions=owned)


def processor_s(pid: int) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


async def connections_to(broker: Broker, count: int) -> list[Connection]:
    host, _, port = broker.bootstrap_servers.partition(":")
    return [Connection(*await asyncio.open_connection(host, int(port))) for _ in range(count)]


async def at_a_pace(calls: list[Callable[[], Awaitable[object]]], broker: Broker) -> tuple[float, float]:
    """Make the calls in turn, all of them once in HEARTBEAT_INTERVAL_S; calls per second and share of a core."""
    pace = len(calls) / HEARTBEAT_INTERVAL_S
    before, start, made = processor_s(broker.pid), time.monotonic(), 0
    running: set[asyncio.Future[object]] = set()
    while (elapsed := time.monotonic() - start) < MEASURED_S:
        while made < elapsed * pace:
            call = asyncio.ensure_future(calls[made % len(calls)]())
            running.add(call)
            call.add_done_callback(running.discard)
            made += 1
        await asyncio.sleep(0.005)
    await asyncio.gather(*running)
    elapsed = time.monotonic() - start
    return made / elapsed, (processor_s(broker.pid) - before) / elapsed


async def rest(members: list[Member]) -> None:
    """Heartbeats until nothing new comes."""
    while any(await asyncio.gather(*(member.settle() for member in members))):
        pass


def load_of(member: Member) -> int:
    """How many partitions it owns."""
    return sum(len(each.partitions) for each in member.owned)


def held_by(members: list[Member]) -> int:
    """How many partitions they own together."""
    return sum(map(load_of, members))


async def measure_heartbeats(broker: Broker, groups: int, members: int) -> None:
    sockets = await connections_to(broker, CONNECTIONS)
    everybody = [
        Member(sockets[(group * members + number) % CONNECTIONS], f"g{group}", f"m{number}")
        for group in range(groups)
        for number in range(members)
    ]
    for member in everybody:
        await member.join("small")
    await asyncio.sleep(1.1)  # group.consumer.assignment.interval.ms
    await rest(everybody)
    await rest(everybody)
    asking = ApiVersionsRequest(client_software_name="benchmark", client_software_version="1")
    plain = [lambda each=each: each.connection.call(asking, 3) for each in everybody]
    for what, calls in (("ApiVersions", plain), ("heartbeats", [each.beat for each in everybody])):
        pace, share = await at_a_pace(calls, broker)
        cost = share / pace * 1e6
        print(f"{what:12} {pace:6.0f}/s  {share:6.1%} of a core  {cost:5.0f} us each", flush=True)


async def measure_join(broker: Broker) -> None:
    sockets = await connections_to(broker, CONNECTIONS)
    members = [Member(sockets[number % CONNECTIONS], "large", f"m{number}") for number in range(LARGE_GROUP)]
    before, start = processor_s(broker.pid), time.monotonic()
    await asyncio.gather(*(member.join("large") for member in members))
    joined = time.monotonic() - start
    while held_by(members) < PARTITIONS or max(map(load_of, members)) > PARTITIONS // LARGE_GROUP:
        await asyncio.sleep(ASK_AGAIN_S)
        await asyncio.gather(*(member.settle() for member in members))
    took = time.monotonic() - start
    busy = processor_s(broker.pid) - before
    loads = [load_of(member) for member in members]
    print(
        f"{LARGE_GROUP} members   joined in {joined:.2f} s, at rest after {took:.2f} s, {busy:.2f} s of processor, "
        f"{min(loads)} to {max(loads)} of {PARTITIONS} partitions each",
        flush=True,
    )


def make_topics(broker: Broker) -> None:
    for topic, partitions in (("small", 5), ("large", PARTITIONS)):
        where = ["-b", broker.bootstrap_servers, "--partitions", str(partitions)]
        command = [sys.executable, "-m", "odradek", "topics", "create", topic, *where]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


async def measure(broker: Broker, groups: int, members: int) -> None:
    (connection,) = await connections_to(broker, 1)
    await connection.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    await measure_heartbeats(broker, groups, members)
    await measure_join(broker)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=5)
    options = parser.parse_args()
    with Broker() as broker:
        make_topics(broker)
        asyncio.run(measure(broker, options.groups, options.members))


if __name__ == "__main__":
    main()
