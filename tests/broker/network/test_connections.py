"""Connections with an answer function of the test's own: framing, order, back-pressure, limits."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import struct
from typing import Any

import pytest

from broker.network.connection import FIRST_ALLOCATION_BYTES, READ_AHEAD_BYTES, SHARED_BUFFER_BYTES
from broker.network.connection_set import ConnectionLimits
from broker.network.listener import Listener, ListenerConfig
from broker.network.peer import CloseConnection, Peer
from tests.broker.network.network_fixture import eventually, network
from tests.broker.raw_client import RawClient


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


async def echo(frame: bytes, peer: Peer) -> list[Any]:
    return [struct.pack(">i", len(frame)), frame]


class Gate:
    """Answers a frame only when the test opens its gate; keeps what came in."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.peers: list[Peer] = []
        self.gates: dict[bytes, asyncio.Future[None]] = {}
        self.finished: list[bytes] = []

    async def answer(self, frame: bytes, peer: Peer) -> list[Any]:
        self.received.append(frame)
        self.peers.append(peer)
        if frame.startswith(b"wait"):
            gate = self.gates[frame] = asyncio.get_running_loop().create_future()
            await gate
        self.finished.append(frame)
        return [struct.pack(">i", len(frame)), frame]


async def test_frames_split_and_joined_anywhere_come_back_whole() -> None:
    payloads = [b"", b"a", b"bc" * 40_000, b"d" * 3_000_000, b"e"]
    stream = b"".join(map(framed, payloads))
    async with network(echo) as running:
        client = await RawClient.connect(running.port)
        cuts = [0, 1, 3, 4, 5, 6, 9, 12, 1000, 80_010, 80_020, 2_000_000, 3_080_017, len(stream)]
        for start, stop in itertools.pairwise(cuts):
            client.send(stream[start:stop])
            await client.writer.drain()
            await asyncio.sleep(0)
        assert [await client.answer() for _ in payloads] == payloads
        await client.close()


async def test_many_small_frames_in_one_write_are_answered_in_order() -> None:
    async with network(echo) as running:
        client = await RawClient.connect(running.port)
        payloads = [struct.pack(">i", number) for number in range(2000)]
        client.send(b"".join(map(framed, payloads)))
        assert [await client.answer() for _ in payloads] == payloads
        await client.close()


async def test_w05_answers_do_not_wait_for_a_request_behind_them() -> None:
    gate = Gate()
    async with network(gate.answer) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"first") + framed(b"second") + framed(b"wait"))
        assert [await client.answer() for _ in range(2)] == [b"first", b"second"]
        gate.gates[b"wait"].set_result(None)
        assert await client.answer() == b"wait"
        await client.close()


@pytest.mark.parametrize("behind", [struct.pack(">i", -1), framed(b"close")])
async def test_what_was_asked_before_a_fault_is_answered(behind: bytes) -> None:
    async def answer(frame: bytes, peer: Peer) -> list[Any]:
        if frame == b"close":
            raise CloseConnection("asked to")
        return [framed(frame)]

    async with network(answer) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"first") + framed(b"second") + behind)
        assert [await client.answer() for _ in range(2)] == [b"first", b"second"]
        assert await client.reader.read() == b"", "then the connection closes"
        await client.close()


async def test_w05_a_waiting_request_holds_back_the_ones_behind_it() -> None:
    gate = Gate()
    async with network(gate.answer) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"wait") + framed(b"second") + framed(b"third"))
        await eventually(lambda: gate.gates, "the first request is being answered")
        assert gate.received == [b"wait"], "one request at a time per connection (A11)"
        other = await RawClient.connect(running.port)
        assert await other.call(framed(b"other connection")) == b"other connection"
        gate.gates[b"wait"].set_result(None)
        assert [await client.answer() for _ in range(3)] == [b"wait", b"second", b"third"]
        await client.close()
        await other.close()


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
async def test_a1_a_frame_size_outside_the_limit_closes_without_an_answer(size: int) -> None:
    async with network(echo, ConnectionLimits(socket_request_max_bytes=1000)) as running:
        client = await RawClient.connect(running.port)
        client.send(struct.pack(">i", size) + b"anything")
        assert await client.rest() == b""
        assert running.connections.budget.used_bytes == 0


async def test_a1_a_frame_of_exactly_the_limit_is_answered() -> None:
    async with network(echo, ConnectionLimits(socket_request_max_bytes=1000)) as running:
        client = await RawClient.connect(running.port)
        assert await client.call(framed(b"x" * 1000)) == b"x" * 1000
        await client.close()


