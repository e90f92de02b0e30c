"""Settings of topics, brokers, loggers, groups and client metrics: described and altered, every refusal."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.produce_and_fetch import create
from tests.parity.player import Connection, Player
from wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.incremental_alter_configs import (
    AlterableConfig as IncrementalConfig,
)
from wire.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from wire.messages.list_config_resources import ListConfigResourcesRequest
from wire.messages.metadata import MetadataRequest

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def describe(kind: int, name: str, keys: list[str] | None = None, **fields: Any) -> DescribeConfigsRequest:
    """DescribeConfigs of one resource."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=[resource], **fields)


def increment(
    kind: int, name: str, *changes: tuple[str, int, str | None], **fields: Any
) -> IncrementalAlterConfigsRequest:
    """IncrementalAlterConfigs of one resource."""
    configs = [
        IncrementalConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes
    ]
    resource = IncrementalResource(resource_type=kind, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource], **fields)


def replace(kind: int, name: str, *settings: tuple[str, str | None], **fields: Any) -> AlterConfigsRequest:
    """AlterConfigs of one resource."""
    configs = [AlterableConfig(name=key, value=value) for key, value in settings]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return AlterConfigsRequest(resources=[resource], **fields)


def node_id(connection: Connection) -> str:
    """The broker's id, as settings name it."""
    answer = connection.player.unwritten(lambda: connection.call(MetadataRequest(topics=[]), 12))
    return str(answer.brokers[0].node_id)


def settle(connection: Connection) -> None:
    """Wait until this broker has seen what the controller did so far: Kafka answers changes before it has."""
    player = connection.player
    name = f"settle-{player.name('')}"

    def seen() -> Any:
        return connection.call(describe(CLIENT_METRICS, name, ["interval.ms"]), 4)

    def change() -> None:
        before = int(seen().results[0].configs[0].value)
        after = str(1000 + (before + 1) % 1000)
        connection.call(increment(CLIENT_METRICS, name, ("interval.ms", SET, after)), 1)
        player.until(seen, lambda answer: answer.results[0].configs[0].value == after)

    player.unwritten(change)


