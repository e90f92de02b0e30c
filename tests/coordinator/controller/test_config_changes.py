"""Changes of settings as the controller decides them: refusals first, then the records and nothing but them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.controller.config_rules import ConfigRules
from coordinator.controller.configs import APPEND, DELETE, SET, SUBTRACT, changed_list
from coordinator.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC
from coordinator.settings import resources
from coordinator.settings.layers import BrokerLayers, BrokerValues
from tests.coordinator.controller.controller_world import ControllerWorld
from wire.errors import ErrorCode, KafkaError
from wire.messages import alter_configs as legacy
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.records.cluster_metadata import ClearElrRecord, ConfigRecord


class SettingsWorld(ControllerWorld):
    """A controller that knows every setting, with a topic `t`."""

    def __init__(self, static: dict[str, str] | None = None) -> None:
        super().__init__()
        rules = ConfigRules(BrokerValues(BrokerLayers(static=static or {})))
        self.settings = replace(self.settings, topic_settings=rules)
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        self.submit(CreateTopicsRequest(topics=[topic]))
        self.records.clear()

    def alter(self, kind: int, name: str, *configs: tuple[str, int, str | None], only: bool = False) -> Any:
        resource = AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in configs],
        )
        return self.submit(IncrementalAlterConfigsRequest(resources=[resource], validate_only=only)).responses[0]

    def replace_all(self, kind: int, name: str, *configs: tuple[str, str]) -> Any:
        resource = legacy.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[legacy.AlterableConfig(name=key, value=value) for key, value in configs],
        )
        return self.submit(legacy.AlterConfigsRequest(resources=[resource], validate_only=False)).responses[0]

    def written(self) -> list[tuple[str, str | None]]:
        """The settings of the records since the last look."""
        found = [(r.message.name, r.message.value) for r in self.records if isinstance(r.message, ConfigRecord)]
        self.records.clear()
        return found


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "code"),
    [
        (RESOURCE_TOPIC, "", "retention.ms", "1", ErrorCode.INVALID_REQUEST),
        (RESOURCE_TOPIC, "a b", "retention.ms", "1", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (RESOURCE_TOPIC, "nosuch", "retention.ms", "1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (RESOURCE_TOPIC, "nosuch", "retention.ms", "x", ErrorCode.INVALID_CONFIG),
        (RESOURCE_TOPIC, "t", "nosuch", "1", ErrorCode.INVALID_CONFIG),
        (RESOURCE_TOPIC, "t", "leader.replication.throttled.replicas", "1:1," * 8192 + "1:1", ErrorCode.INVALID_CONFIG),
        (RESOURCE_BROKER, "x", "num.io.threads", "1", ErrorCode.INVALID_REQUEST),
        (RESOURCE_BROKER, "-1", "num.io.threads", "1", ErrorCode.INVALID_REQUEST),
        (RESOURCE_BROKER, "9", "num.io.threads", "1", ErrorCode.BROKER_ID_NOT_REGISTERED),
        (RESOURCE_BROKER, "1", "min.insync.replicas", "1", ErrorCode.INVALID_CONFIG),
        (resources.GROUP, "", "share.isolation.level", "read_committed", ErrorCode.INVALID_REQUEST),
        (resources.GROUP, "g", "share.isolation.level", "x", ErrorCode.INVALID_CONFIG),
        (resources.CLIENT_METRICS, "", "interval.ms", "1000", ErrorCode.INVALID_REQUEST),
        (resources.CLIENT_METRICS, "m", "interval.ms", "1", ErrorCode.INVALID_REQUEST),
        (resources.CLIENT_METRICS, "m", "match", "x", ErrorCode.INVALID_CONFIG),
        (resources.BROKER_LOGGER, "1", "root", "INFO", ErrorCode.INVALID_REQUEST),
    ],
)
def test_i33_refusals_write_nothing(kind: int, name: str, key: str, value: str, code: ErrorCode) -> None:
    world = SettingsWorld()
    answer = world.alter(kind, name, (key, SET, value))
    assert answer.error_code == code
    assert answer.error_message
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    assert world.records == []


@pytest.mark.parametrize(
    ("kind", "key", "operation", "code"),
    [
        (RESOURCE_TOPIC, "retention.ms", APPEND, ErrorCode.INVALID_CONFIG),
        (resources.GROUP, "streams.rack.aware.assignment.tags", APPEND, ErrorCode.INVALID_CONFIG),
        (resources.CLIENT_METRICS, "metrics", SUBTRACT, ErrorCode.INVALID_CONFIG),
        (RESOURCE_TOPIC, "retention.ms", 4, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_i32_operations_that_cannot_be(kind: int, key: str, operation: int, code: ErrorCode) -> None:
    assert SettingsWorld().alter(kind, "t", (key, operation, "1")).error_code == code


def test_one_bad_setting_refuses_its_resource_alone() -> None:
    world = SettingsWorld()
    good, bad = (
        AlterConfigsResource(
            resource_type=resources.GROUP,
            resource_name=name,
            configs=[
                AlterableConfig(name="share.isolation.level", config_operation=SET, value="read_committed"),
                AlterableConfig(name="share.delivery.count.limit", config_operation=SET, value=limit),
            ],
        )
        for name, limit in (("good", "5"), ("bad", "1"))
    )
    answers = world.submit(IncrementalAlterConfigsRequest(resources=[bad, good])).responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert {record.message.resource_name for record in world.records} == {"good"}


def test_validate_only_writes_nothing() -> None:
    world = SettingsWorld()
    assert world.alter(RESOURCE_TOPIC, "t", ("retention.ms", SET, "1"), only=True).error_code == ErrorCode.NONE
    assert world.records == []


def test_only_what_changes_is_written_but_for_brokers() -> None:
    world = SettingsWorld()
    world.alter(RESOURCE_TOPIC, "t", ("retention.ms", SET, "1"))
    world.alter(RESOURCE_TOPIC, "t", ("retention.ms", SET, "1"), ("segment.ms", DELETE, None))
    assert world.written() == [("retention.ms", "1")]
    world.alter(RESOURCE_BROKER, "1", ("max.connections", SET, "5"))
    world.alter(RESOURCE_BROKER, "1", ("max.connections", SET, "5"))
    assert world.written() == [("max.connections", "5")] * 2


def test_a04_a_replacement_removes_the_rest() -> None:
    world = SettingsWorld()
    world.alter(RESOURCE_TOPIC, "t", ("retention.ms", SET, "1"), ("segment.ms", SET, "2"))
    world.written()
    world.replace_all(RESOURCE_TOPIC, "t", ("segment.ms", "2"), ("segment.bytes", "2000000"))
    assert world.written() == [("segment.bytes", "2000000"), ("retention.ms", None)]
    assert dict(world.image.configs.of(RESOURCE_TOPIC, "t")) == {"segment.ms": "2", "segment.bytes": "2000000"}


def test_i34_a_replacement_for_all_brokers_keeps_min_insync_replicas() -> None:
    world = SettingsWorld()
    refused = world.replace_all(RESOURCE_BROKER, "", ("log.retention.ms", "5"))
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert "min.insync.replicas" in refused.error_message
    assert (
        world.replace_all(RESOURCE_BROKER, "", ("log.retention.ms", "5"), ("min.insync.replicas", "1")).error_code
        == ErrorCode.NONE
    )


def test_i34_a_changed_min_insync_replicas_forgets_eligible_leaders() -> None:
    world = SettingsWorld()
    world.alter(RESOURCE_TOPIC, "t", ("min.insync.replicas", SET, "2"))
    world.alter(RESOURCE_BROKER, "", ("min.insync.replicas", SET, "2"))
    cleared = [record.message.topic_name for record in world.records if isinstance(record.message, ClearElrRecord)]
    assert cleared == ["t", ""]


@pytest.mark.parametrize(
    ("static", "expected"), [({}, "delete,compact"), ({"log.cleanup.policy": "compact"}, "compact")]
)
def test_a05_append_starts_from_what_holds_by_default(static: dict[str, str], expected: str) -> None:
    world = SettingsWorld(static)
    world.alter(RESOURCE_TOPIC, "t", ("cleanup.policy", APPEND, "compact"))
    assert world.written() == [("cleanup.policy", expected)]


@pytest.mark.parametrize(
    ("operation", "given", "result"),
    [
        (APPEND, "c", ["a", "b", "c"]),
        (APPEND, "b,c,c", ["a", "b", "c"]),
        (APPEND, "c,,", ["a", "b", "c"]),
        (APPEND, "", ["a", "b", ""]),
        (APPEND, ",", ["a", "b"]),
        (APPEND, ",c", ["a", "b", "", "c"]),
        (SUBTRACT, "a,x", ["b"]),
        (SUBTRACT, "a,b", []),
    ],
)
def test_lists(operation: int, given: str, result: list[str]) -> None:
    assert changed_list(operation, ["a", "b"], given) == result


def test_i13_effective_settings_of_a_new_topic_with_their_sources() -> None:
    rules = ConfigRules(BrokerValues(BrokerLayers(static={"log.retention.hours": "2"})))
    found = {s.name: (s.value, s.source) for s in rules.effective({"segment.ms": "9"}, {"message.max.bytes": "5"})}
    assert found["segment.ms"] == ("9", 1)
    assert found["max.message.bytes"] == ("5", 3)
    assert found["retention.ms"] == ("7200000", 4)
    assert found["cleanup.policy"] == ("delete", 5)
    assert "internal.segment.bytes" not in found


def test_creation_is_refused_as_an_alteration_would_be() -> None:
    rules = ConfigRules(BrokerValues(BrokerLayers()))
    with pytest.raises(KafkaError) as caught:
        rules.check({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"})
    assert caught.value.code == ErrorCode.INVALID_CONFIG
