"""Settings over the wire: equal to Apache Kafka's answers, errors first, then the cases A01, A02, A04, A05, U14."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.config_log import LogConfig
from broker.security.authorizer import Operation
from coordinator.settings import resources
from coordinator.settings.broker import KAFKA
from coordinator.settings.documentation import documentation
from coordinator.settings.kinder import KINDER_DEFAULTS
from coordinator.settings.node import NODE
from tests.broker.handlers import config_scenario as scenario
from tests.broker.handlers.config_scenario import APPEND, DELETE, SET, SUBTRACT, Call
from tests.broker.node_fixture import RunningNode, running_node
from tests.broker.raw_client import RawClient
from wire.errors import ErrorCode
from wire.messages import alter_configs as legacy
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.list_config_resources import ListConfigResourcesRequest
from wire.primitives import TopicPartition

RECORDED = json.loads(scenario.GOLDEN.read_text(encoding="utf-8"))

TOPIC = "orders"


@asynccontextmanager
async def node_and_call(settings: dict[str, str] | None = None) -> AsyncIterator[tuple[RunningNode, Call]]:
    async with running_node(settings) as node:
        client = await RawClient.connect(node.port)
        try:
            yield node, scenario.caller(client)
        finally:
            await client.close()


async def create_topic(call: Call, name: str = TOPIC) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    answer = await call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    assert answer.topics[0].error_code == ErrorCode.NONE


async def alter(call: Call, kind: int, name: str, *configs: tuple[str, int, str | None], only: bool = False) -> Any:
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in configs],
    )
    answer = await call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=only), 1)
    return answer.responses[0]


async def describe(call: Call, kind: int, name: str, keys: list[str] | None = None, **options: bool) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    answer = await call(DescribeConfigsRequest(resources=[resource], **options), 4)
    return answer.results[0]


async def values(call: Call, kind: int = resources.TOPIC, name: str = TOPIC) -> dict[str, str | None]:
    """The settings that are not at their default."""
    described = await describe(call, kind, name)
    return {config.name: config.value for config in described.configs if config.config_source in (1, 2, 3)}


# --- equal to Kafka ------------------------------------------------------------------------------------


async def test_every_answer_of_the_scenario_is_kafkas() -> None:
    settings = dict(RECORDED["settings"])
    async with running_node(settings) as node:
        client = await RawClient.connect(node.port)
        answers = await scenario.play(client)
        await client.close()
    assert set(answers) == set(RECORDED["answers"])
    differing = {
        name: _difference(_comparable(answers[name]), _comparable(recorded))
        for name, recorded in RECORDED["answers"].items()
        if _comparable(answers[name]) != _comparable(recorded)
    }
    assert not differing


async def test_u14_every_refusal_says_what_was_wrong() -> None:
    async with running_node(dict(RECORDED["settings"])) as node:
        client = await RawClient.connect(node.port)
        answers = await scenario.play(client)
        await client.close()
    refusals = [
        (name, result)
        for name, results in answers.items()
        for result in results
        if result["error"] and not name.startswith("list ")
    ]
    assert len(refusals) > 80
    for name, result in refusals:
        assert result["message"], name
        assert len(result["message"]) > 15, name
        assert "None" not in result["message"].replace("None of", ""), name


def _comparable(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without texts, which are ours, without our own settings and where our defaults are kinder."""
    comparable = []
    for result in results:
        kept = {key: value for key, value in result.items() if key != "message"}
        if "configs" in kept:
            kept["configs"] = [
                config
                for config in kept["configs"]
                if config["name"] not in KINDER_DEFAULTS
                and config["name"] not in NODE
                and config["name"] != "metric.reporters"
            ]
        comparable.append(kept)
    return comparable


