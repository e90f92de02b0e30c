"""Words for stories about consumer groups: images of topics, requests, and clients that keep to the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from immutables import Map

from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_settings import ConsumerGroupSettings, Limited
from coordinator.group.context import GroupSettings
from coordinator.group.shard import GroupShard
from coordinator.metadata.image import (
    RESOURCE_GROUP,
    BrokerImage,
    ConfigsImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from tests.coordinator.group.shard_world import World, replay_log
from wire.errors import ErrorCode, KafkaError
from wire.messages.consumer_group_describe import DescribedGroup
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

Owned = Mapping[bytes, Iterable[int]]
SESSION_TIMEOUT_MS = 45_000


def topic_id(name: str) -> bytes:
    """The id that a topic of this name has in these stories."""
    return name.encode().ljust(16, b"\x01")[:16]


def image_of(
    topics: Mapping[str, int],
    *,
    configs: Mapping[str, str] | None = None,
    racks: Mapping[int, str] | None = None,
    ids: Mapping[str, bytes] | None = None,
    offset: int = 1,
) -> MetadataImage:
    """A cluster with these topics (name → partitions); `configs` are of the group g."""
    partition = PartitionImage((1, 2), (1, 2), 1, 0, 0)
    images = [
        TopicImage(name, (ids or {}).get(name, topic_id(name)), Map(dict.fromkeys(range(count), partition)))
        for name, count in topics.items()
    ]
    return MetadataImage(
        topics=TopicsImage(
            Map({each.name: each.topic_id for each in images}), Map({each.topic_id: each for each in images})
        ),
        brokers=Map({broker: BrokerImage(broker, 1, bytes(16), rack=rack) for broker, rack in (racks or {}).items()}),
        configs=ConfigsImage(Map({(RESOURCE_GROUP, "g"): Map(configs)}) if configs else Map()),
        offset=offset,
    )


def settings_with(*, interval_ms: int = 0, group_max_size: int = 2**31 - 1, **fields: Any) -> GroupSettings:
    """Settings under which targets are computed at once; `group_max_size` is of groups of either kind."""
    consumer = ConsumerGroupSettings(
        assignment_interval_ms=Limited(interval_ms, 0, 15_000), group_max_size=group_max_size, **fields
    )
    return GroupSettings(consumer=consumer, group_max_size=group_max_size)


def world_of(topics: Mapping[str, int], *, interval_ms: int = 0, **fields: Any) -> World:
    """A world with these topics and consumer group settings."""
    return World(settings_with(interval_ms=interval_ms, **fields), image=image_of(topics))


def beat(
    member_id: str, member_epoch: int, *, group_id: str = "g", owned: Owned | None = None, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat; `owned` None says nothing about what is owned."""
    if owned is not None:
        fields["topic_partitions"] = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=each, partitions=list(partitions))
            for each, partitions in owned.items()
        ]
    return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=member_epoch, **fields)


def enter(member_id: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """A first heartbeat."""
    values: dict[str, Any] = {
        "subscribed_topic_names": list(topics),
        "rebalance_timeout_ms": 60_000,
        "owned": {},
        **fields,
    }
    return beat(member_id, 0, **values)


def call(world: World, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> ConsumerGroupHeartbeatResponse:
    """The answer to a heartbeat that is not refused."""
    response = world.call(request, version)
    assert isinstance(response, ConsumerGroupHeartbeatResponse), response
    assert response.error_code == ErrorCode.NONE
    return response


def code(world: World, request: Any, version: int = 1) -> ErrorCode:
    """The code of an answer."""
    response = world.call(request, version)
    return response.code if isinstance(response, KafkaError) else ErrorCode(response.error_code)


def assigned(response: ConsumerGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    """What an answer assigns; None if it says nothing."""
    if response.assignment is None:
        return None
    return {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}


def group_of(world: World, group_id: str = "g") -> ConsumerGroup:
    """The consumer group."""
    group = world.shard.group(group_id)
    assert isinstance(group, ConsumerGroup), f"{group_id} is no consumer group"
    return group


def epochs(world: World) -> tuple[int, int]:
    """Epoch of the group g, and of its target."""
    group = group_of(world)
    return group.group_epoch, group.assignment_epoch


def describe(world: World, group_id: str = "g") -> DescribedGroup:
    """ConsumerGroupDescribe."""
    from coordinator.group.consumer_describe import describe_consumer_group

    assignors = world.settings.consumer.assignors
    return describe_consumer_group(world.shard.group(group_id), group_id, assignors, world.image.topics)


def durable(group: ConsumerGroup) -> ConsumerGroup:
    """The group as records tell it: without deadlines and what was last seen; order does not count."""
    return replace(
        group,
        session_deadlines={},
        rebalance_deadlines={},
        join_deadlines={},
        sync_deadlines={},
        seen_topics=None,
        regex_refresh=None,
        resolved_topic_ids=None,
    )


class Follower:
    """Reads a world's log as it grows, and knows nothing else."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._shard = GroupShard(world.settings)
        self._position = 0

    def check(self) -> None:
        """Read on, and compare: whoever reads the log has the same groups."""
        world = self._world
        replay_log(self._shard, world.log, self._position)
        self._position = len(world.log)
        for group in world.shard._groups:
            again = self._shard.group(group.group_id)
            assert again is not None, f"{group.group_id} is not in the log"
            if isinstance(group, ConsumerGroup):
                assert isinstance(again, ConsumerGroup)
                assert durable(again) == durable(group)
        assert {each.group_id for each in self._shard._groups} == {each.group_id for each in world.shard._groups}


def check_replay(world: World) -> None:
    """Whoever reads the log from its start has the same groups."""
    Follower(world).check()


@dataclass(slots=True)
class Client:
    """A member that keeps to the protocol: owns what it was assigned, gives up what it is told to."""

    world: World
    member_id: str
    fields: dict[str, Any] = field(default_factory=dict)
    member_epoch: int = 0
    owned: dict[bytes, list[int]] = field(default_factory=dict)

    def join(self, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Enter, or enter again after having been fenced."""
        self.owned = {}
        return self._learn(call(self.world, enter(self.member_id, *topics, **self.fields, **fields)))

    def beat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat that says what is owned."""
        request = beat(self.member_id, self.member_epoch, owned=self.owned, **self.fields, **fields)
        return self._learn(call(self.world, request))

    def _learn(self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        self.member_epoch = response.member_epoch
        told = assigned(response)
        if told is not None:
            self.owned = told
        return response

    @property
    def count(self) -> int:
        """How many partitions it owns."""
        return sum(len(partitions) for partitions in self.owned.values())


def settle(*clients: Client) -> None:
    """Heartbeats of all until nothing changes any more."""
    for _ in range(20):
        before = [(client.member_epoch, dict(client.owned)) for client in clients]
        for client in clients:
            client.beat()
        if before == [(client.member_epoch, client.owned) for client in clients]:
            return
    raise AssertionError("the group does not settle")
