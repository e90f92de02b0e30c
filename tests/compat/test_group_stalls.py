"""What compat-tests/groups takes for a machine that was too busy, and what it does not excuse."""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "compat-tests" / "groups"))

from oracle import ASSIGNED, HANDLED, Event, Fate, faults
from stalls import BROKER, DRIVER, Stall, Watch, excused, overload

LIMIT_S = 7.5


def test_who_has_all_its_turns_is_judged() -> None:
    assert overload([], LIMIT_S) is None
    assert overload([Stall("a", 10, 13), Stall(DRIVER, 20, 22)], LIMIT_S) is None


def test_a_member_without_a_turn_for_its_session_is_not_judged() -> None:
    assert overload([Stall("a", 10, 18), Stall("b", 10, 12)], LIMIT_S) == "a had no turn for 8.0 s"


def test_a_member_and_the_broker_may_share_the_time() -> None:
    stalls = [Stall("a", 10, 14), Stall(BROKER, 13.5, 18)]
    assert overload(stalls, LIMIT_S) == "a had no turn for 4.0 s and the broker had no turn for 4.5 s"


def test_a_broker_that_is_late_alone_is_not_excused() -> None:
    """Nobody else waited for a turn: it is the broker that is slow."""
    stalls = [Stall(BROKER, 13, 33), Stall("a", 40, 42)]
    assert excused(stalls) == [Stall("a", 40, 42)]
    assert overload(stalls, LIMIT_S) is None


@pytest.mark.parametrize(("stalled_s", "is_fault"), [(0.0, True), (2.0, False)])
def test_a_commit_may_be_as_late_as_its_member_was(stalled_s: float, is_fault: bool) -> None:
    events = [
        Event(1, "a", ASSIGNED, (0,)),
        Event(2, "a", HANDLED, handled=(0, 0, 4)),
        Event(16, "b", ASSIGNED, (0,)),
        Event(17, "b", HANDLED, handled=(0, 0, 4)),
    ]
    fates = {"a": Fate(crashed_at=6.0, free_at=15.0), "b": Fate()}
    assert bool(faults(events, fates, {0: 5}, stalled_s)) is is_fault


def test_the_watch_tells_of_a_broker_that_answers_late() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asked, told = threading.Event(), threading.Event()

        def answer_late() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                asked.set()
                told.wait(10)
                connection.sendall(b"\0\0\0\4\0\0\0\1")
                connection.recv(1024)

        threading.Thread(target=answer_late, daemon=True).start()
        with Watch(f"127.0.0.1:{listener.getsockname()[1]}", late_s=0.0) as watch:
            assert asked.wait(10)
            began = time.monotonic()
            told.set()
            while not (late := [each for each in watch.stalls if each.who == BROKER]):
                assert time.monotonic() < began + 10
        assert late[0].begin <= began <= late[0].end
