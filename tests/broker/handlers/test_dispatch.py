"""The way of a request through the table, with handlers of the test's own."""

from __future__ import annotations

import logging
import struct
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from broker.clock import Clock
from broker.handlers.context import Node, RequestContext
from broker.handlers.dispatch import API_ROWS, ApiRow, Dispatcher
from broker.network.peer import CloseConnection, Peer
from broker.security.authorizer import AllowAllAuthorizer
from coordinator.metadata.image import MetadataImage
from tests.broker.raw_client import api_versions_body, compact_string, frame, string
from wire.api import API_SPECS, ApiKey
from wire.errors import ErrorCode, KafkaError

API_VERSIONS_ROW = ApiRow(ApiKey.API_VERSIONS, "api_versions")


def node() -> Node:
    made = Node(clock=Clock(), authorizer=AllowAllAuthorizer(), broker_id=1, cluster_id="the-cluster")
    made.metadata = SimpleNamespace(image=MetadataImage())
    return made


def dispatcher(*rows: ApiRow, **options: Any) -> Dispatcher:
    made = node()
    made.dispatcher = Dispatcher(made, rows=rows or API_ROWS, **options)
    return made.dispatcher


def peer() -> Peer:
    return Peer(listener_name="PLAINTEXT", client_host="192.0.2.7")


async def answer(dispatch: Dispatcher, request: bytes, to: Peer | None = None) -> bytes:
    """The whole answer as one, without its size, which is checked."""
    buffers = await dispatch.answer(request[4:], to or peer())
    assert buffers is not None
    joined = b"".join(buffers)
    assert struct.unpack(">i", joined[:4])[0] == len(joined) - 4
    return joined[4:]


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A handler module of the test's own, named `under_test` in the table."""
    module = ModuleType("broker.handlers.under_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


# --- versions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("client_id", [None, "", "someone"])
async def test_w01_a_null_client_id_is_an_empty_one(client_id: str | None) -> None:
    request = frame(18, 3, api_versions_body(3), client_id=client_id, flexible=True, correlation_id=5)
    assert await answer(dispatcher(), request) == await answer(
        dispatcher(), frame(18, 3, api_versions_body(3), client_id="x", flexible=True, correlation_id=5)
    )


@pytest.mark.parametrize("version", [6, 9, 127, 32767, -1])
async def test_w02_an_unknown_version_of_api_versions_is_told_the_known_ones(version: int) -> None:
    body = b"whatever a later version may hold \xff"
    request = frame(18, version, body, flexible=version >= 3, correlation_id=77)
    # v0 layout: error code, then one entry of key, min, max; nothing else.
    assert await answer(dispatcher(), request) == struct.pack(">ihihhh", 77, 35, 1, 18, 0, 5)


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_w03_the_answer_to_api_versions_has_no_tags_in_its_header(version: int) -> None:
    said = await answer(dispatcher(), frame(18, version, api_versions_body(version), flexible=True, correlation_id=9))
    assert said[:6] == struct.pack(">ih", 9, 0)


@pytest.mark.parametrize("correlation_id", [0, 1, 2**31 - 1, -1, -(2**31)])
@pytest.mark.parametrize("version", [0, 3])
async def test_w04_correlation_ids_come_back_bit_for_bit(correlation_id: int, version: int) -> None:
    request = frame(18, version, api_versions_body(version), flexible=version >= 3, correlation_id=correlation_id)
    assert (await answer(dispatcher(), request))[:4] == struct.pack(">i", correlation_id)


@pytest.mark.parametrize(
    ("name", "software_version", "code"),
    [
        ("apache-kafka-java", "4.4.0", 0),
        ("a", "1", 0),
        ("-leading", "1", 42),
        ("trailing-", "1", 42),
        ("under_score", "1", 42),
        ("", "1", 42),
        ("name", "", 42),
        ("name", "1.0.", 42),
        ("n\u00e4me", "1", 42),
        ("line\n", "1", 42),
    ],
)
async def test_client_software_names_are_checked_as_kafka_does(name: str, software_version: str, code: int) -> None:
    client = peer()
    said = await answer(dispatcher(), frame(18, 3, api_versions_body(3, name, software_version), flexible=True), client)
    assert struct.unpack(">h", said[4:6])[0] == code
    if code:
        assert said[6:] == b"\x01" + struct.pack(">i", 0) + b"\x00", "an empty list, no throttling, no tags"
    assert client.client_software_name == ("" if code else name)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        (None, -1, 0),
        ("the-cluster", 1, 0),
        ("the-cluster", -1, 42),
        (None, 1, 42),
        ("another", 1, 129),
        ("the-cluster", 2, 129),
    ],
)
async def test_v5_tells_a_client_of_another_cluster_to_bootstrap_again(
    cluster_id: str | None, node_id: int, code: int
) -> None:
    body = compact_string("x") + compact_string("1") + compact_string(cluster_id) + struct.pack(">i", node_id) + b"\x00"
    said = await answer(dispatcher(), frame(18, 5, body, flexible=True))
    assert struct.unpack(">h", said[4:6])[0] == code


