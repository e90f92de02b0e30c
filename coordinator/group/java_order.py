"""Java's order of strings and ids, where it differs from Python's."""

from __future__ import annotations


def java_key(text: str) -> bytes:
    """A key that sorts strings as String.compareTo does: by UTF-16 units, not by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def java_uuid_key(uuid: bytes) -> tuple[int, int]:
    """A key that sorts 16-byte ids as Uuid.compareTo does: as two signed numbers."""
    return int.from_bytes(uuid[:8], "big", signed=True), int.from_bytes(uuid[8:], "big", signed=True)
