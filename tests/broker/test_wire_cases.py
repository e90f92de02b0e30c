"""Cases from the field about the wire, against a whole node, with frames built by `struct` alone."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import crc32c
import pytest

from tests.broker.network.network_fixture import eventually
from tests.broker.node_fixture import RunningNode, running_node
from tests.broker.raw_client import RawClient, api_versions_body, compact_string, frame, string

TOPIC = "wire-cases"
NO_TAGS = b"\x00"


def metadata_body(version: int, topic: str | None = TOPIC) -> bytes:
    """Metadata asking for one topic (None: for no topic), creating it."""
    names = [] if topic is None else [topic]
    if version < 9:
        body = struct.pack(">i", len(names)) + b"".join(map(string, names))
        return body + (b"\x01" if version >= 4 else b"") + (b"\x00\x00" if version >= 8 else b"")
    topics = b"".join((bytes(16) if version >= 10 else b"") + compact_string(name) + NO_TAGS for name in names)
    flags = b"\x01" + (b"\x00\x00" if version <= 10 else b"\x00")
    return bytes([len(names) + 1]) + topics + flags + NO_TAGS


def metadata(version: int, topic: str | None = TOPIC, **header: object) -> bytes:
    return frame(3, version, metadata_body(version, topic), flexible=version >= 9, **header)  # type: ignore[arg-type]


def record_batch(values: list[bytes], key: bytes | None = None) -> bytes:
    """A batch of format 2, uncompressed."""

    def varint(value: int) -> bytes:
        value = value << 1 ^ value >> 63
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    records = b""
    for delta, value in enumerate(values):
        record = b"\x00" + varint(0) + varint(delta)
        record += varint(-1) if key is None else varint(len(key)) + key
        record += varint(len(value)) + value + varint(0)
        records += varint(len(record)) + record
    now_ms = 1_700_000_000_000
    after_crc = struct.pack(">hiqqqhii", 0, len(values) - 1, now_ms, now_ms, -1, -1, -1, len(values)) + records
    checksum = crc32c.crc32c(after_crc)
    return struct.pack(">qiibI", 0, 9 + len(after_crc), -1, 2, checksum) + after_crc


def produce(
    values: list[bytes], *, acks: int = 1, partition: int = 0, key: bytes | None = None, **header: object
) -> bytes:
    """Produce v3 of one batch."""
    batch = record_batch(values, key)
    body = string(None) + struct.pack(">hii", acks, 5000, 1) + string(TOPIC)
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    return frame(0, 3, body, **header)  # type: ignore[arg-type]


def fetch(version: int, *, max_wait_ms: int, offset: int = 0, topic_id: bytes = b"", **header: object) -> bytes:
    """Fetch of one partition without a session; v4, v11, v12 by name, v13+ by id."""
    flexible = version >= 12
    body = struct.pack(">i", -1) if version <= 14 else b""
    body += struct.pack(">iiib", max_wait_ms, 1, 1 << 20, 0)
    body += struct.pack(">ii", 0, -1) if version >= 7 else b""
    partition = struct.pack(">i", 0)
    partition += struct.pack(">i", -1) if version >= 9 else b""
    partition += struct.pack(">q", offset)
    partition += struct.pack(">i", -1) if version >= 12 else b""
    partition += struct.pack(">q", -1) if version >= 5 else b""
    partition += struct.pack(">i", 1 << 20)
    if flexible:
        name = topic_id if version >= 13 else compact_string(TOPIC)
        body += b"\x02" + name + b"\x02" + partition + NO_TAGS + NO_TAGS + b"\x01" + compact_string("") + NO_TAGS
    else:
        body += struct.pack(">i", 1) + string(TOPIC) + struct.pack(">i", 1) + partition
        body += struct.pack(">i", 0) if version >= 7 else b""
        body += string("") if version >= 11 else b""
    return frame(1, version, body, flexible=flexible, **header)  # type: ignore[arg-type]


def list_offsets(timestamp: int = -1) -> bytes:
    """ListOffsets v1 of partition 0."""
    body = struct.pack(">ii", -1, 1) + string(TOPIC) + struct.pack(">iiq", 1, 0, timestamp)
    return frame(2, 1, body)


async def end_offset(client: RawClient) -> int:
    said = await client.call(list_offsets())
    error, _timestamp, offset = struct.unpack(">hqq", said[-18:])
    assert error == 0
    return int(offset)


@asynccontextmanager
async def node_with_topic() -> AsyncIterator[tuple[RunningNode, RawClient]]:
    async with running_node() as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        try:
            yield node, client
        finally:
            await client.close()


def without_correlation(answer: bytes) -> bytes:
    return answer[4:]


async def test_w01_a_null_client_id_gets_the_same_answers() -> None:
    async with node_with_topic() as (_node, client):
        for request in (
            lambda **header: frame(18, 3, api_versions_body(3), flexible=True, **header),
            lambda **header: metadata(12, **header),
            lambda **header: metadata(8, **header),
        ):
            answers = [await client.call(request(client_id=client_id)) for client_id in (None, "", "x")]
            assert len(set(map(without_correlation, answers))) == 1


async def test_w02_a_newer_client_steps_down_on_the_same_connection() -> None:
    async with node_with_topic() as (_node, client):
        assert await client.call(frame(18, 127, b"\xff\xff\xff", flexible=True)) == struct.pack(
            ">ihihhh", 1, 35, 1, 18, 0, 5
        )
        said = await client.call(frame(18, 3, api_versions_body(3), flexible=True))
        assert said[4:6] == b"\x00\x00"


async def test_w03_every_other_flexible_answer_has_tags_in_its_header() -> None:
    async with node_with_topic() as (_node, client):
        said = await client.call(metadata(12, correlation_id=3))
        assert said[:9] == struct.pack(">i", 3) + NO_TAGS + struct.pack(">i", 0), "tags, then throttle time 0"


@pytest.mark.parametrize("correlation_id", [0, 1, 2**31 - 1, -1])
async def test_w04_correlation_ids_come_back_on_every_api(correlation_id: int) -> None:
    async with node_with_topic() as (_node, client):
        for request in (
            frame(18, 0, correlation_id=correlation_id),
            metadata(1, correlation_id=correlation_id),
            metadata(12, correlation_id=correlation_id),
            fetch(4, max_wait_ms=0, correlation_id=correlation_id),
            fetch(12, max_wait_ms=0, correlation_id=correlation_id),
            produce([b"x"], correlation_id=correlation_id),
            frame(12, 0, string("g") + struct.pack(">i", 1) + string("m"), correlation_id=correlation_id),
        ):
            assert (await client.call(request))[:4] == struct.pack(">i", correlation_id)


async def test_w05_pipelined_answers_keep_request_order() -> None:
    async with node_with_topic() as (node, client):
        client.send(
            fetch(4, max_wait_ms=60_000, correlation_id=1)
            + metadata(1, correlation_id=2)
            + frame(18, 0, correlation_id=3)
            + produce([b"x"], correlation_id=4)
        )
        # The fetch waits for records, so nothing behind it is answered.
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.05)
        other = await RawClient.connect(node.port)
        await other.call(produce([b"wakes the fetch"]))
        ids = [struct.unpack(">i", (await client.answer())[:4])[0] for _ in range(4)]
        assert ids == [1, 2, 3, 4]
        await other.close()


async def test_w05_a_fetch_with_nothing_to_read_ends_after_its_wait() -> None:
    async with node_with_topic() as (node, client):
        client.send(fetch(4, max_wait_ms=60_000, correlation_id=1) + metadata(1, correlation_id=2))
        waiting = node.server.connections
        await eventually(lambda: waiting.requests_in_progress == 1, "the fetch waits")
        node.clock.move(60_000)
        assert [struct.unpack(">i", (await client.answer())[:4])[0] for _ in range(2)] == [1, 2]


async def test_w06_acks_0_has_no_answer_and_its_records_are_there() -> None:
    async with node_with_topic() as (_node, client):
        for number in range(3):
            client.send(produce([b"%d" % number], acks=0, correlation_id=100 + number))
        client.send(metadata(1, correlation_id=7))
        assert (await client.answer())[:4] == struct.pack(">i", 7), "one answer, that of Metadata"
        assert await end_offset(client) == 3


async def test_w06_acks_0_that_fails_closes_the_connection() -> None:
    async with node_with_topic() as (_node, client):
        client.send(produce([b"x"], acks=0, partition=99))
        assert await client.rest() == b""


async def test_w07_other_protocols_do_not_disturb_a_producer() -> None:
    async with node_with_topic() as (node, client):
        for first_bytes in (b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("16030100b4010000b0")):
            intruder = await RawClient.connect(node.port)
            intruder.send(first_bytes)
            assert await intruder.rest() == b""
            await client.call(produce([b"undisturbed"]))
        assert await end_offset(client) == 2


@pytest.mark.parametrize("version", [4, 11, 12])
async def test_w10_an_empty_fetch_has_zero_bytes_of_records_never_null(version: int) -> None:
    async with node_with_topic() as (_node, client):
        said = await client.call(fetch(version, max_wait_ms=0))
        if version < 12:
            assert said[-4:] == struct.pack(">i", 0)
        else:
            # Length 1 of the compact form is zero bytes; then the tags of partition, topic and answer.
            assert said[-4:] == b"\x01" + NO_TAGS * 3


async def test_w10_an_empty_fetch_by_topic_id() -> None:
    async with node_with_topic() as (node, client):
        topic = node.server.node.metadata.image.topics.by_name(TOPIC)
        said = await client.call(fetch(16, max_wait_ms=0, topic_id=topic.topic_id))
        assert said[-4:] == b"\x01" + NO_TAGS * 3


@pytest.mark.parametrize("seed", range(20))
async def test_garbage_closes_its_connection_only(seed: int) -> None:
    noise = bytes(zlib.crc32(struct.pack(">ii", seed, place)) & 255 for place in range(200))
    async with node_with_topic() as (node, client):
        for prefix in (b"", struct.pack(">i", 200), struct.pack(">ihh", 204, seed % 95, seed % 10)):
            intruder = await RawClient.connect(node.port)
            intruder.send(prefix + noise)
            intruder.writer.write_eof()
            await intruder.rest()
        assert (await client.call(metadata(1, correlation_id=9)))[:4] == struct.pack(">i", 9)
