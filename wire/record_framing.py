"""How the records of internal topics begin: which message they hold, in which version.

A coordinator's key is an int16 record type and the key's fields (always version 0), its value an int16
version and the value's fields. A metadata record is a value alone: uvarint frame version, record type,
version, then the fields. Source: CoordinatorRecordSerde, AbstractApiMessageSerde.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from wire.errors import MalformedMessage
from wire.message import Message
from wire.primitives import Buffer, pack_int16, read_uvarint, uvarint

KEY_VERSION = 0
PREFIX_BYTES = 2
METADATA_FRAME_VERSION = 1


class CoordinatorRecordTypes:
    """The record types of one topic, declared by a module of generated messages."""

    def __init__(self, messages: ModuleType) -> None:
        """Takes every `…Key` class of the module with the `…Value` class of the same name."""
        self._types: dict[int, tuple[type[Message], type[Message]]] = {}
        for name, key_class in vars(messages).items():
            value_class = getattr(messages, name.removesuffix("Key") + "Value", None)
            if name.endswith("Key") and value_class is not None:
                self._types[key_class.API_KEY] = (key_class, value_class)

    def encode(self, key: Any, value: Any, value_version: int) -> tuple[bytes, bytes | None]:
        """Key and value bytes of a record; a tombstone has no value."""
        key_bytes = pack_int16(key.API_KEY) + key.encode(KEY_VERSION)
        if value is None:
            return key_bytes, None
        return key_bytes, pack_int16(value_version) + value.encode(value_version)

    def decode(self, key: bytes | None, value: bytes | None) -> tuple[Any, Any, int] | None:
        """Key, value (None: a tombstone) and the value's version; None if the type is not known, for example
        one of a newer release.

        Raises MalformedMessage for a known type whose bytes cannot be read, or whose value has a
        version that is not known: skipping that could lose state.
        """
        record_type, key_bytes = _split(key, "key")
        classes = self._types.get(record_type)
        if classes is None:
            return None
        key_class, value_class = classes
        decoded_key = key_class.decode(key_bytes, KEY_VERSION)
        if value is None:
            return decoded_key, None, 0
        version, value_bytes = _split(value, "value")
        if not value_class.MIN_VERSION <= version <= value_class.MAX_VERSION:
            raise MalformedMessage(f"{value_class.__name__} has no version {version}")
        return decoded_key, value_class.decode(value_bytes, version), version


def _split(buffer: bytes | None, what: str) -> tuple[int, bytes]:
    if buffer is None or len(buffer) < PREFIX_BYTES:
        raise MalformedMessage(f"the {what} of a coordinator's record begins with an int16")
    number = int.from_bytes(buffer[:PREFIX_BYTES], "big", signed=True)
    return number, buffer[PREFIX_BYTES:]


def metadata_frame(message: Any, version: int) -> list[Buffer]:
    """What stands before the fields of a metadata record."""
    return [uvarint(METADATA_FRAME_VERSION), uvarint(message.API_KEY), uvarint(version)]


def read_metadata_frame(value: bytes) -> tuple[int, int, int]:
    """Record type, version, and where the fields begin. Raises MalformedMessage, also for another frame version."""
    if len(value) > 2 and value[0] == METADATA_FRAME_VERSION and value[1] < 0x80 and value[2] < 0x80:
        return value[1], value[2], 3
    try:
        frame_version, position = read_uvarint(value, 0)
        if frame_version != METADATA_FRAME_VERSION:
            raise MalformedMessage(f"has frame version {frame_version}, only {METADATA_FRAME_VERSION} is known")
        record_type, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
    except IndexError as error:
        raise MalformedMessage(f"of {len(value)} bytes is broken") from error
    return record_type, version, position