async def test_what_is_registered_is_what_is_advertised() -> None:
    dispatch = dispatcher()
    said = await answer(dispatch, frame(18, 0))
    count = struct.unpack(">i", said[6:10])[0]
    listed = [struct.unpack(">hhh", said[10 + 6 * i : 16 + 6 * i]) for i in range(count)]
    assert [key for key, _, _ in listed] == sorted(row.key for row in API_ROWS)
    for key, lowest, highest in listed:
        spec = API_SPECS[key]
        assert 0 <= lowest <= highest <= spec.max_version
        assert key == ApiKey.PRODUCE or lowest >= spec.min_version


def test_unstable_versions_are_neither_advertised_nor_accepted() -> None:
    dispatch = dispatcher(ApiRow(ApiKey.INIT_PRODUCER_ID, "under_test"))
    assert dispatch.version_range(ApiKey.INIT_PRODUCER_ID) == (22, 0, 5)


def test_an_older_release_narrows_the_table() -> None:
    rows = [ApiRow(key, "under_test") for key in (ApiKey.FETCH, ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.METADATA)]
    assert [tuple(entry) for entry in dispatcher(*rows, release="4.0").versions()] == [(1, 4, 17), (3, 0, 13)]
    assert [tuple(entry) for entry in dispatcher(*rows).versions()] == [(1, 4, 18), (3, 0, 13), (88, 0, 1)]
    with pytest.raises(ValueError, match=r"release 2\.8; known are 3\.9, 4\.0, 4\.1, 4\.2, 4\.3, 4\.4"):
        dispatcher(*rows, release="2.8")


def test_apis_of_the_other_listener_are_not_served() -> None:
    rows = [ApiRow(ApiKey.VOTE, "under_test"), ApiRow(ApiKey.METADATA, "under_test")]
    assert [entry.key for entry in dispatcher(*rows).versions()] == [ApiKey.METADATA]
    assert [entry.key for entry in dispatcher(*rows, listener_type="controller").versions()] == [ApiKey.VOTE]


# --- what closes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_frame",
    [
        pytest.param(frame(4, 7), id="an API without versions (LeaderAndIsr)"),
        pytest.param(frame(999, 0), id="an unknown key"),
        pytest.param(frame(-1, 0), id="a negative key"),
        pytest.param(frame(52, 0, flexible=True), id="an API of the controller's listener"),
        pytest.param(frame(17, 2), id="a version above"),
        pytest.param(frame(17, -1), id="a version below"),
        pytest.param(frame(17, 1, struct.pack(">h", 100) + b"short"), id="a string longer than the frame"),
        pytest.param(frame(17, 1, struct.pack(">h", -1)), id="null where it may not be"),
        pytest.param(frame(17, 1), id="no body"),
        pytest.param(frame(18, 3, b"", flexible=True), id="no body in a flexible version"),
        pytest.param(frame(18, 3, api_versions_body(3)[:-1], flexible=True), id="no tag section"),
        pytest.param(struct.pack(">i", 0), id="an empty frame"),
        pytest.param(struct.pack(">ihh", 4, 18, 0), id="no correlation id"),
        pytest.param(struct.pack(">ihhih", 10, 18, 0, 1, 500), id="a client id longer than the frame"),
    ],
)
async def test_a6_a7_closes_without_an_answer(request_frame: bytes) -> None:
    with pytest.raises(CloseConnection):
        await dispatcher().answer(request_frame[4:], peer())


async def test_a10_unknown_tags_are_skipped() -> None:
    tags = b"\x02" + bytes([99, 3]) + b"abc" + bytes([100, 0])
    body = compact_string("x") + compact_string("1") + tags
    header_tags = b"\x01" + bytes([5, 2]) + b"zz"
    payload = struct.pack(">hhi", 18, 3, 1) + string("c") + header_tags + body
    said = await answer(dispatcher(), struct.pack(">i", len(payload)) + payload)
    assert said[4:6] == b"\x00\x00"


# --- faults and interceptors ----------------------------------------------------------------------


def heartbeat(version: int = 0) -> bytes:
    return frame(12, version, string("group") + struct.pack(">i", 3) + string("member"), correlation_id=4)


async def test_a14_a_refusal_becomes_the_requests_error_answer(handler: ModuleType) -> None:
    async def handle(request: Any, context: RequestContext) -> Any:
        raise KafkaError(ErrorCode.NOT_COORDINATOR, "the group lives elsewhere")

    handler.handle = handle  # type: ignore[attr-defined]
    said = await answer(dispatcher(ApiRow(ApiKey.HEARTBEAT, "under_test")), heartbeat())
    assert said == struct.pack(">ih", 4, 16)


