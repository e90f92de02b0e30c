"""Hypothesis strategies for every message in every version, drawn from the schemas."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import wire
from wire.generator.emit import name_classes
from wire.generator.language import Field, parse
from wire.generator.language import Message as MessageSchema
from wire.message import Message

SCHEMAS = Path(wire.__file__).parent / "schemas"
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


@dataclass(frozen=True)
class Declared:
    """One message: its class and its schema."""

    name: str
    message_class: type[Message]
    schema: MessageSchema
    module: Any
    class_names: tuple[tuple[tuple[str, str], str], ...]

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def versions(self) -> range:
        return range(self.schema.versions.low, self.schema.versions.high + 1)


@functools.cache
def declared_messages() -> dict[str, Declared]:
    """All messages by class name."""
    found = {}
    for path in sorted(SCHEMAS.rglob("*.schema")):
        module_name = ".".join(path.relative_to(SCHEMAS).with_suffix("").parts)
        module = importlib.import_module(f"wire.messages.{module_name}")
        messages = parse(path)
        names = tuple(name_classes(messages).items())
        for message in messages:
            found[message.name] = Declared(message.name, getattr(module, message.name), message, module, names)
    return found


@functools.cache
def messages(declared: Declared, version: int, tame: bool = False) -> st.SearchStrategy[Message]:
    """Values of a message that its ``version`` can carry.

    ``tame`` values are such as other libraries take, which turn integers into enumerations, dates and
    spans of time: small numbers, no tagged fields that nobody knows.
    """
    return _structs(declared, declared.schema.fields, declared.message_class, version, tame)


def _structs(
    declared: Declared, fields: list[Field], struct_class: Any, version: int, tame: bool
) -> st.SearchStrategy[Any]:
    values = {
        item.attribute: _values(declared, item, version, tame)
        for item in fields
        if _is_carried(declared, item, version)
    }
    if not _is_flexible(declared, version) or tame:
        return st.builds(struct_class, **values)
    known = {item.tag for item in fields if item.tag is not None}
    return st.builds(_with_tags, st.builds(struct_class, **values), _unknown_tags(known))


def _with_tags(struct: Any, tags: list[tuple[int, bytes]] | None) -> Any:
    struct.unknown_tagged_fields = tags
    return struct


def _unknown_tags(known: set[int | None]) -> st.SearchStrategy[list[tuple[int, bytes]] | None]:
    tags = st.dictionaries(
        st.integers(0, 2**31 - 1).filter(lambda tag: tag not in known), st.binary(max_size=5), min_size=1, max_size=2
    )
    return st.one_of(st.none(), tags.map(lambda chosen: sorted(chosen.items())))


def _is_flexible(declared: Declared, version: int) -> bool:
    return declared.schema.flexible.low <= version <= declared.schema.flexible.high


def _is_carried(declared: Declared, item: Field, version: int) -> bool:
    return item.versions.low <= version <= item.versions.high and (
        item.tag is None or (_is_flexible(declared, version) and item.tagged.low <= version <= item.tagged.high)
    )


def _values(declared: Declared, item: Field, version: int, tame: bool) -> st.SearchStrategy[Any]:
    is_nullable = item.nullable.low <= version <= item.nullable.high
    values = _element_values(declared, item, version, tame)
    if item.is_array:
        values = st.lists(values, max_size=2 if item.is_struct else 3)
    return st.none() | values if is_nullable else values


def _element_values(declared: Declared, item: Field, version: int, tame: bool) -> st.SearchStrategy[Any]:
    kind = item.element
    if kind in BITS:
        bound = 2 ** (BITS[kind] - 1)
        return st.integers(0, 40) if tame else st.integers(-bound, bound - 1)
    if kind in ("uint16", "uint32"):
        return st.integers(0, 40) if tame else st.integers(0, 2 ** (16 if kind == "uint16" else 32) - 1)
    if kind == "bool":
        return st.booleans()
    if kind == "float64":
        return st.floats(allow_nan=False)
    if kind == "uuid":
        return st.binary(min_size=16, max_size=16)
    if kind == "string":
        return st.text("abc-é", max_size=4) if tame else st.text(max_size=6)
    if kind in ("bytes", "records"):
        return st.binary(max_size=8)
    return _nested(declared, item, version, tame)


def _nested(declared: Declared, item: Field, version: int, tame: bool) -> st.SearchStrategy[Any]:
    names = dict(declared.class_names)
    fields = item.fields or next(struct.fields for struct in declared.schema.shared if struct.name == item.element)
    struct_class = getattr(declared.module, names.get((declared.schema.name, item.element), item.element))
    return st.deferred(lambda: _structs(declared, fields, struct_class, version, tame))