def scenario_describe_topic_settings(player: Player) -> None:
    """All settings of topics, with and without synonyms, some, none, in every version."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, retention_ms="7200000", cleanup_policy="compact")
    for version in range(1, 5):
        connection.call(describe(TOPIC, topic), version, f"all v{version}")
        connection.call(describe(TOPIC, topic, include_synonyms=True), version, f"synonyms v{version}")
    connection.call(describe(TOPIC, topic, include_documentation=True), 4, "documentation")
    connection.call(describe(TOPIC, topic, []), 4, "no keys")
    some = ["retention.ms", "nosuch", "cleanup.policy", "retention.ms", ""]
    connection.call(describe(TOPIC, topic, some, include_synonyms=True), 4, "some keys")
    connection.call(describe(TOPIC, topic, ["nosuch"]), 4, "unknown key")
    connection.call(describe(TOPIC, topic, ["Retention.ms"]), 4, "key in capitals")
    both = describe(TOPIC, topic, ["retention.ms"])
    both.resources *= 2
    both.resources.append(describe(TOPIC, player.name("nosuch")).resources[0])
    connection.call(both, 4, "twice, and an unknown topic")
    for name in (player.name("nosuch"), "", "bad name", "..", "a" * 250):
        connection.call(describe(TOPIC, name), 4, f"topic {name[:1]!r}, {min(len(name), 100)} long")
    connection.call(DescribeConfigsRequest(resources=[]), 4, "nothing")


def scenario_describe_other_settings(player: Player) -> None:
    """Brokers, loggers, groups, client metrics: names that are good and names that are not."""
    connection = player.connect()
    this = node_id(connection)
    connection.call(describe(GROUP, player.name("g"), include_synonyms=True), 4, "group")
    connection.call(describe(GROUP, player.name("g"), ["consumer.session.timeout.ms"]), 4, "one key of a group")
    connection.call(describe(GROUP, ""), 4, "group without a name")
    connection.call(describe(CLIENT_METRICS, player.name("m")), 4, "client metrics")
    connection.call(describe(CLIENT_METRICS, ""), 4, "client metrics without a name")
    for kind in (BROKER, LOGGER):
        for name in ("9999", "x", "-1", " 1", "1.0", "1_0", "+"):
            connection.call(describe(kind, name), 4, f"{kind} {name!r}")
    connection.call(describe(LOGGER, ""), 4, "logger without a name")
    keys = ["num.partitions", "log.retention.ms", "log.retention.hours", "ssl.keystore.password", "nosuch"]
    keys += ["message.max.bytes", "log.cleanup.policy", "log.cleaner.threads", "min.insync.replicas"]
    for version in range(1, 5):
        connection.call(describe(BROKER, this, keys, include_synonyms=True), version, f"broker v{version}")
    connection.call(describe(BROKER, "", ["num.partitions"]), 4, "cluster default")
    for kind in (0, 1, 3, 64, -1):
        connection.call(describe(kind, "x"), 4, f"type {kind}")
    mixed = describe(TOPIC, player.name("nosuch"))
    mixed.resources.append(describe(3, "x").resources[0])
    connection.call(mixed, 4, "unknown topic and unknown type")


def scenario_alter_topic_settings(player: Player) -> None:
    """Replacing all settings of a topic: versions, refusals, what is left."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, retention_ms="7200000")
    shown = ["retention.ms", "cleanup.policy", "segment.bytes", "min.insync.replicas"]

    def show(what: str) -> None:
        settle(connection)
        connection.call(describe(TOPIC, topic, shown), 4, what)

    for version in range(3):
        valid = replace(TOPIC, topic, ("cleanup.policy", "compact"), validate_only=True)
        connection.call(valid, version, f"validate only v{version}")
        show("unchanged")
        connection.call(replace(TOPIC, topic, ("cleanup.policy", "compact")), version, f"replace v{version}")
        show("replaced")
        connection.call(replace(TOPIC, topic, ("retention.ms", "7200000")), version, f"back v{version}")
    for settings, what in (
        ((("retention.ms", "x"),), "not a number"),
        ((("retention.ms", "-2"),), "below the smallest"),
        ((("retention.ms", " 5000 "),), "spaces around"),
        ((("retention.ms", ""),), "empty"),
        ((("retention.ms", None),), "null"),
        ((("nosuch", "1"),), "unknown key"),
        ((("nosuch", None),), "unknown key, null"),
        ((("retention.ms", "1"), ("retention.ms", "2")), "key twice"),
        ((("cleanup.policy", "delete,nonsense"),), "unknown policy"),
        ((("cleanup.policy", ""),), "no policy"),
        ((("cleanup.policy", "Compact"),), "policy in capitals"),
        ((("cleanup.policy", "delete,delete"),), "policy twice"),
        ((("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")), "lags crossed"),
        ((("segment.bytes", "100"),), "segment too small"),
        ((("min.insync.replicas", "0"),), "no replicas in sync"),
        ((("message.timestamp.type", "Now"),), "unknown timestamp type"),
        ((("compression.type", "bzip2"),), "unknown codec"),
        ((("compression.gzip.level", "10"),), "level too high"),
        ((("preallocate", "yes"),), "no boolean"),
        ((("preallocate", "TRUE"),), "boolean in capitals"),
        ((("leader.replication.throttled.replicas", "x"),), "throttled replicas"),
        ((("remote.storage.enable", "true"),), "tiering"),
        ((("local.retention.ms", "99999999999"), ("retention.ms", "5")), "local retention above retention"),
        ((("retention.ms", "1" * 32767),), "long value"),
        ((("min.cleanable.dirty.ratio", "1.5"),), "ratio above 1"),
        ((("index.interval.bytes", "1e3"),), "number with an exponent"),
        ((("segment.ms", "0"),), "zero"),
        ((("message.format.version", "3.0"),), "message.format.version"),
    ):
        connection.call(replace(TOPIC, topic, *settings), 2, what)
        connection.call(replace(TOPIC, topic, *settings, validate_only=True), 2, f"{what}, only validated")
    show("after refusals")
    connection.call(replace(TOPIC, topic), 2, "nothing set")
    show("all at their defaults")
    connection.call(replace(TOPIC, player.name("nosuch"), ("retention.ms", "1")), 2, "unknown topic")
    connection.call(replace(TOPIC, player.name("nosuch"), ("nosuch", "1")), 2, "unknown topic, unknown key")
    connection.call(replace(TOPIC, "", ("retention.ms", "1")), 2, "no name")
    connection.call(AlterConfigsRequest(resources=[]), 2, "no resources")


