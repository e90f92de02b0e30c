"""Addresses as people write them."""

from __future__ import annotations

from odradek.failure import BAD_SETTING, Failure


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT (or [IPV6]:PORT) as its parts; raises Failure where it is neither."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Failure(f"{text!r} is no address: give it as HOST:PORT, for example 127.0.0.1:9092.", BAD_SETTING)
    return host.strip("[]"), int(port)
