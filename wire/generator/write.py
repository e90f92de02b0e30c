"""Source of ``write``: buffers appended in wire order, fixed-size neighbours packed together."""

from __future__ import annotations

from wire.generator import emit
from wire.generator.language import FIXED, Field, Message, Struct, Versions
from wire.generator.plan import absent_fields, fixed_groups, flexibility, plain_runs, tagged_fields

NULL_PLAIN = {"string": r'b"\xff\xff"', "bytes": r'b"\xff\xff\xff\xff"'}


def _choose(plain: str, compact: str, form: str) -> str:
    if form == "by version":
        return f"({compact} if flexible else {plain})"
    return compact if form == "always" else plain


def _element(item: Field, message: Message, versions: Versions, pad: str) -> list[str]:
    if item.is_struct:
        return [f"{pad}for item in value:", f"{pad}    item.write(out, version)"]
    if item.element in FIXED and item.element != "uuid":
        code = FIXED[item.element]
        return [f'{pad}append(pack(f">{{len(value)}}{code}", *value))']
    if item.element == "uuid":
        return [f"{pad}out.extend(value)"]
    kind = "string" if item.element == "string" else "bytes"
    writer = _choose(f"write_{kind}", f"write_compact_{kind}", flexibility(item, message, versions))
    return [f"{pad}for item in value:", f"{pad}    {writer}(out, item)"]


def _null(item: Field, form: str, is_tagged: bool) -> str:
    if item.is_struct and not item.is_array:
        if is_tagged:
            return "NO_TAGS"  # behind a tag the mark is a varint, 0 for null; elsewhere an int8, -1 for null
        return r'b"\xff"'
    plain = NULL_PLAIN["string" if item.type == "string" else "bytes"]
    return _choose(plain, "NO_TAGS", form)


def _value(item: Field, message: Message, versions: Versions, pad: str) -> list[str]:
    form = flexibility(item, message, versions)
    if item.is_array:
        length = _choose("pack_int32(len(value))", "uvarint(len(value) + 1)", form)
        return [f"{pad}append({length})", *_element(item, message, versions, pad)]
    if item.is_struct:
        lines = [f'{pad}append(b"\\x01")'] if item.nullable & versions else []
        return [*lines, f"{pad}value.write(out, version)"]
    kind = "string" if item.element == "string" else "bytes"
    return [f"{pad}{_choose(f'write_{kind}', f'write_compact_{kind}', form)}(out, value)"]


def write_field(
    item: Field, message: Message, versions: Versions, pad: str, *, is_tagged: bool = False
) -> list[str]:
    """Lines that append one variable-size field."""
    lines = [f"{pad}value = self.{item.attribute}"]
    nullable = item.nullable & versions
    if not nullable:
        if emit.annotation(item).endswith("| None"):
            lines.append(f"{pad}if value is None:")
            lines.append(f'{pad}    raise UnsupportedField("{item.name} may not be null")')
        return lines + _value(item, message, versions, pad)
    lines.append(f"{pad}if value is None:")
    if not nullable.covers(versions):
        lines.append(f"{pad}    if not ({emit.condition(nullable, versions)}):")
        lines.append(f'{pad}        raise UnsupportedField("{item.name} may not be null in v%d" % version)')
    lines.append(f"{pad}    append({_null(item, flexibility(item, message, versions), is_tagged)})")
    lines.append(f"{pad}else:")
    return lines + _value(item, message, versions, pad + "    ")


def _differs(item: Field) -> str:
    """A test that the field is not at its default."""
    value, name = emit.default(item), f"self.{item.attribute}"
    if value == "None":
        return f"{name} is not None"
    if value == "[]":
        return f"{name} is None or {name}" if item.nullable else name
    if value == "False":
        return name
    if value == "True":
        return f"not {name}"
    return f"{name} != {value}"


def _tag_differs(item: Field) -> str:
    """The same for a tagged field; a structure of plain fields is compared field by field, without making one."""
    if not item.is_struct or item.is_array or item.nullable or not item.fields:
        return _differs(item)
    if any(inner.is_struct or inner.is_array for inner in item.fields):
        return _differs(item)
    tests = []
    for inner in item.fields:
        value = emit.default(inner)
        tests.append(f"value.{inner.attribute} {'is not' if value == 'None' else '!='} {value}")
    first = tests[0].replace("value", f"(value := self.{item.attribute})", 1)
    return " or ".join([first, *tests[1:], "value.unknown_tagged_fields"])


