"""A sample of the transaction simulation, and proof that it sees what it is there to see.

A failing seed is repeated by `python3 dev.py simulate --workload transactions --seed N`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.runtime.marker_sender import MarkerSender
from broker.storage.log import Log
from broker.storage.producer_state import ProducerState
from coordinator.group.offset_store import OffsetStore
from coordinator.transaction.shard import TransactionShard
from tests.simulation.transactions import Plan, simulate

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30.0


def run_seeds(first: int, count: int) -> str:
    command = [sys.executable, "-m", "tests.simulation.transactions", "--seed", str(first), "--seeds", str(count)]
    done = subprocess.run(
        [*command, "--seconds", str(SECONDS)], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("first", [1, 13])
def test_invariants_hold_for_a_sample_of_seeds(first: int) -> None:
    said = run_seeds(first, 12)
    assert said.count(" committed") == 12


def test_a_seed_does_the_same_every_time() -> None:
    assert run_seeds(7, 1) == run_seeds(7, 1)


# --- broken nodes ---------------------------------------------------------------------------------


def readers_see_open_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "last_stable_offset", property(lambda log: log.high_watermark))


def aborts_are_not_told_to_readers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "aborted_transactions", lambda *_, **__: [])


def duplicates_are_not_recognised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerState, "find_duplicate", lambda *_: None)


def pending_offsets_count_at_once(patch: pytest.MonkeyPatch) -> None:
    def at_once(store: OffsetStore, key: Any, value: Any, offset: int, _producer_id: int) -> None:
        store.replay_commit(key, value, offset)

    patch.setattr(OffsetStore, "replay_pending", at_once)


def a_partition_gets_no_marker(patch: pytest.MonkeyPatch) -> None:
    whole: Callable[..., dict[int, list[Any]]] = MarkerSender._by_leader

    def some(sender: MarkerSender, partitions: list[Any]) -> dict[int, list[Any]]:
        return {broker: led[:-1] if len(led) > 1 else led for broker, led in whole(sender, partitions).items()}

    patch.setattr(MarkerSender, "_by_leader", some)


def transactions_never_time_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionShard, "_timed_out", lambda *_: iter(()))


LOSSY_SEED = 19
"""Of a run in which answers are lost, but the node never dies."""


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (readers_see_open_transactions, "StablePast"),
        (aborts_are_not_told_to_readers, "AbortedNever"),
        (duplicates_are_not_recognised, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (pending_offsets_count_at_once, "SumKept"),
        (a_partition_gets_no_marker, "NoStuckOffset"),
        (transactions_never_time_out, "NoStuckOffset"),
    ],
)
def test_a_broken_node_is_found_out(
    break_it: Callable[[pytest.MonkeyPatch], None], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    with pytest.raises(AssertionError, match=what):
        simulate(Plan.of_seed(LOSSY_SEED, SECONDS))
