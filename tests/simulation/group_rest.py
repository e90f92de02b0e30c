"""What must hold when the faults are over: members at rest, every partition owned once, evenly; and then nothing."""

from __future__ import annotations

import asyncio
from itertools import combinations
from typing import Any

from tests.simulation.group_classic_member import ClassicMember
from tests.simulation.group_clients import GroupWorld, check_committed
from tests.simulation.group_consumer_member import ConsumerMember
from tests.simulation.group_history import Partition
from tests.simulation.group_member import Member
from tests.simulation.offset_history import NONE
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.list_groups import ListGroupsRequest

STAYS_S = 6.0
"""Nothing changes for this long."""
REBALANCE_S = 20.0
"""A rebalance that is asked for is over within this."""


async def check_rest(world: GroupWorld, members: list[Member], max_size: int | None) -> None:
    """All groups are at rest, and stay so."""
    client = world.transport.client()
    await world.refresh(client)
    alive = [each for each in members if each.is_alive]
    await _wake(world, client, alive)
    for group in sorted({each.group for each in alive}):
        await _check_group(world, client, group, [each for each in alive if each.group == group], max_size)
    before = [(each.name, each.identity, sorted(each.owned)) for each in alive]
    await asyncio.sleep(STAYS_S)
    after = [(each.name, each.identity, sorted(each.owned)) for each in alive]
    moved = [f"{old} is now {new}" for old, new in zip(before, after, strict=True) if old != new]
    assert not moved, f"Converges: {moved}"


async def _wake(world: GroupWorld, client: Any, alive: list[Member]) -> None:
    """Stir groups that wait for the next change, as Apache Kafka 4.4 leaves them too.

    A static member that comes back by the other protocol takes the group along and asks nobody to join again. Down:
    the leader does not know that it leads, so nobody notices new topics, and who waited for partitions waits on. Up:
    the target is the last assignment, which knows nothing of who was joining just then, nor of partitions since.
    """
    woken = False
    for group in sorted(world.history.mixed):
        members = [each for each in alive if each.group == group]
        owned = {partition for each in members for partition in each.owned}
        wanted = frozenset(topic for each in members for topic in each.topics)
        if not world.history.was_taken_over(group) or owned == set(world.partitions_of(wanted)):
            continue
        classic = (await client.call(DescribeGroupsRequest(groups=[group]), 6)).groups[0]
        for each in members:
            if isinstance(each, ClassicMember) and not classic.error_code:
                assert not each.is_leader, f"Converges: {each.name} leads, and has not assigned {wanted} of {group}"
                each.enforce_rebalance()
            elif isinstance(each, ConsumerMember) and classic.error_code:
                each.subscribe_to_more()
        world.note(f"{group} is woken")
        world.count("groups woken")
        woken = True
    if woken:
        await asyncio.sleep(REBALANCE_S)


async def _check_group(world: GroupWorld, client: Any, group: str, alive: list[Member], max_size: int | None) -> None:
    inside = [each for each in alive if each.membership is not None]
    outside = [each.name for each in alive if each.membership is None]
    assert not outside, f"Converges: {outside} of {group} are no members, {len(inside)} are"
    assert max_size is None or len(inside) <= max_size, f"Converges: {group} has {len(inside)} members of {max_size}"
    classic = (await client.call(DescribeGroupsRequest(groups=[group]), 6)).groups[0]
    consumer = (await client.call(ConsumerGroupDescribeRequest(group_ids=[group]), 1)).groups[0]
    described = classic if consumer.error_code else consumer
    assert described.group_state == "Stable", f"Converges: {group} is {described.group_state}"
    ids = {each.member_id for each in described.members}
    known = {each.identity.member_id for each in inside}
    assert ids == known, f"Converges: {group} has {sorted(ids)}, alive are {sorted(known)}"
    _check_ownership(world, group, inside)
    if not consumer.error_code and not any(each.kind == "classic" for each in inside):
        _check_spread(world, group, inside, consumer.assignor_name)
    world.count("groups at rest")


def _check_ownership(world: GroupWorld, group: str, members: list[Member]) -> None:
    """Every partition of a wanted topic has one owner, who wants it."""
    owners: dict[Partition, str] = {}
    for member in members:
        for partition in sorted(member.owned):
            assert partition not in owners, f"OneOwner: {partition} has {owners[partition]} and {member.name}"
            assert partition[0] in member.topics, f"Converges: {member.name} has {partition} and does not want it"
            owners[partition] = member.name
    wanted = frozenset(topic for member in members for topic in member.topics)
    expected = set(world.partitions_of(wanted))
    assert set(owners) == expected, (
        f"Converges: of {group} nobody has {sorted(expected - set(owners))}, somebody {sorted(set(owners) - expected)}"
    )


def _check_spread(world: GroupWorld, group: str, members: list[Member], assignor: str) -> None:
    """`uniform`: no move of one partition makes loads more even. `range`: of each topic, neighbours in turn."""
    if assignor == "uniform":
        for one, other in combinations(members, 2):
            for most, least in ((one, other), (other, one)):
                movable = [each for each in most.owned if each[0] in least.topics]
                assert not movable or len(most.owned) - len(least.owned) < 2, (
                    f"Converges: {most.name} of {group} has {len(most.owned)}, {least.name} {len(least.owned)}"
                )
        return
    assert assignor == "range", assignor
    ordered = sorted(members, key=lambda each: (each.instance_id is None, each.instance_id or each.identity.member_id))
    for topic in sorted(world.topics):
        takers = [each for each in ordered if topic in each.topics]
        given = [[index for name, index in sorted(each.owned) if name == topic] for each in takers]
        if takers:
            quota, extra = divmod(world.topics[topic][1], len(takers))
            sizes = [quota + (place < extra) for place in range(len(takers))]
            assert [len(each) for each in given] == sizes, f"Converges: {group} has {given} of {topic} by range"
            assert [index for part in given for index in part] == list(range(world.topics[topic][1])), (
                f"Converges: {given} of {topic} by range"
            )


async def check_gone(world: GroupWorld, groups: tuple[str, ...]) -> None:
    """Long after everybody has gone, nothing of the groups is left."""
    client = world.transport.client()
    for group in groups:
        for partition in world.history.offsets.of_group(group):
            found = await check_committed(world, client, group, partition)
            assert found == NONE, f"OffsetsExpire: {group} {partition} is still {found}"
    listed = await client.call(ListGroupsRequest(), 5)
    left = [each.group_id for each in listed.groups if each.group_id in groups]
    assert not left, f"OffsetsExpire: {left} are still there"