def scenario_increment_topic_settings(player: Player) -> None:
    """The four operations, on lists and others; refusals; what is left."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, retention_ms="7200000")
    shown = ["retention.ms", "cleanup.policy", "follower.replication.throttled.replicas"]

    def step(what: str, *changes: tuple[str, int, str | None], version: int = 1, **fields: Any) -> None:
        connection.call(increment(TOPIC, topic, *changes, **fields), version, what)
        settle(connection)
        connection.call(describe(TOPIC, topic, shown), 4, f"after {what}")

    for version in (0, 1):
        step(f"set v{version}", ("retention.ms", SET, "1000"), version=version)
        step(f"validate only v{version}", ("retention.ms", SET, "5"), version=version, validate_only=True)
        step(f"delete v{version}", ("retention.ms", DELETE, "ignored"), version=version)
        step(f"delete again v{version}", ("retention.ms", DELETE, None), version=version)
    step("append", ("cleanup.policy", APPEND, "compact"))
    step("append what is there", ("cleanup.policy", APPEND, "compact"))
    step("subtract", ("cleanup.policy", SUBTRACT, "delete"))
    step("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete"))
    step("subtract all", ("cleanup.policy", SUBTRACT, "compact"))
    step("append two", ("cleanup.policy", APPEND, "delete,compact"))
    step("append with spaces", ("cleanup.policy", APPEND, " compact"))
    step("append an empty end", ("cleanup.policy", APPEND, "compact,,"))
    step("append nothing", ("cleanup.policy", APPEND, ""))
    step("set twice the same", ("cleanup.policy", SET, "delete, delete"))
    step("append nonsense", ("cleanup.policy", APPEND, "nonsense"))
    step("append to a number", ("retention.ms", APPEND, "1"))
    step("subtract from a number", ("retention.ms", SUBTRACT, "1"))
    step("append replicas", ("follower.replication.throttled.replicas", APPEND, "0:1,1:1"))
    step("subtract replicas", ("follower.replication.throttled.replicas", SUBTRACT, "0:1"))
    step("operation 4", ("retention.ms", 4, "1"))
    step("operation -1", ("retention.ms", -1, "1"))
    for operation in (SET, DELETE, APPEND, SUBTRACT):
        step(f"null with {operation}", ("cleanup.policy", operation, None))
    for operation in (SET, DELETE, APPEND, SUBTRACT):
        step(f"unknown key with {operation}", ("nosuch", operation, "1"))
    step("key twice", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    step("one good, one bad", ("retention.ms", SET, "1"), ("cleanup.policy", SET, "x"))
    step("no changes")
    twice = increment(TOPIC, topic, ("retention.ms", SET, "1"))
    twice.resources *= 2
    other = player.name("other")
    create(connection, other)
    twice.resources.append(increment(TOPIC, other, ("retention.ms", SET, "5000")).resources[0])
    connection.call(twice, 1, "resource twice, and a good one")
    settle(connection)
    connection.call(describe(TOPIC, other, shown), 4, "the good one")
    one_bad = increment(TOPIC, topic, ("nosuch", SET, "1"))
    one_bad.resources.append(increment(TOPIC, other, ("retention.ms", SET, "6000")).resources[0])
    connection.call(one_bad, 1, "a bad resource, and a good one")
    settle(connection)
    connection.call(describe(TOPIC, other, shown), 4, "the good one again")
    connection.call(increment(TOPIC, player.name("nosuch"), ("retention.ms", SET, "1")), 1, "unknown topic")
    connection.call(increment(TOPIC, player.name("nosuch"), ("nosuch", SET, "1")), 1, "unknown topic, unknown key")
    connection.call(increment(TOPIC, player.name("nosuch")), 1, "unknown topic, no changes")
    connection.call(increment(TOPIC, "", ("retention.ms", SET, "1")), 1, "no name")


def scenario_alter_other_settings(player: Player) -> None:
    """Brokers, loggers, and what is none of them."""
    connection = player.connect()
    this = node_id(connection)
    checked = {"validate_only": True}
    for name in ("9999", "x", "-1", "", this):
        connection.call(increment(BROKER, name, ("log.cleaner.threads", SET, "1"), **checked), 1, f"broker {name!r}")
        connection.call(replace(BROKER, name, ("log.cleaner.threads", "1"), **checked), 2, f"broker {name!r} replaced")
    for changes, what in (
        ((("log.cleaner.threads", SET, "0"),), "below the smallest"),
        ((("log.cleaner.threads", SET, "99"),), "more than doubled"),
        ((("log.cleaner.threads", SET, "x"),), "not a number"),
        ((("num.partitions", SET, "2"),), "not dynamic"),
        ((("node.id", SET, "2"),), "read only"),
        ((("nosuch", SET, "2"),), "unknown"),
        ((("nosuch", DELETE, None),), "unknown, deleted"),
        ((("log.retention.ms", SET, "5000"),), "log.retention.ms"),
        ((("retention.ms", SET, "5000"),), "a topic's key"),
        ((("log.cleanup.policy", APPEND, "compact"),), "append to a list"),
        ((("log.cleanup.policy", APPEND, "nonsense"),), "append nonsense"),
        ((("log.cleanup.policy", SET, "delete,delete"),), "a policy twice"),
        ((("log.retention.ms", APPEND, "1"),), "append to a number"),
        ((("message.max.bytes", SET, None),), "null"),
        ((("message.max.bytes", 7, "1"),), "operation 7"),
        ((("min.insync.replicas", SET, "2"),), "min.insync.replicas"),
        ((("listeners", SET, "PLAINTEXT://:1"),), "listeners"),
        ((("max.connections.per.ip", SET, "5"),), "cluster-wide key"),
    ):
        for name in (this, ""):
            connection.call(increment(BROKER, name, *changes, **checked), 1, f"{what}, broker {name!r}")
    for operation, value in (
        (SET, "INFO"),
        (SET, "LOUD"),
        (APPEND, "INFO"),
        (SUBTRACT, "INFO"),
        (9, "INFO"),
        (SET, None),
    ):
        request = increment(LOGGER, this, ("root", operation, value), **checked)
        connection.call(request, 1, f"logger {operation} {value}")
    connection.call(increment(LOGGER, this, ("root", DELETE, None), **checked), 1, "root deleted")
    connection.call(increment(LOGGER, this, ("no.such.logger", SET, "INFO"), **checked), 1, "no such logger")
    for name in ("", "9999", "x"):
        connection.call(increment(LOGGER, name, ("root", SET, "INFO"), **checked), 1, f"logger of {name!r}")
    connection.call(replace(LOGGER, this, ("root", "INFO"), **checked), 2, "loggers cannot be replaced")
    for kind in (0, 1, 3, 64):
        connection.call(increment(kind, "x", ("retention.ms", SET, "1")), 1, f"type {kind}")
        connection.call(replace(kind, "x", ("retention.ms", "1")), 2, f"type {kind} replaced")


def scenario_alter_group_settings(player: Player) -> None:
    """Groups and client metrics: names, values, what is left."""
    connection, group, metrics = player.connect(), player.name("g"), player.name("m")
    for changes, what in (
        ((("consumer.session.timeout.ms", SET, "50000"),), "good"),
        ((("consumer.session.timeout.ms", SET, "5"),), "below the smallest"),
        ((("consumer.session.timeout.ms", SET, "60001"),), "above the largest"),
        ((("consumer.heartbeat.interval.ms", SET, "x"),), "not a number"),
        ((("nosuch", SET, "1"),), "unknown"),
        ((("consumer.session.timeout.ms", DELETE, None),), "deleted"),
        ((("share.auto.offset.reset", SET, "sideways"),), "unknown reset"),
    ):
        connection.call(increment(GROUP, group, *changes), 1, f"group: {what}")
        settle(connection)
        connection.call(describe(GROUP, group, ["consumer.session.timeout.ms"], include_synonyms=True), 4, "then")
    connection.call(increment(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")), 1, "group without a name")
    for changes, what in (
        ((("interval.ms", SET, "1000"),), "good"),
        ((("interval.ms", SET, "5"),), "too often"),
        ((("metrics", SET, "a.b,c"),), "metrics"),
        ((("metrics", APPEND, "d"),), "metrics appended"),
        ((("match", SET, "client_id=x"),), "match"),
        ((("match", SET, "nonsense"),), "bad match"),
        ((("match", SET, "client_id=["),), "bad expression"),
        ((("nosuch", SET, "1"),), "unknown"),
    ):
        connection.call(increment(CLIENT_METRICS, metrics, *changes), 1, f"client metrics: {what}")
    settle(connection)
    connection.call(describe(CLIENT_METRICS, metrics), 4, "client metrics afterwards")
    connection.call(increment(CLIENT_METRICS, "", ("interval.ms", SET, "1000")), 1, "client metrics without a name")
    remove = increment(
        CLIENT_METRICS, metrics, ("interval.ms", DELETE, None), ("metrics", DELETE, None), ("match", DELETE, None)
    )
    connection.call(remove, 1, "client metrics removed")


def scenario_list_config_resources(player: Player) -> None:
    """By type; types that are none."""
    connection, group, metrics, topic = player.connect(), player.name("g"), player.name("m"), player.name("t")
    create(connection, topic)
    connection.call(increment(GROUP, group, ("consumer.session.timeout.ms", SET, "50000")), 1, "a group's setting")
    connection.call(increment(CLIENT_METRICS, metrics, ("interval.ms", SET, "1000")), 1, "client metrics")

    def ours(answer: Any) -> None:
        del answer  # Other scenarios' resources are left out, all but those whose names are ours.
        listed = player.transcript.entries[-1]["response"].get("config_resources", [])
        listed = [item for item in listed if item.get("resource_name", "").startswith(("<scenario>", "1"))]
        ordered = sorted(listed, key=lambda item: (item.get("resource_type", 0), item["resource_name"]))
        player.transcript.entries[-1]["response"]["config_resources"] = ordered

    settle(connection)
    ours(connection.call(ListConfigResourcesRequest(), 0, "v0"))
    ours(connection.call(ListConfigResourcesRequest(resource_types=[]), 1, "all types"))
    for types in (
        [TOPIC],
        [BROKER],
        [LOGGER],
        [CLIENT_METRICS],
        [GROUP],
        [GROUP, TOPIC],
        [0],
        [1],
        [3],
        [GROUP, 64],
        [-1],
    ):
        ours(connection.call(ListConfigResourcesRequest(resource_types=types), 1, f"types {types}"))
    connection.call(increment(CLIENT_METRICS, metrics, ("interval.ms", DELETE, None)), 1, "removed")
    connection.call(increment(GROUP, group, ("consumer.session.timeout.ms", DELETE, None)), 1, "removed")
    settle(connection)
    ours(connection.call(ListConfigResourcesRequest(resource_types=[CLIENT_METRICS, GROUP]), 1, "after removal"))
