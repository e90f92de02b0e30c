"""Keys and values of records: text, base64, or the messages of Kafka's internal topics as JSON."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from wire.errors import MalformedMessage, WireError
from wire.message import Message, Struct
from wire.primitives import uuid_text
from wire.record_framing import METADATA_FRAME_VERSION, CoordinatorRecordTypes, read_metadata_frame

Fields = dict[str, Any]
Decoder = Callable[[bytes | None, bytes | None], Fields]
"""Key and value of a record to what is shown of them. Raises WireError for bytes that are not what they must be."""

UUID_BYTES = 16
TRANSACTION_STATES = {
    0: "Empty", 1: "Ongoing", 2: "PrepareCommit", 3: "PrepareAbort", 4: "CompleteCommit", 5: "CompleteAbort", 6: "Dead",
    7: "PrepareEpochFence",
}  # fmt: skip
COORDINATOR_TOPICS = {
    "__consumer_offsets": "consumer_offsets",
    "__transaction_state": "transaction_state",
    "__share_group_state": "share_group_state",
}
METADATA_TOPICS = {"__cluster_metadata": "cluster_metadata", "__remote_log_metadata": "remote_log_metadata"}


def decoder_of(topic: str) -> Decoder:
    """How the records of a topic are shown: internal ones decoded, all others as text or base64."""
    if topic in COORDINATOR_TOPICS:
        return coordinator_decoder(COORDINATOR_TOPICS[topic])
    if topic in METADATA_TOPICS:
        return metadata_decoder(METADATA_TOPICS[topic])
    return plain


def plain(key: bytes | None, value: bytes | None) -> Fields:
    fields: Fields = {}
    if key is not None:
        fields["key"] = text_or_base64(key)
    if value is not None:
        fields["payload"] = text_or_base64(value)
    return fields


def text_or_base64(data: bytes) -> str:
    """UTF-8 text as it is, other bytes in base64 behind `base64:`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(data).decode()}"


def coordinator_decoder(module: str) -> Decoder:
    types = CoordinatorRecordTypes(import_module(f"wire.messages.records.{module}"))

    def decode(key: bytes | None, value: bytes | None) -> Fields:
        decoded = types.decode(key, value)
        if decoded is None:
            return {"unknown_record_type": int.from_bytes((key or b"")[:2], "big", signed=True)} | plain(key, value)
        key_message, value_message, version = decoded
        fields: Fields = {"key": {"type": str(key_message.API_KEY), "data": as_json(key_message)}}
        if value_message is None:
            fields["payload"] = "<DELETE>"
            return fields
        data = as_json(value_message)
        if getattr(value_message, "protocol_type", None) == "consumer":
            show_consumer_protocol(data, value_message)
        if "transactionStatus" in data:
            data["transactionStatus"] = TRANSACTION_STATES.get(data["transactionStatus"], data["transactionStatus"])
        fields["payload"] = {"version": str(version), "data": data}
        return fields

    return decode


def metadata_decoder(module: str) -> Decoder:
    messages = import_module(f"wire.messages.records.{module}")
    classes = {
        found.API_KEY: found
        for found in vars(messages).values()
        if isinstance(found, type) and issubclass(found, Message) and found is not Message
    }

    def decode(key: bytes | None, value: bytes | None) -> Fields:
        if value is None:
            raise MalformedMessage("a metadata record has no value")
        try:
            record_type, version, position = read_metadata_frame(value)
        except MalformedMessage as error:
            raise MalformedMessage(f"a metadata record {error}") from error
        found = classes.get(record_type)
        if found is None:
            return {"unknown_record_type": record_type, "version": version, "frame": METADATA_FRAME_VERSION}
        if not found.MIN_VERSION <= version <= found.MAX_VERSION:
            raise MalformedMessage(f"{found.__name__} has no version {version}")
        data = as_json(found.decode(value, version, position))
        return {"payload": {"type": screaming(found.__name__), "version": version, "data": data}}

    return decode


CONTROL_MESSAGES = {
    "LEADER_CHANGE": ("LeaderChange", "LeaderChangeMessage"),
    "SNAPSHOT_HEADER": ("SnapshotHeader", "SnapshotHeaderRecord"),
    "SNAPSHOT_FOOTER": ("SnapshotFooter", "SnapshotFooterRecord"),
    "KRAFT_VERSION": ("KRaftVersion", "KRaftVersionRecord"),
    "KRAFT_VOTERS": ("KRaftVoters", "VotersRecord"),
}


def control_value(kind: str, value: bytes | None) -> Fields:
    """The value of a control record of the metadata quorum, by its type. Raises MalformedMessage."""
    name, class_name = CONTROL_MESSAGES[kind]
    found = getattr(import_module("wire.messages.records.control_records"), class_name)
    if value is None or len(value) < 2:
        raise MalformedMessage(f"a {name} record has no value")
    version = min(int.from_bytes(value[:2], "big", signed=True), found.MAX_VERSION)
    return {name: as_json(found.decode(value, version))}


def as_json(message: Struct) -> Fields:
    """A message's fields under Kafka's names, ids as text, other bytes in base64."""
    blank = type(message)()
    return {
        camel(name): json_value(getattr(message, name), getattr(blank, name))
        for name in type(message).__slots__
        if name != "unknown_tagged_fields"
    }


def json_value(value: Any, default: Any) -> Any:
    """`default` is the field's: of 16 bytes for an id, empty for other bytes."""
    if isinstance(value, Struct):
        return as_json(value)
    if isinstance(value, list | tuple):
        is_ids = all(isinstance(item, bytes) and len(item) == UUID_BYTES for item in value)
        return [json_value(item, bytes(UUID_BYTES) if is_ids else b"") for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        is_id = isinstance(default, bytes) and len(default) == UUID_BYTES == len(value)
        return uuid_text(bytes(value)) if is_id else base64.b64encode(value).decode()
    return value


def show_consumer_protocol(data: Fields, group: Any) -> None:
    """Replace subscriptions and assignments, opaque to the broker, by what consumers wrote into them."""
    from wire.messages.embedded import ConsumerProtocolAssignment, ConsumerProtocolSubscription

    for shown_member, member in zip(data.get("members", ()), getattr(group, "members", ()), strict=True):
        for field, message_class in (
            ("subscription", ConsumerProtocolSubscription),
            ("assignment", ConsumerProtocolAssignment),
        ):
            content = bytes(getattr(member, field))
            version = int.from_bytes(content[:2], "big", signed=True)
            if len(content) < 2 or version < 0:
                continue
            try:
                decoded = message_class.decode(content, min(version, message_class.MAX_VERSION), 2)
            except WireError:
                continue  # Another client's own format: base64 is all that can be said of it.
            shown_member[field] = as_json(decoded)


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def screaming(name: str) -> str:
    """A class's name as Kafka's enumeration of record types has it: FEATURE_LEVEL_RECORD."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()
