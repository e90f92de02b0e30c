"""The log says each cause of a rebalance, and is not flooded by many at once."""

from __future__ import annotations

import logging

import pytest

from broker.clock import Clock
from broker.runtime.rebalance_log import GATHER_MS, RebalanceLog
from coordinator.group.settlement import GroupEvent
from coordinator.machine import Event
from tests.simulation.virtual_loop import VirtualLoop, run


def event(text: str, group: str = "g", *, is_progress: bool = False) -> GroupEvent:
    return GroupEvent(f"group {group}: {text}", group, 0, is_progress)


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "broker.runtime.rebalance_log")


def test_the_first_cause_is_said_at_once_and_progress_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        log = RebalanceLog(Clock(loop.now_ms, loop))
        log.note([event("a rebalance begins: member a joined"), event("generation 1 begins", is_progress=True)])
        log.note([event("a rebalance begins: member x joined", "h")])
        assert caplog.messages == [
            "group g: a rebalance begins: member a joined",
            "group h: a rebalance begins: member x joined",
        ]

    run(main)


def test_a_few_more_are_said_a_second_later_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        clock = Clock(loop.now_ms, loop)
        log = RebalanceLog(clock)
        log.note([event("member a joined"), event("member b joined"), event("member c joined")])
        assert caplog.messages == ["group g: member a joined"]
        await clock.sleep(GATHER_MS + 1)
        assert caplog.messages[1:] == ["group g: member b joined", "group g: member c joined"]

    run(main)


def test_twenty_at_once_are_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        clock = Clock(loop.now_ms, loop)
        log = RebalanceLog(clock)
        log.note([event(f"member {number} joined") for number in range(20)])
        await clock.sleep(GATHER_MS + 1)
        assert caplog.messages == [
            "group g: member 0 joined",
            "group g: 19 more changes within 1 s, the last: member 19 joined",
        ]

    run(main)


def test_a_group_that_never_rests_is_a_line_a_second(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        clock = Clock(loop.now_ms, loop)
        log = RebalanceLog(clock)
        for number in range(500):
            log.note([event(f"member {number} joined")])
            await clock.sleep(10)
        log.close()
        assert len(caplog.messages) == 6

    run(main)


def test_a_group_that_rests_is_said_at_once_again_and_needs_no_timer(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        clock = Clock(loop.now_ms, loop)
        log = RebalanceLog(clock)
        log.note([event("member a joined")])
        await clock.sleep(GATHER_MS + 1)
        assert clock.pending_timers == 0
        log.note([event("member a left")])
        assert caplog.messages == ["group g: member a joined", "group g: member a left"]

    run(main)


def test_what_is_gathered_is_said_when_the_node_stops(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        clock = Clock(loop.now_ms, loop)
        log = RebalanceLog(clock)
        log.note([event("member a joined"), event("member b joined")])
        log.close()
        assert caplog.messages == ["group g: member a joined", "group g: member b joined"]
        assert clock.pending_timers == 0

    run(main)


def test_names_cannot_write_lines_or_move_the_cursor(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        log = RebalanceLog(Clock(loop.now_ms, loop))
        log.note([event("member a\nERROR: x\x1b[2J é joined")])
        assert caplog.messages == ["group g: member a\\nERROR: x\\x1b[2J é joined"]

    run(main)


def test_what_is_of_no_group_is_for_those_who_debug(caplog: pytest.LogCaptureFixture) -> None:
    async def main(loop: VirtualLoop) -> None:
        RebalanceLog(Clock(loop.now_ms, loop)).note([Event("something")])
        assert caplog.messages == []

    run(main)
