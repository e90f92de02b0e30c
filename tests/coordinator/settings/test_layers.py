"""Which layer holds, and what must hold between settings; refusals first."""

from __future__ import annotations

import pytest

from coordinator.settings.alter_broker import check_broker_change, usable_dynamic
from coordinator.settings.broker_checks import check_broker
from coordinator.settings.group import check_group_configs, group_value
from coordinator.settings.layers import BrokerLayers, BrokerValues, ConfigSource
from coordinator.settings.listeners import inter_broker_listener_name, listeners, voters
from coordinator.settings.topic import TOPIC, check_topic_configs
from coordinator.settings.values import InvalidSetting


def values(
    static: dict[str, str] | None = None, default: dict[str, str] | None = None, own: dict[str, str] | None = None
) -> BrokerValues:
    return BrokerValues(BrokerLayers(static or {}, default or {}, own or {}))


# --- refusals at start ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("static", "said"),
    [
        ({"num.partitions": "0"}, ["num.partitions", "0", "at least 1"]),
        ({"node.id": "-1"}, ["node.id", "-1", "at least 0"]),
        ({"log.retention.ms": "0"}, ["log.retention.ms", "not 0"]),
        ({"log.retention.hours": "0"}, ["log.retention.hours", "not 0"]),
        ({"log.local.retention.ms": "999999999999"}, ["log.local.retention.ms", "log.retention.ms", "604800000"]),
        ({"log.retention.bytes": "5", "log.local.retention.bytes": "-1"}, ["log.local.retention.bytes", "-1"]),
        ({"log.cleaner.dedupe.buffer.size": "5"}, ["log.cleaner.dedupe.buffer.size", "log.cleaner.threads"]),
        ({"cordoned.log.dirs": "/x"}, ["cordoned.log.dirs", "/x", "log.dirs"]),
        ({"max.connections.per.ip": "0"}, ["max.connections.per.ip", "max.connections.per.ip.overrides"]),
        ({"max.connections.per.ip.overrides": "a"}, ["max.connections.per.ip.overrides", "'a'", "host:limit"]),
        ({"metric.reporters": "a.B"}, ["metric.reporters", "a.B"]),
        (
            {"group.consumer.session.timeout.ms": "1"},
            ["group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms", "45000"],
        ),
        (
            {"group.min.session.timeout.ms": "7", "group.max.session.timeout.ms": "6"},
            ["group.min.session.timeout.ms", "group.max.session.timeout.ms"],
        ),
        (
            {
                "group.share.min.heartbeat.interval.ms": "50000",
                "group.share.heartbeat.interval.ms": "50000",
                "group.share.max.heartbeat.interval.ms": "50000",
            },
            ["group.share.heartbeat.interval.ms", "50000", "group.share.session.timeout.ms", "45000"],
        ),
        ({"replica.fetch.wait.max.ms": "40000"}, ["replica.fetch.wait.max.ms", "replica.socket.timeout.ms"]),
        ({"broker.session.timeout.ms": "3000"}, ["broker.heartbeat.interval.ms", "broker.session.timeout.ms", "3000"]),
        ({"controller.quorum.voters": "2@a:9093"}, ["node.id=1", "controller.quorum.voters"]),
        ({"controller.quorum.voters": "1@a:9093,1@b:9093"}, ["controller.quorum.voters", "twice"]),
        ({"controller.quorum.voters": "1@a:9093,2@b:9093"}, ["controller.listener.names", "listeners"]),
        ({"process.roles": "broker"}, ["process.roles=broker", "controller.quorum.voters"]),
        ({"listeners": "here"}, ["listeners", "here", "NAME://host:port"]),
        ({"listeners": "A://:1"}, ["A", "listener.security.protocol.map"]),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, ["listeners", "port 1"]),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, ["listeners", "PLAINTEXT", "twice"]),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, ["advertised.listeners", "0.0.0.0"]),
        ({"advertised.listeners": "SSL://a:1"}, ["advertised.listeners", "SSL", "PLAINTEXT"]),
        ({"advertised.listeners": "PLAINTEXT://a:1,PLAINTEXT://b:1"}, ["advertised.listeners", "twice"]),
        ({"listener.security.protocol.map": "PLAINTEXT"}, ["listener.security.protocol.map", "'PLAINTEXT'"]),
        ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, ["listener.security.protocol.map", "SASL_SSL"]),
        ({"inter.broker.listener.name": "X"}, ["inter.broker.listener.name=X", "PLAINTEXT"]),
        (
            {"security.inter.broker.protocol": "SSL"},
            ["security.inter.broker.protocol=SSL", "inter.broker.listener.name", "PLAINTEXT"],
        ),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            ["inter.broker.listener.name", "security.inter.broker.protocol"],
        ),
    ],
)
def test_u14_settings_that_do_not_go_together_are_named(static: dict[str, str], said: list[str]) -> None:
    with pytest.raises(InvalidSetting) as caught:
        check_broker(values(static))
    for part in said:
        assert part in str(caught.value)


