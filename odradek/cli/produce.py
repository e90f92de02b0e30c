"""`odradek produce`: one record for each line of standard input."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Protocol, cast

from odradek.cli.arguments import client_parser, counted, not_negative, print_json
from odradek.client import Client, check
from odradek.failure import BAD_SETTING, Failure
from wire.errors import ErrorCode
from wire.records import Compression, NewRecord, build_batch

READ_BYTES = 256 * 1024  # with Kafka's default max.message.bytes a batch of this and a line of the same size is taken
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Readable(Protocol):
    """A source of bytes that gives what it has instead of waiting for more, as files and pipes do."""

    def read1(self, most: int, /) -> bytes: ...


def run(arguments: list[str]) -> None:
    parser = client_parser("produce", "Write records, one for each line of standard input.")
    parser.add_argument("topic")
    parser.add_argument("--key-separator", metavar="TEXT", help="what stands between key and value; default: no key")
    parser.add_argument("--partition", type=not_negative, help="default: by the key as Kafka does, without one in turn")
    parser.add_argument("--header", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--compression", choices=CODECS, default="none")
    options = parser.parse_args(arguments)
    options.headers = headers_of(options.header)
    with Client(options.bootstrap_server, options.timeout_ms) as client:
        written = produce_lines(client, options, cast(Readable, sys.stdin.buffer))
    if options.json:
        print_json({"topic": options.topic, "written": written})
    else:
        print(f"Wrote {counted(written, 'record')} to {options.topic}.", file=sys.stderr)


def headers_of(arguments: list[str]) -> tuple[tuple[str, bytes | None], ...]:
    """`NAME=VALUE` arguments as headers; raises Failure for one without `=`."""
    headers: list[tuple[str, bytes | None]] = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise Failure(f"--header takes NAME=VALUE, not {argument!r}.", BAD_SETTING)
        headers.append((name, value.encode()))
    return tuple(headers)


def lines_at_hand(source: Readable) -> Iterator[list[bytes]]:
    """The source's lines without their ends, as many at a time as can be had without waiting for more input.

    What someone types or a slow pipe brings is so written when it comes, and a file in batches of bounded size.
    """
    rest: list[bytes] = []  # parts of a line whose end has not been read
    while data := source.read1(READ_BYTES):
        *ended, begun = data.split(b"\n")
        if ended:
            ended[0] = b"".join([*rest, ended[0]])
            rest = []
            yield [line.removesuffix(b"\r") for line in ended]
        if begun:
            rest.append(begun)
    if rest:
        yield [b"".join(rest)]


def produce_lines(client: Client, options: argparse.Namespace, source: Readable) -> int:
    """Write all lines of the source; returns how many records were acknowledged."""
    leaders = leaders_of(client, options.topic)
    if options.partition is not None and options.partition not in leaders:
        raise Failure(f"Topic {options.topic!r} has no partition {options.partition}; it has {len(leaders)}.")
    written = 0
    for lines in lines_at_hand(source):
        by_partition: dict[int, list[NewRecord]] = defaultdict(list)
        for number, line in enumerate(lines, written):
            record = record_of(line, options)
            by_partition[partition_of(record.key, options.partition, number, leaders)].append(record)
        for partition, records in sorted(by_partition.items()):
            write(client, options, leaders[partition], partition, records)
        written += len(lines)
    return written


def leaders_of(client: Client, topic: str) -> dict[int, int]:
    """Leaders of the topic, which comes into being here if the broker creates topics by itself."""
    from wire.messages.metadata import MetadataRequest, MetadataRequestTopic

    def ask() -> tuple[int, None]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
        (found,) = client.any_node().request(request).topics
        return found.error_code or max((partition.error_code for partition in found.partitions), default=0), None

    client.retrying(ask, f"Topic {topic!r}")
    return client.leaders(topic)


def record_of(line: bytes, options: argparse.Namespace) -> NewRecord:
    key: bytes | None = None
    if options.key_separator:
        before, separator, after = line.partition(options.key_separator.encode())
        if not separator:
            shown = line.decode(errors="backslashreplace")
            raise Failure(f"The line {shown!r} has no key separator {options.key_separator!r}.")
        key, line = before, after
    return NewRecord(key=key, value=line, headers=options.headers, timestamp=time.time_ns() // 1_000_000)


def partition_of(key: bytes | None, chosen: int | None, number: int, leaders: dict[int, int]) -> int:
    if chosen is not None:
        return chosen
    if key is None:
        return sorted(leaders)[number % len(leaders)]
    return (murmur2(key) & 0x7FFFFFFF) % len(leaders)


def murmur2(data: bytes) -> int:
    """MurmurHash2 as Kafka's default partitioner takes it of a key (Utils.murmur2), as an unsigned 32-bit number."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        part = int.from_bytes(data[start : start + 4], "little") * multiplier & mask
        part = (part ^ part >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ part
    if rest := data[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


def write(client: Client, options: argparse.Namespace, leader: int, partition: int, records: list[NewRecord]) -> None:
    """Write the records as one batch, or where the topic takes none as large (max.message.bytes), as two, and so on."""
    from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

    batch = build_batch(records, compression=Compression.from_name(options.compression))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=options.timeout_ms,
        topic_data=[
            TopicProduceData(name=options.topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        ],
    )

    def ask() -> tuple[int, None]:
        response = client.node(leader).request(request, most=12, wait_ms=options.timeout_ms)
        result = response.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.MESSAGE_TOO_LARGE and len(records) > 1:
            middle = len(records) // 2
            write(client, options, leader, partition, records[:middle])
            write(client, options, leader, partition, records[middle:])
            return 0, None
        if result.error_message:
            check(result.error_code, f"Partition {partition} of topic {options.topic!r}", result.error_message)
        return result.error_code, None

    client.retrying(ask, f"Partition {partition} of topic {options.topic!r} took no records")
