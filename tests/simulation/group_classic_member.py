"""A member that speaks the classic protocol: JoinGroup, SyncGroup, Heartbeat, eagerly or cooperatively."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from tests.simulation.group_assignor import (
    COOPERATIVE,
    Wish,
    assign,
    assignment_bytes,
    read_assigned,
    read_wish,
    subscription_bytes,
)
from tests.simulation.group_clients import (
    AGAIN,
    COMMIT_VERSION,
    REBALANCE_MS,
    WRONG_OFFSET,
    Gone,
    GroupWorld,
    Identity,
    commit_request,
    haunt,
)
from tests.simulation.group_history import REMOVALS, Membership, Partition
from tests.simulation.group_member import Member
from wire.errors import ErrorCode
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PROTOCOL_TYPE = "consumer"


@dataclass(frozen=True, slots=True)
class Versions:
    """Which versions a client speaks."""

    join: int
    sync: int
    heartbeat: int
    leave: int


NEW = Versions(9, 5, 4, 5)
OLD = Versions(5, 3, 3, 3)


class ClassicMember(Member):
    """One process; `protocols` are its assignors in its order."""

    kind = "classic"

    def __init__(
        self,
        world: GroupWorld,
        group: str,
        topics: frozenset[str],
        instance_id: str | None,
        protocols: tuple[str, ...],
    ) -> None:
        super().__init__(world, group, topics, instance_id)
        self.protocols = protocols
        self.is_cooperative = protocols == (COOPERATIVE,)
        self.session_ms = world.random.choice([6_000, 8_000])
        self.rebalance_ms = world.random.choice(REBALANCE_MS)
        # A static leader that comes back with an older version does not know that it leads, and so nobody sees when
        # topics change (KIP-814).
        self.versions = NEW if instance_id is not None else world.random.choice([NEW, NEW, OLD])
        self.interval_s: float | None = None
        """Between heartbeats; a part of the session timeout by default."""
        self.member_id = ""
        self.generation = -1
        self._must_join = True
        self._joining_ms: float | None = None
        """When it asked first to join, if it was not answered then: its session may have begun there."""
        self.is_leader = False
        """It knows that it leads, and so watches what topics there are."""
        self._seen: dict[str, int] = {}

    # --- the loop -------------------------------------------------------------------------------

    async def step(self) -> None:
        """Join, or wait and send a heartbeat."""
        if self._must_join:
            await self._join()
            return
        await asyncio.sleep(self.interval_s or self.session_ms / 1000 / self.world.random.choice([3, 4, 6]))
        await self.misbehave()
        if self.is_leader:
            await self.world.refresh(self.client)
            if self._seen != self._counts():
                # What exists has changed: the leader wants a new assignment.
                self._must_join = True
                return
        await self._beat()

    def _counts(self) -> dict[str, int]:
        return {name: count for name, (_, count) in self.world.topics.items()}

    async def _beat(self) -> ErrorCode | None:
        request, version = self._heartbeat_request()
        sent_ms = self.world.now_ms
        answer = await self.world.ask(self.client, request, version)
        code = self.heard(answer, sent_ms, at_ease={ErrorCode.NONE}, carried_out={ErrorCode.REBALANCE_IN_PROGRESS})
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._must_join = True
            if self.instance_id is None and self.world.chance(0.03):
                await self._disobey()
        return code

    def _heartbeat_request(self) -> tuple[HeartbeatRequest, int]:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return request, self.versions.heartbeat

    async def _disobey(self) -> None:
        """Go on with heartbeats and do not join: that ends with the rebalance timeout. (A group that changes its kind
        begins another rebalance.)"""
        world, told_ms, starts = self.world, self.world.now_ms, self.world.history.starts
        if self.group in world.history.mixed:
            return
        world.note(f"{self.name} does not obey")
        while self.membership is not None and world.history.starts == starts:
            await asyncio.sleep(1)
            late_ms = world.now_ms - told_ms - max(REBALANCE_MS) - world.slack_ms
            code = await self._beat_only()
            is_known = code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS) and world.history.starts == starts
            assert not is_known or late_ms < 0, f"RemovedInTime: {self.membership} does not join and is still in"

    async def _beat_only(self) -> ErrorCode | None:
        request, version = self._heartbeat_request()
        sent_ms = self.world.now_ms
        answer = await self.world.ask(self.client, request, version)
        return self.heard(answer, sent_ms, at_ease=set(), carried_out={ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS})

    # --- joining --------------------------------------------------------------------------------

    async def _join(self) -> None:
        world = self.world
        if not self.is_cooperative:
            self.give_up(set())
        if not self.member_id:
            world.history.challenge(self.group, self.instance_id)
        if self.membership is not None:
            self.membership.is_rebalancing = True
        sent_ms = world.now_ms
        patience_s = world.random.choice([1, 3]) if world.chance(0.03) else None
        request = self._join_request()
        answer = await world.ask(self.client, request, self.versions.join, patience_s=patience_s)
        if answer is None:
            self._joining_ms = sent_ms if self._joining_ms is None else self._joining_ms
            self.not_answered(changes=True)
            return await world.back_off()
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return None
        if code is not ErrorCode.NONE:
            return await self._not_let_in(code)
        self._enter(answer, sent_ms)
        await self._sync(answer)
        return None

    def _join_request(self) -> JoinGroupRequest:
        wish = Wish(self.topics, frozenset(self.owned))
        metadata = subscription_bytes(wish, self.generation)
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self.protocols],
        )

    async def _not_let_in(self, code: ErrorCode) -> None:
        if code in REMOVALS or code is ErrorCode.FENCED_INSTANCE_ID:
            self.removed(code)
        elif code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
            self.removed(code)
            raise Gone
        else:
            expected = code in AGAIN or code is ErrorCode.REBALANCE_IN_PROGRESS
            assert expected, f"JoinGroup of {self.name} gets {code.name}"
            await self.world.back_off()

    def _enter(self, answer: Any, sent_ms: float) -> None:
        """The member is in; a new one, or as before."""
        history, now_ms = self.world.history, self.world.now_ms
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.is_leader = answer.leader == self.member_id
        if self.membership is None or self.membership.member_id != self.member_id:
            self.begin_membership()
            assert self.membership is not None
            if self._joining_ms is not None:
                self.membership.heard_ms = self.membership.at_ease_ms = self._joining_ms
                self.membership.unanswered = 1
        assert self.membership is not None
        self._joining_ms = None
        self.membership.is_rebalancing = bool(answer.leader)  # a consumer group names none
        # An answer that only repeats what was missed does not begin the session anew.
        renews = self.generation > self.membership.epoch and not self.membership.unanswered
        history.told_epoch(self.membership, self.generation, now_ms, is_written=False)
        history.heard(self.membership, sent_ms, now_ms, at_ease=False, renews=renews)

    async def _sync(self, joined: Any) -> None:
        world = self.world
        if world.chance(0.02):
            world.note(f"{self.name} is slow to sync")
            await asyncio.sleep(world.random.choice([1, 8, 12]))
        assignments = await self._assignments(joined) if self.is_leader else []
        knows_names = self.versions.sync >= 5
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=joined.protocol_type if knows_names else None,
            protocol_name=joined.protocol_name if knows_names else None,
            assignments=assignments,
        )
        sent_ms = world.now_ms
        answer = await world.ask(self.client, request, self.versions.sync)
        # (A SyncGroup to a group that is Stable already does not begin the session anew.)
        code = self.heard(answer, sent_ms, at_ease={ErrorCode.NONE}, carried_out=set(), changes=True, renews=False)
        if code is ErrorCode.NONE:
            await self._assigned(read_assigned(answer.assignment))
        elif code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL and self.group in world.history.mixed:
            # A static member that takes a consumer group down to classic is told its own first protocol, in Kafka too.
            raise Gone
        elif code is not None and code not in REMOVALS:
            expected = code in AGAIN or code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.FENCED_INSTANCE_ID)
            assert expected, f"SyncGroup of {self.name} gets {code.name}"

    async def _assignments(self, joined: Any) -> list[SyncGroupRequestAssignment]:
        await self.world.refresh(self.client)
        if joined.skip_assignment or not joined.members:
            # It leads again, with the assignment that it made in its former life.
            self._seen = self.world.assigned.get((self.group, self.generation), {})
            return []
        self._seen = self.world.assigned[self.group, self.generation] = self._counts()
        wishes = {each.member_id: read_wish(each.metadata) for each in joined.members}
        given = assign(joined.protocol_name, wishes, self._seen)
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment_bytes(partitions))
            for member_id, partitions in given.items()
        ]

    async def _assigned(self, partitions: set[Partition]) -> None:
        """What the generation gives; a cooperative member that has to give something up joins again for that."""
        history, member = self.world.history, self.membership
        assert member is not None
        member.is_rebalancing = False
        history.told_epoch(member, self.generation, self.world.now_ms, is_written=True)
        history.got(member, partitions, self.world.now_ms)
        history.got_in_generation(member, partitions)
        revoked = self.owned - partitions
        self.owned = set(partitions)
        self.give_up(partitions)
        self._must_join = bool(revoked)
        await self.consume()

    def enforce_rebalance(self) -> None:
        """Join again without a reason, as Consumer.enforceRebalance."""
        self._must_join = True

    # --- the end --------------------------------------------------------------------------------

    def forget(self, code: ErrorCode) -> None:
        """Begin anew; after ILLEGAL_GENERATION under the same member id."""
        if code is not ErrorCode.ILLEGAL_GENERATION:
            self.member_id = ""
        self.generation = -1
        self._must_join = True
        if code is ErrorCode.FENCED_INSTANCE_ID:
            raise Gone

    async def leave(self) -> None:
        """LeaveGroup, once. Static members do not."""
        if self.membership is None or self.instance_id is not None:
            return
        self.give_up(set())
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=self.group, members=[identity])
        answer = await self.world.ask(self.client, request, self.versions.leave)
        self.left(answer is not None and not answer.error_code and not answer.members[0].error_code)

    def haunts(self, ended: Membership, partition: Partition) -> Any:
        """What the process goes on to send after its end."""
        sync = SyncGroupRequest(
            group_id=ended.group,
            generation_id=ended.epoch,
            member_id=ended.member_id,
            group_instance_id=ended.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocols[0],
        )
        beat = HeartbeatRequest(
            group_id=ended.group,
            generation_id=ended.epoch,
            member_id=ended.member_id,
            group_instance_id=ended.instance_id,
        )
        return haunt(self.world, [(beat, 4), (sync, 5)], ended, partition=partition)

    def wrong_requests(self, partition: Partition) -> list[tuple[Any, int, ErrorCode]]:
        """See Member."""
        if self.generation < 1:
            return []
        late = Identity(self.group, self.member_id, self.generation - 1, self.instance_id)
        beat, version = self._heartbeat_request()
        beat.generation_id -= 1
        return [
            (beat, version, ErrorCode.ILLEGAL_GENERATION),
            (commit_request(late, partition, WRONG_OFFSET), COMMIT_VERSION, ErrorCode.ILLEGAL_GENERATION),
        ]

    @property
    def identity(self) -> Identity:
        """Who it says it is."""
        return Identity(self.group, self.member_id, self.generation, self.instance_id)
