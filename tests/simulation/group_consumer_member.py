"""A member that speaks the consumer protocol (KIP-848): everything happens in ConsumerGroupHeartbeat."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.simulation.group_assignor import by_topic
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
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

LEAVES = -1
LEAVES_FOR_A_WHILE = -2
VERSION = 1
NO_TOPIC = "nowhere"
NOT_YET = (ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.GROUP_ID_NOT_FOUND)


class ConsumerMember(Member):
    """One process; it asks for topics by name or by an expression, and perhaps for an assignor."""

    kind = "consumer"

    def __init__(
        self,
        world: GroupWorld,
        group: str,
        topics: frozenset[str],
        instance_id: str | None,
        *,
        regex: str | None = None,
        assignor: str | None = None,
    ) -> None:
        super().__init__(world, group, topics, instance_id)
        self.regex = regex
        self.assignor = assignor
        self.member_id = f"m{next(world.numbers)}"
        self.session_ms = 0
        self.rebalance_ms = world.random.choice(REBALANCE_MS)
        self.epoch = 0
        self._interval_s = 1.0
        self._is_unsure = True
        """An answer was lost: say everything."""
        self._has_changed = False
        """What it owns is not what the coordinator heard last."""

    async def step(self) -> None:
        """Wait and send a heartbeat; soon where there is something to tell."""
        is_urgent = self._has_changed or self._is_unsure
        await asyncio.sleep(self.world.random.choice([0.05, 0.2]) if is_urgent else self._interval_s)
        if self.epoch:
            await self.misbehave()
        await self._beat()

    # --- heartbeats -----------------------------------------------------------------------------

    async def _beat(self) -> ErrorCode | None:
        world = self.world
        joins = self.epoch == 0
        if joins:
            world.history.challenge(self.group, self.instance_id)
        sent_ms = world.now_ms
        answer = await world.ask(self.client, self._request(), VERSION)
        if answer is None:
            self._is_unsure = True
            self.not_answered(changes=joins)
            await world.back_off()
            return None
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            await self._learn(answer, sent_ms)
        elif code in REMOVALS or code is ErrorCode.FENCED_INSTANCE_ID:
            self.removed(code)
        elif code in NOT_YET:
            # The place is taken, the group is full, or it has become another; members do not get this.
            self.removed(code)
            if code is ErrorCode.GROUP_MAX_SIZE_REACHED:
                raise Gone
            await asyncio.sleep(2)
        else:
            assert code in AGAIN, f"ConsumerGroupHeartbeat of {self.name} gets {code.name}: {answer.error_message}"
            self._is_unsure = True
            await world.back_off()
        return code

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if self._is_unsure or self.epoch == 0:
            request.rebalance_timeout_ms = self.rebalance_ms
            request.subscribed_topic_names = [] if self.regex else sorted(self.topics)
            request.subscribed_topic_regex = self.regex or ""
            request.server_assignor = self.assignor
        if self._is_unsure or self._has_changed or self.epoch == 0:
            request.topic_partitions = self._owned()
            self.give_up(self.owned)
        return request

    def _owned(self) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
        ids = {name: topic_id for topic_id, name in self.world.names.items()}
        return [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=ids[topic], partitions=indexes)
            for topic, indexes in by_topic(self.owned).items()
        ]

    async def _learn(self, answer: Any, sent_ms: float) -> None:
        """An answer: the epoch, and what the member is to have if that has changed."""
        world, history = self.world, self.world.history
        self._interval_s = answer.heartbeat_interval_ms / 1000
        if self.membership is None:
            self.begin_membership()
        member = self.membership
        assert member is not None
        self.epoch = answer.member_epoch
        self._is_unsure = self._has_changed = False
        revoked: set[Partition] = set()
        if answer.assignment is not None:
            assigned = await self._named(answer.assignment)
            revoked = self.owned - assigned
            self._has_changed = assigned != self.owned
        history.told_epoch(member, self.epoch, world.now_ms, is_written=True)
        history.heard(member, sent_ms, world.now_ms, at_ease=not revoked)
        if answer.assignment is not None:
            history.got(member, assigned, world.now_ms)
            # Of a topic that came again it could not say which of the two it means.
            is_clear = not any(topic in history.reborn for topic, _ in self.owned)
            if revoked and is_clear and world.chance(0.03):
                await self._disobey()
            if self.membership is not member:
                return
            self.owned = assigned
        if self._has_changed and world.chance(0.5):
            await self.consume()

    async def _named(self, assignment: Any) -> set[Partition]:
        while any(topic.topic_id not in self.world.names for topic in assignment.topic_partitions):
            await self.world.refresh(self.client)
        return {
            (self.world.names[topic.topic_id], index)
            for topic in assignment.topic_partitions
            for index in topic.partitions
        }

    async def _disobey(self) -> None:
        """Go on owning what was to be given up: that ends with the rebalance timeout."""
        world, told_ms, starts = self.world, self.world.now_ms, self.world.history.starts
        world.note(f"{self.name} does not give up")
        claimed = self._owned()
        while self.membership is not None and world.history.starts == starts:
            await asyncio.sleep(self._interval_s)
            late_ms = world.now_ms - told_ms - self.rebalance_ms - world.slack_ms
            request = self._request()
            request.topic_partitions = claimed
            sent_ms = world.now_ms
            answer = await world.ask(self.client, request, VERSION)
            code = self.heard(answer, sent_ms, at_ease=set(), carried_out={ErrorCode.NONE})
            is_gone = any(topic in world.history.reborn for topic, _ in self.owned)
            stays = code is not ErrorCode.NONE or answer.member_epoch == self.epoch or is_gone
            assert stays, f"OneOwner: {self.membership} goes on to {answer.member_epoch} without giving up"
            is_known = code is ErrorCode.NONE and world.history.starts == starts
            assert not is_known or late_ms < 0, f"RemovedInTime: {self.membership} keeps what it was to give up"
            if code in NOT_YET:
                self.removed(code)
                raise Gone

    def subscribe_to_more(self) -> None:
        """Ask for a topic that there is not besides, so that the group computes its target anew."""
        self.topics |= {NO_TOPIC}
        self._is_unsure = True

    # --- the end --------------------------------------------------------------------------------

    def forget(self, code: ErrorCode) -> None:
        """Begin anew with the same member id, unless somebody else uses that."""
        self.epoch = 0
        if self.is_haunted:
            self.member_id = f"m{next(self.world.numbers)}"
            self.is_haunted = False
        self._is_unsure = True
        if code is ErrorCode.FENCED_INSTANCE_ID:
            raise Gone

    async def leave(self) -> None:
        """A heartbeat with epoch -1; static members go for a while, or for good."""
        if self.membership is None:
            return
        self.give_up(set())
        epoch = LEAVES
        if self.instance_id is not None and not self.world.is_over and self.world.random.random() < 0.7:
            epoch = LEAVES_FOR_A_WHILE
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )
        answer = await self.world.ask(self.client, request, VERSION)
        self.epoch = 0
        self.left(answer is not None and not answer.error_code and epoch == LEAVES)

    def haunts(self, ended: Membership, partition: Partition) -> Any:
        """What the process goes on to send after its end."""
        beat = ConsumerGroupHeartbeatRequest(
            group_id=ended.group,
            member_id=ended.member_id,
            member_epoch=ended.epoch,
            instance_id=ended.instance_id,
        )
        return haunt(self.world, [(beat, VERSION)], ended, partition=partition)

    def wrong_requests(self, partition: Partition) -> list[tuple[Any, int, ErrorCode]]:
        """See Member. The epoch before the present one counts from those only who say what they own."""
        early = Identity(self.group, self.member_id, self.epoch + 1, self.instance_id)
        beats = [
            ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
            )
            for epoch in (self.epoch - 1, self.epoch + 1)
            if epoch > 0
        ]
        return [
            *((beat, VERSION, ErrorCode.FENCED_MEMBER_EPOCH) for beat in beats),
            (commit_request(early, partition, WRONG_OFFSET), COMMIT_VERSION, ErrorCode.STALE_MEMBER_EPOCH),
        ]

    @property
    def identity(self) -> Identity:
        """Who it says it is."""
        return Identity(self.group, self.member_id, self.epoch, self.instance_id)
