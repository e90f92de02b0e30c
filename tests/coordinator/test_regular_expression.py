"""Patterns as RE2 takes them: the same matches, the same refusals."""

from __future__ import annotations

import pytest

from coordinator.regular_expression import InvalidRegularExpression, RegularExpression


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("a.c", "abc", "abcd"),
        ("a|b", "b", "ab"),
        ("", "", "a"),
        (r"\Qa.c\E+", "a.ccc", "abc"),
        (r"\Qa.c", "a.c", "abc"),
        ("[[:alpha:]]+", "abc", "ab1"),
        ("[^[:digit:]a]", "b", "a"),
        ("[]a]+", "]a", "b"),
        ("[^]a]", "b", "]"),
        ("[[a]", "[", "b"),
        ("(?<name>x)y", "xy", "x"),
        ("(?P<name>x)y", "xy", "x"),
        ("(?i)ABC", "abc", "abd"),
        (r"\x41\x{42}", "AB", "ab"),
        (r"a\z", "a", "b"),
        (r"\.\-\[", ".-[", "a"),
        ("(?:ab){2}", "abab", "ab"),
        ("a{2,3}?", "aaa", "a"),
        (r"\pL", "é", "1"),
        (r"\p{Greek}", "α", "a"),
        ("[[:^alpha:]]", "1", "a"),
    ],
)
def test_what_matches(pattern: str, matching: str, other: str) -> None:
    expression = RegularExpression(pattern)
    assert expression.matches(matching)
    assert not expression.matches(other)


@pytest.mark.parametrize(
    "pattern",
    ["[", "(", "a)", "*a", "(?=x)", "(?!x)", "(?<=x)", "(?<!x)", "(?>x)", r"(a)\1", "a++",
     "a{2}+", "a{1001}", "a{2,1001}", "(?P=name)", r"\Z", r"\u0041", r"\x4", r"\x{110000}", "a\\", "[[:foo:]]",
     "(?#comment)a", "(a)(?(1)b|c)"],
)  # fmt: skip
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        RegularExpression(pattern)
