"""Record batches, good and bad, and field values for requests about topics, logs and transactions."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.parity.corpus.produce_and_fetch import BASE_TIME_MS, batch, with_crc
from tests.parity.live.group_requests import mostly
from tests.parity.live.values import Made, Ref
from wire.primitives import ZERO_UUID
from wire.records import Compression

NAMES = mostly(st.sampled_from(["a", "a", "b"]), "none", "", "bad name", weight=15)
PARTITIONS = mostly(st.sampled_from([0, 0, 1]), -1, 99, weight=11)
TOPIC_IDS = mostly(st.sampled_from([Ref("A"), Ref("A"), Ref("B")]), b"\x01" * 16, ZERO_UUID, weight=11)
LEADER_EPOCHS = mostly(st.just(-1), 0, 0, 1, 5, -2, weight=7)
OFFSETS = mostly(st.integers(0, 12), -1, -2, 999, 2**62, weight=11)
LIMITS = mostly(st.just(1_000_000), 0, 1, 100, 200, -1, weight=7)
TIMESTAMPS = mostly(st.sampled_from([-1, -2, -3]), -4, -5, -6, 0, BASE_TIME_MS, BASE_TIME_MS + 2, 2**62, weight=1)

FLAWS = ("checksum", "magic 1", "magic 0", "magic 3", "count", "short", "half", "trailing", "delta", "attributes")
FLAWS += ("length 0", "length 20", "length huge", "length negative", "offset", "null", "empty", "twice", "records")
FLAWS += ("max timestamp", "delete horizon", "bits", "other epoch")


def flawed(flaw: str, values: list[bytes], **fields: Any) -> bytes | None:
    """A batch of these values with one thing wrong; "" is a good one."""
    whole = batch(*values, **fields)
    data = bytearray(whole)
    match flaw:
        case "checksum":
            data[18] ^= 0xFF
            return bytes(data)
        case "magic 1" | "magic 0" | "magic 3":
            data[16] = int(flaw[-1])
        case "count":
            data[57:61] = (len(values) + 1).to_bytes(4, "big")
        case "short":
            return bytes(data[:40])
        case "half":
            return bytes(data[:-3])
        case "trailing":
            return bytes(data) + b"\x00\x01\x02"
        case "delta":
            data[23:27] = (len(values) + 3).to_bytes(4, "big")
        case "attributes":
            data[22] |= 0x80
        case "bits":
            data[22] |= 0x07
        case "length 0" | "length 20" | "length huge" | "length negative":
            sizes = {"length 0": 0, "length 20": 20, "length huge": 10_000_000, "length negative": -1}
            data[8:12] = sizes[flaw].to_bytes(4, "big", signed=True)
            return bytes(data)
        case "offset":
            data[0:8] = (7).to_bytes(8, "big")
        case "other epoch":
            data[12:16] = (9).to_bytes(4, "big")
        case "null":
            return None
        case "empty":
            return b""
        case "twice":
            return whole * 2
        case "records":
            data[61] ^= 0x7E
        case "max timestamp":
            data[35:43] = (BASE_TIME_MS + 999).to_bytes(8, "big")
        case "delete horizon":
            data[22] |= 0x40
    return with_crc(data)


CODECS = (Compression.NONE, Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)


@st.composite
def records(draw: st.DrawFn, identity: dict[str, Any]) -> Made:
    """The records of one partition: a batch, mostly good, of a producer with this identity."""
    values = [b"v%d" % index for index in range(draw(st.integers(1, 3)))]
    fields = dict(identity)
    codec = draw(st.sampled_from(CODECS))
    if codec is not Compression.NONE:
        fields["compression"] = codec
    if draw(st.integers(0, 11)) == 11:
        fields["timestamps"] = draw(st.sampled_from([[-1] * 3, [0] * 3, [4_000_000_000_000] * 3]))
    if draw(st.integers(0, 15)) == 15:
        fields["is_control"] = True
    return Made(flawed, (draw(mostly(st.just(""), *FLAWS, weight=3)), values), fields)