async def test_requests_before_a_bad_frame_are_answered_before_the_close() -> None:
    gate = Gate()
    async with network(gate.answer, ConnectionLimits(socket_request_max_bytes=1000)) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"wait") + framed(b"good") + struct.pack(">i", 5000))
        await eventually(lambda: gate.gates, "the first request is being answered")
        gate.gates[b"wait"].set_result(None)
        assert await client.rest() == framed(b"wait") + framed(b"good")


@pytest.mark.parametrize(
    ("first_bytes", "named"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP"),
        (b"POST /topics HTTP/1.1\r\n\r\n", "HTTP"),
        (bytes.fromhex("160301007b0100007703"), "TLS"),
        (struct.pack(">i", -5) + b"1234", "socket.request.max.bytes"),
    ],
)
async def test_w07_other_protocols_are_closed_with_one_line_naming_them(
    first_bytes: bytes, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with network(echo) as running:
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                client = await RawClient.connect(running.port)
                client.send(first_bytes)
                assert await client.rest() == b""
        warnings = [record.getMessage() for record in caplog.records]
        assert len(warnings) == 1, "the same host is reported once"
        assert named in warnings[0]
        assert "127.0.0.1" in warnings[0]
        healthy = await RawClient.connect(running.port)
        assert await healthy.call(framed(b"still here")) == b"still here"
        await healthy.close()


async def test_no_answer_leaves_the_connection_usable() -> None:
    async def silent_for_some(frame: bytes, peer: Peer) -> list[Any] | None:
        return None if frame.startswith(b"silent") else await echo(frame, peer)

    async with network(silent_for_some) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"silent 1") + framed(b"silent 2") + framed(b"loud"))
        assert await client.answer() == b"loud"
        await client.close()


async def test_close_connection_drops_what_was_pipelined_behind() -> None:
    seen: list[bytes] = []

    async def refuse(frame: bytes, peer: Peer) -> list[Any]:
        seen.append(frame)
        if frame == b"bad":
            raise CloseConnection("a body that cannot be parsed")
        return await echo(frame, peer)

    async with network(refuse) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"good") + framed(b"bad") + framed(b"behind"))
        assert await client.rest() == framed(b"good")
        assert seen == [b"good", b"bad"]
        await eventually(lambda: running.connections.budget.used_bytes == 0, "every charge is given back")


async def test_a_fault_of_the_answer_closes_only_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(frame: bytes, peer: Peer) -> list[Any]:
        if frame == b"fail":
            raise RuntimeError("broken on purpose")
        return await echo(frame, peer)

    async with network(fail) as running:
        client = await RawClient.connect(running.port)
        other = await RawClient.connect(running.port)
        client.send(framed(b"fail"))
        assert await client.rest() == b""
        assert await other.call(framed(b"fine")) == b"fine"
        await other.close()
    assert any("broken on purpose" in record.getMessage() for record in caplog.records)


async def test_half_a_frame_and_goodbye_leaves_nothing_behind() -> None:
    async with network(echo) as running:
        for cut in (1, 3, 4, 7, 90_000):
            client = await RawClient.connect(running.port)
            client.send(framed(b"x" * 100_000)[:cut])
            await client.close()
        await eventually(lambda: len(running.connections) == 0, "every connection is gone")
        assert running.connections.budget.used_bytes == 0


async def test_a_size_prefix_alone_costs_little_memory() -> None:
    async with network(echo) as running:
        client = await RawClient.connect(running.port)
        client.send(struct.pack(">i", 100_000_000) + b"x")
        await eventually(lambda: running.connections.budget.used_bytes == 100_000_000, "the frame is charged")
        (connection,) = running.connections.all()
        assert connection.held_bytes <= FIRST_ALLOCATION_BYTES
        await client.close()


async def test_a20_a_request_in_progress_survives_its_client() -> None:
    gate = Gate()
    async with network(gate.answer) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"wait"))
        await eventually(lambda: gate.gates, "the request is being answered")
        told: list[Peer] = []
        gate.peers[0].disconnect_listeners.append(told.append)
        await client.close()
        await asyncio.sleep(0.01)
        assert gate.finished == []
        gate.gates[b"wait"].set_result(None)
        await eventually(lambda: gate.finished == [b"wait"], "the request ran to its end")
        await eventually(lambda: len(running.connections) == 0, "the connection is gone")
        assert told == gate.peers[:1]
        assert not gate.peers[0].is_connected
        assert running.connections.budget.used_bytes == 0


async def test_requests_sent_before_a_half_close_are_answered() -> None:
    gate = Gate()
    async with network(gate.answer) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"wait") + framed(b"last"))
        client.writer.write_eof()
        await eventually(lambda: gate.gates, "the request is being answered")
        gate.gates[b"wait"].set_result(None)
        assert await client.rest() == framed(b"wait") + framed(b"last")


