"""Requests about settings, played to Apache Kafka to record golden answers and to a node of ours to compare.

Record with a fresh broker that was started with `RECORDED_WITH` (one node, KRaft, broker and controller):
`python -m tests.broker.handlers.config_scenario HOST:PORT`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from coordinator.settings import resources
from tests.broker.raw_client import RawClient
from wire.frames import decode_response, encode_request
from wire.messages import alter_configs as legacy
from wire.messages import incremental_alter_configs as incremental
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.list_config_resources import ListConfigResourcesRequest

GOLDEN = Path(__file__).parents[2] / "golden" / "configs" / "scenario.json"

RECORDED_WITH = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.minutes": "100",
    "log.roll.hours": "10",
    "log.flush.scheduler.interval.ms": "5000",
    "sasl.jaas.config": "secret",
    "listener.name.plaintext.sasl.jaas.config": "secret",
    "not.a.setting": "x",
}

OF_THE_MACHINE = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.voters",
        "listener.security.protocol.map",
        "listeners",
        "log.dirs",
        "node.id",
        "process.roles",
    }
)
"""Settings that say where and in what company a broker runs."""

TOPIC = "settings-topic"
GROUP = "settings-group"
METRICS = "settings-metrics"

SET, DELETE, APPEND, SUBTRACT = range(4)

Call = Callable[[Any, int], Awaitable[Any]]


class Step(NamedTuple):
    """One request, and the version it is sent at."""

    name: str
    request: Any
    version: int


def _alter(kind: int, name: str, *configs: tuple[str, int, str | None]) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in configs
        ],
    )


def _incremental(*resources_: incremental.AlterConfigsResource, validate_only: bool = False) -> Any:
    return incremental.IncrementalAlterConfigsRequest(resources=list(resources_), validate_only=validate_only)


def _legacy(kind: int, name: str, *configs: tuple[str, str | None], validate_only: bool = False) -> Any:
    return legacy.AlterConfigsRequest(
        resources=[
            legacy.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[legacy.AlterableConfig(name=key, value=value) for key, value in configs],
            )
        ],
        validate_only=validate_only,
    )


def _describe(kind: int, name: str, *keys: str) -> Any:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
        ],
        include_synonyms=True,
    )


def topic_step(name: str, key: str, operation: int, value: str | None) -> Step:
    """One setting of the topic changed."""
    return Step(name, _incremental(_alter(resources.TOPIC, TOPIC, (key, operation, value))), 1)


def steps() -> list[Step]:
    """The whole scenario in order."""
    return [
        *_topic_steps(),
        *_more_topic_steps(),
        *_legacy_steps(),
        *_broker_steps(),
        *_other_steps(),
        *_describe_steps(),
    ]


def _topic_steps() -> list[Step]:
    t = resources.TOPIC
    policy = Step("the policy now", _describe(t, TOPIC, "cleanup.policy"), 4)
    return [
        topic_step("unknown key", "nosuch", SET, "1"),
        topic_step("no number", "retention.ms", SET, "abc"),
        topic_step("too small", "retention.ms", SET, "-2"),
        topic_step("segment too small", "segment.bytes", SET, "1048575"),
        topic_step("internal segment", "internal.segment.bytes", SET, "1000"),
        topic_step("policy unknown", "cleanup.policy", SET, "foo"),
        topic_step("policy with an empty element", "cleanup.policy", SET, "delete,"),
        topic_step("policy twice the same", "cleanup.policy", SET, "delete,delete"),
        topic_step("policy empty", "cleanup.policy", SET, ""),
        policy,
        topic_step("policy unset", "cleanup.policy", DELETE, None),
        topic_step("append to the default", "cleanup.policy", APPEND, "compact"),
        policy,
        topic_step("append what is there", "cleanup.policy", APPEND, "compact,delete"),
        topic_step("subtract", "cleanup.policy", SUBTRACT, "compact"),
        topic_step("subtract what is not there", "cleanup.policy", SUBTRACT, "compact"),
        policy,
        topic_step("append to no list", "retention.ms", APPEND, "1"),
        topic_step("append to an unknown key", "nosuch", APPEND, "1"),
        topic_step("null to set", "retention.ms", SET, None),
        topic_step("null to append", "cleanup.policy", APPEND, None),
        topic_step("delete with a value", "retention.ms", DELETE, "55"),
        topic_step("unknown operation", "retention.ms", 9, "1"),
    ]


def _more_topic_steps() -> list[Step]:
    t = resources.TOPIC
    return [
        Step("key twice", _incremental(_alter(t, TOPIC, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))), 1),
        Step(
            "resource twice",
            _incremental(_alter(t, TOPIC, ("retention.ms", SET, "1")), _alter(t, TOPIC, ("segment.ms", SET, "1"))),
            1,
        ),
        Step(
            "one of two is bad",
            _incremental(
                _alter(t, TOPIC, ("retention.ms", SET, "100")), _alter(t, "nosuch", ("retention.ms", SET, "1"))
            ),
            0,
        ),
        Step("one key of two is bad", _incremental(_alter(t, TOPIC, ("retention.ms", SET, "7"), ("x", SET, "1"))), 1),
        Step("unchanged by what was refused", _describe(t, TOPIC, "retention.ms"), 4),
        Step(
            "lag limits crossed",
            _incremental(_alter(t, TOPIC, ("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "5"))),
            1,
        ),
        topic_step("remote storage is off", "remote.storage.enable", SET, "true"),
        topic_step("gzip level 0", "compression.gzip.level", SET, "0"),
        topic_step("unknown codec", "compression.type", SET, "foo"),
        topic_step("no boolean", "preallocate", SET, "yes"),
        topic_step("a boolean in capitals", "preallocate", SET, " TRUE "),
        topic_step("ratio too large", "min.cleanable.dirty.ratio", SET, "1.5"),
        topic_step("a ratio as Java writes it", "min.cleanable.dirty.ratio", SET, "2.5E-1"),
        topic_step("no replicas", "leader.replication.throttled.replicas", SET, "x"),
        topic_step("all replicas", "leader.replication.throttled.replicas", SET, "*"),
        Step("no topic name", _incremental(_alter(t, "", ("retention.ms", SET, "1"))), 1),
        Step("bad topic name", _incremental(_alter(t, "a b", ("retention.ms", SET, "1"))), 1),
        Step("nothing to change", _incremental(_alter(t, TOPIC)), 1),
        Step("nothing to change of no topic", _incremental(_alter(t, "nosuch")), 1),
        Step("unknown resource type", _incremental(_alter(3, TOPIC, ("retention.ms", SET, "1"))), 1),
        Step("validate only", _incremental(_alter(t, TOPIC, ("retention.ms", SET, "777")), validate_only=True), 1),
        Step("the topic after all that", _describe(t, TOPIC), 4),
    ]


def _legacy_steps() -> list[Step]:
    t = resources.TOPIC
    return [
        Step("replace all", _legacy(t, TOPIC, ("segment.bytes", "2000000")), 2),
        Step("the topic after the replacement", _describe(t, TOPIC), 4),
        Step("replace only to validate", _legacy(t, TOPIC, ("retention.ms", "5"), validate_only=True), 2),
        Step("replace with null", _legacy(t, TOPIC, ("segment.bytes", None)), 2),
        Step("replace with a key twice", _legacy(t, TOPIC, ("retention.ms", "5"), ("retention.ms", "6")), 2),
        Step("replace of no topic", _legacy(t, "nosuch", ("segment.bytes", "3000000")), 2),
        Step("replace with a bad value", _legacy(t, TOPIC, ("segment.bytes", "3")), 1),
        Step("replace with an unknown key", _legacy(t, TOPIC, ("segmen", "3")), 0),
        Step("the topic keeps what it had", _describe(t, TOPIC, "segment.bytes", "retention.ms"), 4),
        Step("replace by nothing", _legacy(t, TOPIC), 2),
        Step("the topic has nothing", _describe(t, TOPIC), 4),
        Step("replace for a logger", _legacy(resources.BROKER_LOGGER, "1", ("root", "INFO")), 2),
        Step("replace for an unknown type", _legacy(9, TOPIC, ("segment.bytes", "3000000")), 2),
        Step("replace for a broker", _legacy(resources.BROKER, "1", ("num.io.threads", "9")), 2),
    ]


def _broker_step(name: str, broker: str, key: str, operation: int, value: str | None) -> Step:
    return Step(name, _incremental(_alter(resources.BROKER, broker, (key, operation, value))), 1)


def _broker_steps() -> list[Step]:
    jaas = "listener.name.plaintext.scram-sha-256.sasl.jaas.config"
    return [
        _broker_step("read only", "1", "num.partitions", SET, "3"),
        _broker_step("read only for all", "", "log.retention.hours", SET, "1"),
        _broker_step("unknown key of a broker", "1", "nosuch.thing", SET, "3"),
        _broker_step("no number for a broker", "1", "num.io.threads", SET, "x"),
        _broker_step("too small for a broker", "1", "num.io.threads", SET, "0"),
        _broker_step("more than double the threads", "1", "num.io.threads", SET, "1000"),
        _broker_step("some more threads", "1", "num.io.threads", SET, "10"),
        _broker_step("more than double the cleaners", "", "log.cleaner.threads", SET, "4"),
        _broker_step("for all brokers", "", "log.retention.ms", SET, " 1000000 "),
        _broker_step("listeners for all brokers", "", "listeners", SET, "PLAINTEXT://:1234"),
        _broker_step("key store without a listener", "1", "ssl.keystore.location", SET, "/x"),
        _broker_step("listener's for all brokers", "", "listener.name.plaintext.max.connections", SET, "5"),
        _broker_step("listener's own limit", "1", "listener.name.plaintext.max.connections", SET, "10"),
        _broker_step("listener's own limit below 0", "1", "listener.name.plaintext.max.connections", SET, "-1"),
        _broker_step("listener's own login", "1", jaas, SET, "secret"),
        _broker_step("another broker", "77", "num.io.threads", SET, "10"),
        _broker_step("no broker id", "abc", "num.io.threads", SET, "10"),
        _broker_step("a broker id below 0", "-3", "num.io.threads", SET, "10"),
        _broker_step("min isr of one broker", "1", "min.insync.replicas", SET, "2"),
        _broker_step("min isr of one broker removed", "1", "min.insync.replicas", DELETE, None),
        _broker_step("min isr of all removed", "", "min.insync.replicas", DELETE, None),
        _broker_step("min isr of all", "", "min.insync.replicas", SET, "2"),
        _broker_step("append for all brokers", "", "log.cleanup.policy", APPEND, "compact"),
        _broker_step("append to no list of a broker", "1", "num.io.threads", APPEND, "1"),
        _broker_step("append to an unknown key of a broker", "1", "nosuch", APPEND, "1"),
        _broker_step("unknown operation on a broker", "1", "num.io.threads", 9, "1"),
        _broker_step("null for a broker", "1", "num.io.threads", SET, None),
        _broker_step("throttle", "1", "leader.replication.throttled.rate", SET, "1000"),
        _broker_step("throttle below 0", "1", "leader.replication.throttled.rate", SET, "-1"),
        _broker_step("interval over its limit", "", "group.consumer.assignment.interval.ms", SET, "99999"),
        _broker_step("local retention over the whole", "", "log.local.retention.ms", SET, "99999999999"),
        _broker_step("overrides that are none", "", "max.connections.per.ip.overrides", SET, "x"),
        _broker_step("no connections for anybody", "", "max.connections.per.ip", SET, "0"),
        _broker_step("retention of 0", "", "log.retention.ms", SET, "0"),
        _broker_step("unknown directory", "1", "cordoned.log.dirs", SET, "/nosuch"),
        _broker_step("no such class", "1", "principal.builder.class", SET, "foo"),
        _broker_step("no such reporter", "1", "metric.reporters", APPEND, "x.y.Z"),
        _broker_step("cleaner without memory", "", "log.cleaner.dedupe.buffer.size", SET, "1"),
        _broker_step("removed though never set", "1", "background.threads", DELETE, None),
        Step("the broker after all that", _describe(resources.BROKER, "1"), 4),
        Step("all brokers after all that", _describe(resources.BROKER, ""), 4),
        Step("the topic under the brokers' settings", _describe(resources.TOPIC, TOPIC), 4),
    ]


def _group_step(name: str, key: str, value: str | None, operation: int = SET, group: str = GROUP) -> Step:
    return Step(name, _incremental(_alter(resources.GROUP, group, (key, operation, value))), 1)


def _metrics_step(name: str, key: str, value: str | None, operation: int = SET, metrics: str = METRICS) -> Step:
    return Step(name, _incremental(_alter(resources.CLIENT_METRICS, metrics, (key, operation, value))), 1)


def _logger_step(name: str, key: str, value: str | None, operation: int = SET, broker: str = "1") -> Step:
    return Step(name, _incremental(_alter(resources.BROKER_LOGGER, broker, (key, operation, value))), 1)


def _other_steps() -> list[Step]:
    return [
        _group_step("unknown key of a group", "nosuch", "1"),
        _group_step("no number for a group", "consumer.session.timeout.ms", "x"),
        _group_step("session too short", "consumer.session.timeout.ms", "1000"),
        _group_step("session too long", "consumer.session.timeout.ms", "100000"),
        _group_step("session within", "consumer.session.timeout.ms", "50000"),
        _group_step("too many deliveries", "share.delivery.count.limit", "11"),
        _group_step("too few deliveries", "share.delivery.count.limit", "1"),
        _group_step("lock too short", "share.record.lock.duration.ms", "1000"),
        _group_step("too many locks", "share.partition.max.record.locks", "5000"),
        _group_step("unknown reset", "share.auto.offset.reset", "none"),
        _group_step("reset by duration", "share.auto.offset.reset", "by_duration:PT1H"),
        _group_step("reset into the future", "share.auto.offset.reset", "by_duration:-PT1H"),
        _group_step("unknown isolation", "share.isolation.level", "READ_COMMITTED"),
        _group_step("too many standbys", "streams.num.standby.replicas", "3"),
        _group_step("unknown assignor", "streams.assignor.name", "foo"),
        _group_step("known assignor", "streams.assignor.name", "sticky"),
        _group_step("dead letters to an internal topic", "errors.deadletterqueue.topic.name", "__x"),
        _group_step("tags twice the same", "streams.rack.aware.assignment.tags", "a,a"),
        _group_step("append to a group's list", "streams.rack.aware.assignment.tags", "a", APPEND),
        _group_step("no group name", "consumer.session.timeout.ms", "50000", group=""),
        Step("the group after all that", _describe(resources.GROUP, GROUP), 4),
        _metrics_step("unknown key of metrics", "nosuch", "1"),
        _metrics_step("interval too short", "interval.ms", "99"),
        _metrics_step("interval no number", "interval.ms", "x"),
        _metrics_step("no pattern", "match", "foo"),
        _metrics_step("unknown attribute", "match", "foo=bar"),
        _metrics_step("broken pattern", "match", "client_id=["),
        _metrics_step("patterns", "match", "client_id=a.*,client_software_name=x"),
        _metrics_step("append to metrics", "metrics", "a", APPEND),
        _metrics_step("no metrics name", "interval.ms", "1000", metrics=""),
        Step("the metrics after all that", _describe(resources.CLIENT_METRICS, METRICS), 4),
        _logger_step("unknown level", "root", "LOUD"),
        _logger_step("level in lower case", "root", "info"),
        _logger_step("unknown logger", "no.such.logger", "INFO"),
        _logger_step("append to a logger", "root", "INFO", APPEND),
        _logger_step("delete of the root", "root", None, DELETE),
        _logger_step("loggers of another broker", "root", "INFO", broker="2"),
        _logger_step("set", "root", "WARN"),
    ]


def _describe_steps() -> list[Step]:
    return [
        Step("describe no topic", _describe(resources.TOPIC, "nosuch"), 4),
        Step("describe a bad topic name", _describe(resources.TOPIC, "a b"), 4),
        Step("describe an empty topic name", _describe(resources.TOPIC, ""), 4),
        Step("describe another broker", _describe(resources.BROKER, "2"), 4),
        Step("describe no broker id", _describe(resources.BROKER, "x"), 4),
        Step("describe loggers of another broker", _describe(resources.BROKER_LOGGER, "2"), 4),
        Step("describe loggers of no broker", _describe(resources.BROKER_LOGGER, ""), 4),
        Step("describe the root logger", _describe(resources.BROKER_LOGGER, "1", "root"), 4),
        Step("describe an unknown type", _describe(9, "x"), 4),
        Step("describe no group name", _describe(resources.GROUP, ""), 4),
        Step("describe a group that is not there", _describe(resources.GROUP, "nosuch"), 4),
        Step("describe no metrics name", _describe(resources.CLIENT_METRICS, ""), 4),
        Step("describe metrics that are not there", _describe(resources.CLIENT_METRICS, "nosuch"), 4),
        Step("one known key of two", _describe(resources.BROKER, "1", "num.partitions", "nosuch"), 4),
        Step("an unknown key", _describe(resources.BROKER, "1", "nosuch"), 4),
        Step("old version", _describe(resources.TOPIC, TOPIC, "cleanup.policy"), 1),
        Step("list all", ListConfigResourcesRequest(resource_types=[]), 1),
        Step("list metrics in the old version", ListConfigResourcesRequest(), 0),
        Step("list topics and groups", ListConfigResourcesRequest(resource_types=[2, 32]), 1),
        Step("list an unsupported type", ListConfigResourcesRequest(resource_types=[2, 3]), 1),
    ]


# --- answers -----------------------------------------------------------------------------------------


def answer(response: Any, version: int) -> list[dict[str, Any]]:
    """A response as plain values, in an order that does not depend on hash tables."""
    if hasattr(response, "config_resources"):
        listed = [[found.resource_type, found.resource_name] for found in response.config_resources]
        return [{"error": int(response.error_code), "resources": listed}]
    if hasattr(response, "responses"):
        return [{"error": int(result.error_code), "message": result.error_message} for result in response.responses]
    return [
        {
            "error": int(result.error_code),
            "message": result.error_message,
            "configs": sorted(
                (_config(config, version) for config in result.configs if config.name not in OF_THE_MACHINE),
                key=lambda config: str(config["name"]),
            ),
        }
        for result in response.results
    ]


def _config(config: Any, version: int) -> dict[str, Any]:
    plain = {
        "name": config.name,
        "value": config.value,
        "read_only": config.read_only,
        "source": int(config.config_source),
        "sensitive": config.is_sensitive,
        "synonyms": [[synonym.name, synonym.value, int(synonym.source)] for synonym in config.synonyms],
    }
    return {**plain, "type": int(config.config_type)} if version >= 3 else plain


def caller(client: RawClient) -> Call:
    """Sends messages over a connection."""

    async def call(message: Any, version: int) -> Any:
        said = await client.call(b"".join(encode_request(message, version, 7, "settings")))
        return decode_response(said, message.API_KEY, version)[1]

    return call


async def play(client: RawClient, *, settle_seconds: float = 0) -> dict[str, list[dict[str, Any]]]:
    """The answers by the names of the steps; a name that comes again gets a number.

    Kafka answers a change before its broker has heard of it: `settle_seconds` after each step it has.
    """
    call = caller(client)
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    await call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    answers: dict[str, list[dict[str, Any]]] = {}
    for step in steps():
        name, number = step.name, 2
        while name in answers:
            name, number = f"{step.name} ({number})", number + 1
        if settle_seconds:
            await asyncio.sleep(settle_seconds)
        answers[name] = answer(await call(step.request, step.version), step.version)
    return answers


async def record(host: str, port: int) -> None:
    """Store the answers of a fresh Apache Kafka."""
    client = await RawClient.connect(port, host)
    answers = await play(client, settle_seconds=0.2)
    await client.close()
    today = dt.datetime.now(dt.UTC).date().isoformat()
    content = {"broker": "Apache Kafka 4.4.0", "recorded": today, "settings": RECORDED_WITH, "answers": answers}
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text(json.dumps(content, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(answers)} answers recorded")


if __name__ == "__main__":
    _host, _, _port = sys.argv[1].rpartition(":")
    asyncio.run(record(_host, int(_port)))
