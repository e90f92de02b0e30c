"""The schema notation: one message per block, one field per line, nesting by indentation.

::

    request ProduceRequest
      key 0  versions 3-13  flexible 9+
      listeners broker

      TransactionalId  string  3+  nullable  = null
      TopicData        []TopicProduceData  0+
        Name           string  0-12  ignorable
        ...

      struct Shared  0+
        ...

A field line is ``Name type versions`` and then, two spaces apart, any of ``nullable [versions]``,
``tag N [versions]``, ``flexible none``, ``ignorable`` and ``= default``.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field
from pathlib import Path

FIXED = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I"}
FIXED |= {"int64": "q", "float64": "d", "uuid": "16s"}
VARIABLE = ("string", "bytes", "records")
FOREVER = 32767


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; empty when ``low`` is above ``high``."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read ``none``, ``3``, ``3+`` or ``3-7``."""
        if text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), FOREVER)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __and__(self, other: Versions) -> Versions:
        return Versions(max(self.low, other.low), min(self.high, other.high))

    def __bool__(self) -> bool:
        return self.low <= self.high

    def covers(self, other: Versions) -> bool:
        """Whether every version of ``other`` is in this range."""
        return not other or (self.low <= other.low and other.high <= self.high)


NEVER = Versions(1, 0)


@dataclass(slots=True)
class Field:
    """One field as written in the schema."""

    name: str
    type: str
    versions: Versions
    nullable: Versions = NEVER
    tag: int | None = None
    tagged: Versions = NEVER
    flexible: bool = True
    ignorable: bool = False
    default: str | None = None
    fields: list[Field] = field(default_factory=list)

    @property
    def attribute(self) -> str:
        """The Python name of the field."""
        name = snake_case(self.name)
        return name + "_" if keyword.iskeyword(name) else name

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def element(self) -> str:
        """The type of the field, or of its elements where it is an array."""
        return self.type.removeprefix("[]")

    @property
    def is_struct(self) -> bool:
        return self.element not in FIXED and self.element not in VARIABLE


@dataclass(slots=True)
class Struct:
    """A named group of fields; one class in the generated code."""

    name: str
    versions: Versions
    fields: list[Field]
    class_name: str = ""


@dataclass(slots=True)
class Message:
    """A request, response, header, record or embedded structure."""

    kind: str
    name: str
    versions: Versions
    flexible: Versions
    key: int | None = None
    latest_unstable: bool = False
    listeners: tuple[str, ...] = ()
    fields: list[Field] = field(default_factory=list)
    shared: list[Struct] = field(default_factory=list)

    def structs(self) -> list[Struct]:
        """Every nested struct, inner ones before those that hold them."""
        found: dict[str, Struct] = {}

        def walk(fields: list[Field], versions: Versions) -> None:
            for item in fields:
                inner = versions & item.versions
                if item.fields:
                    walk(item.fields, inner)
                    found[item.element] = Struct(item.element, inner, item.fields)

        for struct in self.shared:
            walk(struct.fields, self.versions & struct.versions)
            found[struct.name] = Struct(
                struct.name, self.versions & struct.versions, struct.fields
            )
        walk(self.fields, self.versions)
        return list(found.values())


def snake_case(name: str) -> str:
    """``TopicData`` to ``topic_data``."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def _attributes(item: Field, parts: list[str]) -> Field:
    for part in parts:
        word, _, rest = part.partition(" ")
        if word == "nullable":
            item.nullable = Versions.parse(rest) if rest else item.versions
        elif word == "tag":
            number, _, versions = rest.partition(" ")
            item.tag = int(number)
            item.tagged = Versions.parse(versions) if versions else item.versions
        elif word == "flexible":
            item.flexible = rest != "none"
        elif word == "ignorable":
            item.ignorable = True
        elif word == "=":
            item.default = "" if rest == '""' else rest
        else:
            raise ValueError(f"field {item.name}: {part!r} is no attribute")
    return item


def _field(line: str) -> Field:
    parts = [part for part in re.split(r"\s{2,}", line.strip()) if part]
    if len(parts) < 3:
        raise ValueError(f"{line.strip()!r} is no field: name, type and versions are needed")
    return _attributes(Field(parts[0], parts[1], Versions.parse(parts[2])), parts[3:])


def _head(message: Message, words: list[str]) -> None:
    while words:
        word = words.pop(0)
        if word == "latest-unstable":
            message.latest_unstable = True
        elif word == "listeners":
            message.listeners = tuple(words)
            words.clear()
        elif word == "key":
            message.key = int(words.pop(0))
        elif word == "versions":
            message.versions = Versions.parse(words.pop(0))
        elif word == "flexible":
            message.flexible = Versions.parse(words.pop(0))


def _message(lines: list[str]) -> Message:
    kind, name = lines[0].split()
    message = Message(kind, name, NEVER, NEVER)
    parents: list[tuple[int, list[Field]]] = [(1, message.fields)]
    for line in lines[1:]:
        indent = (len(line) - len(line.lstrip())) // 2
        words = line.split()
        if words[0] in ("key", "versions", "listeners") and indent == 1:
            _head(message, words)
            continue
        if words[0] == "struct":
            struct = Struct(words[1], Versions.parse(words[2]), [])
            message.shared.append(struct)
            parents = [(2, struct.fields)]
            continue
        while parents[-1][0] > indent:
            parents.pop()
        item = _field(line)
        parents[-1][1].append(item)
        parents.append((indent + 1, item.fields))
    return message


def parse(path: Path) -> list[Message]:
    """Read the messages of one schema file, in order."""
    blocks: list[list[str]] = []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            blocks.append([])
        blocks[-1].append(line)
    return [_message(block) for block in blocks]
