"""Rounds of load, kill, damage, restart, check, over one directory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from odradek.failure import Failure
from odradek.launcher import post
from tests.crash.administration import Committer, Member, TopicMaker
from tests.crash.connection import Lost
from tests.crash.damage import damage
from tests.crash.node import Node
from tests.crash.requests import Broken
from tests.crash.soundness import require_sound
from tests.crash.writers import IdempotentWriter, StateWriter, TransactionalWriter, Worker, make_topics

LOAD_S = 1.5
"""The longest a round of load lasts."""
SAID_LINES_MAX = 40
"""Of what a node has complained of: enough for a traceback."""
ROUNDS_PER_DIRECTORY = 25
"""Everything ever written is read at each check: a new directory keeps that in bounds."""


class Campaign:
    """One directory and everyone who uses it."""

    def __init__(self, home: Path, chance: Random, tell: Callable[[str], None]) -> None:
        self.node = Node(home)
        self._chance = chance
        self._tell = tell
        self._idempotent = [
            IdempotentWriter("idempotent", partition, Random(chance.random())) for partition in range(3)
        ]
        self._transactions = TransactionalWriter("transactions", "writer", Random(chance.random()))
        self._state = StateWriter("state", Random(chance.random()))
        self._committer, self._member = Committer(), Member()
        self._topics = TopicMaker(Random(chance.random()))
        self._workers: list[Worker] = [
            *self._idempotent,
            self._transactions,
            self._state,
            self._committer,
            self._member,
            self._topics,
        ]
        self._is_new = True

    async def run(self, rounds: int) -> None:
        """So many kills, then a clean stop, and a look at the files. Raises Broken."""
        try:
            for number in range(1, rounds + 1):
                await self._round(number)
            await self._start_and_check()
            for writer in self._idempotent:
                await writer.finish(self.node.port)
                await writer.check(self.node.port)
            await self.node.stop()
        finally:
            await self.node.end()
        require_sound(self.node.data)
        self._complain()

    async def _round(self, number: int) -> None:
        """Start and check, load, kill; at times in the middle of a start, at times a clean stop instead."""
        began = time.monotonic()
        if self._chance.random() < 0.2 and not self._is_new:
            await self.node.spawn()
            await asyncio.sleep(self._chance.uniform(0.05, 0.8))
            await self.node.kill()
        control_url = await self._start_and_check()
        load = asyncio.ensure_future(self._load(control_url))
        await asyncio.wait([load], timeout=self._chance.uniform(0.05, LOAD_S))
        stops = self._chance.random() < 0.1
        if not load.done():
            await (self.node.stop() if stops else self.node.kill())
        await load  # raises what did not hold while the node lived
        done = [] if stops else damage(self.node.data, self._chance)
        if stops:
            require_sound(self.node.data)
        self._complain()
        self._tell(
            f"{number:3} {'stopped' if stops else 'killed '} {time.monotonic() - began:4.1f} s  "
            f"{sum(each.acknowledged for each in self._idempotent):6} records, "
            f"{len(self._transactions.committed):4} transactions, {self._state.number:5} states, "
            f"offsets {self._committer.offsets.acknowledged} and {self._member.offsets.acknowledged}, "
            f"{self._topics.number} topics{'; ' * bool(done)}{', '.join(done)}"
        )

    async def _start_and_check(self) -> str:
        control_url = await self.node.start()
        if self._is_new:
            await make_topics(self.node.port)
            self._is_new = False
        for worker in self._workers:
            await worker.check(self.node.port)
        return control_url

    async def _load(self, control_url: str) -> None:
        """Everyone at once, until the node is gone."""
        tasks = [asyncio.ensure_future(worker.work(self.node.port)) for worker in self._workers]
        tasks.append(asyncio.ensure_future(self._compact(control_url)))
        try:
            for ended in asyncio.as_completed(tasks):
                try:
                    await ended
                except Lost:
                    continue
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _compact(self, control_url: str) -> None:
        """Compaction and retention at once, besides the cleaner's own schedule."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.05, 0.5))
            try:
                for action in ("compact", "retention"):
                    await asyncio.to_thread(post, control_url, action, 60.0, topic="state")
            except Failure as failure:
                if any(words in str(failure) for words in ("does not answer", "starting or stopping")):
                    raise Lost(str(failure)) from failure
                raise Broken(str(failure)) from failure
            except ValueError as error:  # an answer that was cut off
                raise Lost(str(error)) from error

    def _complain(self) -> None:
        """The node has nothing to say of all this."""
        said = self.node.complaints()
        if said:
            raise Broken("\n".join(("the node complained:", *said[-SAID_LINES_MAX:])))


async def run_campaigns(home: Path, cycles: int, seed: int, tell: Callable[[str], None]) -> None:
    """`cycles` kills in all, in a new directory now and then. Raises Broken."""
    chance = Random(seed)
    place = 0
    while cycles > 0:
        place += 1
        directory = home / str(place)
        directory.mkdir()
        rounds = min(cycles, ROUNDS_PER_DIRECTORY)
        await Campaign(directory, Random(chance.random()), tell).run(rounds)
        cycles -= rounds
