"""A few rounds of `dev.py crash`: whatever a node under load has promised holds when it was killed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.broker.disk_node import flip_bit
from tests.crash.administration import Committer
from tests.crash.campaign import run_campaigns
from tests.crash.node import Node
from tests.crash.requests import Broken
from tests.crash.soundness import require_sound
from tests.crash.writers import IdempotentWriter, TransactionalWriter, Worker, make_topics

CYCLES = 5
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "log_directories" / "stopped"


def test_what_was_promised_holds_over_kills(tmp_path: Path) -> None:
    seed = Random().randrange(1 << 32)
    told: list[str] = []
    try:
        asyncio.run(run_campaigns(tmp_path, CYCLES, seed, told.append))
    except Broken as broken:
        pytest.fail(f"dev.py crash --cycles {CYCLES} --seed {seed}: {broken}\n" + "\n".join(told), pytrace=False)
    assert len(told) == CYCLES


def half_of_the_records(data: Path) -> None:
    for path in (data / "idempotent-0").glob("*.log"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def the_committed_offsets(data: Path) -> None:
    for directory in data.glob("__consumer_offsets-*"):
        for path in directory.glob("*.log"):
            path.write_bytes(b"")


def the_transactions(data: Path) -> None:
    """All of each: one whose end alone is gone stays open for ever."""
    for directory in data.glob("transactions-*"):
        for path in directory.glob("*.log"):
            path.write_bytes(b"")


@pytest.mark.parametrize(
    ("lose", "said"),
    [
        (half_of_the_records, "has lost acknowledged records"),
        (the_committed_offsets, "group alone is at 0"),
        (the_transactions, "has lost committed transactions"),
    ],
)
def test_a_promise_that_does_not_hold_is_noticed(tmp_path: Path, lose: Callable[[Path], None], said: str) -> None:
    """The checks themselves: what was acknowledged is taken out of the logs of a node that was killed."""

    async def lose_and_check() -> None:
        node = Node(tmp_path)
        chance = Random(1)
        writer = TransactionalWriter("transactions", "writer", chance)
        workers: list[Worker] = [IdempotentWriter("idempotent", 0, chance), Committer(), writer]
        try:
            await node.start()
            await make_topics(node.port)
            tasks = [asyncio.ensure_future(worker.work(node.port)) for worker in workers]
            async with asyncio.timeout(60):
                while len(writer.committed) < 3:
                    ended, _ = await asyncio.wait(tasks, timeout=0.05)
                    for task in ended:
                        task.result()  # raises why it could not go on
            await node.kill()
            await asyncio.gather(*tasks, return_exceptions=True)
            lose(node.data)
            await node.start()
            for worker in workers:
                await worker.check(node.port)
        finally:
            await node.end()

    with pytest.raises(Broken, match=said):
        asyncio.run(lose_and_check())


def test_the_look_at_the_files_finds_what_is_not_sound(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(GOLDEN, data, ignore=lambda path, names: [name for name in names if not name.startswith("idem")]
                    if Path(path) == GOLDEN else [])  # fmt: skip
    shutil.copy(GOLDEN / "meta.properties", data)
    flip_bit(data / "idempotent-0" / f"{0:020d}.log", 80)
    with pytest.raises(Broken, match="CORRUPT at position 0, offset 0"):
        require_sound(data)