async def test_reading_pauses_while_requests_wait_behind_a_slow_one() -> None:
    gate = Gate()
    async with network(gate.answer) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"wait"))
        await eventually(lambda: gate.gates, "the request is being answered")
        behind = framed(b"x" * 10_000)
        count = 2000
        client.send(behind * count)
        (connection,) = running.connections.all()
        await eventually(lambda: connection.held_bytes > READ_AHEAD_BYTES, "some frames are read ahead")
        for _ in range(50):
            await asyncio.sleep(0)
        assert connection.held_bytes <= READ_AHEAD_BYTES + 2 * SHARED_BUFFER_BYTES
        gate.gates[b"wait"].set_result(None)
        assert await client.answer() == b"wait"
        for _ in range(count):
            assert len(await client.answer()) == 10_000
        await client.close()


async def test_a_slow_reader_gets_one_answer_at_a_time() -> None:
    begun: list[bytes] = []

    async def large(frame: bytes, peer: Peer) -> list[Any]:
        begun.append(frame)
        return [struct.pack(">i", 16_000_000), *[bytes(1_000_000)] * 16]

    async with network(large) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"1") + framed(b"2") + framed(b"3"))
        await eventually(lambda: begun, "the first answer is made")
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert begun == [b"1"], "no second answer while the first waits for its reader"
        for _ in range(3):
            assert len(await client.answer()) == 16_000_000
        assert begun == [b"1", b"2", b"3"]
        await client.close()


async def test_large_requests_share_a_finite_budget() -> None:
    gate = Gate()
    limits = ConnectionLimits(request_budget_bytes=1_000_000)
    async with network(gate.answer, limits) as running:
        first = await RawClient.connect(running.port)
        first.send(framed(b"wait" + bytes(2_000_000)))
        await eventually(lambda: gate.gates, "the first request fills the budget, and a frame more than it passes")
        second = await RawClient.connect(running.port)
        second.send(framed(b"large" + bytes(600_000)))
        small = await RawClient.connect(running.port)
        assert await small.call(framed(b"small")) == b"small", "small requests never wait for the budget"
        assert len(gate.received) == 2
        next(iter(gate.gates.values())).set_result(None)
        assert (await second.answer()).startswith(b"large")
        for client in (first, second, small):
            await client.close()
        await eventually(lambda: running.connections.budget.used_bytes == 0, "every charge is given back")


async def test_a_client_gone_while_waiting_for_the_budget_is_forgotten() -> None:
    gate = Gate()
    limits = ConnectionLimits(request_budget_bytes=100_000)
    async with network(gate.answer, limits) as running:
        first = await RawClient.connect(running.port)
        first.send(framed(b"wait" + bytes(200_000)))
        await eventually(lambda: gate.gates, "the budget is used up")
        second = await RawClient.connect(running.port)
        second.send(framed(b"large" + bytes(300_000)))
        await eventually(lambda: running.connections.budget.waiting_count == 1, "the second waits")
        await running.connections.drop_all("test")
        assert running.connections.budget.waiting_count == 0
        next(iter(gate.gates.values())).set_result(None)
        await eventually(lambda: running.connections.budget.used_bytes == 0, "every charge is given back")
        await first.close()
        await second.close()


async def test_a15_idle_connections_are_closed_and_busy_ones_stay() -> None:
    gate = Gate()
    async with network(gate.answer, ConnectionLimits(connections_max_idle_ms=60_000)) as running:
        idle = await RawClient.connect(running.port)
        busy = await RawClient.connect(running.port)
        assert await idle.call(framed(b"hello")) == b"hello"
        assert await busy.call(framed(b"hello")) == b"hello"
        running.clock.move(40_000)
        assert await busy.call(framed(b"again")) == b"again"
        running.clock.move(30_000)
        assert await idle.rest() == b""
        assert await busy.call(framed(b"still here")) == b"still here"
        assert len(running.connections) == 1
        await busy.close()
        await eventually(lambda: len(running.connections) == 0, "both are gone")
        assert running.clock.pending_timers == 0, "nothing is timed when nobody is connected"


async def test_a15_a_request_that_waits_longer_than_the_idle_limit_loses_its_connection() -> None:
    gate = Gate()
    async with network(gate.answer, ConnectionLimits(connections_max_idle_ms=60_000)) as running:
        client = await RawClient.connect(running.port)
        client.send(framed(b"wait"))
        await eventually(lambda: gate.gates, "the request is being answered")
        running.clock.move(60_000)
        assert await client.rest() == b""
        gate.gates[b"wait"].set_result(None)
        await eventually(lambda: gate.finished, "it ran to its end all the same (A20)")


