"""Settings of the broker: Kafka's tables, our kinder defaults, and the synonyms between them.

Source: Kafka's AbstractKafkaConfig, DynamicBrokerConfig.brokerConfigSynonyms.
"""

from __future__ import annotations

import re

from coordinator.settings import broker_cluster, broker_groups, broker_log, broker_network
from coordinator.settings.definition import Setting, SettingTable
from coordinator.settings.kinder import KINDER_DEFAULTS

KAFKA = SettingTable(broker_network.TABLE, broker_log.TABLE, broker_groups.TABLE, broker_cluster.TABLE)
"""Kafka's settings with Kafka's defaults."""

_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]*\.(.*)")

_SYNONYMS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_SYNONYMS_OF = {name: names for names in _SYNONYMS for name in names}


def base_name(name: str) -> str:
    """`listener.name.<listener>.<setting>` as `<setting>`; SASL ones may carry a mechanism before it."""
    match = _LISTENER_PREFIX.fullmatch(name)
    if match is None:
        return name
    base = match[1]
    if base not in KAFKA:
        mechanism, _, rest = base.partition(".")
        if mechanism and rest in KAFKA and rest.startswith(("sasl.", "connections.max.reauth.ms")):
            return rest
    return base


def broker_setting(name: str) -> Setting | None:
    """The setting of this name with the default that holds here, None if there is none."""
    setting = KAFKA.get(name)
    if setting is None:
        return None
    kinder = KINDER_DEFAULTS.get(name)
    return setting if kinder is None else setting._replace(default=kinder.value, required=False)


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The names whose values speak for this one, nearest first, itself among them."""
    names = _SYNONYMS_OF.get(name)
    if names is not None:
        return names
    base = base_name(name)
    return (name,) if base == name else (name, base)
