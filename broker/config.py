"""The settings of a node: loaded once, then what holds at any time.

Static settings come, the first that speaks wins, from `--set`, the environment and a file. Over
them lie the dynamic ones of the metadata log: for all brokers, then for this one. `load_config`
makes a `BrokerConfig`, whose values are read by Kafka's names: `config["num.partitions"]`. Source: Kafka's
KafkaConfig, DynamicBrokerConfig.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from broker.config_log import LogConfig
from broker.config_served import check_served
from broker.config_sources import (
    ConfigError,
    environment_settings,
    parse_assignments,
    read_settings_file,
    resolve_variables,
    setting_variables,
    variable_name,
)
from coordinator.settings import broker_checks, listeners
from coordinator.settings.alter_broker import usable_dynamic
from coordinator.settings.broker import KAFKA
from coordinator.settings.definition import SettingTable
from coordinator.settings.layers import BrokerLayers, BrokerValues, find_setting
from coordinator.settings.listeners import ListenerAddress, Voter
from coordinator.settings.node import NODE
from coordinator.settings.values import InvalidSetting, Value

__all__ = ["BrokerConfig", "ConfigError", "ListenerAddress", "effective_log_config", "load_config"]

logger = logging.getLogger(__name__)

MEMORY_DIRECTORY = "/memory"
"""Where logs lie by name when they lie in memory."""

Subscriber = Callable[["BrokerConfig"], None]


def load_config(
    *,
    file: str | None = None,
    sets: Sequence[str] | Mapping[str, str] = (),
    environment: Mapping[str, str] | None = None,
    data_directory: str | None = None,
) -> BrokerConfig:
    """The settings of a node. `sets` are `key=value` texts or a mapping; `data_directory` is `--data`.

    Raises ConfigError. Unknown names of `sets` are refused, those of the file become `warnings` of the
    result, and so do those of the environment that are nearly a setting's: other programs' variables
    begin with KAFKA_ too.
    """
    environment = os.environ if environment is None else environment
    given = dict(sets) if isinstance(sets, Mapping) else parse_assignments(sets)
    for name in given:
        if not _is_known(name):
            raise ConfigError(f"--set {name}={given[name]}: there is no setting of this name{_meant(name)}.")
    lines: dict[str, int] = {}
    from_file = read_settings_file(file, lines) if file is not None else {}
    from_environment = {n: v for n, v in environment_settings(environment).items() if _is_known(n)}
    places = {name: f"{file}, line {line}" for name, line in lines.items()}
    places |= {name: variable for variable, name in setting_variables(environment).items()}
    places |= {name: f"--set {name}" for name in given}
    if data_directory is not None:
        if "log.dirs" in given:
            raise ConfigError(f"--data {data_directory} and --set log.dirs={given['log.dirs']} say the same: use one.")
        given["log.dirs"] = data_directory
        places["log.dirs"] = "--data"
    static = resolve_variables({**from_file, **from_environment, **given}, environment)
    warnings = [
        f"{places[name]}: {name} is not a setting known here{_meant(name)}; it has no effect."
        for name in from_file
        if not _is_known(name)
    ]
    warnings += _misspelt_variables(environment)
    return BrokerConfig(static, warnings=warnings, places=places)


def _is_known(name: str) -> bool:
    return find_setting(name) is not None or name.startswith("config.providers.")


def _misspelt_variables(environment: Mapping[str, str]) -> list[str]:
    return [
        f"{variable} is not a setting known here (did you mean {variable_name(meant)}?); it has no effect."
        for variable, name in setting_variables(environment).items()
        if not _is_known(name) and (meant := _closest(name, 0.85))
    ]


def _with_places(sentence: str, places: Mapping[str, str]) -> str:
    """A refusal with the places of the settings it names, where they were given, at its beginning."""
    words = re.findall(r"[a-z][a-z0-9_.-]*[a-z0-9]", sentence)
    named = [places[word] for word in words if word in places and _is_known(word)]
    return ": ".join(filter(None, [" and ".join(dict.fromkeys(named)), sentence]))


class BrokerConfig:
    """The settings of one node. `config[name]` is the value that holds now, of the setting's type."""

    def __init__(
        self,
        static: Mapping[str, str] | None = None,
        *,
        warnings: Sequence[str] = (),
        places: Mapping[str, str] | None = None,
    ) -> None:
        """`static` are texts by name, checked alone and together, `places` where each was given; raises ConfigError."""
        self.warnings = list(warnings)
        self._subscribers: list[tuple[frozenset[str] | None, Subscriber]] = []
        try:
            self._values = BrokerValues(_static_layers(dict(static or {})))
            broker_checks.check_broker(self._values)
            self.listeners: tuple[ListenerAddress, ...] = listeners.listeners(self._values)
            self.voters: tuple[Voter, ...] = listeners.voters(self._values)
            check_served(self._values, self.listeners, self.voters)
        except InvalidSetting as error:
            raise ConfigError(_with_places(str(error), places or {})) from error
        self.node_id: int = self["node.id"]

    # --- values ------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """The value that holds: int, float, bool, str, a tuple of texts for a list, None when unset."""
        return self._values.value(name)

    def listener_value(self, listener_name: str, name: str) -> Value:
        """A setting as it holds for one listener: `listener.name.<listener>.<name>`, else the general one."""
        own = f"listener.name.{listener_name.lower()}.{name}"
        return self._values.value(name) if self._values.text(own) is None else self._values.value(own)

    def is_set(self, name: str) -> bool:
        """Whether a layer other than the defaults speaks."""
        return name in self._values.layers.effective()

    @property
    def values(self) -> BrokerValues:
        """All layers, for DescribeConfigs and the controller."""
        return self._values

    @property
    def roles(self) -> frozenset[str]:
        """`broker`, `controller` or both."""
        return frozenset(self["process.roles"])

    @property
    def inter_broker_listener_name(self) -> str:
        """The listener that brokers use among themselves."""
        return listeners.inter_broker_listener_name(self._values, self.listeners)

    @property
    def in_memory(self) -> bool:
        """Whether logs lie in memory alone."""
        return bool(self["odradek.memory"])

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """Where logs lie."""
        return broker_checks.log_dirs(self._values)

    @property
    def metadata_log_dir(self) -> str:
        """Where the metadata log lies: `metadata.log.dir`, else the first of the log directories."""
        return self["metadata.log.dir"] or self.log_dirs[0]

    @property
    def max_connections_per_ip_overrides(self) -> dict[str, int]:
        """`max.connections.per.ip.overrides` by host."""
        return broker_checks.parse_connection_overrides(self["max.connections.per.ip.overrides"])

    # --- topics ------------------------------------------------------------------------------

    def log_config(self, topic: str, overrides: Mapping[str, str]) -> LogConfig:
        """The effective settings of a topic's logs, given what is set on the topic."""
        return effective_log_config(self._values, overrides)

    # --- change ------------------------------------------------------------------------------

    def apply_dynamic(self, cluster_default: Mapping[str, str], own: Mapping[str, str]) -> frozenset[str]:
        """Take over the dynamic settings for all brokers and for this one, and tell subscribers.

        What cannot hold here is left out with a warning, as Kafka does: the log of metadata is right, and
        a node must not fall over it. Returns the names whose values changed.
        """
        layers = self._values.layers
        usable, problems = usable_dynamic(layers.static, layers.defaults, cluster_default, own)
        for problem in problems:
            logger.warning("%s", problem)
        before, self._values = self._values, BrokerValues(usable)
        names = {*before.layers.effective(), *usable.effective()}
        changed = frozenset(name for name in names if before.text(name) != self._values.text(name))
        if changed:
            for names_of_interest, subscriber in self._subscribers:
                if names_of_interest is None or names_of_interest & changed:
                    subscriber(self)
        return changed

    def subscribe(self, names: Iterable[str] | None, subscriber: Subscriber) -> None:
        """Call `subscriber(config)` after a dynamic change of one of the names (None: of any)."""
        self._subscribers.append((None if names is None else frozenset(names), subscriber))