def _refuse(item: Field, pad: str) -> list[str]:
    if item.ignorable:
        return []
    return [
        f"{pad}if {_differs(item)}:",
        f'{pad}    raise UnsupportedField("{item.name} cannot be written in v%d" % version)',
    ]


def _tags(struct: Struct, message: Message, pad: str, layouts: dict[str, str]) -> list[str]:
    known = tagged_fields(struct)
    flexible = message.flexible & struct.versions
    if not known:
        return [
            f"{pad}if self.unknown_tagged_fields:",
            f"{pad}    write_tagged_fields(out, [], self.unknown_tagged_fields)",
            f"{pad}else:",
            f"{pad}    append(NO_TAGS)",
        ]
    lines = [f"{pad}tags: list[tuple[int, list[Buffer]]] = []"]
    for item in known:
        versions = item.tagged & struct.versions
        test = emit.condition(versions, flexible)
        differs = _tag_differs(item)
        check = f"({differs})" if " or " in differs and test else differs
        lines.append(f"{pad}if {test + ' and ' if test else ''}{check}:")
        lines += [f"{pad}    whole, out = out, []", f"{pad}    append = out.append"]
        if item.type in FIXED:
            name = emit.layout_name([item], layouts)
            lines.append(f"{pad}    append({name}.pack(self.{item.attribute}))")
        else:
            lines += write_field(item, message, versions, pad + "    ", is_tagged=True)
        lines += [f"{pad}    tags.append(({item.tag}, out))", f"{pad}    out = whole"]
        lines.append(f"{pad}    append = out.append")
        if test and not item.ignorable:
            lines.append(f"{pad}elif not ({test}) and ({_differs(item)}):")
            lines.append(
                f'{pad}    raise UnsupportedField("{item.name} cannot be written in v%d" % version)'
            )
    lines += [
        f"{pad}if tags or self.unknown_tagged_fields:",
        f"{pad}    write_tagged_fields(out, tags, self.unknown_tagged_fields)",
        f"{pad}else:",
        f"{pad}    append(NO_TAGS)",
    ]
    return lines


def _run(run_fields: list[Field], message: Message, versions: Versions, pad: str,
         layouts: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for group in fixed_groups(run_fields):
        if group[0].type in FIXED:
            values = ", ".join(f"self.{item.attribute}" for item in group)
            lines.append(f"{pad}append({emit.layout_name(group, layouts)}.pack({values}))")
        else:
            lines += write_field(group[0], message, versions, pad)
    return lines


def emit_write(struct: Struct, message: Message, layouts: dict[str, str]) -> list[str]:
    """The ``write`` method."""
    flexible = message.flexible & struct.versions
    lines = ["    def write(self, out: list[Buffer], version: int) -> None:"]
    body: list[str] = []
    for run in plain_runs(struct):
        test = emit.condition(run.versions, struct.versions)
        if not test:
            body += _run(run.fields, message, run.versions, " " * 8, layouts)
            continue
        body.append(f"        if {test}:")
        body += _run(run.fields, message, run.versions, " " * 12, layouts)
        refused = [line for item in run.fields for line in _refuse(item, " " * 12)]
        if refused:
            body += ["        else:", *refused]
    for item in absent_fields(struct):
        body += _refuse(item, " " * 8)
    if flexible:
        pad = " " * 8
        known = tagged_fields(struct)
        if not flexible.covers(struct.versions):
            lines.append(f"        flexible = {emit.condition(flexible, struct.versions)}")
            body.append(f"{pad}if flexible:")
            body += _tags(struct, message, pad + "    ", layouts)
            refused = [line for item in known for line in _refuse(item, pad + "    ")]
            if refused:
                body += [f"{pad}else:", *refused]
        else:
            body += _tags(struct, message, pad, layouts)
    if any("append" in line for line in body):
        lines.append("        append = out.append")
    if any("value" in line for line in body):
        lines.append("        value: Any")
    return lines + (body or ["        pass"])
