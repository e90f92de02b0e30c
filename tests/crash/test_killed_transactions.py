"""A few kills of `dev.py crash --workload transactions`, and proof that its invariants see a loss."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from tests.broker.disk_node import batch_positions
from tests.crash.requests import Broken
from tests.crash.socket_transport import SocketTransport
from tests.crash.transaction_campaign import plan_of, run_transaction_campaigns, run_transactions

KILLS = 3


def test_transactions_hold_over_kills(tmp_path: Path) -> None:
    seed = Random().randrange(1 << 32)
    told: list[str] = []
    try:
        asyncio.run(run_transaction_campaigns(tmp_path, KILLS, seed, told.append))
    except Broken as broken:
        command = f"dev.py crash --workload transactions --cycles {KILLS} --seed {seed}"
        pytest.fail(f"{command}: {broken}\n" + "\n".join(told), pytrace=False)
    assert " committed" in told[0]


def test_lost_ends_of_transactions_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kill takes the newest batches of a partition along."""
    kill = SocketTransport._kill

    async def kill_and_lose(transport: SocketTransport) -> None:
        await kill(transport)
        for path in (transport.node.data / "out-0").glob("*.log"):
            path.write_bytes(path.read_bytes()[: batch_positions(path)[-3]])

    monkeypatch.setattr(SocketTransport, "_kill", kill_and_lose)
    # What is missing shows as a gap in a producer's sequence already, where it is not read first.
    with pytest.raises(AssertionError, match=r"StablePast|SumKept|CommittedOnceInOrder|OUT_OF_ORDER_SEQUENCE_NUMBER"):
        asyncio.run(run_transactions(tmp_path, plan_of(1, KILLS)))
