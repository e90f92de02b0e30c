"""Metadata over a socket: creation on demand, what each version shows, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.broker.handlers.wire_client import WireClient, codes
from tests.broker.node_fixture import RunningNode, running_node
from wire.errors import ErrorCode
from wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from wire.primitives import ZERO_UUID

UNKNOWN_ID = b"\x07" * 16


@asynccontextmanager
async def connected(**settings: str) -> AsyncIterator[tuple[RunningNode, WireClient]]:
    async with running_node({name.replace("_", "."): value for name, value in settings.items()}) as node:
        client = await WireClient.connect(node.port)
        try:
            yield node, client
        finally:
            await client.close()


def asking(*names: str | None, topic_id: bytes = ZERO_UUID, may_create: bool = True) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name, topic_id=topic_id) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)


@pytest.mark.parametrize("version", range(14))
async def test_u03_a_topic_that_asking_creates_is_complete_in_the_answer(version: int) -> None:
    async with connected(num_partitions="3") as (node, client):
        response: MetadataResponse = await client.call(asking("new"), version)
        (topic,) = response.topics
        assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, "new", False)
        assert [(one.error_code, one.partition_index, one.leader_id) for one in topic.partitions] == [
            (ErrorCode.NONE, index, 1) for index in range(3)
        ]
        assert [(broker.node_id, broker.port) for broker in response.brokers] == [(1, node.port)]
        assert response.controller_id == (1 if version >= 1 else -1)
        assert (response.cluster_id is None) == (version < 2)
        assert (topic.topic_id == ZERO_UUID) == (version < 10)


async def test_many_that_ask_for_a_new_topic_at_once_get_the_same_one() -> None:
    async with running_node() as node:
        clients = [await WireClient.connect(node.port) for _ in range(8)]
        answers = await asyncio.gather(*(client.call(asking("shared"), 12) for client in clients))
        assert len({answer.topics[0].topic_id for answer in answers}) == 1
        assert {answer.topics[0].error_code for answer in answers} == {ErrorCode.NONE}
        for client in clients:
            await client.close()


async def test_looking_never_creates() -> None:
    async with connected() as (node, client):
        for request in (asking("a", may_create=False), MetadataRequest(topics=None), MetadataRequest(topics=[])):
            await client.call(request, 12)
        assert codes((await client.call(asking("a", may_create=False), 12)).topics) == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ]
        assert (await client.call(MetadataRequest(topics=None), 12)).topics == []
        assert len(node.server.node.metadata.image.topics) == 0


async def test_without_auto_creation_unknown_is_unknown() -> None:
    async with connected(auto_create_topics_enable="false") as (_, client):
        response = await client.call(asking("a", "b d", ""), 12)
        assert codes(response.topics) == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ]


async def test_names_that_cannot_be_created_keep_their_error() -> None:
    async with connected() as (_, client):
        await client.call(asking("a.b"), 12)
        response = await client.call(asking("sp ace", "", "x" * 250, "a_b", "good", "good"), 12)
        assert codes(response.topics) == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 4 + [ErrorCode.NONE]


async def test_null_means_all_topics_and_an_empty_list_brokers_only_save_in_version_0() -> None:
    async with connected() as (_, client):
        await client.call(asking("a", "b"), 12)
        everything = await client.call(MetadataRequest(topics=None), 12)
        assert sorted(topic.name for topic in everything.topics) == ["a", "b"]
        assert (await client.call(MetadataRequest(topics=[]), 12)).topics == []
        assert len((await client.call(MetadataRequest(topics=[]), 0)).topics) == 2


async def test_topics_are_found_by_id_and_names_beside_ids_are_ignored() -> None:
    async with connected() as (_, client):
        created = (await client.call(asking("a"), 12)).topics[0]
        request = MetadataRequest(
            topics=[
                MetadataRequestTopic(name=None, topic_id=created.topic_id),
                MetadataRequestTopic(name=None, topic_id=UNKNOWN_ID),
                MetadataRequestTopic(name="never"),
            ]
        )
        found, unknown = (await client.call(request, 12)).topics
        assert (found.error_code, found.name) == (ErrorCode.NONE, "a")
        assert (unknown.error_code, unknown.name, unknown.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, UNKNOWN_ID)


@pytest.mark.parametrize(
    ("version", "request_", "code"),
    [
        (10, asking("x", topic_id=UNKNOWN_ID), ErrorCode.INVALID_REQUEST),
        (11, asking(None, topic_id=UNKNOWN_ID), ErrorCode.INVALID_REQUEST),
        (11, asking(None), ErrorCode.INVALID_REQUEST),
        (12, asking(None), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_ids_and_null_names_before_their_time(version: int, request_: MetadataRequest, code: ErrorCode) -> None:
    async with connected() as (_, client):
        response = await client.call(request_, version)
        assert codes(response.topics) == [code]
        assert response.brokers == []


async def test_authorized_operations_only_where_asked() -> None:
    async with connected() as (_, client):
        request = asking("a")
        assert (await client.call(request, 8)).topics[0].topic_authorized_operations == -(2**31)
        request.include_topic_authorized_operations = True
        request.include_cluster_authorized_operations = True
        response = await client.call(request, 8)
        # Kafka 4.4.0 without an authorizer.
        assert response.topics[0].topic_authorized_operations == 3576
        assert response.cluster_authorized_operations == 8096


async def test_each_listener_shows_its_own_addresses() -> None:
    settings = {
        "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
        "advertised.listeners": "IN://inside:1111,OUT://outside:2222",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
        "inter.broker.listener.name": "IN",
    }
    async with running_node(settings) as node:
        seen = []
        for listener in node.server.listeners.all():
            client = await WireClient.connect(listener.port)
            response = await client.call(asking("a"), 12)
            seen.append([(broker.host, broker.port) for broker in response.brokers])
            assert codes(response.topics[0].partitions) == [ErrorCode.NONE]
            await client.close()
        assert seen == [[("inside", 1111)], [("outside", 2222)]]


async def test_a_partition_without_a_leader_says_so_and_keeps_its_epoch() -> None:
    async with connected() as (node, client):
        await client.call(asking("a"), 12)
        metadata, controller = node.server.node.metadata, node.server.node.controller
        leaving = BrokerHeartbeatRequest(
            broker_id=1,
            broker_epoch=metadata.image.brokers[1].broker_epoch,
            current_metadata_offset=metadata.image.offset,
            want_shut_down=True,
        )
        while not (await controller.request(leaving)).should_shut_down:
            pass
        response = await client.call(asking("a", may_create=False), 12)
        (partition,) = response.topics[0].partitions
        assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert partition.leader_epoch == 1
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [], [1])
        assert response.brokers == []
        assert response.controller_id == -1
