"""What cannot be the same on two brokers, or twice on one, and what may differ by intention."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

Masks = Iterable[tuple[str, str]]

# Everything that cannot be the same on two brokers, or twice on one.
MASKS = (
    (r"\nSLF4J: .*(?=\n)", ""),  # no logger is bound: what tools log is not compared
    (r"\nThe consumer rebalance protocol \(KIP-848\) is .*(?=\n)", ""),
    (r"(?s)\nOption\s+Description\s.*\Z", "\n(how it is used)\n"),
    (r"(?<![\w-])(?:localhost|127\.0\.0\.1):\d+", "HOST:PORT"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"((?:TopicId: ?|Cluster ID: |ClusterId:\s+|\(id: ))[\w-]{22}", r"\1ID"),
    (r"(?<= )[\w-]{22}(?= /127)", "UUID"),
    (r"\b1[789]\d{11}\b", "TIME"),
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,:]\d+(?:Z|[+-]\d\d:?\d\d)?", "DATE"),
    (r"\n\s+(?:at [\w.$/]+\(.*\)|\.\.\. \d+ more)(?=\n)", ""),
    (r"[ \t]+", " "),
    (r" *\n *", "\n"),
)
# Texts of errors may say more than Apache Kafka's; their kinds may not differ. Applied where lines are compared.
TEXTS_OF_ERRORS = (
    (r"(errors\.\w+(?:Exception|Error)): .*", r"\1: TEXT"),
    (r"(Error while executing \w+ command) : .*", r"\1 : TEXT"),
    (r"(The update failed for all features since the following feature had an error): .*", r"\1: TEXT"),
)


def masked(text: str, masks: Masks = ()) -> list[str]:
    """The lines of a text with what differs from run to run taken out."""
    text = f"\n{text}\n"
    for pattern, replacement in (*MASKS, *masks):
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return [line.strip() for line in text.splitlines() if line.strip()]


def differences(expected: list[str], printed: list[str]) -> Iterator[str]:
    """The lines that are missing (-) and that came unexpectedly (+)."""
    if [*map(without_texts, expected)] == [*map(without_texts, printed)]:
        return
    for line in difflib.ndiff(expected, printed):
        if line.startswith(("- ", "+ ")):
            yield line


def without_texts(line: str) -> str:
    for pattern, replacement in TEXTS_OF_ERRORS:
        line = re.sub(pattern, replacement, line)
    return line
