"""Java's orders of strings and ids, which differ from Python's."""

from __future__ import annotations

from collections.abc import Collection

from wire.primitives import java_string_hash


def java_key(text: str) -> bytes:
    """A key that sorts strings as String.compareTo does: by UTF-16 units, not by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def java_uuid_key(uuid: bytes) -> tuple[int, int]:
    """A key that sorts 16-byte ids as Uuid.compareTo does: as two signed numbers."""
    return int.from_bytes(uuid[:8], "big", signed=True), int.from_bytes(uuid[8:], "big", signed=True)


def in_hash_map_order(texts: Collection[str]) -> list[str]:
    """Different strings, in the order in which a java.util.HashMap that was given them one by one goes through them."""
    capacity = 16
    while len(texts) > capacity * 3 // 4:
        capacity *= 2

    def bucket(text: str) -> int:
        code = java_string_hash(text) & 0xFFFFFFFF
        return (code ^ code >> 16) & (capacity - 1)

    return sorted(texts, key=bucket)
