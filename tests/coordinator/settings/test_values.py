"""Texts to values and back: what Java takes is taken, what it refuses is refused, errors first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.settings.definition import Setting, SettingType, read_line
from coordinator.settings.rules import duration_ms, parse
from coordinator.settings.values import InvalidSetting, integer, java_double_text, to_text


def setting(kind: str, rule: str = "any", name: str = "a.setting") -> Setting:
    return read_line(f"{name}  {kind}  high  read-only  -  {rule}")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", ""),
        ("int", "1_000"),
        ("int", "1.0"),
        ("int", "0x10"),
        ("int", "2147483648"),
        ("int", "-2147483649"),
        ("int", "١٢"),
        ("short", "32768"),
        ("long", "9223372036854775808"),
        ("long", "1L"),
        ("double", "one"),
        ("double", "inf"),
        ("double", "1_0.0"),
        ("boolean", "yes"),
        ("boolean", "1"),
        ("boolean", ""),
        ("class", "com.example.Mine"),
    ],
)
def test_u14_refused_values_name_the_setting_and_the_value(kind: str, text: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        parse(setting(kind), text)
    assert "a.setting" in str(caught.value)
    assert text in str(caught.value)


def test_a_password_is_never_repeated() -> None:
    with pytest.raises(InvalidSetting) as caught:
        parse(setting("password", "nonempty"), "")
    assert "[hidden]" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", " +7\t", 7),
        ("int", "-2147483648", -(2**31)),
        ("long", "9223372036854775807", 2**63 - 1),
        ("double", "1e3", 1000.0),
        ("double", ".5f", 0.5),
        ("double", "2.D", 2.0),
        ("double", "Infinity", float("inf")),
        ("boolean", " TRUE ", True),
        ("list", "", ()),
        ("list", " a , b ", ("a", "b")),
        ("list", "a,", ("a", "")),
        ("string", "  text ", "text"),
        ("string", "", ""),
    ],
)
def test_values_as_java_reads_them(kind: str, text: str, value: object) -> None:
    assert parse(setting(kind), text) == value


def test_unset_stays_unset() -> None:
    assert parse(setting("int", ">=5"), None) is None


@pytest.mark.parametrize(
    ("kind", "rule", "text", "said"),
    [
        ("int", ">=5", "4", "at least 5"),
        ("int", "1..17", "0", "at least 1"),
        ("int", "1..17", "18", "no more than 17"),
        ("int", "1..9|-1", "0", "between 1 and 9 or equal to -1"),
        ("int", "-131072..22", "23", "no more than 22"),
        ("double", "0..0.5", "0.6", "no more than 0.5"),
        ("double", "0..1", "NaN", "at least 0"),
        ("string", "{a,b}", "A", "one of: a, b"),
        ("string", "{a,b}~", "c", "case insensitive"),
        ("string", "nonempty", "", "non-empty"),
        ("list", "[a,b]+", "", "must not be empty"),
        ("list", "[a,b]", "a,c", "one of: a, b"),
        ("list", "unique", "a,,b", "must not be empty"),
        ("list", "addresses", "host", "host:port"),
        ("list", "addresses", "host:70000", "host:port"),
        ("list", "voters", "host:9093", "id@host:port"),
        ("list", "voters", "-1@host:9093", "id@host:port"),
        ("list", "replicas", "0:1,*", "partition:broker"),
        ("string", "offset_reset", "by_duration:1h", "by_duration"),
    ],
)
def test_u14_broken_rules_name_the_limit(kind: str, rule: str, text: str, said: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        parse(setting(kind, rule), text)
    assert said in str(caught.value)
    assert "a.setting" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "rule", "text"),
    [
        ("int", "1..9|-1", "-1"),
        ("int", "1..9|-1", "9"),
        ("int", "-131072..22", "-131072"),
        ("string", "{a,b}~", "B"),
        ("list", "[compact,delete]", ""),
        ("list", "addresses", "[::1]:9093,localhost:0"),
        ("list", "voters", "1@[::1]:9093,2@b:9093"),
        ("list", "replicas", "*"),
        ("list", "replicas", "0:1,3:2"),
        ("string", "offset_reset", "by_duration:PT0S"),
        ("string", "offset_reset", "earliest"),
    ],
)
def test_kept_rules(kind: str, rule: str, text: str) -> None:
    parse(setting(kind, rule), text)


@pytest.mark.parametrize("rule", ["unique", "[a,b]"])
def test_what_is_in_a_list_twice_is_taken_once_or_refused(rule: str) -> None:
    assert parse(setting("list", rule), "b, a,b ,a") == ("b", "a")
    with pytest.raises(InvalidSetting, match=r"a\.setting.*duplicated"):
        parse(setting("list", rule), "b, a,b ,a", takes_doubles=False)


def test_throttled_replicas_may_be_named_twice() -> None:
    assert parse(setting("list", "replicas"), "0:1,0:1") == ("0:1", "0:1")


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("+1", 1), ("-1", -1), ("007", 7), ("2147483647", 2**31 - 1)])
def test_integers_as_java_reads_them(text: str, number: int) -> None:
    assert integer(text) == number


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1_0", "1.0", "0x1", "2147483648", "--1", "+"])
def test_what_java_does_not_read_as_an_integer(text: str) -> None:
    with pytest.raises(ValueError, match="no integer"):
        integer(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("-PT1S", -1000),
        ("PT-1.5S", -1500),
        ("pt1s", 1000),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("P1M", None),
        ("1h", None),
    ],
)
def test_durations_as_java_reads_them(text: str, milliseconds: int | None) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (2147483647.0, "2.147483647E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-123456789.5, "-1.234567895E8"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (1e22, "1.0E22"),
    ],
)
def test_doubles_as_java_prints_them(value: float, text: str) -> None:
    assert java_double_text(value) == text


@given(st.floats(allow_nan=False))
def test_doubles_come_back(value: float) -> None:
    text = to_text(SettingType.DOUBLE, value)
    assert text is not None
    assert parse(setting("double"), text) == value


@given(st.lists(st.text("abcXYZ019.-_", min_size=1), max_size=5))
def test_lists_come_back(elements: list[str]) -> None:
    text = to_text(SettingType.LIST, tuple(elements))
    assert parse(setting("list"), text) == tuple(elements)


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_come_back(value: int) -> None:
    assert parse(setting("long"), to_text(SettingType.LONG, value)) == value
