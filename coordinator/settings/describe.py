"""What DescribeConfigs shows of each kind of resource (I26 to I31).

Broker resources list every setting of Kafka's, then ours (`odradek.`), then whatever else is set.
Values that are not to be shown are None. Source: Kafka's ConfigHelper.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from coordinator.settings.broker import KAFKA
from coordinator.settings.client_metrics import CLIENT_METRICS
from coordinator.settings.definition import Setting, SettingType, Update
from coordinator.settings.group import GROUP, group_value
from coordinator.settings.layers import BrokerValues, ConfigSource, ConfigSynonym, find_listed, find_setting, shown
from coordinator.settings.node import NODE
from coordinator.settings.topic import TOPIC
from coordinator.settings.values import to_text


class DescribedSetting(NamedTuple):
    """One setting as DescribeConfigs shows it."""

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    is_sensitive: bool
    synonyms: list[ConfigSynonym]
    type: SettingType


def describe_broker(values: BrokerValues, keys: Collection[str] | None = None) -> list[DescribedSetting]:
    """The settings of one broker; `keys` None or empty for all, unknown ones are left out."""
    names = [s.name for s in KAFKA if not s.internal and s.update is not Update.DYNAMIC_ONLY]
    names += NODE.names()
    names += values.extra_names()
    return [_of_broker(name, values) for name in names if not keys or name in keys]


def describe_cluster_default(values: BrokerValues, keys: Collection[str] | None = None) -> list[DescribedSetting]:
    """The dynamic settings for all brokers: only those that are set."""
    described = []
    for name, text in values.layers.dynamic_default.items():
        if not keys or name in keys:
            setting = find_setting(name)
            hidden = setting is None or setting.is_sensitive
            value = None if hidden else text
            synonyms = [ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER)]
            described.append(_described(name, setting, value, synonyms))
    return described


def describe_topic(
    values: BrokerValues, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> list[DescribedSetting]:
    """The settings of a topic with these overrides, hosted by a broker with these values."""
    effective = values.topic_values(overrides)
    described = []
    for setting in TOPIC:
        name = setting.name
        if (keys and name not in keys) or (setting.internal and name not in overrides):
            continue
        value = to_text(setting.type, effective[name])
        described.append(_described(name, setting, value, values.topic_synonyms(name, overrides)))
    return described


def describe_group(
    values: BrokerValues, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> list[DescribedSetting]:
    """The settings of a group with these overrides."""
    described = []
    for setting in GROUP:
        name = setting.name
        if (keys and name not in keys) or (setting.internal and name not in overrides):
            continue
        synonyms = []
        if name in overrides:
            synonyms.append(ConfigSynonym(name, shown(setting, overrides[name]), ConfigSource.GROUP))
        for synonym in setting.synonyms:
            synonyms += values.layers.synonyms(synonym.name)
        if not setting.synonyms:
            synonyms.append(ConfigSynonym(name, setting.default, ConfigSource.DEFAULT))
        value = to_text(setting.type, group_value(name, overrides, values.value))
        described.append(_described(name, setting, value, synonyms))
    return described


def describe_client_metrics(
    overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> list[DescribedSetting]:
    """The settings of a client metrics subscription; it need not exist."""
    described = []
    for setting in CLIENT_METRICS:
        name = setting.name
        if not keys or name in keys:
            text = overrides.get(name)
            own = [] if text is None else [ConfigSynonym(name, shown(setting, text), ConfigSource.CLIENT_METRICS)]
            described.append(_described(name, setting, own[0].value if own else setting.default, own))
    return described


def _of_broker(name: str, values: BrokerValues) -> DescribedSetting:
    setting = find_setting(name)
    text = values.text(name)
    value = None if setting is None or text is None else shown(setting, text)
    return _described(name, setting, value, values.layers.synonyms(name))


def _described(
    name: str, setting: Setting | None, value: str | None, synonyms: list[ConfigSynonym]
) -> DescribedSetting:
    listed = TOPIC.get(name) or find_listed(name) or GROUP.get(name) or CLIENT_METRICS.get(name)
    return DescribedSetting(
        name=name,
        value=None if setting is None or setting.is_sensitive else value,
        read_only=listed is None or not listed.is_dynamic,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_sensitive=setting is None or setting.is_sensitive,
        synonyms=synonyms,
        type=SettingType.UNKNOWN if setting is None else setting.type,
    )
