"""What a node's process says of faults that reach nobody else."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from broker.process import report_fault


async def test_a_fault_that_nobody_awaited_is_a_line_that_names_it_and_where_it_came_from(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(report_fault)

    async def fail_alone() -> None:
        raise ValueError("nobody sees this")

    task = loop.create_task(fail_alone())
    await asyncio.wait([task])
    del task
    gc.collect()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "Task exception was never retrieved: ValueError: nobody sees this"
    assert record.exc_info is not None
    assert "in fail_alone" in caplog.text


def test_a_fault_without_an_exception_names_what_it_is_about(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    report_fault(loop, {"message": "Task was destroyed but it is pending!", "task": "<Task pending>"})
    loop.close()
    assert [record.getMessage() for record in caplog.records] == [
        "Task was destroyed but it is pending! '<Task pending>'"
    ]


def test_a_client_whose_host_is_gone_is_no_fault_of_the_node(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    report_fault(
        loop,
        {"message": "Fatal error on transport TCPTransport", "exception": TimeoutError(110, "gone"), "transport": 1},
    )
    loop.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
