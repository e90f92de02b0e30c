"""Group APIs as raw requests to a whole node: who may, what is asked first, what is answered how.

What Apache Kafka answers field by field is in tests/parity; here is what cannot be recorded from a
broker without an authorizer, at start-up, or while something loads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.security.authorizer import AllowAllAuthorizer, Operation, ResourceType
from tests.broker.node_fixture import RunningNode, running_node
from tests.broker.raw_client import RawClient
from tests.coordinator.group.shard_world import heartbeat, join, leave, sync
from wire.errors import ErrorCode, KafkaError
from wire.frames import decode_response, encode_request
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

NOT_ALLOWED = ErrorCode.GROUP_AUTHORIZATION_FAILED


class DenyingAuthorizer(AllowAllAuthorizer):
    """Allows all but what is in `denied`; remembers what it was asked."""

    def __init__(self, *denied: tuple[Operation, ResourceType, str]) -> None:
        self.denied = set(denied)
        self.asked: list[tuple[Operation, ResourceType, str]] = []

    def authorize(
        self, principal: Any, client_host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        self.asked.append((operation, resource_type, resource_name))
        return (operation, resource_type, resource_name) not in self.denied


class Client:
    """Sends messages, reads messages."""

    def __init__(self, raw: RawClient) -> None:
        self.raw = raw

    def send(self, request: Any, version: int) -> tuple[int, int]:
        self.raw.send(b"".join(encode_request(request, version, 1, "raw")))
        return request.API_KEY, version

    async def receive(self, sent: tuple[int, int]) -> Any:
        return decode_response(await self.raw.answer(), *sent)[1]

    async def call(self, request: Any, version: int) -> Any:
        return await self.receive(self.send(request, version))


@asynccontextmanager
async def connected(node: RunningNode) -> AsyncIterator[Client]:
    raw = await RawClient.connect(node.port)
    try:
        yield Client(raw)
    finally:
        await raw.close()


@asynccontextmanager
async def a_node(settings: dict[str, str] | None = None, *topics: str) -> AsyncIterator[tuple[RunningNode, Client]]:
    """A node whose offsets topic exists, and a client."""
    async with (
        running_node({"offsets.topic.num.partitions": "3", **(settings or {})}) as node,
        connected(node) as client,
    ):
        await client.call(FindCoordinatorRequest(key="g"), 0)
        wanted = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in topics]
        if wanted:
            await client.call(CreateTopicsRequest(topics=wanted), 5)
        yield node, client


def deny(node: RunningNode, *denied: tuple[Operation, ResourceType, str]) -> DenyingAuthorizer:
    authorizer = DenyingAuthorizer(*denied)
    node.server.node.authorizer = authorizer
    return authorizer


def commit(*topics: tuple[str, int], group_id: str = "g", offset: int = 1) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
                ],
            )
            for name, index in topics
        ],
    )


def codes(response: Any) -> list[tuple[str, int, int]]:
    return [
        (topic.name, partition.partition_index, partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ]


# --- FindCoordinator --------------------------------------------------------------------------


async def test_u04_the_first_find_coordinator_waits_for_its_topic() -> None:
    async with running_node({"min.insync.replicas": "2"}) as node, connected(node) as client:
        response = await client.call(FindCoordinatorRequest(key="g"), 0)
        assert (response.error_code, response.node_id, response.port) == (ErrorCode.NONE, 1, node.port)
        assert (await client.call(join("g"), 3)).error_code == ErrorCode.NONE, "one replica is enough on one node"
        topic = node.server.node.metadata.image.topics.by_name("__consumer_offsets")
        assert topic is not None
        assert len(topic.partitions) == 50


async def test_many_who_ask_at_once_create_the_topic_once() -> None:
    async with running_node() as node:
        async with connected(node) as one, connected(node) as other, connected(node) as third:
            sent = [
                (each, each.send(FindCoordinatorRequest(coordinator_keys=["g"]), 4)) for each in (one, other, third)
            ]
            answers = [await each.receive(what) for each, what in sent]
        assert [answer.coordinators[0].error_code for answer in answers] == [ErrorCode.NONE] * 3


async def test_transactional_ids_have_a_coordinator_too() -> None:
    async with running_node() as node, connected(node) as client:
        response = await client.call(FindCoordinatorRequest(coordinator_keys=["x"], key_type=1), 4)
        assert response.coordinators[0].error_code == ErrorCode.NONE
        assert node.server.node.metadata.image.topics.by_name("__transaction_state") is not None


@pytest.mark.parametrize("version", [1, 3, 6])
async def test_find_coordinator_asks_to_describe_before_anything_is_created(version: int) -> None:
    async with running_node() as node, connected(node) as client:
        deny(
            node,
            (Operation.DESCRIBE, ResourceType.GROUP, "g"),
            (Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "g"),
        )
        for key_type, code in ((0, NOT_ALLOWED), (1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)):
            keys: dict[str, Any] = {"key": "g"} if version < 4 else {"coordinator_keys": ["g"]}
            response = await client.call(FindCoordinatorRequest(key_type=key_type, **keys), version)
            found = response if version < 4 else response.coordinators[0]
            assert (found.error_code, found.node_id, found.host, found.port) == (code, -1, "", -1)
        assert len(node.server.node.metadata.image.topics) == 0


# --- authorisation ----------------------------------------------------------------------------


@pytest.mark.parametrize("group_id", ["g", ""])
async def test_members_need_read_on_the_group_before_all_else(group_id: str) -> None:
    async with a_node() as (node, client):
        deny(node, (Operation.READ, ResourceType.GROUP, group_id))
        joined = await client.call(join(group_id, "m", session_timeout_ms=1), 9)
        assert (joined.error_code, joined.member_id, joined.generation_id) == (NOT_ALLOWED, "", -1)
        assert (await client.call(heartbeat(group_id, "m", 1), 4)).error_code == NOT_ALLOWED
        assert (await client.call(leave(group_id, "m"), 5)).error_code == NOT_ALLOWED
        named = sync(group_id, "m", 1, protocol_type="consumer", protocol_name="range")
        assert (await client.call(named, 5)).error_code == NOT_ALLOWED
        unnamed = await client.call(sync(group_id, "m", 1), 5)
        assert unnamed.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "asked before authorisation"


async def test_commits_need_read_on_group_and_topics() -> None:
    async with a_node(None, "a", "b") as (node, client):
        deny(node, (Operation.READ, ResourceType.TOPIC, "b"), (Operation.READ, ResourceType.TOPIC, "no"))
        response = await client.call(commit(("a", 0), ("b", 0), ("no", 0), ("b", 9)), 9)
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert codes(response) == [("b", 0, denied), ("b", 9, denied), ("no", 0, denied), ("a", 0, 0)]
        deny(node, (Operation.READ, ResourceType.GROUP, "g"))
        assert codes(await client.call(commit(("a", 0), ("no", 0)), 9)) == [
            ("a", 0, NOT_ALLOWED),
            ("no", 0, NOT_ALLOWED),
        ]


@pytest.mark.parametrize("version", [1, 2, 7, 8, 9])
async def test_fetches_need_describe_on_group_and_topics(version: int) -> None:
    async with a_node(None, "a", "b") as (node, client):
        await client.call(commit(("a", 0), ("b", 0)), 9)

        async def fetched(names: list[str] | None) -> tuple[int, list[tuple[str, int, int]]]:
            if version >= 8:
                topics = (
                    None
                    if names is None
                    else [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names]
                )
                group = OffsetFetchRequestGroup(group_id="g", topics=topics)
                response = await client.call(OffsetFetchRequest(groups=[group]), version)
                found = response.groups[0]
            else:
                older = (
                    None
                    if names is None
                    else [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in names]
                )
                found = await client.call(OffsetFetchRequest(group_id="g", topics=older), version)
            return found.error_code, codes(found)

        deny(node, (Operation.DESCRIBE, ResourceType.TOPIC, "b"))
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert await fetched(["b", "a"]) == (0, [("a", 0, 0), ("b", 0, denied)])
        if version >= 2:
            assert await fetched(None) == (0, [("a", 0, 0)]), "left out without a word"
        deny(node, (Operation.DESCRIBE, ResourceType.GROUP, "g"))
        expected = (NOT_ALLOWED, []) if version >= 2 else (0, [("a", 0, NOT_ALLOWED)])
        assert await fetched(["a"]) == expected


async def test_deletions_need_delete_on_the_group() -> None:
    async with a_node(None, "a", "b") as (node, client):
        await client.call(commit(("a", 0), ("b", 0)), 9)
        await client.call(commit(("a", 0), group_id="h"), 9)
        deny(node, (Operation.DELETE, ResourceType.GROUP, "g"), (Operation.READ, ResourceType.TOPIC, "b"))
        deleted = await client.call(DeleteGroupsRequest(groups_names=["g", "h"]), 2)
        assert [(each.group_id, each.error_code) for each in deleted.results] == [("g", NOT_ALLOWED), ("h", 0)]

        def forget(group_id: str) -> OffsetDeleteRequest:
            return OffsetDeleteRequest(
                group_id=group_id,
                topics=[
                    OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
                    for name in ("b", "no", "a")
                ],
            )

        refused = await client.call(forget("g"), 0)
        assert (refused.error_code, refused.topics) == (NOT_ALLOWED, [])
        await client.call(commit(("a", 0), group_id="i"), 9)
        assert codes(await client.call(forget("i"), 0)) == [
            ("b", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            ("no", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("a", 0, ErrorCode.NONE),
        ]


async def test_what_may_not_be_described_is_not_listed() -> None:
    async with a_node(None, "a") as (node, client):
        for group_id in ("g", "h"):
            await client.call(commit(("a", 0), group_id=group_id), 9)

        async def listed() -> list[str]:
            return sorted(group.group_id for group in (await client.call(ListGroupsRequest(), 5)).groups)

        cluster = (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")
        hidden = (Operation.DESCRIBE, ResourceType.GROUP, "h")
        deny(node, hidden)
        assert await listed() == ["g", "h"], "who may describe the cluster sees all"
        deny(node, hidden, cluster)
        assert await listed() == ["g"]
        described = await client.call(DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True), 6)
        assert [(each.group_id, each.error_code) for each in described.groups] == [("g", 0), ("h", NOT_ALLOWED)]
        assert [each.authorized_operations for each in described.groups] == [3400, -(2**31)]


# --- shapes by version ------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "name"), [(0, ""), (6, ""), (7, None), (9, None)])
async def test_a_refused_join_has_a_null_protocol_name_only_from_v7(version: int, name: str | None) -> None:
    async with a_node() as (_, client):
        assert (await client.call(join("", "m"), version)).protocol_name == name


async def test_g10_errors_of_partitions_stand_before_what_was_committed() -> None:
    async with a_node(None, "t") as (_, client):
        response = await client.call(commit(("t", 0), ("t", 99), ("nosuch", 0)), 9)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes(response) == [("t", 99, unknown), ("t", 0, 0), ("nosuch", 0, unknown)]
        everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        assert codes((await client.call(everything, 8)).groups[0]) == [("t", 0, 0)]


# --- life of a node ---------------------------------------------------------------------------


async def test_deleted_topics_lose_their_offsets() -> None:
    async with a_node(None, "t", "u") as (node, client):
        await client.call(commit(("t", 0), ("u", 0)), 9)
        await client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=30_000), 6)
        await asyncio.gather(*node.server.node.groups._cleaning)
        everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        assert codes((await client.call(everything, 8)).groups[0]) == [("u", 0, 0)]


async def test_a_waiting_join_is_answered_when_the_node_stops() -> None:
    async with a_node() as (node, client), connected(node) as other:
        assert (await client.call(join("g"), 3)).error_code == ErrorCode.NONE
        sent = other.send(join("g"), 3)
        described = DescribeGroupsRequest(groups=["g"])
        while (await client.call(described, 6)).groups[0].group_state != "PreparingRebalance":
            pass
        node.server.node.groups.close()
        assert (await other.receive(sent)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await client.call(ListGroupsRequest(), 5)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_heartbeat_is_good_while_the_coordinator_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_node() as (node, client):

        async def loading(*_: object, **__: object) -> None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

        monkeypatch.setattr(node.server.node.groups, "write", loading)
        assert (await client.call(heartbeat("g", "m", 1), 4)).error_code == ErrorCode.NONE
        in_progress = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await client.call(join("g"), 9)).error_code == in_progress
        named = sync("g", "m", 1, protocol_type="consumer", protocol_name="range")
        assert (await client.call(named, 5)).error_code == in_progress
        assert (await client.call(leave("g", "m"), 5)).error_code == in_progress


async def test_s06_groups_and_offsets_survive_a_restart(tmp_path: Path) -> None:
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path), "offsets.topic.num.partitions": "3"}
    async with running_node(settings) as node, connected(node) as client:
        await client.call(FindCoordinatorRequest(key="g"), 0)
        await client.call(
            CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=1)]), 5
        )
        for number in range(20):
            await client.call(commit(("t", 0), group_id=f"g{number}", offset=number), 9)
        member = (await client.call(join("live"), 3)).member_id
        named = sync("live", member, 1, {member: b"mine"}, protocol_type="consumer", protocol_name="range")
        await client.call(named, 5)
    async with running_node(settings) as node, connected(node) as client:
        listed = await client.call(ListGroupsRequest(), 5)
        assert len(listed.groups) == 21
        for number in range(20):
            group = OffsetFetchRequestGroup(group_id=f"g{number}", topics=None)
            found = (await client.call(OffsetFetchRequest(groups=[group]), 8)).groups[0]
            assert found.topics[0].partitions[0].committed_offset == number
        assert (await client.call(heartbeat("live", member, 1), 4)).error_code == ErrorCode.NONE
