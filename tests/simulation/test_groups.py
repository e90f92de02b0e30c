"""A sample of the simulation of groups, and proof that it sees what it is there to see.

A failing seed is repeated by `python3 dev.py simulate --workload groups --seed N`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordinator.group import classic_sync
from coordinator.group.classic_group import ClassicGroup
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_settings import ConsumerGroupSettings
from coordinator.group.offset_store import OffsetStore
from coordinator.group.settlement import GroupDecision
from coordinator.group.shard import GroupShard
from tests.simulation.group_administration import create_topic
from tests.simulation.group_classic_member import ClassicMember
from tests.simulation.group_clients import STABLE_TOPICS, GroupWorld
from tests.simulation.group_consumer_member import ConsumerMember
from tests.simulation.group_member import Member
from tests.simulation.group_rest import check_rest
from tests.simulation.groups import simulate
from tests.simulation.seeds import on_a_node
from tests.simulation.simulated_node import SimulatedNode
from tests.simulation.transport import Disconnected
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.sync_group import SyncGroupResponse

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
SEEDS_MAX = 12
"""Not every run comes upon every fault."""


def run_seeds(first: int, count: int) -> str:
    command = [sys.executable, "-m", "tests.simulation.groups", "--seed", str(first), "--seeds", str(count)]
    done = subprocess.run(
        [*command, "--seconds", str(SECONDS)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("first", [1, 12])
def test_invariants_hold_for_a_sample_of_seeds(first: int) -> None:
    said = run_seeds(first, 6)
    assert said.count(" commits") == 6


def test_a_seed_does_the_same_every_time() -> None:
    seed = 100  # its node dies three times
    said = run_seeds(seed, 1)
    assert "4 starts" in said
    assert run_seeds(seed, 1) == said


# --- broken coordinators --------------------------------------------------------------------------


def partitions_are_given_before_they_are_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "is_free_for", lambda *_: True)


def everybody_gets_what_the_leader_has(patch: pytest.MonkeyPatch) -> None:
    def assigned(group: ClassicGroup, _: Any) -> SyncGroupResponse:
        assignment = group.members[group.leader_id or ""].assignment
        return SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
        )

    patch.setattr(classic_sync, "_assigned", assigned)


def silent_members_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroupSettings, "session_timeout_of", lambda *_: 3_600_000)


def sessions_are_too_short(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroupSettings, "session_timeout_of", lambda *_: 1_000)


def anybody_is_a_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClassicGroup, "validate_offset_commit", lambda *_, **__: None)


def a_load_forgets_offsets(patch: pytest.MonkeyPatch) -> None:
    whole = GroupShard.loaded

    def loaded(shard: GroupShard, *about: Any) -> GroupDecision:
        shard._offsets = OffsetStore()
        return whole(shard, *about)

    patch.setattr(GroupShard, "loaded", loaded)


def offsets_in_use_expire(patch: pytest.MonkeyPatch) -> None:
    for kind in (ClassicGroup, ConsumerGroup):
        patch.setattr(kind, "is_subscribed_to", lambda *_: False)


def offsets_never_expire(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("coordinator.group.offset_deletion._is_expired", lambda *_: False)


def epochs_begin_anew_after_a_load(patch: pytest.MonkeyPatch) -> None:
    whole = GroupShard.loaded

    def loaded(shard: GroupShard, *about: Any) -> GroupDecision:
        for group in shard._groups:
            if isinstance(group, ClassicGroup):
                shard._groups.put(replace(group, generation_id=0))
        return whole(shard, *about)

    patch.setattr(GroupShard, "loaded", loaded)


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (partitions_are_given_before_they_are_free, "OneOwner"),
        (everybody_gets_what_the_leader_has, "OneOwner|OneAssignment"),
        (silent_members_stay, "RemovedInTime"),
        (sessions_are_too_short, "NeverUnknownInTime"),
        (anybody_is_a_member, "NoZombies|OffsetsKept"),
        (a_load_forgets_offsets, "OffsetsKept"),
        (offsets_in_use_expire, "OffsetsKept"),
        (offsets_never_expire, "OffsetsExpire"),
        (epochs_begin_anew_after_a_load, "EpochsOnlyRise|NeverUnknownInTime"),
    ],
)
def test_a_broken_coordinator_is_found_out(
    break_it: Callable[[pytest.MonkeyPatch], None], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    with pytest.raises(AssertionError, match=what):
        run_until_it_fails()


def run_until_it_fails() -> None:
    for seed in range(1, SEEDS_MAX):
        simulate(seed, SECONDS)


# --- a coordinator that dies ----------------------------------------------------------------------

RESUMES_S = 10.0


def test_r09_groups_go_on_after_their_coordinator_died() -> None:
    def members(world: GroupWorld) -> list[Member]:
        topics = frozenset(STABLE_TOPICS)
        found: list[Member] = [ConsumerMember(world, "consumer", topics, None) for _ in range(2)]
        return [*found, *(ClassicMember(world, "eager", topics, None, ("range",)) for _ in range(2))]

    async def work(node: SimulatedNode) -> None:
        await node.start()
        world = GroupWorld(node, Random(1), 60_000, is_calm=True)
        world.history.default_session_ms = 45_000
        client = node.client()
        for topic in STABLE_TOPICS:
            await create_topic(world, client, topic, 4)
        for group in ("consumer", "eager"):
            await client.call(FindCoordinatorRequest(coordinator_keys=[group], key_type=0), 4)
        everybody = members(world)
        for each in everybody:
            world.spawn(each.live(), each.name)
        await asyncio.sleep(30)
        await check_rest(world, everybody, None)
        owned, commits = [sorted(each.owned) for each in everybody], world.counts["commits"]

        node.kill()
        await asyncio.sleep(1)
        with pytest.raises(Disconnected):
            await client.call(FindCoordinatorRequest(coordinator_keys=["eager"], key_type=0), 4)
        await node.start()
        # The offsets that members fetch are checked against what they have committed.
        await asyncio.sleep(RESUMES_S)
        assert world.counts["commits"] >= commits + len(everybody)
        assert [sorted(each.owned) for each in everybody] == owned
        assert len(world.history.memberships) == len(everybody), "nobody had to join anew"
        assert not [task for task in world.background if task.done()]

    on_a_node(1, {"group.consumer.heartbeat.interval.ms": "5000"}, work)
