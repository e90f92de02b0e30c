"""Two hundred members join one group: how many generations that takes, and that all have their share.

With `group.initial.rebalance.delay.ms` as Kafka has it, all who join within the delay share the first generation.
Without it, which is the default here, the first member does not wait: it has generation 1 for itself, and all who
come until it has heard of them, at its next heartbeat, share generation 2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.crash.socket_transport import SocketTransport
from tests.simulation.group_administration import create_topic
from tests.simulation.group_classic_member import ClassicMember
from tests.simulation.group_clients import GroupWorld
from tests.simulation.group_consumer_member import ConsumerMember
from tests.simulation.group_member import Member
from tests.simulation.group_rest import check_rest
from tests.simulation.seeds import on_a_node
from tests.simulation.simulated_node import SimulatedNode
from tests.simulation.transport import Transport
from wire.messages.find_coordinator import FindCoordinatorRequest

MEMBERS = 200
SHARE = 2
TOPIC = "a"
GROUP = "large"
GUARD_S = 300.0
"""Against hanging only; seconds of whatever time the node is in."""
HEARTBEAT_S = 2.0
KAFKAS_DELAY_MS = 3_000


class Crowd:
    """Members of one group that come within a second, and do nothing wrong."""

    def __init__(self, transport: Transport, make: Callable[[GroupWorld], Member]) -> None:
        self.world = GroupWorld(transport, Random(1), 60_000, is_calm=True)
        self.world.history.starts = 1
        self.world.history.default_session_ms = 45_000
        self.members: list[Member] = []
        self._make = make

    async def settle(self) -> None:
        """Let all join, and wait until everybody has its share and nothing changes any more."""
        transport = self.world.transport
        client = transport.client()
        await create_topic(self.world, client, TOPIC, MEMBERS * SHARE)
        find = FindCoordinatorRequest(coordinator_keys=[GROUP], key_type=0)
        await client.call(find, 4)
        self.members = [self._make(self.world) for _ in range(MEMBERS)]
        tasks = [transport.spawn(self._come(member), "member") for member in self.members]
        until_s = transport.time() + GUARD_S
        while not all(len(member.owned) == SHARE for member in self.members):
            assert transport.time() < until_s, f"{sum(map(bool, (m.owned for m in self.members)))} have something"
            done = [task for task in tasks if task.done()]
            assert not done, [task.exception() for task in done]
            await asyncio.sleep(0.1)
        await check_rest(self.world, self.members, None)
        self.world.is_over = True
        for member in self.members:
            member.instance_id = None
        await asyncio.gather(*tasks)

    async def _come(self, member: Member) -> None:
        await asyncio.sleep(self.world.random.uniform(0, 1))
        await member.live()


def classic(world: GroupWorld) -> Member:
    member = ClassicMember(world, GROUP, frozenset([TOPIC]), None, ("range",))
    member.session_ms, member.rebalance_ms, member.interval_s = 45_000, 60_000, HEARTBEAT_S
    return member


def consumer(world: GroupWorld) -> Member:
    member = ConsumerMember(world, GROUP, frozenset([TOPIC]), None)
    member.rebalance_ms = 60_000
    return member


def generations_of(crowd: Crowd) -> list[tuple[int, int]]:
    """Generations that had members with an assignment, and how many of the crowd are in the last."""
    past = crowd.world.history.groups[GROUP]
    return [(generation, len(set(owners.values()))) for generation, owners in sorted(past.owners.items())]


def in_virtual_time(make: Callable[[GroupWorld], Member], settings: dict[str, str]) -> tuple[Crowd, float]:
    async def work(node: SimulatedNode) -> tuple[Crowd, float]:
        await node.start()
        crowd = Crowd(node, make)
        began_s = node.time()
        await crowd.settle()
        took_s = node.time() - began_s
        await node.stop()
        return crowd, took_s

    return on_a_node(1, settings, work)


def test_g05_two_hundred_members_share_generation_1_with_kafkas_delay() -> None:
    settings = {"group.initial.rebalance.delay.ms": str(KAFKAS_DELAY_MS)}
    crowd, _ = in_virtual_time(classic, settings)
    assert generations_of(crowd) == [(1, MEMBERS)]


def test_g05_without_a_delay_the_first_of_two_hundred_is_alone_and_all_others_share_generation_2() -> None:
    crowd, _ = in_virtual_time(classic, {})
    (first, alone), (last, together) = generations_of(crowd)
    assert (first, last) == (1, 2)
    assert (alone, together) == (1, MEMBERS)


def test_two_hundred_members_by_the_consumer_protocol_all_have_their_share() -> None:
    crowd, took_s = in_virtual_time(consumer, {})
    assert len({each.member_id for each in crowd.world.history.memberships}) == MEMBERS
    # They come within a second, targets are computed once a second, and members ask every five.
    assert took_s < 30


async def over_sockets(make: Callable[[GroupWorld], Member], home: Path) -> Crowd:
    settings = {"group.initial.rebalance.delay.ms": str(KAFKAS_DELAY_MS)}
    transport = SocketTransport(home, Random(1), settings)
    try:
        await transport.start()
        crowd = Crowd(transport, make)
        await crowd.settle()
        await transport.stop()
    finally:
        await transport.end()
    return crowd


def test_two_hundred_classic_members_over_sockets_share_one_generation(tmp_path: Path) -> None:
    crowd = asyncio.run(over_sockets(classic, tmp_path))
    assert generations_of(crowd) == [(1, MEMBERS)]


def test_two_hundred_consumer_members_over_sockets_all_have_their_share(tmp_path: Path) -> None:
    crowd = asyncio.run(over_sockets(consumer, tmp_path))
    assert len({each.member_id for each in crowd.world.history.memberships}) == MEMBERS
