"""Dynamic changes of a broker's settings: what a change may be, and what of the layers can hold.

Source: Kafka's ConfigAdminManager (preprocess), DynamicBrokerConfig (validateConfigs, updateCurrentConfig).
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.settings.broker import base_name
from coordinator.settings.broker_checks import check_broker
from coordinator.settings.definition import Update
from coordinator.settings.layers import BrokerLayers, BrokerValues, find_listed, find_setting
from coordinator.settings.node import PREFIX
from coordinator.settings.rules import parse
from coordinator.settings.values import InvalidSetting

_THREADS = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
)
"""Numbers of threads may at most double, and at most halve, in one step."""


_BOUND_AT_START = ("listeners", "listener.security.protocol.map")
"""Kafka rebinds its sockets when these change; here they are bound once."""


def check_broker_change(current: BrokerValues, proposed: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise InvalidSetting unless `proposed` may be all the dynamic settings of this broker (`per_broker`)
    or of all brokers. Names that no table knows are taken: they may be for something else."""
    _check_updates(proposed, per_broker)
    for name, text in proposed.items():
        setting = find_setting(name)
        if setting is not None:
            parse(setting, text, takes_doubles=False)
    layers = current.layers
    layers = layers._replace(dynamic=proposed) if per_broker else layers._replace(dynamic_default=proposed)
    after = BrokerValues(layers)
    check_broker(after)
    for name in _BOUND_AT_START:
        if name in proposed and after.value(name) != current.value(name):
            raise InvalidSetting(
                f"{name} cannot change from {current.text(name)} to {proposed[name]} while the node runs: "
                "set it in the settings file and start the node again."
            )
    for name in _THREADS:
        if name in proposed:
            _check_thread_count(name, int(str(current.value(name))), int(str(after.value(name))))


def _check_thread_count(name: str, now: int, wanted: int) -> None:
    if wanted < 1:
        raise InvalidSetting(
            f"Dynamic thread count update validation failed for {name}={wanted}, value should be at least 1"
        )
    if wanted > now * 2:
        raise InvalidSetting(
            f"Dynamic thread count update validation failed for {name}={wanted}, "
            f"value should not be greater than double the current value {now}"
        )
    if wanted < now // 2:
        raise InvalidSetting(
            f"Dynamic thread count update validation failed for {name}={wanted}, "
            f"value should be at least half the current value {now}"
        )


def _check_updates(proposed: Mapping[str, str], per_broker: bool) -> None:
    fixed, listener_only, broker_only = [], [], []
    for name in proposed:
        update = update_of(name)
        if (update is Update.READ_ONLY and base_name(name) == name) or name.startswith(PREFIX):
            fixed.append(name)
        elif update is Update.PER_LISTENER and base_name(name) == name:
            listener_only.append(name)
        elif update in (Update.PER_BROKER, Update.PER_LISTENER):
            broker_only.append(name)
    if fixed:
        raise InvalidSetting(f"Cannot update these configs dynamically: {_bracketed(fixed)}")
    if listener_only:
        raise InvalidSetting(
            "These security configs can be dynamically updated only per-listener using the listener prefix "
            f"(listener.name.<listener>.): {_bracketed(listener_only)}"
        )
    if broker_only and not per_broker:
        raise InvalidSetting(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"{_bracketed(broker_only)}"
        )


def usable_dynamic(
    static: Mapping[str, str],
    defaults: Mapping[str, str],
    cluster_default: Mapping[str, str],
    own: Mapping[str, str],
) -> tuple[BrokerLayers, list[str]]:
    """The layers with what of the dynamic settings can hold on this broker, and a sentence for each
    setting that cannot: the metadata log may have been written by another release or with other limits."""
    problems: list[str] = []
    layers = BrokerLayers(
        static,
        _usable(cluster_default, "for all brokers", False, problems),
        _usable(own, "for this broker", True, problems),
        defaults,
    )
    try:
        check_broker(BrokerValues(layers))
    except InvalidSetting as error:
        problems.append(f"The dynamic settings do not go together and are not used: {error}")
        layers = BrokerLayers(static, {}, {}, defaults)
    return layers, problems


def _usable(texts: Mapping[str, str], where: str, per_broker: bool, problems: list[str]) -> dict[str, str]:
    usable = {}
    for name, text in texts.items():
        try:
            _check_updates({name: text}, per_broker)
            setting = find_setting(name)
            if setting is not None:
                parse(setting, text)
        except InvalidSetting as error:
            problems.append(f"The dynamic setting {name} {where} is not used: {error}")
        else:
            usable[name] = text
    return usable


def update_of(name: str) -> Update | None:
    """When a broker setting may change, a listener's own as the general one; None for names no table knows."""
    setting = find_listed(name) or find_setting(name)
    return None if setting is None else setting.update


def _bracketed(names: list[str]) -> str:
    return f"[{', '.join(names)}]"
