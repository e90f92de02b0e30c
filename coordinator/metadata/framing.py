"""How one metadata record is written as the value of a log record.

uvarint frame version 1, uvarint record type, uvarint version, record. Source: Kafka's
AbstractApiMessageSerde and MetadataRecordSerde.
"""

from __future__ import annotations

from coordinator.machine import MetadataRecord
from coordinator.metadata.delta import KNOWN_RECORDS
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.errors import WireError
from wire.primitives import Buffer, read_uvarint, uvarint

FRAME_VERSION = 1


def encode_record(record: MetadataRecord) -> bytes:
    """The bytes of one metadata record."""
    message = record.message
    out: list[Buffer] = [
        uvarint(FRAME_VERSION),
        uvarint(message.API_KEY),
        uvarint(record.version),
    ]
    message.write(out, record.version)
    return b"".join(out)


def decode_record(value: bytes | None) -> MetadataRecord:
    """One metadata record from its bytes. Raises MetadataReplayError, in one sentence, for a frame
    version, record type or record version that this code does not know, and for broken bytes."""
    if not value:
        raise MetadataReplayError("a metadata record has no value")
    try:
        if value[0] == FRAME_VERSION and value[1] < 0x80 and value[2] < 0x80:
            record_type, version, position = value[1], value[2], 3
        else:
            frame_version, position = read_uvarint(value, 0)
            if frame_version != FRAME_VERSION:
                raise MetadataReplayError(
                    f"a metadata record has frame version {frame_version}, only {FRAME_VERSION} is known"
                )
            record_type, position = read_uvarint(value, position)
            version, position = read_uvarint(value, position)
    except (IndexError, WireError) as error:
        raise MetadataReplayError(f"a metadata record of {len(value)} bytes is broken") from error
    record_class = KNOWN_RECORDS.get(record_type)
    if record_class is None:
        raise MetadataReplayError(
            f"a metadata record has type {record_type}, which is unknown here: "
            f"the directory was written by a newer version"
        )
    if version > record_class.MAX_VERSION:
        raise MetadataReplayError(
            f"{record_class.__name__} has version {version}, versions up to {record_class.MAX_VERSION} are known here"
        )
    try:
        return MetadataRecord(record_class.decode(value, version, position), version)
    except WireError as error:
        raise MetadataReplayError(f"{record_class.__name__} is broken: {error}") from error
