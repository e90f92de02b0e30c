"""Any sequence of requests, timeouts, refused writes and fail-overs, against a dumb model.

The model knows only what clients were told: committed offsets, the newest generation, which ids were
valid last. The invariants of shard_world are checked at every step besides.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from coordinator.group.classic_group import ClassicGroup, ClassicGroupState
from coordinator.group.context import GroupSettings
from tests.coordinator.group.shard_world import (
    World,
    commit,
    commit_in_transaction,
    heartbeat,
    join,
    leave,
    replayed,
    sync,
)
from wire.errors import ErrorCode, KafkaError

GROUPS = st.sampled_from(["g", "h"])
INSTANCES = st.sampled_from([None, None, "i1", "i2"])
PROTOCOLS = st.sampled_from([("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",)])
STEPS = [0, 1, 500, 3_000, 9_999, 10_000, 60_000, 400_000]


class GroupMachine(RuleBasedStateMachine):
    """Clients that do as they like."""

    members = Bundle("members")
    waiting = Bundle("waiting")

    @initialize(delay_ms=st.sampled_from([0, 3_000]), group_max_size=st.sampled_from([2, 100]))
    def start(self, delay_ms: int, group_max_size: int) -> None:
        self.world = World(GroupSettings(initial_rebalance_delay_ms=delay_ms, group_max_size=group_max_size))
        self.generations: dict[str, int] = {}
        self.offsets: dict[tuple[str, int], int] = {}
        self.pending: dict[int, dict[tuple[str, int], int]] = {}

    # --- membership ---------------------------------------------------------------------------

    def _joined(self, group_id: str, instance_id: str | None, response: Any) -> Any:
        """What a client learns from an answer to its join."""
        if isinstance(response, KafkaError) or response.error_code not in (0, ErrorCode.MEMBER_ID_REQUIRED):
            return multiple()
        if response.error_code == 0:
            newest = self.generations.get(group_id, 0)
            assert response.generation_id >= newest, "GenerationsOnlyGrow"
            self.generations[group_id] = response.generation_id
        return (group_id, response.member_id, instance_id)

    @rule(
        target=members,
        group_id=GROUPS,
        instance_id=INSTANCES,
        protocols=PROTOCOLS,
        api_version=st.sampled_from([3, 5, 9]),
    )
    def join_anew(self, group_id: str, instance_id: str | None, protocols: tuple[str, ...], api_version: int) -> Any:
        request = join(group_id, group_instance_id=instance_id, protocols=protocols)
        ticket = self.world.ask(request, api_version)
        if self.world.is_waiting(ticket):
            return multiple()
        return self._joined(group_id, instance_id, self.world.replies[ticket])

    @rule(member=members, protocols=PROTOCOLS)
    def join_again(self, member: tuple[str, str, str | None], protocols: tuple[str, ...]) -> None:
        group_id, member_id, instance_id = member
        request = join(group_id, member_id, group_instance_id=instance_id, protocols=protocols)
        ticket = self.world.ask(request, 9)
        if not self.world.is_waiting(ticket):
            self._joined(group_id, instance_id, self.world.replies[ticket])

    @rule(member=members, newest=st.booleans())
    def sync(self, member: tuple[str, str, str | None], newest: bool) -> None:
        group_id, member_id, instance_id = member
        generation = self.world.group(group_id).generation_id if self.world.exists(group_id) and newest else 1
        request = sync(group_id, member_id, generation, {member_id: b"own"}, group_instance_id=instance_id)
        ticket = self.world.ask(request, 5)
        if self.world.is_waiting(ticket):
            assert self.world.state(group_id) == "CompletingRebalance", "OnlyACompletingGroupLetsSyncsWait"

    @rule(member=members)
    def heartbeat(self, member: tuple[str, str, str | None]) -> None:
        group_id, member_id, instance_id = member
        generation = self.world.group(group_id).generation_id if self.world.exists(group_id) else 1
        code = self.world.code(heartbeat(group_id, member_id, generation, instance_id))
        if code is ErrorCode.NONE:
            assert self.world.state(group_id) in ("Stable", "CompletingRebalance")

    @rule(member=consumes(members))
    def leave(self, member: tuple[str, str, str | None]) -> None:
        group_id, member_id, instance_id = member
        self.world.call(leave(group_id, (member_id, instance_id)), 5)
        if self.world.exists(group_id):
            group = self.world.group(group_id)
            assert member_id not in group.members or group.static_members.get(instance_id or "") != member_id

    # --- offsets ------------------------------------------------------------------------------

    @rule(group_id=GROUPS, partition=st.integers(0, 1), offset=st.integers(0, 99))
    def commit_alone(self, group_id: str, partition: int, offset: int) -> None:
        response = self.world.call(commit(group_id, {("t", partition): offset}), 9)
        if not isinstance(response, KafkaError):
            self.offsets[group_id, partition] = offset

    @rule(member=members, partition=st.integers(0, 1), offset=st.integers(0, 99))
    def commit_as_member(self, member: tuple[str, str, str | None], partition: int, offset: int) -> None:
        group_id, member_id, instance_id = member
        generation = self.world.group(group_id).generation_id if self.world.exists(group_id) else 1
        request = commit(
            group_id,
            {("t", partition): offset},
            member_id=member_id,
            generation_id=generation,
            instance_id=instance_id,
        )
        response = self.world.call(request, 9)
        if not isinstance(response, KafkaError):
            self.offsets[group_id, partition] = offset

    @rule(group_id=GROUPS, producer_id=st.integers(1, 2), partition=st.integers(0, 1), offset=st.integers(0, 99))
    def commit_in_transaction(self, group_id: str, producer_id: int, partition: int, offset: int) -> None:
        request = commit_in_transaction(producer_id, offset, group_id=group_id, partition=partition)
        if not isinstance(self.world.call(request, 2), KafkaError):
            # Of commits to one partition the later one in the log wins: the model keeps its number.
            self.pending.setdefault(producer_id, {})[group_id, partition] = offset
            self.offsets.pop((group_id, partition), None)

    @rule(producer_id=st.integers(1, 2), is_commit=st.booleans())
    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        self.world.end_transaction(producer_id, is_commit=is_commit)
        for group_id, partition in self.pending.pop(producer_id, {}):
            # What wins is the subject of test_offsets; here it is only no longer known.
            self.offsets.pop((group_id, partition), None)

    # --- the world ----------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from(STEPS))
    def pass_time(self, milliseconds: int) -> None:
        self.world.pass_time(milliseconds)
        # An empty group without offsets is removed in time; the next of its name counts from the start.
        self.generations = {name: newest for name, newest in self.generations.items() if self.world.exists(name)}

    @rule()
    def refuse_the_next_write(self) -> None:
        self.world.refuse_with = ErrorCode.COORDINATOR_NOT_AVAILABLE

    @rule()
    def fail_over(self) -> None:
        self.world.refuse_with = None
        self.world.reload()
        self.generations.clear()

    # --- invariants ---------------------------------------------------------------------------

    @invariant()
    def committed_offsets_are_there(self) -> None:
        if not hasattr(self, "world"):
            return
        for (group_id, partition), offset in self.offsets.items():
            assert self.world.offset("t", partition, group_id) == offset, "CommittedOffsetsAreKept"

    @invariant()
    def a_stable_group_is_what_the_log_says(self) -> None:
        if not hasattr(self, "world"):
            return
        other = replayed(self.world.log, self.world.settings)
        for group in self.world.shard._groups:
            assert isinstance(group, ClassicGroup)
            stored = other._groups.get(group.group_id)
            if group.state is ClassicGroupState.STABLE:
                assert isinstance(stored, ClassicGroup)
                assert stored.generation_id == group.generation_id, "AStableGenerationIsStored"
                assert {m.member_id: m.assignment for m in stored.members.values()} == {
                    m.member_id: m.assignment for m in group.members.values()
                }, "AssignmentsAreStored"
                assert stored.leader_id == group.leader_id
            assert other._offsets.newest == self.world.shard._offsets.newest, "ReplayEqualsTheLeader"


GroupMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, print_blob=True)
TestGroupMachine = GroupMachine.TestCase
