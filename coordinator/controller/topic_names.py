"""Which topic names are legal, and when two names collide. Source: Kafka's Topic class."""

from __future__ import annotations

import re

NAME_LENGTH_MAX = 249
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_problem(name: str) -> str | None:
    """Why a topic cannot have this name, as one sentence; None if it can."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed."
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed: '.' and '..' are reserved."
    if len(name) > NAME_LENGTH_MAX:
        return (
            f"Topic name is invalid: the length of '{name}' is {len(name)} characters, "
            f"longer than the max allowed length {NAME_LENGTH_MAX}."
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            f"ASCII alphanumerics, '.', '_' and '-'."
        )
    return None


def unified(name: str) -> str:
    """The name with '.' and '_' made equal: metrics cannot tell such names apart, so two topics may
    not differ by them alone."""
    return name.replace(".", "_")


def has_collision_characters(name: str) -> bool:
    """Whether the name contains '.' or '_'."""
    return "." in name or "_" in name


def is_internal(name: str) -> bool:
    """Whether the topic belongs to the brokers (Metadata's `is_internal`)."""
    return name in INTERNAL_TOPICS