async def test_a16_connections_over_the_limit_wait_for_a_place() -> None:
    async with network(echo, ConnectionLimits(max_connections=2)) as running:
        first, second = [await RawClient.connect(running.port) for _ in range(2)]
        assert await first.call(framed(b"1")) == b"1"
        assert await second.call(framed(b"2")) == b"2"
        third = await RawClient.connect(running.port)
        third.send(framed(b"3"))
        # As Apache Kafka 4.4 does (max.connections=2): nobody is thrown out, the third waits.
        assert await first.call(framed(b"undisturbed")) == b"undisturbed"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(third.reader.read(1), 0.05)
        await first.close()
        assert await third.answer() == b"3"
        await second.close()
        await third.close()


async def test_a16_an_address_over_its_limit_is_closed_at_once() -> None:
    limits = ConnectionLimits(max_connections_per_ip=100, max_connections_per_ip_overrides={"127.0.0.1": 1})
    async with network(echo, limits) as running:
        first = await RawClient.connect(running.port)
        assert await first.call(framed(b"1")) == b"1"
        second = await RawClient.connect(running.port)
        assert await second.rest() == b""
        assert await first.call(framed(b"undisturbed")) == b"undisturbed"
        await first.close()
        await eventually(lambda: len(running.connections) == 0, "its place is free again")
        third = await RawClient.connect(running.port)
        assert await third.call(framed(b"3")) == b"3"
        await third.close()


async def test_a16_a_creation_rate_delays_what_comes_too_fast() -> None:
    async with network(echo, ConnectionLimits(max_connection_creation_rate=1)) as running:
        clients = [await RawClient.connect(running.port) for _ in range(12)]
        for number, client in enumerate(clients):
            client.send(framed(b"%d" % number))
        for number, client in enumerate(clients[:10]):
            assert await client.answer() == b"%d" % number
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(clients[10].reader.read(1), 0.05)
        running.clock.move(1_000)
        assert await clients[10].answer() == b"10"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(clients[11].reader.read(1), 0.05)
        # The rate is lifted while one waits.
        running.connections.limits = ConnectionLimits()
        assert await clients[11].answer() == b"11"
        for client in clients:
            await client.close()


async def test_a16_a_listener_without_places_does_not_hold_back_another() -> None:
    limits = ConnectionLimits(listener_max_connections={"PLAINTEXT": 1})
    async with network(echo, limits) as running:
        other = Listener(ListenerConfig("OTHER", "127.0.0.1", 0), running.connections, echo)
        other.bind()
        await other.start()
        first = await RawClient.connect(running.port)
        assert await first.call(framed(b"1")) == b"1"
        second = await RawClient.connect(running.port)
        second.send(framed(b"2"))
        third = await RawClient.connect(other.port)
        assert await third.call(framed(b"3")) == b"3"
        await first.close()
        assert await second.answer() == b"2"
        for client in (second, third):
            await client.close()
        await other.close()


async def test_a16_the_brokers_own_listener_takes_a_place_from_the_idlest() -> None:
    limits = ConnectionLimits(max_connections=2, protected_listener="BROKERS")
    async with network(echo, limits) as running:
        brokers = Listener(ListenerConfig("BROKERS", "127.0.0.1", 0), running.connections, echo)
        brokers.bind()
        await brokers.start()
        idle, busy = [await RawClient.connect(running.port) for _ in range(2)]
        assert await idle.call(framed(b"1")) == b"1"
        running.clock.move(1_000)
        assert await busy.call(framed(b"2")) == b"2"
        broker = await RawClient.connect(brokers.port)
        assert await broker.call(framed(b"3")) == b"3"
        assert await idle.rest() == b""
        assert await busy.call(framed(b"4")) == b"4"
        for client in (busy, broker):
            await client.close()
        await brokers.close()


async def test_five_hundred_connections_are_answered_and_leave_nothing() -> None:
    async with network(echo) as running:
        clients = await asyncio.gather(*(RawClient.connect(running.port) for _ in range(500)))
        answers = await asyncio.gather(
            *(client.call(framed(str(number).encode())) for number, client in enumerate(clients))
        )
        assert answers == [str(number).encode() for number in range(500)]
        await asyncio.gather(*(client.close() for client in clients))
        await eventually(lambda: len(running.connections) == 0, "all are gone")
        assert running.connections.budget.used_bytes == 0


async def test_who_connects_while_the_node_stops_is_closed() -> None:
    """The loop sees a connection later than the client: it may come when all others have been told to go."""
    async with network(echo) as running:
        stays = await RawClient.connect(running.port)
        closing = asyncio.ensure_future(running.connections.close())
        await asyncio.sleep(0)
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as late:
            late.setblocking(False)
            async with asyncio.timeout(10):
                await closing
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.get_running_loop().sock_recv(late, 1) == b""
        assert len(running.connections) == 0
        await stays.close()
