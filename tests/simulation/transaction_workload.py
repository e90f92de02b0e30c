"""Who works with transactions: random producers, zombies, processors, readers, and a node that goes down.

It runs over any transport: a node in virtual time (`transactions`), or a process (`tests/crash`). After the
load all must come to rest, and the invariants of `transaction_history` must hold.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.simulation.transaction_clients import (
    CommittedReader,
    Fenced,
    GaveUp,
    Sender,
    TransactionalProducer,
    World,
    committed_offset,
)
from tests.simulation.transaction_history import (
    Partition,
    check_order,
    check_stable_past,
    check_sum,
)
from tests.simulation.transport import Transport
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.list_transactions import ListTransactionsRequest
from wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

DATA: list[Partition] = [("data", index) for index in range(3)]
INPUT: list[Partition] = [("in", index) for index in range(2)]
OUTPUT: list[Partition] = [("out", index) for index in range(2)]
GROUP = "processors"
QUIET_S = 100.0
"""Longer than any transaction timeout here and the coordinator's next look at it."""
NEWEST_TRANSACTION_VERSION = 2
SAFE_DOWNGRADE = 2
AT_REST = ("Empty", "CompleteCommit", "CompleteAbort")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run consists of; drawn from its seed."""

    seed: int
    duration_s: float
    transactional_ids: int
    zombies: float
    """How often an instance goes on after another has taken its place."""
    loss: float
    deaths: int
    power_loss: bool
    """Deaths take what was not synced; the node then syncs before it acknowledges."""
    transaction_version: int
    """The finalized level of that feature; below 2 no producer bumps its epoch at each end."""

    @classmethod
    def of_seed(cls, seed: int, duration_s: float = 60.0) -> Plan:
        """The plan of a seed."""
        random = Random(seed)
        return cls(
            seed=seed,
            duration_s=duration_s,
            transactional_ids=random.choice([1, 2, 4]),
            zombies=random.choice([0.0, 0.2, 0.5]),
            loss=random.choice([0.0, 0.01, 0.05]),
            deaths=random.choice([0, 2, 6]),
            power_loss=random.random() < 0.3,
            transaction_version=random.choice([1, 2, 2]),
        )


class Gone(Exception):
    """A client's process has ended in the middle of its work."""


