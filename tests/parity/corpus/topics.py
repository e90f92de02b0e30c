"""CreateTopics, DeleteTopics, CreatePartitions and what Metadata shows of them."""

from __future__ import annotations

from tests.parity.player import Player
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def _create(name: str, **fields: object) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    for field, value in fields.items():
        setattr(topic, field, value)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


def scenario_create_topics_errors(player: Player) -> None:
    """Each refusal of CreateTopics by itself, and which of two wins."""
    connection, name = player.connect(), player.name
    connection.call(_create(name("there")), 7, "create")
    connection.call(_create(name("there"), replication_factor=99), 7, "exists wins over factor")
    connection.call(_create(name("a"), num_partitions=0), 7, "no partitions")
    connection.call(_create(name("a"), num_partitions=-2), 7, "negative partitions")
    connection.call(_create(name("a"), replication_factor=0), 7, "factor zero")
    connection.call(_create(name("a"), replication_factor=0, num_partitions=0), 7, "both zero")
    connection.call(_create(name("a"), replication_factor=2), 7, "factor above brokers")
    for text in ("", ".", "..", "a" * 250, "with space", "sla/sh"):
        connection.call(_create(text), 7, f"name {text[:12]!r}")
    connection.call(_create("__cluster_metadata"), 7, "the metadata topic")
    for config in (("retention.ms", None), ("retention.ms", "x"), ("nosuch", "1")):
        configs = [CreatableTopicConfig(name=config[0], value=config[1])]
        connection.call(_create(name("a"), configs=configs), 7, f"config {config}")
    doubled = _create(name("twice"))
    doubled.topics *= 2
    connection.call(doubled, 7, "same name twice")
    both = _create(name("a"), num_partitions=0)
    both.topics.append(_create(name("good")).topics[0])
    connection.call(both, 7, "one bad, one good")


def scenario_create_topics_assignments(player: Player) -> None:
    """Manual assignments that CreateTopics refuses."""
    connection, name = player.connect(), player.name
    node = connection.call(MetadataRequest(topics=[]), 12).brokers[0].node_id

    def assigned(*partitions: tuple[int, list[int]], **fields: object) -> CreateTopicsRequest:
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in partitions
        ]
        values = {"num_partitions": -1, "replication_factor": -1, **fields}
        return _create(name("m"), assignments=assignments, **values)

    connection.call(assigned((0, [node]), (2, [node])), 7, "gap")
    connection.call(assigned((0, [node]), (0, [node])), 7, "partition twice")
    connection.call(assigned((0, [])), 7, "no replicas")
    connection.call(assigned((0, [node, node])), 7, "broker twice")
    connection.call(assigned((0, [9999])), 7, "unknown broker")
    connection.call(assigned((0, [node]), num_partitions=1), 7, "count beside assignment")
    connection.call(assigned((0, [node]), (1, [node])), 7, "good")


def scenario_create_topics_versions(player: Player) -> None:
    """Success and validate_only in every version."""
    connection, name = player.connect(), player.name
    for version in range(2, 8):
        request = _create(name(f"v{version}"), num_partitions=2)
        request.validate_only = True
        connection.call(request, version, f"validate only v{version}")
        request.validate_only = False
        connection.call(request, version, f"create v{version}")
    connection.call(_create(name("d"), num_partitions=-1, replication_factor=-1), 7, "defaults")
    connection.call(_create(name("D.x")), 7, "dot")
    connection.call(_create(name("D_x")), 7, "collides with dot")


def scenario_delete_topics(player: Player) -> None:
    """By name and id, unknown ones, and nonsense."""
    connection, name = player.connect(), player.name
    for version in range(1, 6):
        connection.call(_create(name(f"n{version}")), 7)
        request = DeleteTopicsRequest(topic_names=[name(f"n{version}")], timeout_ms=30_000)
        connection.call(request, version, f"delete v{version}")
        connection.call(request, version, f"delete again v{version}")
    created = connection.call(_create(name("by-id")), 7)
    by_id = DeleteTopicState(name=None, topic_id=created.topics[0].topic_id)
    connection.call(DeleteTopicsRequest(topics=[by_id], timeout_ms=30_000), 6, "by id")
    connection.call(DeleteTopicsRequest(topics=[by_id], timeout_ms=30_000), 6, "by id again")
    neither = DeleteTopicState(name=None)
    connection.call(DeleteTopicsRequest(topics=[neither], timeout_ms=30_000), 6, "neither")
    connection.call(DeleteTopicsRequest(topics=[], timeout_ms=30_000), 6, "nothing")


def scenario_create_partitions(player: Player) -> None:
    """Growing, not growing, shrinking, unknown topics."""
    connection, name = player.connect(), player.name
    connection.call(_create(name("p"), num_partitions=2), 7)

    def grow(topic: str, count: int) -> CreatePartitionsRequest:
        item = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        return CreatePartitionsRequest(topics=[item], timeout_ms=30_000)

    for version in range(4):
        connection.call(grow(name("p"), 3 + version), version, f"grow v{version}")
    connection.call(grow(name("p"), 6), 3, "same count")
    connection.call(grow(name("p"), 3), 3, "fewer")
    connection.call(grow(name("nosuch"), 3), 3, "unknown topic")
    twice = grow(name("p"), 8)
    twice.topics *= 2
    connection.call(twice, 3, "topic twice")
    topics = [MetadataRequestTopic(name=name("p"))]
    connection.call(MetadataRequest(topics=topics), 12, "metadata afterwards")


def scenario_metadata(player: Player) -> None:
    """Named, unknown, invalid and no topics, in every version."""
    connection, name = player.connect(), player.name
    created = connection.call(_create(name("m"), num_partitions=2), 7)
    for version in range(14):
        topics = [MetadataRequestTopic(name=name("m")), MetadataRequestTopic(name="bad name")]
        if version >= 4:
            topics.append(MetadataRequestTopic(name=name("nosuch")))
        request = MetadataRequest(topics=topics)
        if version >= 4:
            request.allow_auto_topic_creation = False
        connection.call(request, version, f"named v{version}")
        if version >= 1:
            connection.call(MetadataRequest(topics=[]), version, f"none v{version}")
    by_id = [
        MetadataRequestTopic(name=None, topic_id=created.topics[0].topic_id),
        MetadataRequestTopic(name=None, topic_id=b"\x01" * 16),
    ]
    for version in (10, 12, 13):
        connection.call(MetadataRequest(topics=by_id), version, f"by id v{version}")