def test_the_defaults_hold_together() -> None:
    check_broker(values())


# --- refusals of topics and groups -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"nosuch": "1"}, ["nosuch"]),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}, ["9", "5", "min.compaction.lag.ms"]),
        ({"remote.storage.enable": "true"}, ["remote.storage.enable", "remote.log.storage.system.enable"]),
    ],
)
def test_i37_topic_settings_that_do_not_go_together(overrides: dict[str, str], said: list[str]) -> None:
    defaults = {name: values().topic_default(name) for name in TOPIC.names()}
    with pytest.raises(InvalidSetting) as caught:
        check_topic_configs(overrides, defaults)
    for part in said:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"cleanup.policy": "compact"}, "compact"),
        ({"local.retention.ms": "10", "retention.ms": "5"}, "local.retention.ms"),
        ({"local.retention.ms": "-1", "retention.ms": "5"}, "local.retention.ms"),
        ({"local.retention.bytes": "10", "retention.bytes": "5"}, "local.retention.bytes"),
    ],
)
def test_i37_with_remote_storage(overrides: dict[str, str], said: str) -> None:
    defaults = {name: values().topic_default(name) for name in TOPIC.names()}
    with pytest.raises(InvalidSetting, match=said):
        check_topic_configs({**overrides, "remote.storage.enable": "true"}, defaults, remote_storage_system_enable=True)
    check_topic_configs(overrides, defaults, remote_storage_system_enable=True)


def test_i37_remote_storage_is_not_turned_off_with_its_data_left() -> None:
    defaults = {name: values().topic_default(name) for name in TOPIC.names()}
    before = {"remote.storage.enable": "true"}
    with pytest.raises(InvalidSetting, match=r"remote\.log\.delete\.on\.disable"):
        check_topic_configs({"remote.storage.enable": "false"}, defaults, before=before)
    check_topic_configs({"remote.log.delete.on.disable": "true"}, defaults, before=before)


def test_a_group_is_limited_by_the_broker() -> None:
    broker = values({"group.consumer.max.session.timeout.ms": "46000"})
    with pytest.raises(InvalidSetting, match=r"45000 to 46000.*group\.consumer\.max\.session\.timeout\.ms"):
        check_group_configs({"consumer.session.timeout.ms": "47000"}, broker.value)
    check_group_configs({"consumer.session.timeout.ms": "46000"}, broker.value)


def test_a_group_falls_back_to_the_broker() -> None:
    broker = values({"group.consumer.session.timeout.ms": "50000"})
    assert group_value("consumer.session.timeout.ms", {}, broker.value) == 50000
    assert group_value("consumer.session.timeout.ms", {"consumer.session.timeout.ms": "51000"}, broker.value) == 51000
    assert group_value("streams.assignor.name", {}, broker.value) == "sticky"
    assert group_value("share.auto.offset.reset", {}, broker.value) == "latest"


# --- layers ------------------------------------------------------------------------------------------


def test_the_nearest_layer_holds() -> None:
    name = "log.segment.bytes"
    one, two, three = "1048577", "1048578", "1048579"
    assert values().value(name) == 2**30
    assert values({name: one}).value(name) == int(one)
    assert values({name: one}, {name: two}).value(name) == int(two)
    assert values({name: one}, {name: two}, {name: three}).value(name) == int(three)


def test_a_dynamic_value_silences_the_synonyms_below_it() -> None:
    both = values({"log.retention.hours": "5"}, {"log.retention.ms": "1000"})
    assert both.topic_default("retention.ms") == 1000
    assert both.value("log.retention.hours") == 168
    assert both.text("log.retention.ms") == "1000"


def test_minutes_hold_before_hours_and_below_zero_is_without_limit() -> None:
    assert values({"log.retention.minutes": "2", "log.retention.hours": "9"}).topic_default("retention.ms") == 120_000
    assert values({"log.retention.hours": "-1"}).topic_default("retention.ms") == -1
    assert values({"log.roll.jitter.hours": "1"}).topic_default("segment.jitter.ms") == 3_600_000
    assert values({"log.flush.scheduler.interval.ms": "7"}).topic_default("flush.ms") == 7


