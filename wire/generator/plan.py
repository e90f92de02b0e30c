"""How a struct's fields are cut into runs that are read and written together."""

from __future__ import annotations

from dataclasses import dataclass

from wire.generator.language import FIXED, Field, Message, Struct, Versions


@dataclass(slots=True)
class Run:
    """Neighbouring fields that exist in the same versions."""

    versions: Versions
    fields: list[Field]


def plain_runs(struct: Struct) -> list[Run]:
    """The untagged fields in wire order, grouped by the versions that have them."""
    runs: list[Run] = []
    for item in struct.fields:
        versions = item.versions & struct.versions
        if item.tagged & versions or not versions:
            continue
        if runs and runs[-1].versions == versions:
            runs[-1].fields.append(item)
        else:
            runs.append(Run(versions, [item]))
    return runs


def tagged_fields(struct: Struct) -> list[Field]:
    """The tagged fields in tag order."""
    found = [item for item in struct.fields if item.tagged & item.versions & struct.versions]
    return sorted(found, key=lambda item: item.tag or 0)


def absent_fields(struct: Struct) -> list[Field]:
    """Fields of the class that no version of this message carries here."""
    return [item for item in struct.fields if not item.versions & struct.versions]


def fixed_groups(fields: list[Field]) -> list[list[Field]]:
    """Cut a run into groups: several fixed-size fields together, every other field alone."""
    groups: list[list[Field]] = []
    for item in fields:
        fixed = item.type in FIXED
        if fixed and groups and groups[-1][-1].type in FIXED:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def flexibility(item: Field, message: Message, versions: Versions) -> str:
    """``always``, ``never`` or ``by version``: whether the compact form is used."""
    flexible = message.flexible & versions
    if not item.flexible or not flexible:
        return "never"
    return "always" if flexible == versions else "by version"
