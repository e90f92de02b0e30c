"""The tables: every line reads, every default is valid, every setting has its sentence, and nothing is twice."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator.settings import broker_cluster, broker_groups, broker_log, broker_network, resources
from coordinator.settings.broker import KAFKA, base_name, broker_setting, broker_synonyms
from coordinator.settings.client_metrics import CLIENT_METRICS
from coordinator.settings.definition import SettingTable, Update, read_line
from coordinator.settings.documentation import _sentences
from coordinator.settings.group import GROUP
from coordinator.settings.kinder import KINDER_DEFAULTS
from coordinator.settings.node import NODE, PREFIX
from coordinator.settings.rules import parse
from coordinator.settings.topic import TOPIC

TABLES = {
    resources.BROKER: (KAFKA, NODE),
    resources.TOPIC: (TOPIC,),
    resources.GROUP: (GROUP,),
    resources.CLIENT_METRICS: (CLIENT_METRICS,),
}


@pytest.mark.parametrize(
    "line",
    [
        "a  int  high  read-only  1",
        "a  number  high  read-only  1  any",
        "a  int  high  sometimes  1  any",
        "a  int  high  read-only  1  any  hidden",
    ],
)
def test_a_malformed_line_is_refused(line: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        read_line(line)


def test_no_setting_is_defined_twice() -> None:
    texts = (broker_network.TABLE, broker_log.TABLE, broker_groups.TABLE, broker_cluster.TABLE)
    names = Counter(line.split()[0] for text in texts for line in text.splitlines())
    assert [name for name, count in names.items() if count > 1] == []
    assert len(KAFKA) == len(names)


@pytest.mark.parametrize("table", [table for tables in TABLES.values() for table in tables])
def test_every_default_keeps_its_own_rule(table: SettingTable) -> None:
    for setting in table:
        parse(setting, setting.default)


def test_kinder_defaults_are_valid_and_differ() -> None:
    for name, kinder in KINDER_DEFAULTS.items():
        setting = broker_setting(name)
        assert setting is not None
        assert setting.default == kinder.value != KAFKA[name].default
        parse(setting, kinder.value)


def test_synonyms_exist_and_their_defaults_agree_with_the_topics() -> None:
    """All defaults of topics equal those of their broker settings, in their own unit."""
    for setting in TOPIC:
        values = [
            value if synonym.factor == 1 else int(str(value)) * synonym.factor
            for synonym in setting.synonyms
            if (value := parse(KAFKA[synonym.name], KAFKA[synonym.name].default)) is not None
        ]
        if setting.synonyms:
            assert values[0] == parse(setting, setting.default), setting.name
    for setting in GROUP:
        for synonym in setting.synonyms:
            if setting.name != "streams.assignor.name":
                assert parse(KAFKA[synonym.name], KAFKA[synonym.name].default) == parse(setting, setting.default)


def test_our_own_settings_meet_none_of_kafkas() -> None:
    assert all(setting.name.startswith(PREFIX) for setting in NODE)
    assert not any(setting.name.startswith(PREFIX) for setting in KAFKA)


@pytest.mark.parametrize("kind", TABLES)
def test_every_setting_has_one_sentence(kind: int) -> None:
    names = {setting.name for table in TABLES[kind] for setting in table}
    sentences = _sentences(kind)
    assert set(sentences) == names
    for name, sentence in sentences.items():
        assert sentence.endswith("."), name
        assert 20 < len(sentence) < 200, name


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("listener.name.internal.max.connections", "max.connections"),
        ("listener.name.internal.scram-sha-256.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.internal.ssl.keystore.location", "ssl.keystore.location"),
        ("max.connections", "max.connections"),
    ],
)
def test_names_under_a_listener(name: str, base: str) -> None:
    assert base_name(name) == base


def test_hours_speak_for_milliseconds() -> None:
    assert broker_synonyms("log.retention.hours") == (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    )


def test_what_may_change_for_a_listener_only() -> None:
    assert KAFKA["ssl.keystore.location"].update is Update.PER_LISTENER
    assert KAFKA["ssl.client.auth"].update is Update.PER_BROKER