def test_synonyms_tell_every_layer_the_one_that_holds_first() -> None:
    found = values({"log.roll.hours": "9"}, {"log.roll.ms": "5"}, {"log.roll.ms": "6"}).topic_synonyms(
        "segment.ms", {"segment.ms": "7"}
    )
    assert [(synonym.name, synonym.value, synonym.source) for synonym in found] == [
        ("segment.ms", "7", ConfigSource.TOPIC),
        ("log.roll.ms", "6", ConfigSource.DYNAMIC_BROKER),
        ("log.roll.ms", "5", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.roll.hours", "9", ConfigSource.STATIC_BROKER),
        ("log.roll.hours", "168", ConfigSource.DEFAULT),
    ]


def test_an_override_of_another_release_counts_as_unset() -> None:
    assert values().topic_values({"segment.bytes": "14", "gone": "1"})["segment.bytes"] == 2**30


def test_passwords_and_unknown_settings_are_not_shown() -> None:
    layers = BrokerLayers({"sasl.jaas.config": "secret", "mine": "secret"})
    assert [synonym.value for synonym in layers.synonyms("sasl.jaas.config")] == [None]
    assert [synonym.value for synonym in layers.synonyms("mine")] == [None]


# --- changes while running -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("proposed", "per_broker", "said"),
    [
        ({"num.partitions": "2"}, True, "dynamically"),
        ({"odradek.memory": "true"}, True, "dynamically"),
        ({"ssl.key.password": "x"}, True, "listener prefix"),
        ({"ssl.client.auth": "none"}, False, "broker id must be specified"),
        ({"listener.name.a.ssl.key.password": "x"}, False, "broker id must be specified"),
        ({"listeners": "PLAINTEXT://localhost:1"}, True, "start the node again"),
        ({"num.io.threads": "17"}, True, "double the current value 8"),
        ({"num.io.threads": "3"}, True, "half the current value 8"),
        ({"log.retention.ms": "0"}, True, "not 0"),
        ({"log.segment.bytes": "x"}, False, "Not a number"),
    ],
)
def test_refused_changes(proposed: dict[str, str], per_broker: bool, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        check_broker_change(values(), proposed, per_broker=per_broker)


@pytest.mark.parametrize(
    ("proposed", "per_broker"),
    [
        ({"num.io.threads": "16"}, True),
        ({"ssl.client.auth": "none"}, True),
        ({"listener.name.a.ssl.key.password": "x"}, True),
        ({"listener.name.a.max.connections": "5"}, False),
        ({"listeners": "PLAINTEXT://localhost:9092"}, True),
        ({"whatever.else": "x"}, False),
        ({"leader.replication.throttled.rate": "5"}, True),
    ],
)
def test_allowed_changes(proposed: dict[str, str], per_broker: bool) -> None:
    check_broker_change(values(), proposed, per_broker=per_broker)


def test_what_cannot_hold_of_the_log_is_left_out_and_told() -> None:
    layers, problems = usable_dynamic({}, {}, {"num.partitions": "9", "log.roll.ms": "5"}, {"log.roll.ms": "x"})
    assert dict(layers.dynamic_default) == {"log.roll.ms": "5"}
    assert dict(layers.dynamic) == {}
    assert len(problems) == 2
    layers, problems = usable_dynamic({}, {}, {"log.retention.ms": "0"}, {"log.roll.ms": "5"})
    assert layers.effective() == {}
    assert "log.retention.ms" in problems[0]


# --- listeners -----------------------------------------------------------------------------------------


def test_listeners_with_what_is_told_to_clients() -> None:
    found = listeners(
        values(
            {
                "listeners": "INSIDE://:9092,out://[::1]:9093,CONTROLLER://:9094",
                "advertised.listeners": "OUT://example.org:1234",
                "listener.security.protocol.map": "inside:plaintext,OUT:SASL_SSL,CONTROLLER:PLAINTEXT",
            }
        )
    )
    assert [tuple(listener) for listener in found] == [
        ("INSIDE", "", 9092, "PLAINTEXT", None, None, False),
        ("OUT", "::1", 9093, "SASL_SSL", "example.org", 1234, False),
        ("CONTROLLER", "", 9094, "PLAINTEXT", None, None, True),
    ]


def test_one_port_for_ipv4_and_ipv6() -> None:
    assert (
        len(
            listeners(
                values(
                    {
                        "listeners": "A://127.0.0.1:1,B://[::1]:1",
                        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
                    }
                )
            )
        )
        == 2
    )


def test_a_controllers_listener_speaks_plaintext_by_itself() -> None:
    found = listeners(values({"listeners": "PLAINTEXT://:1,CONTROLLER://:2"}))
    assert found[1].security_protocol == "PLAINTEXT"


def test_the_listener_among_brokers() -> None:
    own = {"listeners": "PLAINTEXT://:1,SSL://:2"}
    assert inter_broker_listener_name(values(own), listeners(values(own))) == "PLAINTEXT"
    by_protocol = values({**own, "security.inter.broker.protocol": "SSL"})
    assert inter_broker_listener_name(by_protocol, listeners(by_protocol)) == "SSL"


def test_voters() -> None:
    found = voters(values({"controller.quorum.voters": "1@[::1]:9093,2@b:9094"}))
    assert [tuple(voter) for voter in found] == [(1, "::1", 9093), (2, "b", 9094)]
