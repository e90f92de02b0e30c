"""Source of ``read``: one pass over the buffer, fixed-size neighbours unpacked together."""

from __future__ import annotations

from wire.generator import emit
from wire.generator.language import FIXED, Field, Message, Struct, Versions
from wire.generator.plan import absent_fields, fixed_groups, flexibility, plain_runs, tagged_fields

SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
SIZES |= {"int64": 8, "float64": 8, "uuid": 16}


def _choose(plain: str, compact: str, form: str) -> str:
    if form == "by version":
        return f"({compact} if flexible else {plain})"
    return compact if form == "always" else plain


def _null_check(item: Field, target: str, versions: Versions, pad: str) -> list[str]:
    nullable = item.nullable & versions
    if nullable.covers(versions) and nullable:
        return []
    test = f"{target} is None"
    if nullable:
        allowed = emit.condition(nullable, versions)
        test += f" and not ({allowed})"
    return [
        f"{pad}if {test}:",
        f'{pad}    raise MalformedMessage("{item.name} may not be null")',
    ]


def _elements(item: Field, message: Message, versions: Versions, pad: str) -> list[str]:
    if item.is_struct:
        return [
            f"{pad}items = []",
            f"{pad}element = {emit.item_class(item)}.read",
            f"{pad}for _ in range(count):",
            f"{pad}    item, position = element(buffer, position, version)",
            f"{pad}    items.append(item)",
        ]
    if item.element == "uuid":
        return [
            f"{pad}if count * 16 > len(buffer) - position:",
            f'{pad}    raise MalformedMessage("{item.name} is longer than the message")',
            f"{pad}items = [buffer[at:at + 16] for at in range(position, position + 16 * count, 16)]",
            f"{pad}position += 16 * count",
        ]
    if item.element in FIXED:
        return [
            f'{pad}items = list(unpack(f">{{count}}{FIXED[item.element]}", buffer, position))',
            f"{pad}position += {SIZES[item.element]} * count",
        ]
    kind = "string" if item.element == "string" else "bytes"
    reader = _choose(f"read_{kind}", f"read_compact_{kind}", flexibility(item, message, versions))
    return [
        f"{pad}items = []",
        f"{pad}for _ in range(count):",
        f"{pad}    item, position = {reader}(buffer, position)",
        f"{pad}    if item is None:",
        f'{pad}        raise MalformedMessage("{item.name} holds a null")',
        f"{pad}    items.append(item)",
    ]


def _array(item: Field, message: Message, versions: Versions, pad: str, target: str) -> list[str]:
    reader = _choose(
        "read_array_length", "read_compact_array_length", flexibility(item, message, versions)
    )
    nullable = item.nullable & versions
    lines = [f"{pad}count, position = {reader}(buffer, position)", f"{pad}if count < 0:"]
    if not nullable:
        lines.append(f'{pad}    raise MalformedMessage("{item.name} may not be null")')
        return [*lines, *_elements(item, message, versions, pad), f"{pad}{target} = items"]
    if not nullable.covers(versions):
        allowed = emit.condition(nullable, versions)
        lines.append(f"{pad}    if not ({allowed}):")
        lines.append(f'{pad}        raise MalformedMessage("{item.name} may not be null")')
    lines += [f"{pad}    {target} = None", f"{pad}else:"]
    lines += _elements(item, message, versions, pad + "    ")
    return [*lines, f"{pad}    {target} = items"]


def read_field(
    item: Field, message: Message, versions: Versions, pad: str, target: str, *, is_tagged: bool = False
) -> list[str]:
    """Lines that read one variable-size field into ``target``."""
    if item.is_array:
        return _array(item, message, versions, pad, target)
    if item.is_struct:
        read = f"{emit.item_class(item)}.read(buffer, position, version)"
        if not item.nullable & versions:
            return [f"{pad}{target}, position = {read}"]
        if is_tagged:
            # Behind a tag the mark of a nullable structure is a varint, 0 for null; elsewhere an int8, -1 for null.
            return [
                f"{pad}mark, position = read_uvarint(buffer, position)",
                f"{pad}if mark == 0:",
                f"{pad}    {target} = None",
                f"{pad}else:",
                f"{pad}    {target}, position = {read}",
            ]
        return [
            f"{pad}position += 1",
            f"{pad}if buffer[position - 1] >= 0x80:",
            f"{pad}    {target} = None",
            f"{pad}else:",
            f"{pad}    {target}, position = {read}",
        ]
    kind = "string" if item.element == "string" else "bytes"
    reader = _choose(f"read_{kind}", f"read_compact_{kind}", flexibility(item, message, versions))
    lines = [f"{pad}{target}, position = {reader}(buffer, position)"]
    return lines + _null_check(item, target, versions, pad)


