"""A random sequence of everything but groups, played to both brokers: topics, records, transactions, frames."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from broker.handlers.dispatch import API_ROWS
from tests.parity.live.machine import Machine
from tests.parity.live.transaction_rules import TransactionRules
from tests.parity.live.twins import Difference
from wire.api import API_SPECS
from wire.frames import encode_request

KEYS = sorted(row.key for row in API_ROWS)


class DataMachine(TransactionRules):
    """The rules of topics, logs and transactions together."""


class FrameMachine(Machine):
    """Frames that are wrong, each on a connection of its own: what is closed there is closed here."""

    @rule(
        data=st.data(),
        key=st.sampled_from(KEYS),
        flaw=st.sampled_from(["", "cut", "long", "size", "negative", "version", "key", "flip", "client", "headless"]),
    )
    def frame(self, data: Any, key: int, flaw: str) -> None:
        """An empty request of any API, with one thing wrong."""
        spec = API_SPECS[key]
        version = data.draw(st.integers(spec.min_version, spec.max_version))
        try:
            frame = bytearray(b"".join(encode_request(spec.load()[0](), version, 7, "raw")))
        except (ValueError, TypeError):
            return
        at = data.draw(st.integers(0, 40))
        match flaw:
            case "cut":
                frame = sized(frame[4 : max(len(frame) - at, 5)])
            case "long":
                frame = sized(frame[4:] + b"\x00" * (at + 1))
            case "size":
                frame[:4] = (200_000_000).to_bytes(4, "big")
            case "negative":
                frame[:4] = (-at - 1).to_bytes(4, "big", signed=True)
            case "version":
                frame[6:8] = data.draw(st.sampled_from([spec.max_version + 1, -1, 99, spec.min_version - 1])).to_bytes(
                    2, "big", signed=True
                )
            case "key":
                frame[4:6] = data.draw(st.sampled_from([-1, 4, 5, 6, 7, 52, 200, 999])).to_bytes(2, "big", signed=True)
            case "client":
                frame = sized(frame[4:12] + b"\xff\xff" + frame[17:])
            case "headless":
                frame = sized(frame[4 : 4 + at % 14])
            case "flip":
                frame[min(12 + at, len(frame) - 1)] ^= data.draw(st.sampled_from([0xFF, 0x80, 0x01]))
        if self.is_over:
            return
        Machine.steps += 1
        try:
            self.twins.throw(bytes(frame), key, version)
        except Difference as fault:
            self.end(fault)


def sized(body: bytearray) -> bytearray:
    """A frame's body with its size before it."""
    return bytearray(len(body).to_bytes(4, "big")) + body
