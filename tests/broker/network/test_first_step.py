"""Coroutines that run at once up to their first wait, and go on in a task."""

from __future__ import annotations

import asyncio

import pytest

from broker.network.first_step import run_to_first_wait


async def test_what_never_waits_ends_within_the_call_and_has_no_task() -> None:
    said: list[str] = []

    async def speak() -> None:
        said.append("done")

    assert run_to_first_wait(speak(), asyncio.get_running_loop()) is None
    assert said == ["done"]


async def test_what_waits_goes_on_in_a_task_with_what_came_of_its_waits() -> None:
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()
    said: list[object] = []

    async def listen() -> None:
        said.append("started")
        said.append(await first)
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="no"):
            await second
        said.append("ended")

    task = run_to_first_wait(listen(), loop)
    assert task is not None
    assert said == ["started"]
    first.set_result(5)
    second.set_exception(ValueError("no"))
    await task
    assert said == ["started", 5, "ended"]


async def test_a_wait_that_ends_before_the_task_begins_is_not_missed() -> None:
    gate = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        await gate

    task = run_to_first_wait(wait(), asyncio.get_running_loop())
    assert task is not None
    gate.set_result(None)
    await asyncio.wait_for(task, 5)


async def test_several_that_are_run_in_one_turn_may_wait_for_the_same_future() -> None:
    loop = asyncio.get_running_loop()
    gate, said = loop.create_future(), []

    async def wait(name: str) -> None:
        said.append((name, await gate))

    plain = loop.create_task(wait("a task"))
    tasks = [plain, *(run_to_first_wait(wait(name), loop) for name in ("first", "second"))]
    await asyncio.sleep(0)
    gate.set_result(5)
    await asyncio.gather(*(task for task in tasks if task is not None))
    assert sorted(said) == [("a task", 5), ("first", 5), ("second", 5)]


async def test_a_failure_is_raised_where_it_happens() -> None:
    loop = asyncio.get_running_loop()

    async def fail_at_once() -> None:
        raise ValueError("at once")

    async def fail_later() -> None:
        await asyncio.sleep(0)
        raise ValueError("later")

    with pytest.raises(ValueError, match="at once"):
        run_to_first_wait(fail_at_once(), loop)
    task = run_to_first_wait(fail_later(), loop)
    assert task is not None
    with pytest.raises(ValueError, match="later"):
        await task


async def test_a_cancelled_task_cancels_what_it_runs() -> None:
    loop = asyncio.get_running_loop()
    gate, said = loop.create_future(), []

    async def wait() -> None:
        try:
            await gate
        except asyncio.CancelledError:
            said.append("cancelled")
            raise

    task = run_to_first_wait(wait(), loop)
    assert task is not None
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert said == ["cancelled"]
    assert gate.cancelled()


async def test_a_task_that_is_cancelled_before_it_begins_cancels_what_it_runs() -> None:
    loop = asyncio.get_running_loop()
    gate, said = loop.create_future(), []

    async def wait() -> None:
        try:
            await gate
        except asyncio.CancelledError:
            said.append("cancelled")
            await asyncio.sleep(0)
            said.append("tidied")
            raise

    task = run_to_first_wait(wait(), loop)
    assert task is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert said == ["cancelled", "tidied"]
