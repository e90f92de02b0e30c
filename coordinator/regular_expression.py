"""Regular expressions as Kafka takes them: the syntax of RE2, matched against the whole text.

RE2 has no backreferences and no look-around, so a pattern with them is refused here too, although
Python's `re` could match it. What RE2 writes differently is translated; Unicode classes (`\\p{…}`) are
refused, as `re` has nothing in their place. Source: com.google.re2j, as used for KIP-848 and KIP-1152.
"""

from __future__ import annotations

import re

REPEAT_MAX = 1000
"""RE2 refuses more repetitions."""

_NOT_IN_RE2 = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(", "(?P=", "(?#")
_SAME_ESCAPES = frozenset("AbBdDsSwWafnrtv")
_POSSESSIVE = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\+")
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_POSIX = re.compile(r"\[:(\^?)(\w+):\]")
_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class InvalidRegularExpression(ValueError):
    """The text is no regular expression of RE2; says why."""


class RegularExpression:
    """A compiled pattern. Raises InvalidRegularExpression."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        try:
            self._compiled = re.compile(_translated(pattern), re.ASCII)
        except (re.error, OverflowError) as error:
            raise InvalidRegularExpression(f"'{pattern}' is no regular expression: {error}") from error

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._compiled.fullmatch(text) is not None


def _refuse(pattern: str, what: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(f"'{pattern}' is no regular expression of RE2: {what}")


def _translated(pattern: str) -> str:
    """The pattern in Python's notation."""
    parts: list[str] = []
    position, in_class = 0, False
    while position < len(pattern):
        part, width, in_class = _next_part(pattern, position, in_class)
        parts.append(part)
        position += width
    return "".join(parts)


def _next_part(pattern: str, position: int, in_class: bool) -> tuple[str, int, bool]:
    """The translation of what stands at a position, its width in the pattern, and whether a character
    class is open behind it."""
    character = pattern[position]
    if character == "\\":
        part, width = _escape(pattern, position)
        return part, width, in_class
    if in_class:
        posix = _POSIX.match(pattern, position)
        if posix is not None:
            return _posix_class(pattern, posix), len(posix[0]), True
        return ("\\[" if character == "[" else character), 1, character != "]"
    if character == "[":
        # A bracket that closes at once is an ordinary character.
        opening = re.compile(r"\[\^?\]?").match(pattern, position)
        text = opening[0] if opening is not None else "["
        return text.replace("]", "\\]"), len(text), True
    if character == "(":
        return _group(pattern, position)
    _check_repetition(pattern, position)
    return character, 1, False


def _escape(pattern: str, position: int) -> tuple[str, int]:
    escaped = pattern[position + 1 : position + 2]
    if escaped == "Q":
        end = pattern.find("\\E", position)
        literal = pattern[position + 2 :] if end < 0 else pattern[position + 2 : end]
        return re.escape(literal), len(literal) + (2 if end < 0 else 4)
    if escaped == "z":
        return "\\Z", 2
    if escaped == "x":
        return _hexadecimal(pattern, position)
    if escaped in _SAME_ESCAPES or (escaped and not escaped.isalnum()):
        return "\\" + escaped, 2
    raise _refuse(pattern, f"\\{escaped} has no meaning")


def _hexadecimal(pattern: str, position: int) -> tuple[str, int]:
    found = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))").match(pattern, position)
    code = -1 if found is None else int(found[1] or found[2], 16)
    if found is None or code > 0x10FFFF:
        raise _refuse(pattern, "\\x needs a character's number")
    return re.escape(chr(code)), len(found[0])


def _posix_class(pattern: str, found: re.Match[str]) -> str:
    ranges = _POSIX_CLASSES.get(found[2])
    if ranges is None or found[1]:
        raise _refuse(pattern, f"there is no class {found[0]}")
    return ranges


def _group(pattern: str, position: int) -> tuple[str, int, bool]:
    for unknown in _NOT_IN_RE2:
        if pattern.startswith(unknown, position):
            raise _refuse(pattern, f"{unknown} is not known")
    if pattern.startswith("(?<", position):
        return "(?P<", 3, False
    return "(", 1, False


def _check_repetition(pattern: str, position: int) -> None:
    if _POSSESSIVE.match(pattern, position):
        raise _refuse(pattern, "repetitions cannot be possessive")
    repeat = _REPEAT.match(pattern, position)
    if repeat is not None and max(int(count) for count in repeat.groups(default="0") if count) > REPEAT_MAX:
        raise _refuse(pattern, f"more than {REPEAT_MAX} repetitions")