def _static_layers(static: dict[str, str]) -> BrokerLayers:
    """The static layer, and the defaults that follow from it."""
    defaults = {}
    if "broker.id" in static and "node.id" in static and static["broker.id"] != static["node.id"]:
        raise InvalidSetting(
            f"broker.id={static['broker.id']} and node.id={static['node.id']} must be the same: leave broker.id out."
        )
    node_id = static.get("node.id", static.get("broker.id"))
    if node_id is not None:
        static["broker.id"] = static["node.id"] = node_id
    if "," in static.get("controller.quorum.voters", ""):
        defaults["metadata.max.idle.interval.ms"] = KAFKA["metadata.max.idle.interval.ms"].default or ""
    if static.get("odradek.memory", "").strip().lower() == "true":
        if "log.dirs" in static or "log.dir" in static:
            name = "log.dirs" if "log.dirs" in static else "log.dir"
            raise InvalidSetting(
                f"odradek.memory=true keeps nothing on disk, but {name}={static[name]} is set: leave one of them out."
            )
        static["log.dirs"] = MEMORY_DIRECTORY
    if static.get("odradek.flush.on.acknowledge", "").strip().lower() == "true":
        defaults["log.flush.interval.messages"] = "1"
    return BrokerLayers(static=static, defaults=defaults)


def effective_log_config(values: BrokerValues, overrides: Mapping[str, str]) -> LogConfig:
    """The settings of a topic's logs: its own, else the broker's."""
    effective = values.topic_values(overrides)
    internal_segment_bytes = effective.pop("internal.segment.bytes")
    fields: dict[str, Any] = {name.replace(".", "_"): value for name, value in effective.items()}
    fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    if internal_segment_bytes is not None:
        fields["segment_bytes"] = internal_segment_bytes
    return LogConfig(**fields)


def _meant(name: str) -> str:
    """A guess at what was meant, for the end of a sentence's first half."""
    close = _closest(name, 0.8)
    return f" (did you mean {close}?)" if close else ""


def _closest(name: str, likeness: float) -> str:
    """The known setting whose name is most like this one; empty where none is, by `likeness` from 0 to 1."""
    import difflib

    tables: tuple[SettingTable, ...] = (KAFKA, NODE)
    close = difflib.get_close_matches(name, [known for table in tables for known in table.names()], 1, likeness)
    return close[0] if close else ""
