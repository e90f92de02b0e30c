"""`odradek produce`: one record for each line of standard input."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple, Protocol, cast

from odradek.cli.arguments import client_parser, counted, not_negative, print_json
from odradek.client import Client, check, is_retriable
from odradek.failure import BAD_SETTING, Failure
from wire.errors import ErrorCode
from wire.records import Compression, NewRecord, build_batch

READ_BYTES = 256 * 1024  # with Kafka's default max.message.bytes a batch of this and a line of the same size is taken
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Line(NamedTuple):
    """A record and the number of the line it was, from 1 on."""

    number: int
    record: NewRecord


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
    """Write all lines of the source; returns how many records were acknowledged. Without a line no topic is made."""
    client.any_node()  # who types is told of a broker that is not there before the first line
    groups = lines_at_hand(source)
    first = next(groups, None)
    if first is None:
        client.leaders(options.topic)
        return 0
    leaders = leaders_of(client, options.topic)
    if options.partition is not None and options.partition not in leaders:
        raise Failure(f"Topic {options.topic!r} has no partition {options.partition}; it has {len(leaders)}.")
    writing = Writing(client, options, leaders)
    for lines in chain([first], groups):
        writing.write_lines(lines)
    return writing.written


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
            raise Failure(f"{shown!r} has no key separator {options.key_separator!r}.")
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


class Writing:
    """Lines on their way into a topic. A Failure names the lines it is about, and says how many records are written."""

    def __init__(self, client: Client, options: argparse.Namespace, leaders: dict[int, int]) -> None:
        self.client = client
        self.options = options
        self.leaders = leaders
        self.read = 0
        self.written = 0

    def write_lines(self, lines: list[bytes]) -> None:
        """Write the lines; where one cannot become a record, those before it."""
        by_partition: dict[int, list[Line]] = defaultdict(list)
        refused: Failure | None = None
        for line in lines:
            try:
                record = record_of(line, self.options)
            except Failure as failure:
                refused = failure
                break
            partition = partition_of(record.key, self.options.partition, self.read, self.leaders)
            self.read += 1
            by_partition[partition].append(Line(self.read, record))
        for partition, records in sorted(by_partition.items()):
            self._write_batch(partition, records)
        if refused is not None:
            raise self._failed([self.read + 1], refused)

    def _write_batch(self, partition: int, lines: list[Line]) -> None:
        """Write lines as one batch, or where the topic takes none as large (max.message.bytes), as two, and so on."""
        batch = build_batch(
            [line.record for line in lines], compression=Compression.from_name(self.options.compression)
        )
        numbers = [line.number for line in lines]
        try:
            result = self._answer(partition, batch)
            is_divided = result.error_code == ErrorCode.MESSAGE_TOO_LARGE and len(lines) > 1
            if not is_divided:
                check(result.error_code, self._nothing_taken(partition), result.error_message)
        except Failure as failure:
            raise self._failed(numbers, failure) from None
        if is_divided:
            middle = len(lines) // 2
            self._write_batch(partition, lines[:middle])
            self._write_batch(partition, lines[middle:])
        else:
            self.written += len(lines)

    def _answer(self, partition: int, batch: bytes) -> Any:
        """What the leader says to a batch, asked again for as long as it says that it may be asked again."""
        from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

        data = [PartitionProduceData(index=partition, records=batch)]
        topic = TopicProduceData(name=self.options.topic, partition_data=data)
        request = ProduceRequest(acks=-1, timeout_ms=self.options.timeout_ms, topic_data=[topic])

        def ask() -> tuple[int, Any]:
            connection = self.client.node(self.leaders[partition])
            response = connection.request(request, most=12, wait_ms=self.options.timeout_ms)
            result = response.responses[0].partition_responses[0]
            return result.error_code if is_retriable(result.error_code) else 0, result

        return self.client.retrying(ask, self._nothing_taken(partition))

    def _nothing_taken(self, partition: int) -> str:
        return f"partition {partition} of topic {self.options.topic!r} took no records"

    def _failed(self, numbers: list[int], failure: Failure) -> Failure:
        first, last = numbers[0], numbers[-1]
        where = f"Line {first}" if first == last else f"Lines {first} to {last}"
        said = str(failure).removesuffix(".")
        return Failure(f"{where}: {said}; {counted(self.written, 'record')} written.", failure.exit_code)
