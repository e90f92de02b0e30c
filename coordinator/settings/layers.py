"""The layers of a broker's settings, what holds of them, and where a value comes from.

A broker's value is, in this order: the dynamic one of the broker, the dynamic one for all brokers,
the static one (command line, environment, file), the default. A dynamic value also silences the
lower layers of its synonyms: `log.retention.ms` for all brokers beats `log.retention.hours` of a
file. Source: Kafka's DynamicBrokerConfig, KafkaConfigSchema, ConfigHelper.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from coordinator.settings.broker import base_name, broker_setting, broker_synonyms
from coordinator.settings.definition import Setting, Update
from coordinator.settings.node import NODE
from coordinator.settings.rules import parse
from coordinator.settings.topic import TOPIC
from coordinator.settings.values import InvalidSetting, Value, to_text


class ConfigSource(IntEnum):
    """Where a value comes from, with its number in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    """One value that speaks for a setting. The value is None where it is not to be shown."""

    name: str
    value: str | None
    source: ConfigSource


class BrokerLayers(NamedTuple):
    """The settings of one broker by layer, as texts; defaults are not among them."""

    static: Mapping[str, str] = {}
    dynamic_default: Mapping[str, str] = {}
    dynamic: Mapping[str, str] = {}
    defaults: Mapping[str, str] = {}
    """Defaults that follow from other settings of the node, where they differ from the tables."""

    def effective(self) -> dict[str, str]:
        """The texts that hold, without defaults."""
        texts = dict(self.static)
        for layer in (self.dynamic_default, self.dynamic):
            for name, text in layer.items():
                for synonym in broker_synonyms(name):
                    if synonym == name or base_name(name) == name:
                        texts.pop(synonym, None)
                texts[name] = text
        return texts

    def default(self, name: str) -> str | None:
        """The default of a setting as text."""
        if name in self.defaults:
            return self.defaults[name]
        setting = find_setting(name)
        return None if setting is None else setting.default

    def synonyms(self, name: str) -> list[ConfigSynonym]:
        """The values that speak for a broker setting, the one that holds first; none where neither the
        setting nor its default is set. Values that are not to be shown are None."""
        names = broker_synonyms(name)
        found: list[ConfigSynonym] = []
        sensitive = is_sensitive(name)
        for layer, source in (
            (self.dynamic, ConfigSource.DYNAMIC_BROKER),
            (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self.static, ConfigSource.STATIC_BROKER),
        ):
            found += [ConfigSynonym(n, None if sensitive else layer[n], source) for n in names if n in layer]
        for one in names:
            default = self.default(one)
            if default is not None and not is_dynamic_only(one):
                found.append(ConfigSynonym(one, None if sensitive else default, ConfigSource.DEFAULT))
        # What stands before the setting's own first value would hold for another setting only.
        while found and found[0].name != name:
            del found[0]
        return found


class BrokerValues:
    """The values that hold for one broker, parsed when first asked for."""

    def __init__(self, layers: BrokerLayers) -> None:
        self.layers = layers
        self._texts = layers.effective()
        self._values: dict[str, Value] = {}

    def text(self, name: str) -> str | None:
        """The text that holds for a setting, None when it is unset."""
        text = self._texts.get(name)
        return self.layers.default(name) if text is None else text

    def value(self, name: str) -> Value:
        """The value that holds for a setting. Raises InvalidSetting, KeyError for an unknown name."""
        if name not in self._values:
            setting = find_setting(name)
            if setting is None:
                raise KeyError(name)
            self._values[name] = parse(setting, self.text(name))
        return self._values[name]

    def extra_names(self) -> list[str]:
        """Names that are set and that no table knows, or that are hidden unless set."""
        listed = ((name, find_listed(name)) for name in self._texts)
        return [name for name, setting in listed if setting is None or setting.internal or is_dynamic_only(name)]

    def topic_default(self, name: str) -> Value:
        """The value of a topic setting where the topic has none of its own."""
        setting = TOPIC[name]
        for synonym in setting.synonyms:
            value = self.value(synonym.name)
            if value is not None:
                if isinstance(value, int) and synonym.factor != 1:
                    value *= synonym.factor
                # Hours below zero are as good as -1: without limit.
                return -1 if name == "retention.ms" and isinstance(value, int) and value < 0 else value
        return parse(setting, setting.default)

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, Value]:
        """Every topic setting as it holds for a topic with these overrides. An override that cannot be
        read (a log of another release) counts as unset."""
        values = {name: self.topic_default(name) for name in TOPIC.names()}
        for name, text in overrides.items():
            setting = TOPIC.get(name)
            if setting is not None:
                try:
                    values[name] = parse(setting, text)
                except InvalidSetting:
                    continue
        return values

    def topic_synonyms(self, name: str, overrides: Mapping[str, str]) -> list[ConfigSynonym]:
        """The values that speak for a topic setting, the one that holds first (I29)."""
        setting = TOPIC[name]
        found = self.layers.synonyms(setting.synonyms[0].name) if setting.synonyms else []
        if name in overrides:
            own = shown(setting, overrides[name])
            found.insert(0, ConfigSynonym(name, None if setting.is_sensitive else own, ConfigSource.TOPIC))
        return found


def find_setting(name: str) -> Setting | None:
    """A broker setting or one of our own, under a listener's prefix too."""
    setting = find_listed(name)
    if setting is None and (base := base_name(name)) != name:
        setting = broker_setting(base)
        # A listener's own value has no default: without it the general setting speaks.
        return None if setting is None else setting._replace(name=name, default=None)
    return setting


def find_listed(name: str) -> Setting | None:
    """A broker setting or one of our own by its own name."""
    return broker_setting(name) or NODE.get(name)


def is_dynamic_only(name: str) -> bool:
    """Whether a setting is known only where it is set: it is not listed, and its default is not shown."""
    setting = find_listed(name)
    return setting is not None and setting.update is Update.DYNAMIC_ONLY


def is_sensitive(name: str) -> bool:
    """Whether the value of a broker setting is never shown: passwords, and whatever is unknown."""
    setting = find_setting(name)
    return setting is None or setting.is_sensitive


def shown(setting: Setting, text: str) -> str | None:
    """A text as the value it says reads: blanks trimmed, booleans in lower case; as it is if it says none."""
    try:
        return to_text(setting.type, parse(setting, text))
    except InvalidSetting:
        return text
