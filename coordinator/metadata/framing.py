"""How one metadata record is written as the value of a log record.

Source: Kafka's AbstractApiMessageSerde and MetadataRecordSerde; the frame is `wire.record_framing`'s.
"""

from __future__ import annotations

from coordinator.machine import MetadataRecord
from coordinator.metadata.delta import KNOWN_RECORDS
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.errors import WireError
from wire.record_framing import metadata_frame, read_metadata_frame


def encode_record(record: MetadataRecord) -> bytes:
    """The bytes of one metadata record."""
    out = metadata_frame(record.message, record.version)
    record.message.write(out, record.version)
    return b"".join(out)


def decode_record(value: bytes | None) -> MetadataRecord:
    """One metadata record from its bytes. Raises MetadataReplayError, in one sentence, for a frame
    version, record type or record version that this code does not know, and for broken bytes."""
    if not value:
        raise MetadataReplayError("a metadata record has no value")
    try:
        record_type, version, position = read_metadata_frame(value)
    except WireError as error:
        raise MetadataReplayError(f"a metadata record {error}") from error
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
