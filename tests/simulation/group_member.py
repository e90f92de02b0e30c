"""What members have in common, whatever protocol they speak: their life, their end, and what they do in between."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.simulation.group_clients import (
    AGAIN,
    NOT_A_MEMBER,
    STABLE_TOPICS,
    Gone,
    GroupWorld,
    Identity,
    check_committed,
    code_of,
    commit,
    note_wrong_commit,
)
from tests.simulation.group_history import REMOVALS, Membership, Partition
from wire.errors import ErrorCode
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.describe_groups import DescribeGroupsRequest

ENDS_FOR_GOOD = frozenset({"left", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"})
"""After these nothing that the member says counts, whoever uses its id next."""

RENEWALS_MAX = 6
"""So often at most a silent member gets a new session."""


class Member:
    """One process that is a member of a group, or wants to be."""

    kind = ""
    session_ms: int
    rebalance_ms: int

    def __init__(self, world: GroupWorld, group: str, topics: frozenset[str], instance_id: str | None) -> None:
        self.world = world
        self.group = group
        self.topics = topics
        self.instance_id = instance_id
        if instance_id is not None:
            world.history.kinds.setdefault((group, instance_id), set()).add(self.kind)
        self.client = world.transport.client()
        self.name = f"{group}/{self.kind}-{next(world.numbers)}" + (f"({instance_id})" if instance_id else "")
        self.membership: Membership | None = None
        self.owned: set[Partition] = set()
        """What it believes to have."""
        self.is_alive = False
        self.is_haunted = False
        """Something goes on under its old member id, which it can therefore not use again."""

    # --- for the protocols ----------------------------------------------------------------------

    async def step(self) -> None:
        """The next thing to do."""
        raise AssertionError("a protocol says what")

    async def leave(self) -> None:
        """Say that it goes."""
        raise AssertionError("a protocol says how")

    def forget(self, code: ErrorCode) -> None:
        """Be no member any more."""
        raise AssertionError("a protocol says what")

    def haunts(self, ended: Membership, partition: Partition) -> Any:
        """Go on after the end."""
        raise AssertionError("a protocol says how")

    def wrong_requests(self, partition: Partition) -> list[tuple[Any, int, ErrorCode]]:
        """What a member that is in is refused for, and the code of that."""
        raise AssertionError("a protocol says which")

    @property
    def identity(self) -> Identity:
        """Who it says it is."""
        raise AssertionError("a protocol says what")

    # --- life -----------------------------------------------------------------------------------

    async def live(self) -> None:
        """Until the process ends, or the run."""
        self.world.note(f"{self.name} starts")
        self.is_alive = True
        try:
            while not self.world.is_over:
                await self.step()
            await self.leave()
        except Gone:
            pass
        self.is_alive = False
        self.world.note(f"{self.name} has ended")

    async def misbehave(self) -> None:
        """What happens to processes. Raises Gone."""
        world = self.world
        if world.chance(0.03):
            pause_s = world.random.choice([1, self.rebalance_ms / 1000 * 1.1, self.session_ms / 1000 * 1.2])
            world.note(f"{self.name} pauses")
            await asyncio.sleep(pause_s)
        if world.chance(0.02):
            world.note(f"{self.name} vanishes")
            if self.membership is not None and not self.membership.unanswered and not self.membership.is_in_doubt:
                world.spawn(self._check_removal(self.membership), "removal")
            raise Gone
        if world.chance(0.02):
            world.note(f"{self.name} leaves")
            await self.leave()
            raise Gone
        if world.chance(0.05):
            await self._ask_wrongly()
        if world.chance(0.2) or world.is_calm:
            await self.consume()

    async def _ask_wrongly(self) -> None:
        """Say another generation or epoch than the present one."""
        world, member = self.world, self.membership
        if member is None or member.unanswered or self.group in world.history.mixed:
            return
        requests = self.wrong_requests(min(self.owned, default=(STABLE_TOPICS[0], 0)))
        if requests:
            starts = world.history.starts
            request, version, expected = world.random.choice(requests)
            answer = await world.ask(self.client, request, version)
            if world.history.starts != starts or member.starts != starts:
                note_wrong_commit(world, request, min(self.owned, default=(STABLE_TOPICS[0], 0)))
            if answer is not None and world.history.is_surely_in(member, world.now_ms):
                code = code_of(answer)
                assert code is expected or code in AGAIN, (
                    f"NoZombies: {member} gets {code.name} for {type(request).__name__}, not {expected.name}"
                )
                world.count("wrong epochs refused")

    async def consume(self) -> None:
        """Read where to go on in a partition, and commit."""
        mine = sorted(each for each in self.owned if each[0] in STABLE_TOPICS)
        if not mine or self.membership is None:
            return
        partition = self.world.random.choice(mine)
        await check_committed(self.world, self.client, self.group, partition)
        member = self.membership
        code = await commit(self.world, self.client, self.identity, partition)
        known = code is None or code is ErrorCode.NONE or code in AGAIN or code is ErrorCode.REBALANCE_IN_PROGRESS
        if not known and code is not None and self.membership is member:
            assert code in NOT_A_MEMBER, f"a commit of {self.name} gets {code.name}"
            history = self.world.history
            sure = history.is_surely_in(member, self.world.now_ms) and not member.unanswered
            sure = sure and self.group not in history.mixed
            assert not sure, f"NeverUnknownInTime: a commit of {member} gets {code.name}"

    # --- what it is told ------------------------------------------------------------------------

    def begin_membership(self) -> None:
        """A first answer has come."""
        world = self.world
        for old in world.history.challenge(self.group, self.instance_id):
            world.history.end(old, "replaced")
        starts, now_ms = world.history.starts, world.now_ms
        who = self.identity
        self.membership = Membership(
            self.group, who.member_id, self.kind, self.instance_id, self.session_ms, self.rebalance_ms, now_ms, starts
        )
        self.membership.topics = self.topics
        self.membership.is_challenged = (self.group, self.instance_id) in world.history.dismissals
        world.history.joined(self.membership, now_ms)

    def heard(
        self,
        answer: Any,
        sent_ms: float,
        *,
        at_ease: set[ErrorCode],
        carried_out: set[ErrorCode],
        changes: bool = False,
        renews: bool = True,
    ) -> ErrorCode | None:
        """Note an answer; codes that mean the end are the end. `changes`: the request changes the member's place."""
        if answer is None:
            self.not_answered(changes=changes)
            return None
        code = code_of(answer)
        member = self.membership
        if member is None:
            return code
        if code in at_ease or code in carried_out:
            self.world.history.heard(member, sent_ms, self.world.now_ms, at_ease=code in at_ease, renews=renews)
        elif code in REMOVALS or code is ErrorCode.FENCED_INSTANCE_ID:
            self.removed(code)
        return code

    def not_answered(self, *, changes: bool) -> None:
        """No answer has come."""
        if self.membership is not None:
            self.world.history.missed(self.membership, changes=changes)

    def removed(self, code: ErrorCode) -> None:
        """The member is told that it is none. Raises Gone where that ends the process."""
        member, self.membership = self.membership, None
        self.world.note(f"{self.name} gets {code.name}")
        partition = min(self.owned, default=(STABLE_TOPICS[0], 0))
        self.owned = set()
        if member is not None:
            self.world.history.refused(member, code, self.world.now_ms)
            self._maybe_haunt(member, partition)
        self.forget(code)

    def left(self, is_certain: bool) -> None:
        """LeaveGroup, or its like, was answered, or not."""
        member, self.membership = self.membership, None
        partition = min(self.owned, default=(STABLE_TOPICS[0], 0))
        self.owned = set()
        if member is None:
            return
        member.is_challenged = True
        self.world.history.end(member, "left" if is_certain else "perhaps left")
        self._maybe_haunt(member, partition)

    def _maybe_haunt(self, member: Membership, partition: Partition) -> None:
        if member.ended in ENDS_FOR_GOOD and self.world.chance(0.5):
            self.is_haunted = True
            self.world.spawn(self.haunts(member, partition), "zombie")

    def give_up(self, kept: set[Partition]) -> None:
        """What is not kept is not its own any more, and the next request says so."""
        self.owned &= kept
        if self.membership is not None:
            self.world.history.gave_up(self.membership, kept)

    # --- the end in time ------------------------------------------------------------------------

    async def _check_removal(self, member: Membership) -> None:
        """Nobody hears of the member any more: it is gone when its session is over. (A group that changes its kind
        gives all its members a new session; so does a rebalance to a static one that does not join.)"""
        world = self.world
        waits_for_it = member.kind == "classic" and member.instance_id is not None
        chances = RENEWALS_MAX if waits_for_it or self.group in world.history.mixed else 1
        while True:
            starts = world.transport.starts
            timeout_ms = world.history.session_of(member, longest=True) + world.slack_ms
            await asyncio.sleep(timeout_ms / 1000)
            if not world.transport.is_up.is_set() or world.transport.starts != starts:
                await world.transport.is_up.wait()
                continue
            known = await described_members(world, self.client, self.group)
            if known is None or world.transport.starts != starts:
                continue
            chances -= 1
            if member.member_id in known and chances:
                continue
            assert member.member_id not in known, (
                f"RemovedInTime: {member} was heard at {member.heard_ms:.0f}, now it is {world.now_ms:.0f}"
            )
            world.count("silent members removed")
            return


async def described_members(world: GroupWorld, client: Any, group: str) -> set[str] | None:
    """Members as the coordinator describes them, whatever kind the group is of; None where no answer comes."""
    classic = await world.ask(client, DescribeGroupsRequest(groups=[group]), 6)
    consumer = await world.ask(client, ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    if classic is None or consumer is None:
        return None
    answers = [classic.groups[0], consumer.groups[0]]
    if any(ErrorCode(each.error_code) in AGAIN for each in answers):
        return None
    return {member.member_id for each in answers for member in each.members}
