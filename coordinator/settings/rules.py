"""The rules of valid values, by their notation in the tables.

Source: Kafka's ConfigDef.Range, ValidString, CaseInsensitiveValidString, ValidList, and the
validators of ThrottledReplicaListValidator, QuorumConfig and ShareGroupAutoOffsetResetStrategy.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from coordinator.settings.definition import Setting, SettingType
from coordinator.settings.values import InvalidSetting, Value, invalid, parse_type

_THROTTLED_REPLICA = "[0-9]+:[0-9]+"
_ADDRESS = r"(?:\[[0-9a-zA-Z:%._-]+\]|[0-9a-zA-Z.:_-]+):([0-9]+)"
_DURATION = (
    r"(?i)([-+]?)P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?"
)


def parse(setting: Setting, text: str | None, *, takes_doubles: bool = True) -> Value:
    """The value that `text` says, checked against the setting's rule; None for an unset one.

    Numbers as int or float, lists as tuples, everything else as text. What is in a list twice is
    taken once, or refused: the dynamic settings of brokers and groups are judged so. Raises InvalidSetting.
    """
    if text is None:
        return None
    value = parse_type(setting, text)
    if takes_doubles and isinstance(value, tuple) and setting.rule.startswith(("[", "unique")):
        value = tuple(dict.fromkeys(value))
    check(setting, value)
    return value


def check(setting: Setting, value: Value) -> None:
    """Raise InvalidSetting unless the value keeps the setting's rule."""
    rule = setting.rule
    if setting.type is SettingType.CLASS and value and value != setting.default:
        # The JVM would look for it; here there is none to find it.
        raise invalid(setting, value, f"Class {value} could not be found: no Java classes run here.")
    if rule == "any" or value is None:
        return
    if isinstance(value, tuple):
        _check_list(setting, value)
    elif rule.startswith("{"):
        _check_one_of(setting, str(value))
    elif rule == "nonempty":
        if not value:
            raise invalid(setting, value, "String must be non-empty")
    elif rule == "offset_reset":
        check_offset_reset(setting, str(value))
    else:
        check_number(setting, float(value) if setting.type is SettingType.DOUBLE else int(value))


def check_number(setting: Setting, value: float) -> None:
    """A number within its range, both ends included."""
    rule = setting.rule
    if rule.startswith(">="):
        if not value >= int(rule[2:]):
            raise invalid(setting, value, f"Value must be at least {rule[2:]}")
        return
    low, high, other = number_limits(rule)
    if other is not None:
        if not low <= value <= high and value != other:
            raise invalid(setting, value, f"Value must be between {low:g} and {high:g} or equal to {other:g}")
    elif not value >= low:
        raise invalid(setting, value, f"Value must be at least {rule.partition('..')[0]}")
    elif not value <= high:
        raise invalid(setting, value, f"Value must be no more than {rule.partition('..')[2]}")


def number_limits(rule: str) -> tuple[float, float, float | None]:
    """`1..9|-1` as (1, 9, -1); without a `|` the third is None."""
    low, _, rest = rule.partition("..")
    high, _, other = rest.partition("|")
    return float(low), float(high), float(other) if other else None


def _check_one_of(setting: Setting, value: str) -> None:
    any_case = setting.rule.endswith("~")
    allowed = setting.rule.strip("{}~").split(",")
    if any_case:
        if value.upper() not in (one.upper() for one in allowed):
            raise invalid(setting, value, f"String must be one of (case insensitive): {', '.join(allowed)}")
    elif value not in allowed:
        raise invalid(setting, value, f"String must be one of: {', '.join(allowed)}")


def _check_list(setting: Setting, values: tuple[str, ...]) -> None:
    rule = setting.rule
    if rule.endswith("+"):
        rule = rule[:-1]
        if not values:
            raise InvalidSetting(f"Configuration '{setting.name}' must not be empty.")
    if rule in _LIST_RULES:
        _LIST_RULES[rule](setting, values)
        return
    if any(not value for value in values):
        raise InvalidSetting(f"Configuration '{setting.name}' values must not be empty.")
    if rule.startswith("["):
        allowed = rule.strip("[]").split(",")
        for value in values:
            if value not in allowed:
                raise invalid(setting, value, f"String must be one of: {', '.join(allowed)}")
    if len(set(values)) != len(values):
        raise InvalidSetting(f"Configuration '{setting.name}' values must not be duplicated: {','.join(values)}.")


def _check_throttled_replicas(setting: Setting, values: tuple[str, ...]) -> None:
    if values == ("*",):
        return
    if any(re.fullmatch(_THROTTLED_REPLICA, value) is None for value in values):
        raise invalid(
            setting,
            ",".join(values),
            "it must be * for all replicas, or a list of partition:broker pairs such as 0:1,1:2",
        )


def _check_addresses(setting: Setting, values: tuple[str, ...]) -> None:
    for value in values:
        match = re.fullmatch(_ADDRESS, value)
        if match is None or not int(match[1]) <= 65535:
            raise invalid(setting, value, "it must be a list of host:port")


def _check_voters(setting: Setting, values: tuple[str, ...]) -> None:
    for value in values:
        node_id, _, address = value.partition("@")
        match = re.fullmatch(_ADDRESS, address)
        if not node_id.isascii() or not node_id.isdecimal() or match is None or not int(match[1]) <= 65535:
            raise invalid(setting, value, "it must be a list of id@host:port")


_LIST_RULES: dict[str, Callable[[Setting, tuple[str, ...]], None]] = {
    "replicas": _check_throttled_replicas,
    "addresses": _check_addresses,
    "voters": _check_voters,
}


def check_offset_reset(setting: Setting, value: str) -> None:
    """`earliest`, `latest`, or `by_duration:` with an ISO 8601 duration that is not negative (KIP-1106)."""
    if value in ("earliest", "latest"):
        return
    kind, _, duration = value.partition(":")
    if kind != "by_duration" or (parsed := duration_ms(duration)) is None or parsed < 0:
        raise invalid(setting, value, "it must be earliest, latest or by_duration:PnDTnHnMn.nS (not negative)")


def duration_ms(text: str) -> int | None:
    """An ISO 8601 duration of days and smaller as milliseconds, None if it is none (Java's Duration.parse)."""
    match = re.fullmatch(_DURATION, text)
    if match is None or not any(match.group(2, 4, 5, 6)) or match[3] in ("T", "t"):
        return None
    sign, days, _, hours, minutes, seconds, fraction = match.groups()
    milliseconds = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60_000
    milliseconds += int(seconds or 0) * 1000
    part = int((fraction or "").ljust(9, "0")) // 1_000_000
    milliseconds += -part if (seconds or "").startswith("-") else part
    return -milliseconds if sign == "-" else milliseconds
