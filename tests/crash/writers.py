"""Who writes while the node is killed, and what each has been promised.

A worker has `work(port)`, which goes on until the node is gone, and `check(port)`, which holds what the node has
after its restart against what was acknowledged; it raises Broken where a promise did not hold.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from tests.crash.connection import Connection, Lost
from tests.crash.requests import (
    BUSY,
    PRODUCE_VERSION,
    TRANSACTION,
    Broken,
    create_topic,
    find_coordinator,
    init_producer_id,
    numbered,
    produce_request,
    records_of,
    settled,
)
from wire.errors import ErrorCode
from wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from wire.messages.end_txn import EndTxnRequest
from wire.records import Compression, NewRecord, build_batch

IN_FLIGHT_MAX = 5
LOG_BYTES_MAX = 6 * 1024 * 1024
"""After so much a writer pauses for the round: every record is read again at each check."""


class Worker(Protocol):
    """Someone who uses the node."""

    async def work(self, port: int) -> None:
        """Use the node until it is gone. Raises Broken."""

    async def check(self, port: int) -> None:
        """Hold what is there against what was promised. Raises Broken."""


def now_ms() -> int:
    return int(time.time() * 1000)


def value_of(number: int, chance: Random) -> bytes:
    """A value that says its number, mostly small, at times large enough to fill segments."""
    size = chance.choice((0, 0, 0, 10, 100, 100, 1000, 30_000))
    return b"%010d" % number + chance.randbytes(size)


@dataclass
class Sent:
    """A batch on its way: records `first` to `last`, their values, and the bytes to send again."""

    first: int
    last: int
    batch: bytes


@dataclass
class IdempotentWriter:
    """Writes records 0, 1, 2, … into a partition of its own, up to five batches in flight, each sent until it is
    acknowledged. As nobody else writes there, record n must be at offset n, once."""

    topic: str
    partition: int
    chance: Random
    producer: tuple[int, int] | None = None
    next_number: int = 0
    acknowledged: int = 0
    """Records below this number are."""
    size: int = 0
    waiting: deque[Sent] = field(default_factory=deque)

    async def work(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            if self.producer is None:
                self.producer = await init_producer_id(connection)
            while True:
                await self._send_window(connection)
                if self.size > LOG_BYTES_MAX:
                    await asyncio.sleep(0.02)
                    self.size -= LOG_BYTES_MAX // 50
        finally:
            await connection.close()

    async def finish(self, port: int) -> None:
        """Send what was not acknowledged until it is."""
        connection = await Connection.open(port)
        try:
            while self.waiting:
                await self._send_window(connection, new=False)
        finally:
            await connection.close()

    async def _send_window(self, connection: Connection, *, new: bool = True) -> None:
        """Send what waits, and new batches behind it; take the answers, in order."""
        while new and len(self.waiting) < IN_FLIGHT_MAX:
            self.waiting.append(self._new_batch())
        sent = list(self.waiting)
        answers = [
            connection.send(produce_request(self.topic, self.partition, each.batch), PRODUCE_VERSION) for each in sent
        ]
        for each, answer in zip(sent, answers, strict=True):
            partition = (await asyncio.wait_for(answer, 60)).responses[0].partition_responses[0]
            code = ErrorCode(partition.error_code)
            if code in BUSY:
                return  # What was sent behind it is answered out of order; all of it is sent again.
            if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and each is not sent[0]:
                return
            if code is not ErrorCode.NONE:
                raise Broken(f"{self.topic}-{self.partition} refused {each.first}..{each.last}: {code.name}")
            if partition.base_offset != each.first:
                raise Broken(
                    f"{self.topic}-{self.partition} acknowledged records {each.first}..{each.last} at offset "
                    f"{partition.base_offset}"
                )
            self.waiting.popleft()
            self.acknowledged = each.last + 1

    def _new_batch(self) -> Sent:
        assert self.producer is not None
        first = self.next_number
        count = self.chance.choice((1, 1, 2, 5, 30))
        records = [
            NewRecord(b"%d" % (number % 7), value_of(number, self.chance), (), now_ms())
            for number in range(first, first + count)
        ]
        self.next_number += count
        batch = build_batch(
            records,
            compression=Compression(self.chance.randrange(5)),
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=first & 0x7FFFFFFF,
        )
        self.size += len(batch)
        return Sent(first, first + count - 1, batch)

    async def check(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            found = list(numbered(await records_of(connection, self.topic, self.partition)))
        finally:
            await connection.close()
        for place, (offset, number) in enumerate(found):
            if offset != place or number != place:
                raise Broken(f"{self.topic}-{self.partition}: record {number} is at offset {offset}, {place} follows")
        if len(found) < self.acknowledged:
            raise Broken(
                f"{self.topic}-{self.partition} has lost acknowledged records: {len(found)} to {self.acknowledged - 1}"
            )
        ends = {each.last + 1 for each in self.waiting} | {self.acknowledged}
        if len(found) not in ends:
            raise Broken(f"{self.topic}-{self.partition} ends at {len(found)}, within a batch: {sorted(ends)}")


@dataclass
class StateWriter:
    """Sets keys of a compacted topic to rising numbers, one at a time, and at times deletes one. Whatever the cleaner
    did, the newest that was acknowledged for a key, or the one on its way, must stand."""

    topic: str
    chance: Random
    keys: int = 20
    number: int = 0
    acknowledged: dict[bytes, tuple[int, int, bool]] = field(default_factory=dict)
    """Key to offset, number, and whether it was a deletion."""
    on_its_way: tuple[bytes, int, bool] | None = None
    lost: dict[bytes, list[tuple[int, bool]]] = field(default_factory=dict)
    """Writes without an answer since the last acknowledged one of the key."""

    async def work(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            while True:
                key = b"key-%d" % self.chance.randrange(self.keys)
                self.number += 1
                await self._put(connection, key, self.number, deletes=self.chance.random() < 0.1)
        except Lost:
            if self.on_its_way is not None:
                key, number, deletes = self.on_its_way
                self.lost.setdefault(key, []).append((number, deletes))
                self.on_its_way = None
            raise
        finally:
            await connection.close()

    async def _put(self, connection: Connection, key: bytes, number: int, *, deletes: bool) -> None:
        value = None if deletes else b"%010d" % number + bytes(self.chance.choice((0, 500, 20_000)))
        batch = build_batch([NewRecord(key, value, (), now_ms())])
        self.on_its_way = (key, number, deletes)
        response = await connection.call(produce_request(self.topic, 0, batch), PRODUCE_VERSION)
        partition = response.responses[0].partition_responses[0]
        if partition.error_code not in BUSY:
            if partition.error_code:
                raise Broken(f"{self.topic} refused a write: {ErrorCode(partition.error_code).name}")
            self.acknowledged[key] = (partition.base_offset, number, deletes)
            self.lost.pop(key, None)
        self.on_its_way = None

    async def check(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            records = await records_of(connection, self.topic, 0)
        finally:
            await connection.close()
        newest: dict[bytes, tuple[int, int | None]] = {}
        previous = -1
        for record in records:
            assert record.key is not None
            if record.offset <= previous:
                raise Broken(f"{self.topic}: offset {record.offset} follows {previous}")
            previous = record.offset
            newest[record.key] = (record.offset, None if record.value is None else int(record.value[:10]))
        for key, (offset, number, deletes) in self.acknowledged.items():
            self._check_key(key, newest.get(key), offset, number, deletes)

    def _check_key(
        self, key: bytes, found: tuple[int, int | None] | None, offset: int, number: int, deletes: bool
    ) -> None:
        """The key's newest record is the acknowledged one, or one written after it whose answer was lost."""
        if found == (offset, None if deletes else number):
            return
        if found is None:
            if deletes or any(late for _, late in self.lost.get(key, ())):
                return  # A deletion that the cleaner has finished.
            raise Broken(f"{self.topic}: {key!r} = {number}, acknowledged at offset {offset}, is gone")
        later = {None if late else other for other, late in self.lost.get(key, ())}
        if found[0] <= offset or found[1] not in later:
            raise Broken(
                f"{self.topic}: {key!r} is {found[1]} at {found[0]}, but {number} was acknowledged at {offset}"
            )


