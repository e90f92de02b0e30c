"""Messages that we write, read and written again by kio and by kafka-python: the same bytes."""

from __future__ import annotations

import functools
import importlib
import io
import pkgutil
from typing import Any

import kafka.protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.api_data import ApiData
from kafka.protocol.api_message import ApiMessage
from kio.serial import entity_reader, entity_writer
from message_strategies import Declared, declared_messages, messages

from wire.generator.language import snake_case

MESSAGES = declared_messages()


# --- kio -------------------------------------------------------------------------------------------


def _kio_place(name: str) -> tuple[str, str]:
    for kind in ("Request", "Response"):
        if name.endswith(kind):
            return snake_case(name.removesuffix(kind)), kind.lower()
    return snake_case(name), "header" if name.endswith("Header") else "data"


def _kio_versions(name: str) -> list[int]:
    """The versions of a message that kio knows, from the names of its modules."""
    api, kind = _kio_place(name)
    try:
        package = importlib.import_module(f"kio.schema.{api}")
    except ModuleNotFoundError:
        return []
    found = []
    for version in pkgutil.iter_modules(package.__path__):
        inner = importlib.import_module(f"kio.schema.{api}.{version.name}")
        if kind in [module.name for module in pkgutil.iter_modules(inner.__path__)]:
            found.append(int(version.name.removeprefix("v")))
    return sorted(set(found) & set(MESSAGES[name].versions))


@functools.cache
def _kio_codec(name: str, version: int) -> tuple[Any, Any]:
    api, kind = _kio_place(name)
    entity = getattr(importlib.import_module(f"kio.schema.{api}.v{version}.{kind}"), name)
    return entity_reader(entity), entity_writer(entity)


KIO = {name: versions for name in MESSAGES if (versions := _kio_versions(name))}


def test_kio_knows_most_messages() -> None:
    assert len(KIO) > 170


@pytest.mark.parametrize("name", KIO)
@settings(max_examples=10)
@given(data=st.data())
def test_kio_reads_and_writes_the_same_bytes(name: str, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(KIO[name]))
    ours = data.draw(messages(MESSAGES[name], version, tame=True)).encode(version)
    read, write = _kio_codec(name, version)
    entity, size = read(ours, 0)
    assert size == len(ours)
    theirs = io.BytesIO()
    write(theirs, entity)
    assert theirs.getvalue() == ours


# --- kafka-python ----------------------------------------------------------------------------------


@functools.cache
def _kafka_python_classes() -> dict[str, Any]:
    found = {}
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" in module.name or module.name.endswith("generate_stubs"):
            continue
        for item in vars(importlib.import_module(module.name)).values():
            if isinstance(item, type) and issubclass(item, ApiMessage | ApiData) and item.__name__ in MESSAGES:
                found[item.__name__] = item
    return found


KAFKA_PYTHON = {
    name: theirs for name, theirs in _kafka_python_classes().items() if getattr(theirs, "_json", None) is not None
}


def test_kafka_python_knows_the_messages_of_clients() -> None:
    assert {"ProduceRequest", "FetchResponse", "MetadataResponse", "JoinGroupRequest"} <= set(KAFKA_PYTHON)
    assert len(KAFKA_PYTHON) > 80


def _kafka_python_versions(declared: Declared) -> list[int]:
    low, high = KAFKA_PYTHON[declared.name]._valid_versions
    return [version for version in declared.versions if low <= version <= high]


@pytest.mark.parametrize("name", KAFKA_PYTHON)
@settings(max_examples=10)
@given(data=st.data())
def test_kafka_python_reads_and_writes_the_same_bytes(name: str, data: st.DataObject) -> None:
    declared = MESSAGES[name]
    version = data.draw(st.sampled_from(_kafka_python_versions(declared)))
    message = data.draw(messages(declared, version, tame=True))
    if name == "ApiVersionsResponse":
        message.error_code = 0  # with any other it reads the layout of version 0, as clients must
    ours = message.encode(version)
    if name.startswith("ConsumerProtocol"):
        ours = version.to_bytes(2) + ours  # its classes begin with the version, which Kafka keeps apart
    theirs = KAFKA_PYTHON[name].decode(ours, version=version)
    if isinstance(theirs, ApiMessage):
        theirs._header = None  # its decoder leaves the slot empty that its encoder looks at
    assert bytes(theirs.encode(version=version)) == ours
    for attribute in message.__slots__:
        value = getattr(theirs, attribute, None)
        if isinstance(value, int | str | bytes):
            assert value == getattr(message, attribute), attribute