def _fixed(group: list[Field], pad: str, layouts: dict[str, str], prefix: str) -> list[str]:
    name = emit.layout_name(group, layouts)
    targets = ", ".join(prefix + item.attribute for item in group)
    size = sum(SIZES[item.type] for item in group)
    comma = "," if len(group) == 1 else ""
    return [
        f"{pad}{targets}{comma} = {name}.unpack_from(buffer, position)",
        f"{pad}position += {size}",
    ]


def _read_tags(struct: Struct, message: Message, layouts: dict[str, str]) -> list[str]:
    known = tagged_fields(struct)
    lines = [
        "    def _read_tags(self, buffer: bytes, position: int, version: int) -> int:",
        "        count, position = read_uvarint(buffer, position)",
        "        for _ in range(count):",
        "            tag, position = read_uvarint(buffer, position)",
        "            size, position = read_uvarint(buffer, position)",
        "            end = position + size",
    ]
    if any(item.is_array for item in known):
        lines.insert(1, "        items: Any")
    if any(item.is_array and item.is_struct for item in known):
        lines.insert(1, "        element: Any")
    if any(flexibility(item, message, item.versions & struct.versions) == "by version" for item in known):
        lines.insert(1, "        flexible = True")
    word = "if"
    for item in known:
        versions = item.tagged & struct.versions
        test = emit.condition(versions, message.flexible & struct.versions)
        test = f"tag == {item.tag} and {test}" if test else f"tag == {item.tag}"
        lines.append(f"            {word} {test}:")
        pad = " " * 16
        if item.type in FIXED:
            lines += _fixed([item], pad, layouts, "self.")
        else:
            lines += read_field(item, message, versions, pad, f"self.{item.attribute}", is_tagged=True)
        word = "elif"
    pad = " " * 16
    lines += [
        "            else:",
        f"{pad}value, position = read_unknown_tag(buffer, position, size)",
        f"{pad}if self.unknown_tagged_fields is None:",
        f"{pad}    self.unknown_tagged_fields = []",
        f"{pad}self.unknown_tagged_fields.append((tag, value))",
        "            if position != end:",
        '                raise MalformedMessage(f"tagged field {tag} is not {size} bytes long")',
        "        return position",
    ]
    return lines


def emit_read(struct: Struct, message: Message, layouts: dict[str, str]) -> list[str]:
    """The ``read`` class method, and ``_read_tags`` where the struct has flexible versions."""
    flexible = message.flexible & struct.versions
    lines = [
        "    @classmethod",
        f"    def read(cls, buffer: bytes, position: int, version: int) -> tuple[{struct.class_name}, int]:",
        "        self: Any = _new(cls)",
    ]
    structs = [f for f in struct.fields if f.is_struct and f.is_array]
    if any(item.is_array for item in struct.fields):
        lines.append("        items: Any")
    if structs:
        lines.append("        element: Any")
    if flexible and not flexible.covers(struct.versions):
        lines.append(f"        flexible = {emit.condition(flexible, struct.versions)}")
    for run in plain_runs(struct):
        test = emit.condition(run.versions, struct.versions)
        pad = " " * 8
        if test:
            lines.append(f"{pad}if {test}:")
            pad += "    "
        for group in fixed_groups(run.fields):
            if group[0].type in FIXED:
                lines += _fixed(group, pad, layouts, "self.")
            else:
                item = group[0]
                target = f"self.{item.attribute}"
                lines += read_field(item, message, run.versions, pad, target)
        if test:
            lines.append("        else:")
            lines += [f"            self.{f.attribute} = {emit.default(f)}" for f in run.fields]
    for item in tagged_fields(struct) + absent_fields(struct):
        lines.append(f"        self.{item.attribute} = {emit.default(item)}")
    if flexible:
        pad = " " * 8
        lines.append(f"{pad}self.unknown_tagged_fields = None")
        if not flexible.covers(struct.versions):
            lines.append(f"{pad}if flexible:")
            pad += "    "
        lines += [
            f"{pad}if buffer[position]:",
            f"{pad}    position = self._read_tags(buffer, position, version)",
            f"{pad}else:",
            f"{pad}    position += 1",
        ]
    lines.append("        return self, position")
    if tagged_fields(struct):
        lines += ["", *_read_tags(struct, message, layouts)]
    return lines
