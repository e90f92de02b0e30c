"""The virtual loop: time jumps, order repeats, a deadlock is named."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from tests.simulation.virtual_loop import START_MS, Deadlock, VirtualLoop, run


def _trace(seed: int) -> tuple[list[tuple[int, int]], float]:
    trace: list[tuple[int, int]] = []

    async def sleeper(loop: VirtualLoop, name: int, chance: random.Random) -> None:
        for _ in range(50):
            await asyncio.sleep(chance.random() * 10)
            trace.append((name, loop.now_ms()))

    async def world(loop: VirtualLoop) -> float:
        chance = random.Random(seed)
        await asyncio.gather(*(sleeper(loop, name, chance) for name in range(20)))
        return loop.time()

    return trace, run(world)


def test_hours_of_virtual_time_take_no_time() -> None:
    async def world(loop: VirtualLoop) -> int:
        await asyncio.sleep(3600 * 24)
        return loop.now_ms()

    before = time.monotonic()
    assert run(world) == START_MS + 24 * 3_600_000
    assert time.monotonic() - before < 60


def test_one_seed_gives_one_trace() -> None:
    assert _trace(1) == _trace(1)
    assert _trace(1) != _trace(2)


def test_a_deadlock_is_named() -> None:
    async def world(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises(Deadlock, match="world"):
        run(world)


def test_executor_work_runs_inline() -> None:
    async def world(loop: VirtualLoop) -> int:
        return await loop.run_in_executor(None, lambda: 42)

    assert run(world) == 42
