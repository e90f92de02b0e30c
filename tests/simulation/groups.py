"""Groups on a node in virtual time: members that come, go, stall and disobey, topics that change, a node that dies.

    python -m tests.simulation.groups --seed 7

A seed decides everything. The rules are those of `group_history`. The same workload runs against a process that is
killed: python3 dev.py crash --workload groups.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.simulation.group_administration import administrate, create_topic
from tests.simulation.group_assignor import COOPERATIVE
from tests.simulation.group_classic_member import ClassicMember
from tests.simulation.group_clients import SLACK_MS, STABLE_TOPICS, GroupWorld, check_committed, commit_simply
from tests.simulation.group_consumer_member import ConsumerMember
from tests.simulation.group_history import LATENCY_MS
from tests.simulation.group_member import Member
from tests.simulation.group_rest import check_gone, check_rest
from tests.simulation.seeds import on_a_node, run_seeds
from tests.simulation.simulated_node import SimulatedNode
from tests.simulation.transport import Transport
from wire.messages.find_coordinator import FindCoordinatorRequest

SECONDS = 90.0
SIMPLE_GROUP = "simple"
EAGER = (("range",), ("roundrobin", "range"), ("range", "roundrobin"), (COOPERATIVE, "range"))
KINDS = ("eager", "cooperative", "consumer", "mixed")
RETENTION_MS = 60_000
RETENTION_CHECK_MS = 5_000
CALM_S = 45.0
"""Within this much all come to rest: a session, a rebalance timeout, a session of an id that was given out, and
the steps that cooperative members take."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run consists of; drawn from its seed."""

    seed: int
    duration_s: float
    kinds: tuple[str, ...]
    slots: int
    """How many processes each group has at a time."""
    loss: float
    deaths: int
    power_loss: bool
    initial_delay_ms: int
    max_size: int | None
    session_ms: int
    """Of consumer groups."""
    assignment_interval_ms: int

    @classmethod
    def of_seed(cls, seed: int, duration_s: float = SECONDS) -> Plan:
        """The plan of a seed."""
        random = Random(seed)
        return cls(
            seed=seed,
            duration_s=duration_s,
            kinds=tuple(random.sample(KINDS, 2)),
            slots=random.choice([2, 3, 4]),
            loss=random.choice([0.0, 0.01, 0.05]),
            deaths=random.choice([0, 1, 3]),
            power_loss=random.random() < 0.3,
            initial_delay_ms=random.choice([0, 3_000]),
            max_size=random.choice([None, None, None, 2]),
            session_ms=random.choice([6_000, 10_000]),
            assignment_interval_ms=random.choice([0, 1_000]),
        )

    @property
    def settings(self) -> dict[str, str]:
        """The node's settings."""
        settings = {
            "group.initial.rebalance.delay.ms": str(self.initial_delay_ms),
            "group.consumer.min.session.timeout.ms": "6000",
            "group.consumer.session.timeout.ms": str(self.session_ms),
            "group.consumer.min.heartbeat.interval.ms": "1000",
            "group.consumer.heartbeat.interval.ms": "1500",
            "group.consumer.assignment.interval.ms": str(self.assignment_interval_ms),
            "group.consumer.regex.refresh.interval.ms": "10000",
            "offsets.retention.minutes": str(RETENTION_MS // 60_000),
            "offsets.retention.check.interval.ms": str(RETENTION_CHECK_MS),
        }
        if self.max_size is not None:
            settings |= {"group.max.size": str(self.max_size), "group.consumer.max.size": str(self.max_size)}
        return settings


@dataclass(slots=True)
class Report:
    """What a run came to."""

    plan: Plan
    trace: list[str]
    counts: dict[str, int]
    memberships: int
    starts: int

    @property
    def fingerprint(self) -> str:
        """Equal for two runs that did the same at the same moments."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        return (
            f"seed {self.plan.seed}: {'+'.join(self.plan.kinds)}, {self.memberships} memberships, {counts},"
            f" {self.starts} starts"
        )


class Simulation:
    """One run."""

    def __init__(
        self, node: Transport, plan: Plan, *, latency_ms: float = LATENCY_MS, slack_ms: float = SLACK_MS
    ) -> None:
        """An answer takes at most `latency_ms`; timers are late by at most `slack_ms`."""
        self.node = node
        self.plan = plan
        self.random = Random(plan.seed)
        self.world = GroupWorld(node, self.random, RETENTION_MS, slack_ms=slack_ms)
        self.world.history.latency_ms = latency_ms
        self.world.history.default_session_ms = plan.session_ms
        self.world.history.mixed = {kind for kind in plan.kinds if kind == "mixed"}
        self.members: dict[str, Member] = {}
        """By place; the process that has it now."""

    async def run(self) -> Report:
        """Load, rest, and the end of everything."""
        await self.node.start()
        await self._create_topics()
        self.world.loss = self.plan.loss
        for kind in self.plan.kinds:
            for slot in range(self.plan.slots):
                self.world.spawn(self._fill(kind, slot), f"{kind}-{slot}")
        self.world.spawn(commit_simply(self.world, SIMPLE_GROUP), SIMPLE_GROUP)
        self.world.spawn(administrate(self.world, self.plan.kinds), "administrator")
        self.world.spawn(self._let_die(), "deaths")
        await self._watch(self.plan.duration_s)
        self.world.is_calm = True
        self.world.note("all is calm")
        await self._watch(CALM_S)
        await self.node.is_up.wait()
        await check_rest(self.world, list(self.members.values()), self.plan.max_size)
        self.world.is_over = True
        await self._watch(30)
        await self._check_offsets()
        await asyncio.sleep((RETENTION_MS + 2 * RETENTION_CHECK_MS) / 1000)
        await check_gone(self.world, (*self.plan.kinds, SIMPLE_GROUP))
        await self.node.stop()
        history = self.world.history
        return Report(self.plan, self.world.trace, self.world.counts, len(history.memberships), self.node.starts)

    async def _watch(self, seconds: float) -> None:
        """Let everybody work so long; the first failure ends it all."""
        until_s = self.node.time() + seconds
        while (left_s := until_s - self.node.time()) > 0:
            for task in self.world.background:
                if task.done():
                    task.result()
            self.world.background = [task for task in self.world.background if not task.done()]
            if not self.world.background:
                await asyncio.sleep(left_s)
                return
            await asyncio.wait(self.world.background, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)

    async def _create_topics(self) -> None:
        client = self.node.client()
        for topic in STABLE_TOPICS:
            await create_topic(self.world, client, topic, self.random.choice([2, 3, 5]))
        for group in (*self.plan.kinds, SIMPLE_GROUP):
            request = FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
            answer = await client.call(request, 4)
            assert not answer.coordinators[0].error_code, answer

    # --- members ------------------------------------------------------------------------------

    async def _fill(self, kind: str, slot: int) -> None:
        """One process after the other in a place of a group, until all is calm."""
        instance_id = f"i{slot}" if self.random.random() < 0.3 else None
        topics = self._topics()
        await asyncio.sleep(self.random.choice([0, 0, 0.5, 3]))
        while not self.world.is_over:
            if instance_id is None or kind == "consumer":
                # A static member that comes back by the classic protocol is not asked what it wants.
                topics = self._topics()
            member = self._member(kind, topics, instance_id)
            self.members[f"{kind}-{slot}"] = member
            await member.live()
            if self.world.is_calm:
                return
            if instance_id is None or self.random.random() < 0.7:
                await asyncio.sleep(self.random.choice([0, 1, 5, 12]))
            elif self.random.random() < 0.5:
                # The same instance id comes again at once, while the coordinator still knows the old one.
                await asyncio.sleep(0.1)

    def _topics(self) -> frozenset[str]:
        return frozenset(self.random.choice([("a", "b"), ("a", "b"), ("a",), ("b", "x0", "x1"), ("a", "x0")]))

    def _member(self, kind: str, topics: frozenset[str], instance_id: str | None) -> Member:
        random, world = self.random, self.world
        if kind == "consumer" or (kind == "mixed" and random.random() < 0.5):
            regex = "[ax].*" if kind == "consumer" and random.random() < 0.3 else None
            if regex is not None:
                topics = frozenset(("a", "x0", "x1"))
            assignor = random.choice([None, None, "uniform", "range"])
            return ConsumerMember(world, kind, topics, instance_id, regex=regex, assignor=assignor)
        is_cooperative = kind == "cooperative" or (kind == "mixed" and self.plan.seed % 2)
        protocols = (COOPERATIVE,) if is_cooperative else random.choice(EAGER)
        return ClassicMember(world, kind, topics, instance_id, protocols)

    # --- death --------------------------------------------------------------------------------

    async def _let_die(self) -> None:
        for _ in range(self.plan.deaths):
            await asyncio.sleep(self.random.uniform(0, self.plan.duration_s / (self.plan.deaths + 1)))
            if self.world.is_calm:
                return
            await self.node.go_down(self.random, self.world.note)
            await asyncio.sleep(self.random.choice([0, 0.5, 5]))
            await self.node.start()
            self.world.note("the node is back")

    # --- checks -------------------------------------------------------------------------------

    async def _check_offsets(self) -> None:
        client = self.node.client()
        for group in (*self.plan.kinds, SIMPLE_GROUP):
            for partition in self.world.history.offsets.of_group(group):
                await check_committed(self.world, client, group, partition)


def simulate(seed: int, duration_s: float = SECONDS) -> Report:
    """Run a seed; raises AssertionError naming the invariant that does not hold."""
    plan = Plan.of_seed(seed, duration_s)

    async def work(node: SimulatedNode) -> Any:
        return await Simulation(node, plan).run()

    report: Report = on_a_node(seed, plan.settings, work, power_loss=plan.power_loss)
    return report


def main(arguments: list[str]) -> int:
    """Run one seed, or several; the exit code is 1 if an invariant does not hold."""
    return run_seeds(arguments, "groups", __doc__, simulate, seconds=SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