def _difference(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Pairs of what differs, setting by setting."""
    pairs: list[tuple[Any, Any]] = []
    for mine, other in zip(ours, theirs, strict=True):
        mine_by_name = {config["name"]: config for config in mine.pop("configs", ())}
        other_by_name = {config["name"]: config for config in other.pop("configs", ())}
        names = sorted({*mine_by_name, *other_by_name})
        pairs += [(mine_by_name.get(name), other_by_name.get(name)) for name in names]
        pairs.append((mine, other))
    return [pair for pair in pairs if pair[0] != pair[1]]


async def test_kinder_defaults_are_the_only_ones_that_differ() -> None:
    recorded = RECORDED["answers"]["the broker after all that"][0]["configs"]
    for config in recorded:
        setting = KAFKA.get(config["name"])
        default = next((synonym for synonym in config["synonyms"] if synonym[2] == 5), None)
        if setting is None or setting.is_sensitive or default is None or default[0] != config["name"]:
            continue
        assert setting.default == default[1], config["name"]


# --- cases ------------------------------------------------------------------------------------------


async def test_a01_every_setting_is_described_with_type_default_and_synonyms() -> None:
    wanted = [
        "num.partitions",
        "default.replication.factor",
        "auto.create.topics.enable",
        "message.max.bytes",
        "log.retention.hours",
        "log.retention.bytes",
        "min.insync.replicas",
        "compression.type",
        "log.cleanup.policy",
        "offsets.retention.minutes",
        "delete.topic.enable",
        "broker.id",
        "node.id",
        "log.segment.bytes",
        "log.roll.hours",
        "fetch.max.bytes",
        "num.io.threads",
        "group.initial.rebalance.delay.ms",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "transaction.max.timeout.ms",
        "unclean.leader.election.enable",
        "listeners",
        "process.roles",
        "log.dirs",
        "max.connections",
        "replica.lag.time.max.ms",
    ]
    async with node_and_call({"node.id": "1"}) as (node, call):
        described = await describe(call, resources.BROKER, "1", include_synonyms=True)
        configs = {config.name: config for config in described.configs}
        for name in wanted:
            assert configs[name].value is not None, name
            assert configs[name].config_type != 0, name
        assert configs["num.partitions"].read_only
        assert not configs["num.io.threads"].read_only
        synonyms = configs["log.cleaner.threads"].synonyms
        assert [(s.name, s.value, s.source) for s in synonyms] == [("log.cleaner.threads", "1", 5)]
        assert [config.name for config in described.configs][-len(NODE) :] == list(NODE.names())
        await create_topic(call)
        topic = await describe(call, resources.TOPIC, TOPIC, include_synonyms=True)
        assert len(topic.configs) == 37
        assert all(config.value is not None and config.config_source != 0 for config in topic.configs)


async def test_a01_documentation_only_when_asked() -> None:
    async with node_and_call() as (node, call):
        silent = await describe(call, resources.BROKER, "1", ["num.partitions"])
        spoken = await describe(call, resources.BROKER, "1", ["num.partitions"], include_documentation=True)
    assert silent.configs[0].documentation is None
    assert spoken.configs[0].documentation == documentation(resources.BROKER, "num.partitions")


@pytest.mark.parametrize(
    ("keys", "count"),
    [(None, 37), ([], 37), (["cleanup.policy"], 1), (["cleanup.policy", "retention.ms", "nosuch"], 2)],
)
async def test_a02_keys_filter(keys: list[str] | None, count: int) -> None:
    async with node_and_call() as (node, call):
        await create_topic(call)
        assert len((await describe(call, resources.TOPIC, TOPIC, keys)).configs) == count


async def test_a04_legacy_replaces_and_incremental_touches_only_its_keys() -> None:
    async with node_and_call() as (node, call):
        await create_topic(call)
        both = (("cleanup.policy", SET, "compact"), ("retention.ms", SET, "1000"))
        assert (await alter(call, resources.TOPIC, TOPIC, *both)).error_code == ErrorCode.NONE
        assert await values(call) == {"cleanup.policy": "compact", "retention.ms": "1000", "min.insync.replicas": "1"}
        replacement = legacy.AlterConfigsResource(
            resource_type=resources.TOPIC,
            resource_name=TOPIC,
            configs=[legacy.AlterableConfig(name="segment.bytes", value="2097152")],
        )
        await call(legacy.AlterConfigsRequest(resources=[replacement], validate_only=False), 2)
        assert await values(call) == {"segment.bytes": "2097152", "min.insync.replicas": "1"}
        bad = await alter(call, resources.TOPIC, TOPIC, ("retention.ms", SET, "5"), ("segment.bytes", SET, "1"))
        assert bad.error_code == ErrorCode.INVALID_CONFIG
        await alter(call, resources.TOPIC, TOPIC, ("retention.ms", SET, "7"), only=True)
        assert await values(call) == {"segment.bytes": "2097152", "min.insync.replicas": "1"}
        await alter(call, resources.TOPIC, TOPIC, ("segment.bytes", DELETE, None))
        assert await values(call) == {"min.insync.replicas": "1"}


async def test_a05_append_and_subtract_and_the_broker_goes_on() -> None:
    async with node_and_call() as (node, call):
        await create_topic(call)
        policy = ("cleanup.policy", APPEND, "compact")
        assert (await alter(call, resources.TOPIC, TOPIC, policy)).error_code == ErrorCode.NONE
        assert (await values(call))["cleanup.policy"] == "delete,compact"
        await alter(call, resources.TOPIC, TOPIC, ("cleanup.policy", SUBTRACT, "compact"))
        assert (await values(call))["cleanup.policy"] == "delete"
        wrong = await alter(call, resources.TOPIC, TOPIC, ("retention.ms", APPEND, "1"))
        assert wrong.error_code == ErrorCode.INVALID_CONFIG
        assert "retention.ms" in wrong.error_message
        for number in range(10):
            fine = await alter(call, resources.TOPIC, TOPIC, ("retention.ms", SET, str(1000 + number)))
            assert fine.error_code == ErrorCode.NONE


# --- effect -----------------------------------------------------------------------------------------


def log_config(node: RunningNode) -> LogConfig:
    partition = node.server.node.replica_manager.partition(TopicPartition(TOPIC, 0))
    config: LogConfig = partition.log.config
    return config


async def test_a_changed_topic_changes_its_open_log_before_the_answer() -> None:
    async with node_and_call() as (node, call):
        await create_topic(call)
        await alter(call, resources.TOPIC, TOPIC, ("max.message.bytes", SET, "1000"))
        assert log_config(node).max_message_bytes == 1000
        await alter(call, resources.TOPIC, TOPIC, ("max.message.bytes", DELETE, None))
        assert log_config(node).max_message_bytes == 1_048_588


async def test_settings_for_all_brokers_reach_topics_without_their_own() -> None:
    async with node_and_call({"log.retention.hours": "5"}) as (node, call):
        await create_topic(call)
        assert log_config(node).retention_ms == 5 * 3_600_000
        await alter(call, resources.BROKER, "", ("log.retention.ms", SET, "1234"))
        assert log_config(node).retention_ms == 1234
        await alter(call, resources.BROKER, "1", ("log.retention.ms", SET, "99"))
        assert log_config(node).retention_ms == 99
        await alter(call, resources.TOPIC, TOPIC, ("retention.ms", SET, "7"))
        assert log_config(node).retention_ms == 7
        described = await describe(call, resources.TOPIC, TOPIC, ["retention.ms"], include_synonyms=True)
        assert [(s.name, s.value, s.source) for s in described.configs[0].synonyms] == [
            ("retention.ms", "7", 1),
            ("log.retention.ms", "99", 2),
            ("log.retention.ms", "1234", 3),
            ("log.retention.hours", "5", 4),
            ("log.retention.hours", "168", 5),
        ]


async def test_a_setting_of_ours_cannot_change_while_the_node_runs() -> None:
    async with node_and_call() as (node, call):
        refused = await alter(call, resources.BROKER, "1", ("odradek.memory", SET, "false"))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "odradek.memory" in refused.error_message


async def test_listeners_cannot_change_while_the_node_runs() -> None:
    async with node_and_call() as (node, call):
        refused = await alter(call, resources.BROKER, "1", ("listeners", SET, "PLAINTEXT://127.0.0.1:1"))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "start the node again" in refused.error_message


# --- authorisation --------------------------------------------------------------------------------------


class Denying:
    """Refuses one kind of operation, allows the rest."""

    def __init__(self, denied: Operation) -> None:
        self.denied = denied

    def authorize(self, _principal: Any, _host: str, operation: Operation, *_resource: Any) -> bool:
        return operation != self.denied


DENIALS = [
    (resources.TOPIC, TOPIC, "retention.ms", "1", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (resources.GROUP, "g", "share.isolation.level", "read_committed", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    (resources.BROKER, "1", "max.connections", "5", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (resources.CLIENT_METRICS, "m", "interval.ms", "1000", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (resources.BROKER_LOGGER, "1", "root", "WARN", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
]


@pytest.mark.parametrize(("kind", "name", "key", "value", "code"), DENIALS)
async def test_i33_without_alter_configs_nothing_changes(
    kind: int, name: str, key: str, value: str, code: ErrorCode
) -> None:
    async with node_and_call() as (node, call):
        await create_topic(call)
        node.server.node.authorizer = Denying(Operation.ALTER_CONFIGS)
        refused = await alter(call, kind, name, (key, SET, value))
        assert refused.error_code == code
        assert not node.server.node.metadata.image.configs.of(kind, name)


@pytest.mark.parametrize(("kind", "name", "key", "value", "code"), DENIALS)
async def test_i27_without_describe_configs_nothing_is_told(
    kind: int, name: str, key: str, value: str, code: ErrorCode
) -> None:
    async with node_and_call() as (node, call):
        node.server.node.authorizer = Denying(Operation.DESCRIBE_CONFIGS)
        refused = await describe(call, kind, name)
        assert refused.error_code == code
        assert refused.configs == []
        listed = await call(ListConfigResourcesRequest(resource_types=[kind]), 1)
        assert listed.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_i33_a_malformed_change_is_refused_before_anybody_asks_who_it_is() -> None:
    async with node_and_call() as (node, call):
        node.server.node.authorizer = Denying(Operation.ALTER_CONFIGS)
        refused = await alter(call, resources.BROKER, "1", ("num.partitions", SET, "5"))
        assert refused.error_code == ErrorCode.INVALID_REQUEST
