"""Producer snapshot files (`<offset>.snapshot`): what a partition knows of its producers up to an offset.

int16 version 1, uint32 CRC-32C of all that follows it, int32 count, 46 bytes per producer.
Source: ProducerStateManager, schema ProducerSnapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

SUFFIX = ".snapshot"

_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_VERSION = 1


class CorruptSnapshot(ValueError):
    """Bytes that are no producer snapshot; an older one is tried."""


class SnapshotEntry(NamedTuple):
    """One producer; ``last_offset`` is -1 if only a marker of it was seen, ``transaction_first_offset`` -1
    without an open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int


def file_name(offset: int) -> str:
    """Name of the snapshot that covers everything below ``offset``."""
    return f"{offset:020d}{SUFFIX}"


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """The content of a snapshot file."""
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(content: bytes) -> list[SnapshotEntry]:
    """The producers of a snapshot file. Raises CorruptSnapshot."""
    if len(content) < _HEAD.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(content)} bytes")
    version, crc = _HEAD.unpack_from(content)
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}, known is {_VERSION}")
    body = memoryview(content)[_HEAD.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("the CRC does not match")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} producers in {len(body)} bytes")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]
