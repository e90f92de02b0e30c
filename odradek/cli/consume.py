"""`odradek consume`: read a topic's records, without a group, to its end or for as long as asked."""

from __future__ import annotations

import argparse
import base64
import sys
import time
from collections.abc import Iterator
from typing import Any

from odradek.cli.arguments import client_parser, not_negative, positive, print_json
from odradek.cli.offsets import EARLIEST, LATEST, offsets_of
from odradek.client import Client, check
from odradek.failure import BAD_SETTING, Failure
from wire.errors import ErrorCode
from wire.records import Record, batches

FETCH_MAX_WAIT_MS = 500
PARTITION_BYTES_MAX = 4 * 1024 * 1024


def run(arguments: list[str]) -> None:
    parser = client_parser("consume", "Read a topic's records from the beginning to its present end.")
    parser.add_argument("topic")
    parser.add_argument("--partition", type=not_negative, help="default: all")
    parser.add_argument(
        "--from", dest="start", default="beginning", metavar="WHERE",
        help="beginning (default), end, an offset, or a time as @MILLISECONDS since 1970",
    )  # fmt: skip
    parser.add_argument("--count", type=positive, help="stop after that many records")
    parser.add_argument("--follow", action="store_true", help="wait for new records at the end")
    parser.add_argument("--committed", action="store_true", help="leave out records of open and aborted transactions")
    parser.add_argument("--keys", action="store_true", help="print key, a tab, value")
    options = parser.parse_args(arguments)
    with Client(options.bootstrap_server, options.timeout_ms) as client:
        for place, (partition, record) in enumerate(records_of(client, options), 1):
            show(options, partition, record)
            if place == options.count:
                return


def show(options: argparse.Namespace, partition: int, record: Record) -> None:
    if options.json:
        print_json(
            {"topic": options.topic, "partition": partition, "offset": record.offset, "timestamp": record.timestamp}
            | text_or_base64("key", record.key)
            | text_or_base64("value", record.value)
            | {"headers": [{"name": name} | text_or_base64("value", value) for name, value in record.headers]}
        )
        return
    line = record.value or b""
    if options.keys:
        line = (record.key or b"") + b"\t" + line
    sys.stdout.buffer.write(line + b"\n")  # the bytes as they are: they need not be text
    if options.follow:
        sys.stdout.buffer.flush()


def text_or_base64(name: str, data: bytes | None) -> dict[str, Any]:
    """Bytes as JSON can hold them: text where they are UTF-8, else base64 under `<name>_base64`."""
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        assert data is not None
        return {f"{name}_base64": base64.b64encode(data).decode()}


def start_offsets(client: Client, options: argparse.Namespace, leaders: dict[int, int]) -> dict[int, int]:
    """Where to begin in each partition."""
    first = offsets_of(client, options.topic, leaders, EARLIEST)
    end = offsets_of(client, options.topic, leaders, LATEST)
    where = options.start
    if where == "beginning":
        return first
    if where == "end":
        return end
    if where.isdecimal():
        return {partition: min(max(int(where), first[partition]), end[partition]) for partition in leaders}
    if where.startswith("@") and where[1:].isdecimal():
        timed = offsets_of(client, options.topic, leaders, int(where[1:]))
        return {partition: end[partition] if offset < 0 else offset for partition, offset in timed.items()}
    raise Failure(f"--from takes beginning, end, an offset or @MILLISECONDS, not {where!r}.", BAD_SETTING)


def records_of(client: Client, options: argparse.Namespace) -> Iterator[tuple[int, Record]]:
    """Partition and record, in order within each partition; ends at the present end unless following."""
    leaders = client.leaders(options.topic)
    if options.partition is not None:
        if options.partition not in leaders:
            raise Failure(f"Topic {options.topic!r} has no partition {options.partition}; it has {len(leaders)}.")
        leaders = {options.partition: leaders[options.partition]}
    positions = start_offsets(client, options, leaders)
    ends = {} if options.follow else offsets_of(client, options.topic, leaders, LATEST)
    quiet_since = time.monotonic()
    while True:
        open_partitions = [p for p in sorted(leaders) if options.follow or positions[p] < ends[p]]
        if not open_partitions:
            return
        moved = False
        for node_id in sorted({leaders[partition] for partition in open_partitions}):
            asked = {p: positions[p] for p in open_partitions if leaders[p] == node_id}
            for partition, records, next_offset in fetch(client, options, node_id, asked):
                moved = moved or next_offset > positions[partition]
                positions[partition] = next_offset
                yield from ((partition, record) for record in records)
        if moved:
            quiet_since = time.monotonic()
        elif not options.follow and time.monotonic() - quiet_since > client.timeout_ms / 1000:
            # Records behind an open transaction count in the end offset but are not readable yet.
            raise Failure(f"Nothing more of {options.topic!r} can be read within {client.timeout_ms} ms.")


def fetch(
    client: Client, options: argparse.Namespace, node_id: int, positions: dict[int, int]
) -> Iterator[tuple[int, list[Record], int]]:
    """One fetch from one node: partition, its records, the offset to go on from."""
    from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    asked = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES_MAX)
        for partition, offset in positions.items()
    ]
    request = FetchRequest(
        max_wait_ms=FETCH_MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=16 * PARTITION_BYTES_MAX,
        isolation_level=1 if options.committed else 0,
        topics=[FetchTopic(topic=options.topic, partitions=asked)],
    )
    response = client.node(node_id).request(request, most=12, wait_ms=FETCH_MAX_WAIT_MS)
    check(response.error_code, f"Fetch from topic {options.topic!r}")
    for data in (data for topic in response.responses for data in topic.partitions):
        check(data.error_code, f"Partition {data.partition_index} of topic {options.topic!r}")
        position = positions[data.partition_index]
        yield data.partition_index, *readable(data, position)


def readable(data: Any, position: int) -> tuple[list[Record], int]:
    """The data records from a position, without those of aborted transactions, and the offset after them."""
    aborted = sorted((t.first_offset, t.producer_id) for t in data.aborted_transactions or ())
    aborting: set[int] = set()
    records: list[Record] = []
    for batch in batches(bytes(data.records or b"")):
        while aborted and aborted[0][0] <= batch.last_offset:
            aborting.add(aborted.pop(0)[1])
        if batch.is_control:
            aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            if not batch.has_valid_crc():
                raise Failure(f"The batch at offset {batch.base_offset} is corrupt: {ErrorCode.CORRUPT_MESSAGE.name}.")
            records += [record for record in batch.records() if record.offset >= position]
        position = max(position, batch.last_offset + 1)
    return records, position
