"""Records of coordinators' topics between values and the bytes of a log.

Source: Kafka's CoordinatorRecordSerde and CoordinatorRecordType; the bytes are `wire.record_framing`'s.
"""

from __future__ import annotations

from types import ModuleType

from coordinator.machine import CoordinatorRecord
from wire.record_framing import CoordinatorRecordTypes


class RecordCodec:
    """Encodes and decodes the records of one topic, declared by a module of generated messages."""

    def __init__(self, messages: ModuleType) -> None:
        """Takes every `…Key` class of the module with the `…Value` class of the same name."""
        self._types = CoordinatorRecordTypes(messages)

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        """Key and value bytes of a record; a tombstone has no value."""
        return self._types.encode(record.key, record.value, record.value_version)

    def decode(self, key: bytes | None, value: bytes | None) -> CoordinatorRecord | None:
        """The record; None if its type is not known, for example one of a newer release.

        Raises MalformedMessage for a known type whose bytes cannot be read, or whose value has a
        version that is not known: skipping that could lose state.
        """
        decoded = self._types.decode(key, value)
        return None if decoded is None else CoordinatorRecord(*decoded)