@dataclass(slots=True)
class Report:
    """What a run came to."""

    plan: Plan
    trace: list[str]
    outcomes: Counter[str]
    transformed: int
    starts: int

    @property
    def fingerprint(self) -> str:
        """Equal for two runs that did the same at the same moments."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return f"seed {self.plan.seed}: {outcomes} transactions, {self.transformed} transformed, {self.starts} starts"


class Workload:
    """One run over a transport."""

    def __init__(self, transport: Transport, plan: Plan, *, pace: float = 1.0) -> None:
        """`pace` is how many seconds of the transport a second of the plan takes."""
        self.plan = plan
        self.random = Random(plan.seed)
        self.node = transport
        self.world = World(transport, self.random, loss=plan.loss, pace=pace)
        self.seen: dict[Partition, dict[int, bytes]] = {}
        self.seen_until: dict[Partition, int] = {}
        self._is_over = False
        self._tasks: list[asyncio.Task[Any]] = []

    # --- the run ------------------------------------------------------------------------------

    async def run(self) -> Report:
        """Load, death, rest, checks."""
        await self.node.start()
        await self._create_topics()
        await self._finalize_version()
        self._spawn_all()
        await self._load()
        await self._come_to_rest()
        transformed = await self._check()
        await self.node.stop()
        outcomes = Counter(each.outcome.value for each in self.world.history.transactions.values())
        return Report(self.plan, self.world.trace, outcomes, transformed, self.node.starts)

    async def _load(self) -> None:
        """Until the time is over and every client has come to its end. The first failure ends it all."""
        asyncio.get_running_loop().call_later(self.plan.duration_s * self.world.pace, self._end_load)
        while running := [task for task in self._tasks if not task.done()]:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def _come_to_rest(self) -> None:
        """Until what was late is there, and no id is busy with a transaction: nothing can change any more."""
        await asyncio.gather(*self.world.late)
        self.world.loss = 0.0
        until = self.node.time() + QUIET_S * self.world.pace
        client = self.node.client()
        while True:
            listed = await client.call(ListTransactionsRequest(), 2)
            assert not listed.error_code
            busy = {
                each.transactional_id: each.transaction_state
                for each in listed.transaction_states
                if each.transaction_state not in AT_REST
            }
            if not busy:
                return
            assert self.node.time() < until, f"NoStuckOffset: {busy}"
            await self.world.sleep(1)

    def _end_load(self) -> None:
        self._is_over = True

    async def _create_topics(self) -> None:
        topics = [
            CreatableTopic(name=partitions[0][0], num_partitions=len(partitions), replication_factor=1)
            for partitions in (DATA, INPUT, OUTPUT)
        ]
        client = self.node.client()
        answer = await client.call(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
        assert not any(topic.error_code for topic in answer.topics), answer
        # Looking for its coordinator makes the topic of groups.
        await client.call(FindCoordinatorRequest(coordinator_keys=[GROUP], key_type=0), 4)

    async def _finalize_version(self) -> None:
        """The node begins with the highest level."""
        if self.plan.transaction_version == NEWEST_TRANSACTION_VERSION:
            return
        update = FeatureUpdateKey(
            feature="transaction.version", max_version_level=self.plan.transaction_version, upgrade_type=SAFE_DOWNGRADE
        )
        answer = await self.node.client().call(UpdateFeaturesRequest(feature_updates=[update]), 2)
        assert not answer.error_code, answer

    def _bumps(self, share: float) -> bool:
        """Whether a new instance speaks the protocol that bumps epochs, as a share of them do where it is finalized."""
        return self.random.random() < share and self.plan.transaction_version == NEWEST_TRANSACTION_VERSION

    def _spawn_all(self) -> None:
        for number in range(self.plan.transactional_ids):
            self._spawn(self._live(f"x{number}"), f"x{number}")
        for number in range(2):
            self._spawn(self._write_plainly(f"plain{number}"), f"plain{number}")
        for place, partition in enumerate(INPUT):
            self._spawn(self._process(partition, OUTPUT[place], f"p{place}"), f"p{place}")
            if self.plan.zombies:
                self._spawn(self._process(partition, OUTPUT[place], f"p{place}"), f"p{place}-rival")
        for partition in (DATA[0], OUTPUT[0]):
            self._spawn(self._observe(partition), f"reader of {partition}")
        self._spawn(self._nemesis(), "nemesis")

    def _spawn(self, coroutine: Any, name: str) -> None:
        self._tasks.append(self.node.spawn(coroutine, name))

    async def _pause(self) -> None:
        await self.world.sleep(self.random.choice([0.01, 0.1, 0.5]))

    # --- producers ----------------------------------------------------------------------------

    async def _live(self, transactional_id: str) -> None:
        """One instance after the other; some go on although another has taken over."""
        while not self._is_over:
            producer = TransactionalProducer(
                self.world,
                transactional_id,
                bumps=self._bumps(0.6),
                timeout_ms=self.random.choice([5_000, 60_000]),
            )
            goes_on = await self._work(producer, self.random.randint(1, 8), opens=True)
            if goes_on and self.random.random() < self.plan.zombies:
                self._spawn(self._work(producer, self.random.randint(1, 4)), "zombie")

    async def _work(self, producer: TransactionalProducer, transactions: int, *, opens: bool = False) -> bool:
        """Some transactions; False if the process is gone for good."""
        try:
            if opens:
                await producer.open()
            for _ in range(transactions):
                if self._is_over:
                    break
                await self._transact(producer)
                await self._pause()
        except Fenced:
            self.world.note(f"{producer.name} is fenced")
        except Gone:
            return False
        return True

    async def _transact(self, producer: TransactionalProducer) -> None:
        random = self.random
        transaction = producer.begin()
        commit, is_in_doubt = random.random() < 0.7, False
        try:
            for _ in range(random.randint(0, 4)):
                attempts = 2 if random.random() < 0.1 else None
                await producer.write(transaction, random.choice(DATA), [b""] * random.randint(1, 3), attempts)
                if random.random() < 0.04:
                    await self.world.sleep(random.choice([4, 12, 30]))
            if random.random() < 0.05:
                # The process hangs. If it is gone for good, nobody but the coordinator ends its transaction.
                await self.world.sleep(random.choice([5, 70]))
                if random.random() < 0.5:
                    raise Gone
        except GaveUp:
            commit, is_in_doubt = False, True
        await producer.end(transaction, commit=commit and bool(transaction.values))
        if is_in_doubt:
            await producer.recover()

    async def _write_plainly(self, name: str) -> None:
        """An idempotent producer between the transactions."""
        sender = Sender(self.world, None)
        await sender.init()
        number = 0
        while not self._is_over:
            partition = self.random.choice(DATA + INPUT)
            values = [f"{name}/{number}#{index}|".encode() for index in range(self.random.randint(1, 3))]
            number += 1
            plain = self.world.history.plain
            plain |= dict.fromkeys(values, False)
            await sender.send(partition, values, 12)
            plain |= dict.fromkeys(values, True)
            await self._pause()

    # --- consume, transform, produce ----------------------------------------------------------

    async def _process(self, source: Partition, target: Partition, transactional_id: str) -> None:
        """Copy committed inputs with their offsets; whoever is fenced begins anew, as a new instance."""
        while not self._is_over:
            producer = TransactionalProducer(self.world, transactional_id, bumps=self._bumps(0.7), timeout_ms=10_000)
            try:
                await producer.open()
                await self._copy(producer, source, target)
            except Fenced:
                await self.world.sleep(self.random.choice([0.1, 1, 3]))

    async def _copy(self, producer: TransactionalProducer, source: Partition, target: Partition) -> None:
        position = await committed_offset(self.world, producer.client, GROUP, source)
        reader = CommittedReader(self.world, source, position)
        for _ in range(self.random.randint(3, 15)):
            if self._is_over:
                return
            records = await reader.poll()
            if not records:
                await self._pause()
                continue
            transaction = producer.begin()
            await producer.write(transaction, target, [value for _, value in records])
            await producer.commit_offset(GROUP, source, reader.position)
            commit = self.random.random() < 0.8
            await producer.end(transaction, commit=commit)
            if not commit:
                return

    async def _observe(self, partition: Partition) -> None:
        reader = CommittedReader(self.world, partition)
        seen = self.seen[partition] = {}
        while not self._is_over:
            seen.update(await reader.poll())
            self.seen_until[partition] = reader.position
            assert reader.last_stable_offset <= reader.high_watermark
            await self.world.sleep(self.random.choice([0.05, 0.3]))

    # --- death --------------------------------------------------------------------------------

    async def _nemesis(self) -> None:
        for _ in range(self.plan.deaths):
            await self.world.sleep(self.random.uniform(0, self.plan.duration_s / (self.plan.deaths + 1)))
            if self._is_over:
                return
            await self.node.go_down(self.random, self.world.note)
            await self.world.sleep(self.random.choice([0, 0.5, 5]))
            await self.node.start()
            self.world.note("the node is back")

    # --- checks -------------------------------------------------------------------------------

    async def _check(self) -> int:
        """All invariants; returns how many inputs were transformed."""
        final: dict[Partition, dict[int, bytes]] = {}
        for partition in DATA + INPUT + OUTPUT:
            reader = CommittedReader(self.world, partition)
            final[partition] = dict(await reader.poll_to_end())
            assert reader.position == reader.last_stable_offset == reader.high_watermark, (
                f"NoStuckOffset: {partition} is read up to {reader.position}, its last stable offset is "
                f"{reader.last_stable_offset} of {reader.high_watermark}"
            )
        read = {partition: list(values.values()) for partition, values in final.items()}
        self.world.history.check_committed(read)
        check_order({partition: read[partition] for partition in DATA + INPUT})
        check_stable_past(self.seen, final, self.seen_until)
        return await self._check_sum(final)

    async def _check_sum(self, final: dict[Partition, dict[int, bytes]]) -> int:
        transformed = 0
        for source, target in zip(INPUT, OUTPUT, strict=True):
            until = await committed_offset(self.world, self.node.client(), GROUP, source)
            inputs = [value for offset, value in final[source].items() if offset < until]
            outputs = [value.partition(b"|")[2] for value in final[target].values()]
            check_sum(inputs, outputs, f"{source} to {target}")
            transformed += len(inputs)
        return transformed
