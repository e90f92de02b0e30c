"""Frames, headers and ApiVersions: what is answered, what is read leniently, and what closes the connection."""

from __future__ import annotations

import struct

from tests.parity.player import Player
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest

API_VERSIONS, METADATA, FIND_COORDINATOR, HEARTBEAT = 18, 3, 10, 12
NO_TAGS = b"\x00"


def frame(key: int, version: int, body: bytes, *, client_id: bytes = b"\x00\x03raw", tags: bytes = NO_TAGS) -> bytes:
    """A request by hand: `client_id` with its length, `tags` empty for versions that are not flexible."""
    content = struct.pack(">hhi", key, version, 7) + client_id + tags + body
    return struct.pack(">i", len(content)) + content


def compact(text: str | bytes) -> bytes:
    """A compact string of less than 127 bytes."""
    content = text if isinstance(text, bytes) else text.encode()
    return bytes([len(content) + 1]) + content


def scenario_api_versions_refusals(player: Player) -> None:
    """Versions from the future, names that are none, strangers' cluster ids; the connection stays."""
    connection = player.connect()
    for version in (6, 99, 32767):
        sent = frame(API_VERSIONS, version, b"whatever")
        connection.exchange_bytes(sent, f"version {version}", (API_VERSIONS, 0))
    for name, version in (("", "1"), ("a", ""), ("-a", "1"), ("a-", "1"), ("a b", "1"), ("a", "1."), ("é", "1")):
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        for api_version in (3, 4, 5):
            connection.call(request, api_version, f"software {name!r} {version!r} v{api_version}")
    named = {"client_software_name": "parity", "client_software_version": "1"}
    for cluster, node in ((None, 1), ("stranger", -1), ("stranger", 1), ("", -1), ("", 1), (None, 0), ("stranger", -2)):
        request = ApiVersionsRequest(cluster_id=cluster, node_id=node, **named)
        connection.call(request, 5, f"cluster {cluster!r} node {node}")
    wrong = ApiVersionsRequest(client_software_name="", cluster_id="stranger", node_id=3)
    connection.call(wrong, 5, "name before cluster")


def scenario_sasl_without_sasl(player: Player) -> None:
    """A listener without SASL refuses to begin, and goes on."""
    connection = player.connect()
    for version in (0, 1):
        for mechanism in ("PLAIN", "FOO", ""):
            connection.call(SaslHandshakeRequest(mechanism=mechanism), version, f"{mechanism} v{version}")
    for version in (0, 1, 2):
        request = SaslAuthenticateRequest(auth_bytes=b"\x00user\x00password")
        connection.call(request, version, f"authenticate v{version}")
    connection.call(MetadataRequest(topics=[]), 12, "metadata afterwards")


def scenario_frames_that_close(player: Player) -> None:
    """Unknown APIs and versions, bodies that cannot be parsed, sizes out of bounds: closed without a word."""
    no_topics = b"\x01" + b"\x00\x00" + NO_TAGS
    for key, version, what in (
        (4, 7, "LeaderAndIsr"),
        (7, 3, "ControlledShutdown"),
        (999, 0, "key 999"),
        (-1, 0, "key -1"),
        (API_VERSIONS, -1, "ApiVersions v-1"),
        (METADATA, 99, "Metadata v99"),
        (METADATA, -1, "Metadata v-1"),
        (2, 0, "ListOffsets v0"),
        (1, 3, "Fetch v3"),
        (0, 0, "Produce v0"),
        (0, 2, "Produce v2"),
        (19, 1, "CreateTopics v1"),
        (27, 0, "WriteTxnMarkers v0"),
        (22, 6, "InitProducerId v6"),
        (52, 0, "Vote"),
        (58, 0, "Envelope"),
        (62, 0, "BrokerRegistration"),
        (56, 2, "AlterPartition"),
    ):
        player.connect().exchange_bytes(frame(key, version, no_topics, tags=b""), what)
    for body, what in (
        (b"", "no body"),
        (no_topics[:-1], "body without its tags"),
        (b"\xff\xff\xff\xff\x07" + no_topics[1:], "topics by the million"),
        (b"\x05" + no_topics[1:], "more topics than bytes"),
        (b"\xff\xff\xff\xff\xff\xff\x01", "a length of six bytes"),
        (no_topics[:-1] + b"\x01\x00\x05a", "tag longer than the frame"),
    ):
        player.connect().exchange_bytes(frame(METADATA, 12, body), what, (METADATA, 12))
    for sent, what in (
        (struct.pack(">i", 0), "size 0"),
        (struct.pack(">i", 2) + b"\x00\x12", "half a key"),
        (struct.pack(">i", -1), "size -1"),
        (struct.pack(">i", 104857601), "size above the limit"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (struct.pack(">ihhi", 8, API_VERSIONS, 3, 1), "no client id"),
        (frame(API_VERSIONS, 3, b"", client_id=b"\x00\x09raw", tags=b""), "client id longer than the frame"),
        (frame(API_VERSIONS, 3, b"\x00" + compact("1") + NO_TAGS), "null software name"),
        (frame(HEARTBEAT, 0, b"\xff\xff\x00\x00\x00\x01\x00\x00", tags=b""), "null group id"),
        (frame(FIND_COORDINATOR, 0, b"\xff\xff", tags=b""), "null key"),
    ):
        player.connect().exchange_bytes(sent, what)


def scenario_lenient_frames(player: Player) -> None:
    """What is read all the same: null client ids, unknown tags, bytes left over, text that is not UTF-8."""
    connection = player.connect(None)
    connection.call(MetadataRequest(topics=[]), 12, "null client id v12")
    connection.call(MetadataRequest(topics=[]), 1, "null client id v1")
    read = (METADATA, 12)
    no_topics = b"\x01" + b"\x00\x00"
    unknown = b"\x01\x63\x02hi"
    plain = no_topics + NO_TAGS
    for sent, what in (
        (frame(METADATA, 12, plain, tags=unknown), "unknown tag in the header"),
        (frame(METADATA, 12, no_topics + unknown), "unknown tag in the body"),
        (frame(METADATA, 12, plain + b"more"), "bytes left over"),
        (frame(METADATA, 12, b"\x01\x02\x00" + NO_TAGS), "a boolean of 2"),
        (frame(METADATA, 12, plain, client_id=b"\x00\x02\xff\xfe"), "client id that is not UTF-8"),
        (frame(METADATA, 12, plain, client_id=b"\xff\xfe"), "client id of length -2"),
        (frame(METADATA, 12, no_topics + b"\x02\x64\x00\x63\x00"), "tags in the wrong order"),
        (frame(METADATA, 12, no_topics + b"\x02\x63\x00\x63\x00"), "one tag twice"),
    ):
        player.connect().exchange_bytes(sent, what, read)
    name = b"\x02" + bytes(16) + compact(b"\xff\xfe\xc3") + NO_TAGS
    player.connect().exchange_bytes(frame(METADATA, 12, name + b"\x00\x00" + NO_TAGS), "topic that is not UTF-8", read)
    zero = b"\x02" + bytes(16) + compact(b"a\x00b") + NO_TAGS
    player.connect().exchange_bytes(frame(METADATA, 12, zero + b"\x00\x00" + NO_TAGS), "topic with a zero", read)
    beat = frame(HEARTBEAT, 0, b"\x00\x00\x00\x00\x00\x01\x00\x00", tags=b"")
    for correlation in (0, -1, 2147483647):
        sent = beat[:8] + struct.pack(">i", correlation) + beat[12:]
        player.connect().exchange_bytes(sent, f"correlation id {correlation}", (HEARTBEAT, 0))
