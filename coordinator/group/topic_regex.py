"""Regular expressions that members of consumer groups subscribe with.

Source: Kafka's TopicRegexResolver and Utils.throwIfRegularExpressionIsInvalid.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.regular_expression import InvalidRegularExpression, RegularExpression, shown
from wire.errors import ErrorCode, KafkaError


def compile_regex(regex: str) -> RegularExpression:
    """The expression. Raises INVALID_REGULAR_EXPRESSION."""
    try:
        return RegularExpression(regex)
    except InvalidRegularExpression as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{shown(regex)}` is not a valid regular expression: {shown(str(error))}.",
        ) from error


def matching_topics(regex: str, topics: Iterable[str]) -> frozenset[str]:
    """The topics that match as a whole; none if it is no regular expression (of a foreign log)."""
    try:
        expression = compile_regex(regex)
    except KafkaError:
        return frozenset()
    return frozenset(filter(expression.matches, topics))
