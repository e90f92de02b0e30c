"""The settings of topics as the controller asks for them, from the settings of its own node.

Source: Kafka's `ConfigurationControlManager` and `KafkaConfigSchema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coordinator.controller.view import EffectiveSetting
from coordinator.settings.describe import describe_topic
from coordinator.settings.layers import BrokerValues
from coordinator.settings.topic import TOPIC, check_topic_configs
from coordinator.settings.values import InvalidSetting
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.config import BrokerConfig


class NodeTopicSettings:
    """`coordinator.controller.view.TopicSettings` over a node's static settings."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config

    def check(self, configs: Mapping[str, str]) -> None:
        """See TopicSettings.check."""
        values = self._config.values
        try:
            check_topic_configs(
                configs,
                {name: values.topic_default(name) for name in TOPIC.names()},
                remote_storage_system_enable=self._config["remote.log.storage.system.enable"],
            )
        except InvalidSetting as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def effective(self, configs: Mapping[str, str], cluster_default: Mapping[str, str]) -> Sequence[EffectiveSetting]:
        """See TopicSettings.effective."""
        layers = self._config.values.layers._replace(dynamic_default=cluster_default, dynamic={})
        return [
            EffectiveSetting(
                described.name, described.value, described.read_only, described.source, described.is_sensitive
            )
            for described in describe_topic(BrokerValues(layers), configs)
        ]
