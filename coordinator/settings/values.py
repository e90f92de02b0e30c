"""Texts to values and back, and the rules of valid values.

Every refusal is an `InvalidSetting` with one sentence that names the setting, the value and the
limit. What Kafka takes is taken and what it refuses is refused; passwords never appear in a text.
Source: Kafka's ConfigDef (parseType, validators, convertToString), Java's Integer, Long and Double.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from coordinator.settings.definition import Setting, SettingType

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

_RANGES = {
    SettingType.INT: (-(2**31), 2**31 - 1),
    SettingType.SHORT: (-(2**15), 2**15 - 1),
    SettingType.LONG: (-(2**63), 2**63 - 1),
}
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII)
_COMMA = re.compile(r"\s*,\s*")
# Java's String.trim drops every character up to the blank, and no other kind of space.
_JAVA_BLANKS = "".join(map(chr, range(33)))


class InvalidSetting(Exception):
    """A value that a setting cannot have; the text is one sentence for people."""


def parse_type(setting: Setting, text: str) -> Value:
    """The value that `text` says, by type alone."""
    text = text.strip(_JAVA_BLANKS)
    kind = setting.type
    if kind in _RANGES:
        low, high = _RANGES[kind]
        if _INTEGER.fullmatch(text) is None or not low <= int(text) <= high:
            raise invalid(setting, text, f"Not a number of type {kind.name}")
        return int(text)
    if kind is SettingType.LIST:
        return tuple(_COMMA.split(text)) if text else ()
    if kind is SettingType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise invalid(setting, text, "Expected value to be either true or false")
        return text.lower() == "true"
    if kind is SettingType.DOUBLE:
        if _DOUBLE.fullmatch(text) is None:
            raise invalid(setting, text, "Not a number of type DOUBLE")
        return float(text.rstrip("fFdD").replace("Infinity", "inf") if text[-1:] in "fFdD" else text)
    return text


def integer(text: str) -> int:
    """An int32 as Java's Integer.parseInt reads it: no blanks, no underscores. Raises ValueError."""
    low, high = _RANGES[SettingType.INT]
    if _INTEGER.fullmatch(text) is None or not low <= int(text) <= high:
        raise ValueError(f"{text!r} is no integer of 32 bits")
    return int(text)


def to_text(kind: SettingType, value: Value) -> str | None:
    """A value as DescribeConfigs shows it: lists with commas alone, numbers as Java prints them."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if kind is SettingType.DOUBLE:
        return java_double_text(float(value))
    return str(value)


def java_double_text(value: float) -> str:
    """Java's Double.toString: `0.5`, `1.0E10`, `Infinity`."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent_of_first = int(exponent or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent_of_first}"


def invalid(setting: Setting, value: object, why: str) -> InvalidSetting:
    """The refusal of a value, in Kafka's words for the beginning; a password is not repeated, an empty text is ''."""
    shown = "[hidden]" if setting.is_sensitive else str(value) or "''"
    return InvalidSetting(f"Invalid value {shown} for configuration {setting.name}: {why}")
