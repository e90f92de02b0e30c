"""The differences from Apache Kafka that are kept on purpose, each with its reason."""

from __future__ import annotations

from typing import Any

# Kafka leaves these null for many errors; a text that names the object, the value and the limit
# helps whoever reads the client's log, and no client decides by it.
KINDER_TEXTS = ("error_message", "batch_index_error_message")


def without_kinder_texts(recorded: Any, answered: Any) -> Any:
    """The answer without error texts at places where the recorded answer has none."""
    if isinstance(recorded, list) and isinstance(answered, list):
        if len(recorded) != len(answered):
            return answered
        return [without_kinder_texts(*pair) for pair in zip(recorded, answered, strict=True)]
    if isinstance(recorded, dict) and isinstance(answered, dict):
        return {
            key: without_kinder_texts(recorded.get(key), value)
            for key, value in answered.items()
            if not (key in KINDER_TEXTS and recorded.get(key) is None)
        }
    return answered
