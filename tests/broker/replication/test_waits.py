"""Requests that wait on partitions: who is woken, by what, and that nothing is left behind."""

from __future__ import annotations

import asyncio

from broker.clock import Clock
from broker.replication.waits import FetchIsolation, FetchWait, FetchWaits, OffsetWait, OffsetWaits
from wire.errors import ErrorCode

HW = FetchIsolation.HIGH_WATERMARK


class Grown:
    """A partition of records of ten bytes, in segments of `segment_records`."""

    def __init__(self, end: int = 0, segment_records: int = 10**9) -> None:
        self.end = end
        self.committed = end
        self.segment_records = segment_records
        self.waits = FetchWaits()
        self.times_asked = 0

    def fetch_limit(self, isolation: FetchIsolation) -> int:
        self.times_asked += 1
        return self.end if isolation is FetchIsolation.LOG_END else self.committed

    def readable_bytes(self, from_offset: int, to_offset: int) -> int | None:
        if from_offset // self.segment_records != to_offset // self.segment_records:
            return None
        return (to_offset - from_offset) * 10

    def grow(self, to: int, *, committed: bool = True) -> None:
        self.end = to
        if committed:
            self.committed = to
        self.waits.changed(self)


def waiting_fetch(clock: Clock, *partitions: Grown, min_bytes: int = 1, max_bytes: int = 1000) -> FetchWait:
    wait = FetchWait(clock, missing_bytes=min_bytes)
    for partition in partitions:
        wait.watch(partition.waits, HW, fetch_offset=partition.end, max_bytes=max_bytes, counted_bytes=0)
    return wait


async def ends(wait: FetchWait, max_wait_ms: int = 60_000) -> asyncio.Task[bool]:
    task = asyncio.create_task(wait.wait(max_wait_ms))
    await asyncio.sleep(0)
    return task


async def test_a_fetch_wakes_at_its_min_bytes_over_all_its_partitions() -> None:
    clock, a, b = Clock(), Grown(5), Grown(7)
    task = await ends(waiting_fetch(clock, a, b, min_bytes=50))
    a.grow(7)  # 20 bytes
    b.grow(9)  # 20 bytes
    a.grow(7)  # the same again counts once
    await asyncio.sleep(0)
    assert not task.done()
    b.grow(10)
    assert await task
    assert (len(a.waits), len(b.waits)) == (0, 0)
    clock.close()


async def test_a_partition_counts_no_more_than_its_own_limit() -> None:
    clock, a, b = Clock(), Grown(), Grown()
    task = await ends(waiting_fetch(clock, a, b, min_bytes=50, max_bytes=30))
    a.grow(100)
    await asyncio.sleep(0)
    assert not task.done(), "only 30 bytes of it fit the answer"
    b.grow(2)
    assert await task
    clock.close()


async def test_the_end_of_its_time_ends_a_fetch_and_leaves_nothing() -> None:
    clock, a = Clock(), Grown()
    task = await ends(waiting_fetch(clock, a), max_wait_ms=60_000)
    clock.move(50_000)
    await asyncio.sleep(0)
    assert not task.done()
    clock.move(10_000)
    assert not await task
    assert len(a.waits) == 0
    clock.close()


async def test_consumers_sleep_on_what_is_not_committed() -> None:
    clock, a = Clock(), Grown()
    consumer = await ends(waiting_fetch(clock, a))
    follower_wait = FetchWait(clock, missing_bytes=1)
    follower_wait.watch(a.waits, FetchIsolation.LOG_END, fetch_offset=0, max_bytes=10, counted_bytes=0)
    follower = await ends(follower_wait)
    a.grow(1, committed=False)
    assert await follower
    assert not consumer.done()
    a.grow(1)
    assert await consumer
    clock.close()


async def test_a_newer_segment_or_a_truncation_wakes_whatever_the_bytes() -> None:
    clock = Clock()
    rolled, truncated = Grown(5, segment_records=10), Grown(5)
    first = await ends(waiting_fetch(clock, rolled, min_bytes=10**6))
    second = await ends(waiting_fetch(clock, truncated, min_bytes=10**6))
    rolled.grow(11)
    truncated.grow(3)
    assert await first
    assert await second
    clock.close()


async def test_only_who_waits_on_the_partition_is_looked_at() -> None:
    clock = Clock()
    partitions = [Grown() for _ in range(1000)]
    tasks = [await ends(waiting_fetch(clock, partition)) for partition in partitions]
    partitions[0].grow(1)
    assert await tasks[0]
    assert [partition.times_asked for partition in partitions[1:]] == [0] * 999
    assert len(clock._heap) <= 1000, "a timer per request, none per partition"
    for partition in partitions:
        partition.waits.wake_all()
    assert all(await asyncio.gather(*tasks))
    clock.close()


async def test_a_cancelled_fetch_is_forgotten() -> None:
    clock, a = Clock(), Grown()
    task = await ends(waiting_fetch(clock, a))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(a.waits) == 0
    assert not clock._heap
    clock.close()


async def test_acks_wait_for_every_partition_and_tell_each_its_outcome() -> None:
    clock, a, b, c = Clock(), OffsetWaits(), OffsetWaits(), OffsetWaits()
    wait: OffsetWait[str] = OffsetWait(clock)
    for waits, offset, key in ((a, 5, "a"), (b, 7, "b"), (c, 9, "c")):
        wait.expect(waits, offset, key)
    task = asyncio.create_task(wait.wait(1000))
    a.reached(4)
    a.reached(6)
    b.reached(7, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    await asyncio.sleep(0)
    assert not task.done()
    c.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    await task
    assert wait.outcomes == {
        "a": ErrorCode.NONE,
        "b": ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        "c": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
    assert (len(a), len(b), len(c)) == (0, 0, 0)
    clock.close()


async def test_what_is_not_reached_in_time_is_missing_from_the_outcomes() -> None:
    clock, a, b = Clock(), OffsetWaits(), OffsetWaits()
    wait: OffsetWait[str] = OffsetWait(clock)
    wait.expect(a, 1, "a")
    wait.expect(b, 1, "b")
    task = asyncio.create_task(wait.wait(1000))
    await asyncio.sleep(0)
    a.reached(1)
    clock.move(1000)
    await task
    assert wait.outcomes == {"a": ErrorCode.NONE}
    assert len(b) == 0
    clock.close()
