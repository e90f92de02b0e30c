"""Identifiers and chance from the operating system; `coordinator.machine.Ids` for a running node."""

from __future__ import annotations

import os
from collections.abc import Callable

DASH_BITS = 62
"""Six leading bits that base64url writes as "-": such an id would look like an option (Uuid.randomUuid)."""


class SystemIds:
    """`random_bytes(count)` is the source; a simulation hands in a seeded one."""

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._random_bytes = random_bytes

    def uuid(self) -> bytes:
        """See Ids.uuid. A random UUID of version 4, as Kafka's are; so none of the reserved ones."""
        while True:
            drawn = bytearray(self._random_bytes(16))
            drawn[6] = drawn[6] & 0x0F | 0x40
            drawn[8] = drawn[8] & 0x3F | 0x80
            if drawn[0] >> 2 != DASH_BITS:
                return bytes(drawn)

    def below(self, limit: int) -> int:
        """See Ids.below."""
        return int.from_bytes(self._random_bytes(8)) % limit
