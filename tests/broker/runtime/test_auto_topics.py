"""Topics made on demand, and how the controller is asked in process."""

from __future__ import annotations

import asyncio

import pytest

from broker.runtime.auto_topics import AutoTopics, AutoTopicSettings
from coordinator.metadata.image import RESOURCE_TOPIC
from tests.broker.runtime.metadata_world import MetadataWorld
from wire.errors import ErrorCode, KafkaError
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest


async def opened() -> MetadataWorld:
    world = MetadataWorld()
    world.open()
    await world.join()
    return world


async def test_one_creation_in_flight_per_name_and_everybody_gets_its_outcome() -> None:
    world = await opened()
    auto = AutoTopics(world.controller, world.metadata, AutoTopicSettings())
    end = world.quorum.log_end_offset
    outcomes = await asyncio.gather(*(auto.ensure(["a", "b", "a"]) for _ in range(5)), auto.ensure(["b", "sp ace"]))
    assert outcomes[:5] == [{}] * 5
    assert [error.code for error in outcomes[5].values()] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert world.names() == ["a", "b"]
    # A topic and a partition each, once.
    assert world.quorum.log_end_offset - end == 4
    assert await auto.ensure(["a"]) == {}
    assert world.quorum.log_end_offset - end == 4
    await world.close()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("__consumer_offsets", {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "77"}),
        (
            "__transaction_state",
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": "1",
                "segment.bytes": "104857600",
            },
        ),
        (
            "__share_group_state",
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "retention.ms": "-1",
                "min.insync.replicas": "1",
                "segment.bytes": "104857600",
            },
        ),
    ],
)
async def test_u04_internal_topics_fit_one_node(name: str, expected: dict[str, str]) -> None:
    world = await opened()
    settings = AutoTopicSettings(offsets_partitions=5, offsets_segment_bytes=77)
    assert await AutoTopics(world.controller, world.metadata, settings).ensure([name]) == {}
    topic = world.image.topics.by_name(name)
    assert topic is not None
    assert len(topic.partitions) == (5 if name == "__consumer_offsets" else 50)
    assert {partition.replicas for partition in topic.partitions.values()} == {(1,)}
    assert dict(world.image.configs.of(RESOURCE_TOPIC, name)) == expected
    await world.close()


async def test_u04_a_cluster_wide_min_isr_above_the_replicas_does_not_hold_internal_topics() -> None:
    world = await opened()
    settings = AutoTopicSettings(offsets_partitions=1, min_insync_replicas=2)
    # The log says 1, which speaks for the cluster; a node whose log says nothing goes by its settings.
    await AutoTopics(world.controller, world.metadata, settings).ensure(["__consumer_offsets"])
    assert "min.insync.replicas" not in world.image.configs.of(RESOURCE_TOPIC, "__consumer_offsets")
    await world.close()


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_i16_a_deadline_that_has_passed_does_nothing(timeout_ms: int) -> None:
    world = await opened()
    request = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)])
    with pytest.raises(KafkaError) as raised:
        await world.controller.request(request, timeout_ms=timeout_ms)
    assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert world.names() == []
    assert (await world.controller.request(request, timeout_ms=1000)).topics[0].error_code == ErrorCode.NONE
    await world.close()


async def test_producer_ids_come_in_blocks_that_outlive_a_restart() -> None:
    world = await opened()
    first = await world.controller.allocate_producer_ids()
    assert (first.first_id, first.size) == (0, 1000)
    await world.close()
    again = MetadataWorld(world.files)
    again.open()
    await again.join()
    assert (await again.controller.allocate_producer_ids()).first_id == 1000
    await again.close()


async def test_a_node_that_stops_refuses_and_does_not_hang() -> None:
    world = await opened()
    await world.quorum.close()
    with pytest.raises(KafkaError) as raised:
        await world.create("a")
    assert raised.value.code is ErrorCode.BROKER_NOT_AVAILABLE
    await world.lifecycle.shut_down()
    world.log.close()
    world.clock.close()
