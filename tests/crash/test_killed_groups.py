"""Proof that `dev.py crash --workload groups` sees what a kill takes along."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.broker.disk_node import batch_positions
from tests.crash.group_campaign import plan_of, run_groups
from tests.crash.socket_transport import SocketTransport

KILLS = 4


def test_lost_writes_of_group_coordinators_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kill takes the newer half of the groups' log along: commits, and members that had been let in."""
    kill = SocketTransport._kill

    async def kill_and_lose(transport: SocketTransport) -> None:
        await kill(transport)
        for path in transport.node.data.glob("__consumer_offsets-*/*.log"):
            if positions := batch_positions(path):
                path.write_bytes(path.read_bytes()[: positions[len(positions) // 2]])

    monkeypatch.setattr(SocketTransport, "_kill", kill_and_lose)
    with pytest.raises(AssertionError, match=r"OffsetsKept|EpochsOnlyRise|NeverUnknownInTime"):
        asyncio.run(run_groups(tmp_path, plan_of(1, KILLS)))
