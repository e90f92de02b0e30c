"""Values of a request that each broker fills in by itself, and the Python text of a request.

A step of a random sequence is one message for both brokers. Where a broker chose a value (a member
id, a topic id, a producer id) the message holds a `Ref` to what that broker chose; where bytes are
made of such values it holds a `Made`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from wire.message import Struct

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ref:
    """What a broker chose, by the name under which a step kept it."""

    name: str


@dataclass(frozen=True, slots=True)
class Made:
    """A value computed for each broker: `make(*arguments, **fields)`, arguments resolved; its text is that call."""

    make: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.make, repr(self.arguments), repr(self.fields)))


def resolved(value: Any, values: Values, renamed: tuple[str, str] = ("", "")) -> Any:
    """The value for one broker: references and made values replaced, messages copied, names begun anew.

    Raises KeyError for a reference to what the broker was not asked to choose.
    """
    match value:
        case Ref(name):
            return values[name]
        case Made(make, arguments, fields):
            return make(*resolved(list(arguments), values, renamed), **resolved(fields, values, renamed))
        case Struct():
            copy = type(value)()
            for name in value.__slots__:
                setattr(copy, name, resolved(getattr(value, name), values, renamed))
            return copy
        case list() | tuple():
            return [resolved(item, values, renamed) for item in value]
        case dict():
            return {resolved(key, values, renamed): resolved(item, values, renamed) for key, item in value.items()}
        case str() if renamed[0]:
            return value.replace(*renamed)
    return value


def source(value: Any, names: re.Pattern[str]) -> str:
    """The value as Python, as a scenario of the corpus says it; `names` finds the run's own prefix in texts."""
    match value:
        case Ref(name):
            return name
        case Made(make, arguments, fields):
            shown = [source(item, names) for item in arguments]
            shown += [f"{key}={source(item, names)}" for key, item in fields.items()]
            return f"{make.__name__}({', '.join(shown)})"
        case Struct():
            default = type(value)()
            shown = [
                f"{name}={source(kept, names)}"
                for name in value.__slots__
                if name != "unknown_tagged_fields" and (kept := getattr(value, name)) != getattr(default, name)
            ]
            return f"{type(value).__name__}({', '.join(shown)})"
        case list():
            return f"[{', '.join(source(item, names) for item in value)}]"
        case dict():
            return "{" + ", ".join(f"{source(k, names)}: {source(v, names)}" for k, v in value.items()) + "}"
        case Enum():
            return str(value) if not isinstance(value, int) else f"{type(value).__name__}.{value.name}"
        case str() if names.match(value):
            rest = names.sub("", value, count=1)
            return f"player.name({rest!r})"
    return repr(value)
