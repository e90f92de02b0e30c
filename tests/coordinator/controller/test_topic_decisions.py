"""CreateTopics, CreatePartitions, DeleteTopics as decisions: codes, their order, what is written."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.controller.topics import DeleteTopics
from coordinator.metadata.image import RESOURCE_TOPIC
from tests.coordinator.controller.controller_world import ControllerWorld, directory_of
from wire.errors import ErrorCode, KafkaError
from wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from wire.primitives import ZERO_UUID


def creatable(name: str = "t", **fields: Any) -> CreatableTopic:
    values: dict[str, Any] = {"num_partitions": 1, "replication_factor": 1, **fields}
    return CreatableTopic(name=name, **values)


def assigned(*partitions: tuple[int, list[int]], **fields: Any) -> CreatableTopic:
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in partitions
    ]
    return creatable(**{"num_partitions": -1, "replication_factor": -1, "assignments": assignments, **fields})


def configured(name: str, value: str | None) -> CreatableTopic:
    return creatable(configs=[CreatableTopicConfig(name=name, value=value)])


def create(world: ControllerWorld, *topics: CreatableTopic, validate_only: bool = False) -> list[CreatableTopicResult]:
    response = world.submit(CreateTopicsRequest(topics=list(topics), validate_only=validate_only))
    results: list[CreatableTopicResult] = response.topics
    return results


REFUSALS = [
    (creatable("there", replication_factor=99), ErrorCode.TOPIC_ALREADY_EXISTS),
    (creatable("a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (creatable("a.b", num_partitions=0), ErrorCode.TOPIC_ALREADY_EXISTS),
    (creatable(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (creatable("."), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (creatable(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (creatable("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (creatable("sp ace"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (creatable("naïve"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (configured("retention.ms", None), ErrorCode.INVALID_CONFIG),
    (configured("no.such.key", "1"), ErrorCode.INVALID_CONFIG),
    (configured("retention.ms", "soon"), ErrorCode.INVALID_CONFIG),
    (assigned((0, [1]), replication_factor=1), ErrorCode.INVALID_REQUEST),
    (assigned((0, [1]), num_partitions=1), ErrorCode.INVALID_REQUEST),
    (assigned((0, [1]), (2, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (assigned((0, [1]), (0, [2])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (assigned((0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (assigned((0, [7])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (assigned((0, [1, 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (assigned((0, [1, 2]), (1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (assigned((0, [3])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (creatable(replication_factor=0, num_partitions=0), ErrorCode.INVALID_REPLICATION_FACTOR),
    (creatable(replication_factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
    (creatable(num_partitions=0, replication_factor=99), ErrorCode.INVALID_PARTITIONS),
    (creatable(num_partitions=-2), ErrorCode.INVALID_PARTITIONS),
    (creatable(replication_factor=4), ErrorCode.INVALID_REPLICATION_FACTOR),
]


@pytest.fixture(name="refusing")
def refusing_world() -> ControllerWorld:
    """Three brokers, the third fenced, and the topics `there` and `a.b`."""
    world = ControllerWorld(brokers=3)
    create(world, creatable("there"), creatable("a.b"))
    world.heartbeat(3, want_fence=True)
    return world


@pytest.mark.parametrize(("topic", "code"), REFUSALS)
@pytest.mark.parametrize("validate_only", [False, True])
def test_a09_refused_topics_have_kafkas_code_and_a_text(
    refusing: ControllerWorld, topic: CreatableTopic, code: ErrorCode, validate_only: bool
) -> None:
    before = list(refusing.records)
    (result,) = create(refusing, topic, validate_only=validate_only)
    assert (ErrorCode(result.error_code), bool(result.error_message)) == (code, True)
    assert refusing.records == before


def test_a09_texts_name_the_value_and_the_limit(refusing: ControllerWorld) -> None:
    results = create(
        refusing,
        creatable("a", num_partitions=0),
        creatable("b", replication_factor=99),
        creatable("x" * 250),
        assigned((0, [7])),
    )
    texts = [result.error_message or "" for result in results]
    assert "num.partitions" in texts[0]
    assert " is 0" in texts[0]
    assert "99" in texts[1]
    assert "3 broker" in texts[1]
    assert "250" in texts[2]
    assert "249" in texts[2]
    assert "broker 7" in texts[3]


def test_a07_minus_one_takes_the_defaults_and_the_answer_has_real_numbers() -> None:
    world = ControllerWorld(brokers=2, num_partitions=3, default_replication_factor=2)
    (result,) = create(world, creatable(num_partitions=-1, replication_factor=-1))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 2)
    assert result.topic_id != ZERO_UUID
    topic = world.image.topics.by_name("t")
    assert topic is not None
    assert (topic.topic_id, len(topic.partitions)) == (result.topic_id, 3)
    assert [setting.name for setting in result.configs or ()] == ["retention.ms"]


def test_a08_validate_only_answers_as_the_real_call_and_writes_nothing() -> None:
    world = ControllerWorld()
    before = list(world.records)
    (result,) = create(world, creatable(num_partitions=5), validate_only=True)
    assert (result.error_code, result.num_partitions, result.topic_id != ZERO_UUID) == (0, 5, True)
    assert world.records == before
    assert world.image.topics.by_name("t") is None


def test_one_refused_topic_does_not_hold_up_the_others() -> None:
    world = ControllerWorld()
    results = create(world, creatable("bad", num_partitions=0), creatable("good"))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_PARTITIONS, ErrorCode.NONE]
    assert sorted(world.image.topics.names()) == ["good"]


def test_more_than_ten_thousand_partitions_are_refused_as_a_whole() -> None:
    world = ControllerWorld()
    with pytest.raises(KafkaError) as raised:
        create(world, creatable("a", num_partitions=5_000), creatable("b", num_partitions=5_001))
    assert raised.value.code is ErrorCode.POLICY_VIOLATION
    assert "10001" in str(raised.value)
    assert "10000" in str(raised.value)
    assert create(world, creatable("a", num_partitions=10_000))[0].error_code == ErrorCode.NONE


def test_a_new_partition_is_led_by_its_first_active_replica_with_epoch_zero() -> None:
    world = ControllerWorld(brokers=3)
    world.heartbeat(2, want_fence=True)
    create(world, assigned((0, [2, 3, 1])))
    partition = world.partition("t")
    assert partition.replicas == (2, 3, 1)
    assert (partition.isr, partition.leader, partition.leader_epoch) == ((3, 1), 3, 0)
    assert partition.directories == (directory_of(2), directory_of(3), directory_of(1))


def test_settings_are_written_before_the_partitions() -> None:
    world = ControllerWorld()
    create(world, configured("retention.ms", "5"))
    kinds = [type(record.message).__name__ for record in world.records[-3:]]
    assert kinds == ["TopicRecord", "ConfigRecord", "PartitionRecord"]
    assert dict(world.image.configs.of(RESOURCE_TOPIC, "t")) == {"retention.ms": "5"}


def grow(world: ControllerWorld, *topics: CreatePartitionsTopic, validate_only: bool = False) -> list[int]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=1, validate_only=validate_only)
    return [result.error_code for result in world.submit(request).results]


def grown(name: str, count: int, *assignments: list[int]) -> CreatePartitionsTopic:
    given = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments] or None
    return CreatePartitionsTopic(name=name, count=count, assignments=given)


def test_a11_growing_again_shrinking_and_unknown_topics_are_refused() -> None:
    world = ControllerWorld(brokers=2)
    create(world, creatable(num_partitions=2))
    old = [world.partition("t", index) for index in range(2)]
    assert grow(world, grown("t", 5)) == [ErrorCode.NONE]
    assert [world.partition("t", index) for index in range(2)] == old
    assert [world.partition("t", index).leader > 0 for index in range(5)] == [True] * 5
    assert grow(world, grown("t", 5), grown("t", 3), grown("u", 3)) == [
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    topic = world.image.topics.by_name("t")
    assert topic is not None
    assert len(topic.partitions) == 5


@pytest.mark.parametrize(
    "topic",
    [
        grown("t", 4, [1]),
        grown("t", 3, [1], [2]),
        grown("t", 3, [7]),
        grown("t", 3, [1, 1]),
        grown("t", 3, [1, 2]),
        CreatePartitionsTopic(name="t", count=3, assignments=[]),
        CreatePartitionsTopic(name="t", count=3, assignments=[CreatePartitionsAssignment(broker_ids=[])]),
    ],
)
def test_bad_assignments_of_new_partitions_are_refused(topic: CreatePartitionsTopic) -> None:
    world = ControllerWorld(brokers=2)
    create(world, creatable(num_partitions=2))
    assert grow(world, topic) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]


def test_a08_validate_only_does_not_grow() -> None:
    world = ControllerWorld()
    create(world, creatable())
    before = list(world.records)
    assert grow(world, grown("t", 4), validate_only=True) == [ErrorCode.NONE]
    assert world.records == before


def test_additions_are_counted_over_the_whole_request() -> None:
    world = ControllerWorld()
    create(world, creatable("a"), creatable("b"))
    with pytest.raises(KafkaError) as raised:
        grow(world, grown("a", 6_001), grown("b", 6_001))
    assert raised.value.code is ErrorCode.POLICY_VIOLATION
    assert grow(world, grown("a", 10_001)) == [ErrorCode.NONE]


def test_a_deleted_topic_takes_its_settings_along_and_frees_its_name() -> None:
    world = ControllerWorld()
    (first,) = create(world, configured("retention.ms", "5"))
    result = world.submit(DeleteTopics([first.topic_id, b"\x07" * 16]))
    assert result.errors[first.topic_id] is None
    assert result.errors[b"\x07" * 16].code is ErrorCode.UNKNOWN_TOPIC_ID
    assert world.image.topics.by_name("t") is None
    assert dict(world.image.configs.of(RESOURCE_TOPIC, "t")) == {}
    (second,) = create(world, creatable())
    assert second.error_code == ErrorCode.NONE
    assert second.topic_id != first.topic_id
