"""Listeners: addresses, ports, what is told to clients."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from broker.clock import Clock
from broker.network.connection_set import ConnectionLimits, ConnectionSet
from broker.network.listener import CannotListen, Listener, ListenerConfig
from broker.network.peer import Peer
from tests.broker.network.network_fixture import network
from tests.broker.raw_client import RawClient


async def echo(frame: bytes, peer: Peer) -> list[bytes]:
    return [struct.pack(">i", len(frame)), frame]


def has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def listener(host: str, port: int = 0, **advertised: object) -> Listener:
    connections = ConnectionSet(Clock(), ConnectionLimits(), asyncio.get_running_loop())
    return Listener(ListenerConfig("PLAINTEXT", host, port, **advertised), connections, echo)  # type: ignore[arg-type]


async def test_u02_localhost_answers_on_both_loopbacks_with_one_port() -> None:
    async with network(echo, host="localhost") as running:
        hosts = ["127.0.0.1", "localhost"] + (["::1"] if has_ipv6_loopback() else [])
        for host in hosts:
            client = await RawClient.connect(running.port, host)
            assert await client.call(struct.pack(">i", 1) + b"x") == b"x"
            await client.close()
        advertised = running.listener.advertised
        assert advertised.port == running.port != 0
        assert advertised == running.listener.numeric == ("127.0.0.1", running.port)


@pytest.mark.parametrize("host", ["", "0.0.0.0"])
async def test_u02_a_wildcard_is_bound_and_reachable_by_a_numeric_address(host: str) -> None:
    async with network(echo, host=host) as running:
        client = await RawClient.connect(running.port, "127.0.0.1")
        assert await client.call(struct.pack(">i", 1) + b"x") == b"x"
        await client.close()
        assert running.listener.numeric == ("127.0.0.1", running.port)


async def test_u02_a_wildcard_without_a_host_is_told_by_the_machines_name() -> None:
    bound = listener("")
    bound.bind()
    assert bound.advertised.host not in ("", "0.0.0.0", "::")
    await bound.close()


async def test_u01_the_advertised_address_may_differ_from_the_bound_one() -> None:
    bound = listener("127.0.0.1", advertised_host="broker.example", advertised_port=19092)
    bound.bind()
    assert bound.advertised == ("broker.example", 19092)
    await bound.close()


async def test_u05_the_port_is_known_before_anyone_is_answered() -> None:
    bound = listener("127.0.0.1")
    bound.bind()
    assert bound.port > 0
    with pytest.raises(ConnectionRefusedError):
        await RawClient.connect(bound.port)
    await bound.start()
    client = await RawClient.connect(bound.port)
    assert await client.call(struct.pack(">i", 1) + b"x") == b"x"
    await client.close()
    await bound.close()
    with pytest.raises(ConnectionRefusedError):
        await RawClient.connect(bound.port)


async def test_a_taken_port_is_one_sentence_naming_address_and_setting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        bound = listener("127.0.0.1", port)
        with pytest.raises(CannotListen) as refusal:  # noqa: PT012 - which of the two is the system's choice
            bound.bind()
            await bound.start()
        text = f"cannot listen on 127.0.0.1:{port} (setting listeners, PLAINTEXT): the port is taken"
        assert str(refusal.value) == text


async def test_the_port_is_free_at_once_after_a_stop() -> None:
    async with network(echo) as running:
        port = running.port
        client = await RawClient.connect(port)
        assert await client.call(struct.pack(">i", 1) + b"x") == b"x"
    again = listener("127.0.0.1", port)
    again.bind()
    await again.start()
    await again.close()
    await client.close()
