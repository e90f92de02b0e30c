"""Every message and version against bytes that Apache Kafka's own serializers wrote."""

from __future__ import annotations

import base64
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from message_vectors import golden_messages

import wire.messages
from wire.message import Message, Struct
from wire.primitives import uuid_text

RECORDS = b"bytes in the place of records"


def _message_classes() -> Iterator[type[Message]]:
    for module in pkgutil.walk_packages(wire.messages.__path__, "wire.messages."):
        for item in vars(importlib.import_module(module.name)).values():
            if isinstance(item, type) and issubclass(item, Message) and item.__module__ == module.name:
                yield item


VECTORS = golden_messages()
CLASSES = {message.__name__: message for message in _message_classes()}


def _class(kafka_name: str) -> type[Message]:
    return CLASSES.get(kafka_name) or CLASSES[kafka_name.removesuffix("Data")]


def test_the_golden_messages_are_all_messages_in_all_versions() -> None:
    ours = {(message.__name__, version) for message in CLASSES.values() for version in _versions(message)}
    golden = {(_class(name).__name__, vector["version"]) for name in VECTORS for vector in VECTORS[name]}
    assert ours == golden


def _versions(message: type[Message]) -> range:
    return range(message.MIN_VERSION, message.MAX_VERSION + 1)


@pytest.mark.parametrize("name", VECTORS)
def test_a_message_reads_and_writes_as_kafkas_own_code_does(name: str) -> None:
    message_class = _class(name)
    for vector in VECTORS[name]:
        where = f"{name} v{vector['version']} {vector['variant']}"
        golden = bytes.fromhex(vector["bytes"])
        message = message_class.decode(golden, vector["version"])
        _assert_fields(message, vector["fields"], where)
        assert message.encode(vector["version"]).hex() == vector["bytes"], where
        rebuilt = _rebuild(message)
        assert rebuilt == message, where
        assert rebuilt.encode(vector["version"]).hex() == vector["bytes"], where
        # A message may lie anywhere in a buffer; what follows it is not read.
        assert message_class.read(b"?" + golden + b"?", 1, vector["version"]) == (message, 1 + len(golden)), where


def _rebuild(value: Any) -> Any:
    """The same value, made by calling constructors with keywords."""
    if isinstance(value, list):
        return [_rebuild(item) for item in value]
    if not isinstance(value, Struct):
        return value
    fields = {name: _rebuild(getattr(value, name)) for name in value.__slots__ if name != "unknown_tagged_fields"}
    rebuilt = type(value)(**fields)
    if "unknown_tagged_fields" in value.__slots__:  # messages that never were flexible have none
        rebuilt.unknown_tagged_fields = value.unknown_tagged_fields
    return rebuilt


def _assert_fields(ours: Struct, fields: dict[str, Any], where: str) -> None:
    """Each field that Kafka shows has its value; each that it does not show has its default."""
    default = type(ours)()
    shown = {name.lower(): value for name, value in fields.items()}
    for name in ours.__slots__:
        if name == "unknown_tagged_fields":
            continue
        place = f"{where}: {name}"
        key = name.replace("_", "")
        if key in shown:
            _assert_value(getattr(ours, name), shown.pop(key), place)
        else:
            assert getattr(ours, name) == getattr(default, name), place
    assert shown == {}, where


def _assert_value(ours: Any, golden: Any, place: str) -> None:
    if isinstance(ours, Struct):
        _assert_fields(ours, golden, place)
    elif isinstance(ours, list):
        assert len(ours) == len(golden), place
        for item, wanted in zip(ours, golden, strict=True):
            _assert_value(item, wanted, place)
    elif isinstance(ours, bytes) and ours == RECORDS:
        assert golden == "", place  # Kafka does not show the bytes of records
    elif isinstance(ours, bytes) and len(ours) == 16:
        assert uuid_text(ours) == golden, place
    elif isinstance(ours, bytes):
        assert base64.b64decode(golden) == ours, place
    else:
        assert (type(ours), ours) == (type(golden), golden), place