@dataclass
class TransactionalWriter:
    """Writes transactions 0, 1, 2, … over two partitions and commits or aborts them. What was committed is there whole
    and once, in order; what was aborted or left open never; one whose end had no answer whole or not at all."""

    topic: str
    transactional_id: str
    chance: Random
    next_number: int = 0
    committed: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    records_each: int = 3

    async def work(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            await find_coordinator(connection, self.transactional_id, TRANSACTION)
            producer = await init_producer_id(connection, self.transactional_id)
            sequences = [0, 0]
            while True:
                number, self.next_number = self.next_number, self.next_number + 1
                await self._add_partitions(connection, producer)
                await self._write(connection, producer, number, sequences)
                await self._end(connection, producer, number, commits=self.chance.random() < 0.7)
        finally:
            await connection.close()

    async def _add_partitions(self, connection: Connection, producer: tuple[int, int]) -> None:
        async def ask() -> tuple[int, None]:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=[0, 1])],
            )
            response = await connection.call(request, 3)
            results = response.results_by_topic_v3_and_below[0].results_by_partition
            return max(result.partition_error_code for result in results), None

        await settled(ask, f"AddPartitionsToTxn of {self.transactional_id}")

    async def _write(
        self, connection: Connection, producer: tuple[int, int], number: int, sequences: list[int]
    ) -> None:
        for partition in (0, 1):
            records = [
                NewRecord(None, b"%010d" % number + b" %d" % place, (), now_ms()) for place in range(self.records_each)
            ]
            batch = build_batch(
                records,
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=sequences[partition],
                is_transactional=True,
            )

            async def ask(partition: int = partition, batch: bytes = batch) -> tuple[int, None]:
                request = produce_request(self.topic, partition, batch, self.transactional_id)
                response = await connection.call(request, PRODUCE_VERSION)
                return response.responses[0].partition_responses[0].error_code, None

            await settled(ask, f"Produce of transaction {number}")
            sequences[partition] += len(records)

    async def _end(self, connection: Connection, producer: tuple[int, int], number: int, *, commits: bool) -> None:
        async def ask() -> tuple[int, None]:
            request = EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                committed=commits,
            )
            return (await connection.call(request, 3)).error_code, None

        try:
            await settled(ask, f"EndTxn of transaction {number}")
        except Lost:
            if commits:
                self.unknown.append(number)
            raise
        if commits:
            self.committed.append(number)

    async def check(self, port: int) -> None:
        connection = await Connection.open(port)
        try:
            if not self.next_number:
                return
            await find_coordinator(connection, self.transactional_id, TRANSACTION)
            await init_producer_id(connection, self.transactional_id)  # ends what the kill left open
            found = []
            for partition in (0, 1):
                records = await records_of(connection, self.topic, partition, committed=True)
                found.append([number for _, number in numbered(records)])
        finally:
            await connection.close()
        for partition, numbers in enumerate(found):
            there = set(numbers)
            if numbers != [number for number in sorted(there) for _ in range(self.records_each)]:
                raise Broken(f"{self.topic}-{partition} has transactions in parts, twice, or out of order")
            if missing := set(self.committed) - there:
                raise Broken(f"{self.topic}-{partition} has lost committed transactions {sorted(missing)}")
            if extra := there - set(self.committed) - set(self.unknown):
                raise Broken(f"{self.topic}-{partition} shows aborted transactions {sorted(extra)}")
        if set(found[0]) != set(found[1]):
            raise Broken(f"{self.topic} has a transaction in one partition only: {set(found[0]) ^ set(found[1])}")
        # What is decided stays decided.
        self.committed = sorted(set(found[0]))
        self.unknown = []


async def make_topics(port: int) -> None:
    """The topics that the writers of this module use."""
    connection = await Connection.open(port)
    try:
        for name, partitions, settings in (
            ("idempotent", 3, {}),
            ("state", 1, {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.1", "delete_retention_ms": "0"}),
            ("transactions", 2, {}),
        ):
            code = await create_topic(connection, name, partitions, **settings)
            if code:
                raise Broken(f"topic {name} was not made: {ErrorCode(code).name}")
    finally:
        await connection.close()
