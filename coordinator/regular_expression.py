"""Regular expressions as Kafka takes them from clients: RE2's, matched against a whole text.

RE2 needs time that grows with the text only, so that no expression of a client stalls the broker; it has
no backreferences and no look-around. The library is RE2 itself; Kafka uses RE2/J (com.google.re2j).
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LITERAL = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]", re.DOTALL)
"""What stands for characters: quotations, escapes, classes. The rest is structure."""
_GROUP_NAME = re.compile(r"\(\?P?<([^>]*)>")
SHOWN_MAX = 200
"""Characters of an expression that a refusal repeats."""


class InvalidRegularExpression(ValueError):
    """The text is no regular expression of RE2; the text of the error is the reason."""


class RegularExpression:
    """A compiled pattern. Raises InvalidRegularExpression."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._fullmatch = _compiled(pattern)
        _refuse_what_java_refuses(pattern)

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._fullmatch(text) is not None


def shown(text: str) -> str:
    """The text as a refusal repeats it."""
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def _compiled(pattern: str) -> Callable[[str], object]:
    # Imported when the first expression comes: a node without one does without it.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        fullmatch: Callable[[str], object] = re2.compile(pattern, options).fullmatch
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidRegularExpression(text) from error
    return fullmatch


def _refuse_what_java_refuses(pattern: str) -> None:
    """The few things that RE2 takes and RE2/J does not. (Brackets are known to be closed.)"""
    if any(literal[0] == "\\C" for literal in _LITERAL.finditer(pattern)):
        # Any byte, be it half a character: there is no such thing where texts are not bytes.
        raise InvalidRegularExpression("invalid escape sequence: \\C")
    known: set[str] = set()
    for name in _GROUP_NAME.findall(_LITERAL.sub("", pattern)):
        if name in known:
            raise InvalidRegularExpression(f"duplicate capture group name: {name}")
        if not name.isascii():
            raise InvalidRegularExpression(f"invalid named capture: {name}")
        known.add(name)
