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
    mask = _mask(len(texts))
    return sorted(texts, key=lambda text: _bucket(java_string_hash(text) & 0xFFFFFFFF, mask))


def ids_in_hash_map_order(ids: Collection[bytes]) -> list[bytes]:
    """As `in_hash_map_order`, of 16-byte ids (Uuid.hashCode); those that share a bucket by their bytes."""
    mask = _mask(len(ids))

    def bucket(uuid: bytes) -> int:
        both = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
        return _bucket((both >> 32 ^ both) & 0xFFFFFFFF, mask)

    return sorted(sorted(ids), key=bucket)


def _mask(count: int) -> int:
    capacity = 16
    while count > capacity * 3 // 4:
        capacity *= 2
    return capacity - 1


def _bucket(code: int, mask: int) -> int:
    return (code ^ code >> 16) & mask
