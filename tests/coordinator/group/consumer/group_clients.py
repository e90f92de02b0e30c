"""Clients of either protocol that keep to it, whatever the coordinator answers; for random tests.

Each has one thing to do next (`step`). What a client owns is what it may consume: it owns nothing new before it
was told, and says that it owns something for as long as it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coordinator.group.consumer_protocol import read_assignment, read_subscription
from tests.coordinator.group.consumer.consumer_world import beat, enter
from tests.coordinator.group.shard_world import World, heartbeat, join, leave, sync
from wire.errors import ErrorCode, KafkaError
from wire.messages.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)

Partition = tuple[bytes, int]
BEGIN_ANEW = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_INSTANCE_ID,
}


NOT_LET_IN = {
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


def code_of(response: Any) -> ErrorCode:
    return response.code if isinstance(response, KafkaError) else ErrorCode(response.error_code)


@dataclass(slots=True)
class ConsumerClient:
    """Speaks the consumer protocol."""

    world: World
    member_id: str
    topics: list[str]
    instance_id: str | None = None
    regex: str | None = None
    epoch: int = 0
    owned: set[Partition] = field(default_factory=set)
    has_missed_an_answer: bool = False
    is_refused: bool = False

    @property
    def is_member(self) -> bool:
        return self.epoch > 0

    @property
    def is_settled(self) -> bool:
        """It is in, or the group is full, or classic and stays so."""
        return self.is_member or self.is_refused

    def step(self, *, says_what_it_owns: bool = True, hears: bool = True, **fields: Any) -> None:
        """One heartbeat; a client that does not hear learns nothing of the answer."""
        if self.epoch <= 0:
            self.owned = set()
            request = enter(
                self.member_id,
                *self.topics,
                instance_id=self.instance_id,
                subscribed_topic_regex=self.regex,
                **fields,
            )
        else:
            owned = self._owned_by_id() if says_what_it_owns or self.has_missed_an_answer else None
            if self.has_missed_an_answer:
                fields = {"subscribed_topic_names": self.topics, "rebalance_timeout_ms": 60_000, **fields}
            request = beat(self.member_id, self.epoch, owned=owned, instance_id=self.instance_id, **fields)
        response = self.world.call(request, 1)
        self.has_missed_an_answer = not hears
        if hears:
            self._learn(response)

    def wish(self, topics: list[str]) -> None:
        """Change the subscription; what is not wanted is no longer owned."""
        self.topics = topics
        if self.regex is None:
            ids = {self.world.image.topics.ids.get(topic) for topic in topics}
            self.owned = {(topic_id, index) for topic_id, index in self.owned if topic_id in ids}
        if self.epoch > 0:
            self.step(subscribed_topic_names=topics)

    def go(self, *, for_a_while: bool = False) -> None:
        """Leave."""
        if self.epoch > 0:
            epoch = -2 if for_a_while and self.instance_id is not None else -1
            self.world.call(beat(self.member_id, epoch, instance_id=self.instance_id), 1)

    def _owned_by_id(self) -> dict[bytes, list[int]]:
        owned: dict[bytes, list[int]] = {}
        for topic_id, index in sorted(self.owned):
            owned.setdefault(topic_id, []).append(index)
        return owned

    def _learn(self, response: Any) -> None:
        self.is_refused = self.epoch == 0 and code_of(response) in NOT_LET_IN
        if code_of(response) in BEGIN_ANEW:
            self.epoch, self.owned = 0, set()
        elif code_of(response) is not ErrorCode.NONE:
            self.has_missed_an_answer = True
        else:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.owned = {
                    (topic.topic_id, index)
                    for topic in response.assignment.topic_partitions
                    for index in topic.partitions
                }


@dataclass(slots=True)
class ClassicClient:
    """Speaks the classic protocol, cooperatively: keeps what it owns while it joins again."""

    world: World
    client_id: str
    topics: list[str]
    instance_id: str | None = None
    member_id: str = ""
    generation_id: int = -1
    owned: set[Partition] = field(default_factory=set)
    todo: str = "join"
    ticket: int | None = None
    members: list[Any] = field(default_factory=list)
    is_refused: bool = False

    @property
    def is_member(self) -> bool:
        return self.todo == "beat"

    @property
    def is_settled(self) -> bool:
        """It has nothing left to do, or is not let in."""
        return self.is_member or self.is_refused

    def step(self, **_: Any) -> None:
        """Whatever is next: read an answer that was waited for, join, sync, or say that it is here."""
        if self.ticket is None:
            self.ticket = self.world.ask(self._request(), 5 if self.todo == "sync" else 4 if self.todo == "beat" else 9)
        if self.ticket in self.world.replies:
            response = self.world.replies[self.ticket]
            self.ticket = None
            self._learn(response)
        elif self.ticket not in self.world._asked:
            self.ticket = None  # the coordinator moved meanwhile

    def go(self, **_: Any) -> None:
        """Leave."""
        if self.member_id:
            self.world.ask(leave("g", (self.member_id, self.instance_id)), 5)

    def _request(self) -> Any:
        if self.todo == "join":
            pairs = [
                ConsumerProtocolSubscriptionTopicPartition(topic=topic.name, partitions=[index])
                for topic_id, index in sorted(self.owned)
                if (topic := self.world.image.topics.by_id(topic_id)) is not None
            ]
            body = ConsumerProtocolSubscription(topics=self.topics, owned_partitions=pairs)
            protocols = {"cooperative-sticky": b"\0\3" + body.encode(3)}
            return join("g", self.member_id, protocols=protocols, group_instance_id=self.instance_id)
        if self.todo == "sync":
            request = sync("g", self.member_id, self.generation_id, self._assignments())
        else:
            request = heartbeat("g", self.member_id, self.generation_id)
        request.group_instance_id = self.instance_id
        return request

    def _assignments(self) -> dict[str, bytes]:
        """As a leader: everything is dealt out to whoever wants it, so that nobody gets what another owns."""
        if not self.members:
            return {}
        wanted = {each.member_id: read_subscription(each.metadata) for each in self.members}
        owners = {
            (pair.topic, index): member_id
            for member_id, subscription in wanted.items()
            for pair in subscription.owned_partitions
            for index in pair.partitions
        }
        given: dict[str, list[ConsumerProtocolAssignmentTopicPartition]] = {member_id: [] for member_id in wanted}
        for topic in self.world.image.topics.topics.values():
            takers = sorted(member_id for member_id, each in wanted.items() if topic.name in each.topics)
            for index in range(len(topic.partitions)):
                if takers:
                    owner = owners.get((topic.name, index))
                    taker = owner if owner in takers else takers[index % len(takers)]
                    pair = ConsumerProtocolAssignmentTopicPartition(topic=topic.name, partitions=[index])
                    given[taker].append(pair)
        return {
            member_id: b"\0\0" + ConsumerProtocolAssignment(assigned_partitions=pairs).encode(0)
            for member_id, pairs in given.items()
        }

    def _learn(self, response: Any) -> None:
        code = code_of(response)
        self.is_refused = code in NOT_LET_IN
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif code in BEGIN_ANEW:
            self.member_id, self.owned, self.todo = "", set(), "join"
        elif code is not ErrorCode.NONE:
            self.todo = "join"
        elif self.todo == "join":
            self.member_id, self.generation_id = response.member_id, response.generation_id
            self.members, self.todo = response.members, "sync"
        elif self.todo == "sync":
            pairs = read_assignment(response.assignment).assigned_partitions if response.assignment else []
            had = self.owned
            ids = self.world.image.topics.ids
            self.owned = {(ids[each.topic], index) for each in pairs if each.topic in ids for index in each.partitions}
            # Having given something up, it joins again so that others may have it.
            self.todo = "join" if had - self.owned else "beat"
