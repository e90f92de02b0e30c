"""Regular expressions that members subscribe with: RE2, as everywhere in Kafka's group protocol.

RE2 needs time that grows with the text only, so that no expression of a client stalls the broker. The
library is RE2 itself. Source: Kafka's TopicRegexResolver and Utils.throwIfRegularExpressionIsInvalid,
which use RE2/J.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from wire.errors import ErrorCode, KafkaError

_LITERAL = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]", re.DOTALL)
"""What stands for characters: quotations, escapes, classes. The rest is structure."""
_GROUP_NAME = re.compile(r"\(\?P?<([^>]*)>")
SHOWN_MAX = 200
"""Characters of an expression that a refusal repeats"""
Matches = Callable[[str], bool]


def compile_regex(regex: str) -> Matches:
    """Whether a whole text matches. Raises INVALID_REGULAR_EXPRESSION."""
    # Imported when the first expression comes: a node without one does without it.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise _invalid(regex, reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error
    _refuse_what_java_refuses(regex)
    return lambda text: compiled.fullmatch(text) is not None


def _refuse_what_java_refuses(regex: str) -> None:
    """The few things that RE2 takes and RE2/J does not. (Brackets are known to be closed.)"""
    if any(literal[0] == "\\C" for literal in _LITERAL.finditer(regex)):
        # Any byte, be it half a character: there is no such thing where texts are not bytes.
        raise _invalid(regex, "invalid escape sequence: \\C")
    known: set[str] = set()
    for name in _GROUP_NAME.findall(_LITERAL.sub("", regex)):
        if name in known:
            raise _invalid(regex, f"duplicate capture group name: {name}")
        if not name.isascii():
            raise _invalid(regex, f"invalid named capture: {name}")
        known.add(name)


def _invalid(regex: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{_short(regex)}` is not a valid regular expression: {_short(reason)}.",
    )


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def matching_topics(regex: str, topics: Iterable[str]) -> frozenset[str]:
    """The topics that match as a whole; none if it is no regular expression (of a foreign log)."""
    try:
        matches = compile_regex(regex)
    except KafkaError:
        return frozenset()
    return frozenset(topic for topic in topics if matches(topic))
