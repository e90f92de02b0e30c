"""What the controller knows of settings: which values a resource may be given, and what then holds.

The controller judges by its own static settings and the tables; the dynamic settings of a broker are
judged by that broker before they come here. Source: Kafka's ControllerConfigurationValidator,
KafkaConfigSchema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.controller.view import EffectiveSetting
from coordinator.settings.client_metrics import check_client_metrics_configs
from coordinator.settings.definition import SettingType
from coordinator.settings.group import check_group_configs
from coordinator.settings.layers import BrokerLayers, BrokerValues, ConfigSource, find_setting, shown
from coordinator.settings.rules import parse
from coordinator.settings.topic import TOPIC, check_topic_configs
from coordinator.settings.values import InvalidSetting, to_text
from wire.errors import ErrorCode, KafkaError

SPLITTABLE_TYPES = frozenset({SettingType.LIST})


class ConfigRules:
    """Judges settings of topics, groups and client metrics; implements `view.TopicSettings`."""

    def __init__(self, values: BrokerValues) -> None:
        """`values` are the node's; its dynamic layers play no part."""
        layers = values.layers
        self._values = BrokerValues(BrokerLayers(static=layers.static, defaults=layers.defaults))

    # --- topics ----------------------------------------------------------------------------------

    def check(self, configs: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
        """Raise KafkaError INVALID_CONFIG unless a topic may have these settings, alone and together.

        `before` is what an existing topic had until now.
        """
        values = self._values
        try:
            check_topic_configs(
                configs,
                {name: values.topic_default(name) for name in TOPIC.names()},
                before=before,
                remote_storage_system_enable=values.value("remote.log.storage.system.enable") is True,
            )
        except InvalidSetting as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def effective(self, configs: Mapping[str, str], cluster_default: Mapping[str, str]) -> Sequence[EffectiveSetting]:
        """Every topic setting with its source, for a topic with these overrides in a cluster with these
        dynamic broker defaults. Unlike DescribeConfigs it names the source of hours and minutes too."""
        static = self._values.layers.static
        found = []
        for setting in TOPIC:
            if setting.internal and setting.name not in configs:
                continue
            if setting.name in configs:
                value, source = shown(setting, configs[setting.name]), ConfigSource.TOPIC
            else:
                value, source = to_text(setting.type, parse(setting, setting.default)), ConfigSource.DEFAULT
                for layer, of_layer in (
                    (cluster_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
                    (static, ConfigSource.STATIC_BROKER),
                ):
                    if any(synonym.name in layer for synonym in setting.synonyms):
                        values = BrokerValues(BrokerLayers(static=static, dynamic_default=cluster_default))
                        value = to_text(setting.type, values.topic_default(setting.name))
                        source = of_layer
                        break
            found.append(EffectiveSetting(setting.name, value, False, int(source), setting.is_sensitive))
        return found

    # --- other resources -------------------------------------------------------------------------

    def check_group(self, configs: Mapping[str, str]) -> None:
        """Raise KafkaError INVALID_CONFIG unless a group may have these settings."""
        try:
            check_group_configs(configs, self._values.value)
        except InvalidSetting as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def check_client_metrics(self, name: str, configs: Mapping[str, str]) -> None:
        """Raise KafkaError INVALID_REQUEST or INVALID_CONFIG unless a subscription may have these settings."""
        try:
            check_client_metrics_configs(name, configs)
        except InvalidSetting as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    # --- lists -----------------------------------------------------------------------------------

    def is_list_of_topic(self, name: str) -> bool:
        """Whether a topic setting takes APPEND and SUBTRACT."""
        setting = TOPIC.get(name)
        return setting is not None and setting.type in SPLITTABLE_TYPES

    def is_list_of_broker(self, name: str) -> bool:
        """Whether a broker setting takes APPEND and SUBTRACT."""
        setting = find_setting(name)
        return setting is not None and setting.type in SPLITTABLE_TYPES

    def topic_list_start(self, name: str) -> list[str]:
        """What APPEND to an unset list of a topic starts from: the static or default value."""
        return _elements(self._values.topic_default(name))

    def broker_list_start(self, name: str) -> list[str]:
        """What APPEND to an unset list of a broker starts from."""
        return _elements(self._values.value(name))


def _elements(value: object) -> list[str]:
    return list(value) if isinstance(value, tuple) else []
