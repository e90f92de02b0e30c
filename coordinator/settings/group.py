"""Settings of groups, and the limits that the broker puts to them.

Source: Kafka's GroupConfig (validate), GroupConfigManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coordinator.settings.definition import SettingTable
from coordinator.settings.rules import parse
from coordinator.settings.values import InvalidSetting, Value

# ruff: noqa: E501

TABLE = """\
consumer.assignment.interval.ms            int      medium  group  1000  >=0  = group.consumer.assignment.interval.ms
consumer.assignor.offload.enable           boolean  medium  group  true  any  internal  = group.consumer.assignor.offload.enable
consumer.heartbeat.interval.ms             int      medium  group  5000  >=1  = group.consumer.heartbeat.interval.ms
consumer.session.timeout.ms                int      medium  group  45000  >=1  = group.consumer.session.timeout.ms
errors.deadletterqueue.copy.record.enable  boolean  medium  group  false  any
errors.deadletterqueue.topic.name          string   medium  group  ""  any
share.assignment.interval.ms               int      medium  group  1000  >=0  = group.share.assignment.interval.ms
share.assignor.offload.enable              boolean  medium  group  true  any  internal  = group.share.assignor.offload.enable
share.auto.offset.reset                    string   medium  group  latest  offset_reset
share.delivery.count.limit                 int      medium  group  5  >=2  = group.share.delivery.count.limit
share.heartbeat.interval.ms                int      medium  group  5000  >=1  = group.share.heartbeat.interval.ms
share.isolation.level                      string   medium  group  read_uncommitted  {read_committed,read_uncommitted}
share.partition.max.record.locks           int      medium  group  2000  >=100  = group.share.partition.max.record.locks
share.record.lock.duration.ms              int      medium  group  30000  >=1000  = group.share.record.lock.duration.ms
share.renew.acknowledge.enable             boolean  medium  group  true  any
share.session.timeout.ms                   int      medium  group  45000  >=1  = group.share.session.timeout.ms
streams.acceptable.recovery.lag            long     medium  group  10000  >=0  internal  = group.streams.acceptable.recovery.lag
streams.assignment.interval.ms             int      medium  group  1000  >=0  = group.streams.assignment.interval.ms
streams.assignor.name                      string   medium  group  -  any  = group.streams.assignors
streams.assignor.offload.enable            boolean  medium  group  true  any  internal  = group.streams.assignor.offload.enable
streams.heartbeat.interval.ms              int      medium  group  5000  >=1  = group.streams.heartbeat.interval.ms
streams.initial.rebalance.delay.ms         int      medium  group  3000  >=0  = group.streams.initial.rebalance.delay.ms
streams.num.standby.replicas               int      medium  group  0  >=0  = group.streams.num.standby.replicas
streams.num.warmup.replicas                int      medium  group  2  >=0  internal  = group.streams.num.warmup.replicas
streams.rack.aware.assignment.tags         list     low     group  ""  unique  = group.streams.rack.aware.assignment.tags
streams.session.timeout.ms                 int      medium  group  45000  >=1  = group.streams.session.timeout.ms
streams.task.offset.interval.ms            int      medium  group  60000  >=1  internal  = group.streams.task.offset.interval.ms
"""

GROUP = SettingTable(TABLE)

_LIMITED = (
    ("consumer.heartbeat.interval.ms", "group.consumer.{}.heartbeat.interval.ms"),
    ("consumer.session.timeout.ms", "group.consumer.{}.session.timeout.ms"),
    ("consumer.assignment.interval.ms", "group.consumer.{}.assignment.interval.ms"),
    ("share.heartbeat.interval.ms", "group.share.{}.heartbeat.interval.ms"),
    ("share.session.timeout.ms", "group.share.{}.session.timeout.ms"),
    ("share.record.lock.duration.ms", "group.share.{}.record.lock.duration.ms"),
    ("share.delivery.count.limit", "group.share.{}.delivery.count.limit"),
    ("share.partition.max.record.locks", "group.share.{}.partition.max.record.locks"),
    ("share.assignment.interval.ms", "group.share.{}.assignment.interval.ms"),
    ("streams.heartbeat.interval.ms", "group.streams.{}.heartbeat.interval.ms"),
    ("streams.session.timeout.ms", "group.streams.{}.session.timeout.ms"),
    ("streams.assignment.interval.ms", "group.streams.{}.assignment.interval.ms"),
)
"""Settings that the broker limits from both sides: `min` and `max` stand for the braces."""

_HEARTBEATS = ("consumer", "share", "streams")


def check_group_configs(overrides: Mapping[str, str], broker: Callable[[str], Value]) -> None:
    """Raise InvalidSetting unless all that a group overrides is valid, alone and together.

    `broker` gives the broker's value of a setting by name: defaults and limits come from there.
    """
    unknown = next((name for name in overrides if name not in GROUP), None)
    if unknown is not None:
        raise InvalidSetting(f"Unknown group config name: {unknown}")
    own = {name: parse(GROUP[name], text, takes_doubles=False) for name, text in overrides.items()}

    def value(name: str) -> Value:
        return own[name] if name in own else group_value(name, {}, broker)

    for name, limits in _LIMITED:
        low, high = _integer(broker(limits.format("min"))), _integer(broker(limits.format("max")))
        if name in own and not low <= _integer(own[name]) <= high:
            raise InvalidSetting(
                f"{name}={own[name]} must be in the range {low} to {high} inclusive "
                f"({limits.format('min')} and {limits.format('max')})."
            )
    for kind in _HEARTBEATS:
        heartbeat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        if _integer(value(heartbeat)) >= _integer(value(session)):
            raise InvalidSetting(f"{session}={value(session)} must be greater than {heartbeat}={value(heartbeat)}.")
    _check_most(own, "streams.num.standby.replicas", "group.streams.max.standby.replicas", broker)
    _check_most(own, "streams.num.warmup.replicas", "group.streams.max.warmup.replicas", broker)
    _check_names(own, broker)


def group_value(name: str, overrides: Mapping[str, str], broker: Callable[[str], Value]) -> Value:
    """A setting as it holds for a group: its own, else the broker's, else the default."""
    setting = GROUP[name]
    if name in overrides:
        return parse(setting, overrides[name])
    for synonym in setting.synonyms:
        value = broker(synonym.name)
        if isinstance(value, tuple) and name == "streams.assignor.name":
            value = value[0]
        return value
    return parse(setting, setting.default)


def _check_most(own: Mapping[str, Value], name: str, limit: str, broker: Callable[[str], Value]) -> None:
    most = _integer(broker(limit))
    if name in own and _integer(own[name]) > most:
        raise InvalidSetting(f"{name}={own[name]} must be less than or equal to {most} ({limit}).")


def _check_names(own: Mapping[str, Value], broker: Callable[[str], Value]) -> None:
    dead_letter_topic = own.get("errors.deadletterqueue.topic.name")
    if isinstance(dead_letter_topic, str) and dead_letter_topic.startswith("__"):
        raise InvalidSetting(
            f"errors.deadletterqueue.topic.name={dead_letter_topic}: DLQ topic name must not start with '__'"
        )
    assignor, assignors = own.get("streams.assignor.name"), broker("group.streams.assignors")
    assert isinstance(assignors, tuple)
    if assignor is not None and assignor not in assignors:
        raise InvalidSetting(
            f"streams.assignor.name '{assignor}' is not a registered task assignor. "
            f"Registered assignors are: {', '.join(assignors)} (group.streams.assignors)."
        )


def _integer(value: Value) -> int:
    assert isinstance(value, int)
    return value
