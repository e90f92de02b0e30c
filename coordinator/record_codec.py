"""Records of coordinators' topics between values and the bytes of a log.

A key is an int16 record type and the key's fields (always version 0), a value an int16 version and
the value's fields. Source: Kafka's CoordinatorRecordSerde and CoordinatorRecordType.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from coordinator.machine import CoordinatorRecord
from wire.errors import MalformedMessage
from wire.message import Message
from wire.primitives import pack_int16

KEY_VERSION = 0
PREFIX_BYTES = 2


class RecordCodec:
    """Encodes and decodes the records of one topic, declared by a module of generated messages."""

    def __init__(self, messages: ModuleType) -> None:
        """Takes every `…Key` class of the module with the `…Value` class of the same name."""
        self._types: dict[int, tuple[type[Message], type[Message]]] = {}
        for name, key_class in vars(messages).items():
            value_class = getattr(messages, name.removesuffix("Key") + "Value", None)
            if name.endswith("Key") and value_class is not None:
                self._types[key_class.API_KEY] = (key_class, value_class)

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        """Key and value bytes of a record; a tombstone has no value."""
        key = pack_int16(record.key.API_KEY) + record.key.encode(KEY_VERSION)
        if record.value is None:
            return key, None
        version = record.value_version
        return key, pack_int16(version) + record.value.encode(version)

    def decode(self, key: bytes | None, value: bytes | None) -> CoordinatorRecord | None:
        """The record; None if its type is not known, for example one of a newer release.

        Raises MalformedMessage for a known type whose bytes cannot be read, or whose value has a
        version that is not known: skipping that could lose state.
        """
        record_type, key_bytes = _split(key, "key")
        classes = self._types.get(record_type)
        if classes is None:
            return None
        key_class, value_class = classes
        decoded_key: Any = key_class.decode(key_bytes, KEY_VERSION)
        if value is None:
            return CoordinatorRecord(decoded_key, None)
        version, value_bytes = _split(value, "value")
        if not value_class.MIN_VERSION <= version <= value_class.MAX_VERSION:
            raise MalformedMessage(f"{value_class.__name__} has no version {version}")
        return CoordinatorRecord(decoded_key, value_class.decode(value_bytes, version), version)


def _split(buffer: bytes | None, what: str) -> tuple[int, bytes]:
    if buffer is None or len(buffer) < PREFIX_BYTES:
        raise MalformedMessage(f"the {what} of a coordinator's record begins with an int16")
    number = int.from_bytes(buffer[:PREFIX_BYTES], "big", signed=True)
    return number, buffer[PREFIX_BYTES:]