async def test_a14_a_fault_answers_unknown_server_error_in_one_line(
    handler: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(request: Any, context: RequestContext) -> Any:
        return {}["missing"]

    handler.handle = handle  # type: ignore[attr-defined]
    with caplog.at_level(logging.INFO):
        said = await answer(dispatcher(ApiRow(ApiKey.HEARTBEAT, "under_test")), heartbeat())
    assert said == struct.pack(">ih", 4, -1)
    (record,) = caplog.records
    assert "Heartbeat version 0 of client 'raw'" in record.getMessage()
    assert record.exc_info is None


def produce(acks: int) -> bytes:
    records = struct.pack(">i", 0)
    partitions = struct.pack(">i", 2) + struct.pack(">i", 0) + records + struct.pack(">i", 7) + records
    body = string(None) + struct.pack(">hi", acks, 1000) + struct.pack(">i", 1) + string("t") + partitions
    return frame(0, 3, body, correlation_id=8)


async def test_a14_an_error_per_item_repeats_the_requests_items(handler: ModuleType) -> None:
    async def handle(request: Any, context: RequestContext) -> Any:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    handler.handle = handle  # type: ignore[attr-defined]
    said = await answer(dispatcher(ApiRow(ApiKey.PRODUCE, "under_test", advertised_min=0)), produce(acks=1))
    expected = struct.pack(">ii", 8, 1) + string("t") + struct.pack(">i", 2)
    for index in (0, 7):
        expected += struct.pack(">ihqq", index, 56, -1, -1)
    assert said == expected + struct.pack(">i", 0)


async def test_a13_a_fault_of_produce_without_acks_closes(handler: ModuleType) -> None:
    async def handle(request: Any, context: RequestContext) -> Any:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    handler.handle = handle  # type: ignore[attr-defined]
    with pytest.raises(CloseConnection):
        await dispatcher(ApiRow(ApiKey.PRODUCE, "under_test")).answer(produce(acks=0)[4:], peer())


async def test_a8_produce_is_advertised_from_0_and_served_from_3(handler: ModuleType) -> None:
    dispatch = dispatcher(ApiRow(ApiKey.PRODUCE, "under_test", advertised_min=0))
    assert dispatch.versions() == [(0, 0, 13)]
    with pytest.raises(CloseConnection):
        await dispatch.answer(frame(0, 2)[4:], peer())


class Recorder:
    """An interceptor that notes its calls and may answer in the handler's place."""

    def __init__(self, name: str, calls: list[str], instead: Any = None) -> None:
        self.name, self.calls, self.instead = name, calls, instead

    async def before(self, request: Any, context: RequestContext) -> Any | None:
        self.calls.append(f"{self.name} before {type(request).__name__}")
        if isinstance(self.instead, Exception):
            raise self.instead
        return self.instead

    async def after(self, request: Any, response: Any, context: RequestContext) -> Any:
        self.calls.append(f"{self.name} after")
        return response


async def test_interceptors_stand_around_the_effect(handler: ModuleType) -> None:
    from wire.messages.heartbeat import HeartbeatResponse

    calls: list[str] = []

    async def handle(request: Any, context: RequestContext) -> Any:
        calls.append("effect")
        return HeartbeatResponse()

    handler.handle = handle  # type: ignore[attr-defined]
    interceptors = [Recorder("outer", calls), Recorder("inner", calls)]
    dispatch = dispatcher(ApiRow(ApiKey.HEARTBEAT, "under_test"), interceptors=interceptors)
    assert await answer(dispatch, heartbeat()) == struct.pack(">ih", 4, 0)
    assert calls == [
        "outer before HeartbeatRequest", "inner before HeartbeatRequest", "effect", "inner after", "outer after",
    ]  # fmt: skip


async def test_an_interceptor_answers_without_the_effect(handler: ModuleType) -> None:
    from wire.messages.heartbeat import HeartbeatResponse

    async def handle(request: Any, context: RequestContext) -> Any:
        raise AssertionError("the effect took place")

    handler.handle = handle  # type: ignore[attr-defined]
    for instead in (HeartbeatResponse(error_code=27), KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)):
        dispatch = dispatcher(ApiRow(ApiKey.HEARTBEAT, "under_test"), interceptors=[Recorder("fault", [], instead)])
        assert await answer(dispatch, heartbeat()) == struct.pack(">ih", 4, 27)


# --- SASL on a listener without it ------------------------------------------------------------------


async def test_x04_sasl_on_a_plaintext_listener_is_an_illegal_state() -> None:
    assert await answer(dispatcher(), frame(17, 1, string("PLAIN"))) == struct.pack(">ihi", 1, 34, 0)
    said = await answer(dispatcher(), frame(36, 2, b"\x01\x00", flexible=True))
    text = b"SaslAuthenticate request received after successful authentication"
    # As Apache Kafka 4.4 answers: header tags, code, compact text, no bytes, lifetime 0, tags.
    assert said[4:] == b"\x00" + struct.pack(">h", 34) + bytes([len(text) + 1]) + text + b"\x01" + bytes(8) + b"\x00"
