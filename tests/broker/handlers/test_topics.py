"""CreateTopics, DeleteTopics, CreatePartitions over a socket: what the handlers add to the controller."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kafka import KafkaProducer  # type: ignore[import-untyped]

from tests.broker.handlers.test_metadata import asking, connected
from tests.broker.handlers.wire_client import WireClient, codes
from wire.errors import ErrorCode
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.primitives import ZERO_UUID

UNKNOWN_ID = b"\x07" * 16


def creating(*topics: CreatableTopic, timeout_ms: int = 5_000, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def topic(name: str, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name=name, **{"num_partitions": 1, "replication_factor": 1, **fields})


def config(name: str, value: str | None) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name=name, value=value)]


async def exists(client: WireClient, name: str) -> bool:
    response = await client.call(asking(name, may_create=False), 12)
    return codes(response.topics) == [ErrorCode.NONE]


async def test_a07_defaults_are_answered_with_real_numbers_and_effective_settings() -> None:
    async with connected(num_partitions="4") as (_, client):
        wanted = topic("t", num_partitions=-1, replication_factor=-1, configs=config("retention.ms", "1234"))
        (result,) = (await client.call(creating(wanted), 7)).topics
        assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 4, 1)
        assert result.topic_id != ZERO_UUID
        settings = {setting.name: (setting.value, setting.config_source) for setting in result.configs}
        assert settings["retention.ms"] == ("1234", 1)
        assert settings["cleanup.policy"] == ("delete", 5)
        assert [setting.name for setting in result.configs] == sorted(settings)
        seen = (await client.call(asking("t"), 12)).topics[0]
        assert (seen.topic_id, len(seen.partitions)) == (result.topic_id, 4)


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_creates_and_the_topic_is_usable_at_once(version: int) -> None:
    async with connected() as (_, client):
        response = await client.call(creating(topic("t", num_partitions=-1)), version)
        assert codes(response.topics) == [ErrorCode.NONE]
        (partition,) = (await client.call(asking("t", may_create=False), 12)).topics[0].partitions
        assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 1)


async def test_a08_validate_only_has_the_codes_of_the_real_call_and_no_topic() -> None:
    async with connected() as (_, client):
        for wanted, code in (
            (topic("t"), ErrorCode.NONE),
            (topic("t", num_partitions=0), ErrorCode.INVALID_PARTITIONS),
        ):
            response = await client.call(creating(wanted, validate_only=True), 7)
            assert codes(response.topics) == [code]
            assert not await exists(client, "t")


async def test_a09_seven_wrong_requests() -> None:
    gap = [CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in (0, 2)]
    async with connected() as (_, client):
        await client.call(creating(topic("there")), 7)
        for wanted, code in (
            ([topic("there", replication_factor=99)], ErrorCode.TOPIC_ALREADY_EXISTS),
            ([topic("t", num_partitions=0)], ErrorCode.INVALID_PARTITIONS),
            ([topic("t", replication_factor=2)], ErrorCode.INVALID_REPLICATION_FACTOR),
            (
                [topic("t", num_partitions=-1, replication_factor=-1, assignments=gap)],
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ),
            ([topic("t", configs=config("retention.ms", None))], ErrorCode.INVALID_CONFIG),
            ([topic("t", configs=config("no.such.key", "1"))], ErrorCode.INVALID_CONFIG),
            ([topic("t"), topic("t")], ErrorCode.INVALID_REQUEST),
        ):
            (result,) = (await client.call(creating(*wanted), 7)).topics
            assert ErrorCode(result.error_code) is code
            assert result.error_message
            assert not await exists(client, "t")


async def test_a_doubled_name_does_not_hold_up_the_others_and_the_metadata_topic_is_refused() -> None:
    async with connected() as (_, client):
        request = creating(topic("a"), topic("twice"), topic("twice"), topic("__cluster_metadata"))
        results = {result.name: result.error_code for result in (await client.call(request, 7)).topics}
        assert results == {"a": 0, "twice": ErrorCode.INVALID_REQUEST, "__cluster_metadata": ErrorCode.INVALID_REQUEST}


async def test_i16_no_time_means_nothing_is_done() -> None:
    async with connected() as (_, client):
        response = await client.call(creating(topic("a"), topic("bad name"), timeout_ms=0), 7)
        assert codes(response.topics) == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert not await exists(client, "a")


async def test_a11_growing_a_topic_numbers_the_new_partitions_and_they_take_records_at_once() -> None:
    async with connected() as (node, client):

        async def grow(name: str, count: int, *, validate_only: bool = False) -> ErrorCode:
            wanted = [CreatePartitionsTopic(name=name, count=count, assignments=None)]
            request = CreatePartitionsRequest(topics=wanted, timeout_ms=5_000, validate_only=validate_only)
            (result,) = (await client.call(request, 3)).results
            assert bool(result.error_message) == (result.error_code != 0)
            return ErrorCode(result.error_code)

        await client.call(creating(topic("t", num_partitions=2)), 7)
        assert await grow("t", 5, validate_only=True) is ErrorCode.NONE
        assert len((await client.call(asking("t"), 12)).topics[0].partitions) == 2
        assert await grow("t", 5) is ErrorCode.NONE
        offset = await asyncio.to_thread(send, node.bootstrap_servers, "t", 4)
        assert offset == 0
        assert await grow("t", 5) is ErrorCode.INVALID_PARTITIONS
        assert await grow("t", 3) is ErrorCode.INVALID_PARTITIONS
        assert await grow("u", 3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partitions = (await client.call(asking("t"), 12)).topics[0].partitions
        assert [(one.partition_index, one.leader_id) for one in partitions] == [(index, 1) for index in range(5)]


def send(bootstrap_servers: str, name: str, partition: int | None) -> int:
    """One record by kafka-python, without retries; its offset."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, retries=0, acks="all", max_block_ms=5_000)
    try:
        offset: int = producer.send(name, b"v", partition=partition).get(timeout=10).offset
        return offset
    finally:
        producer.close(timeout=5)


async def test_u03_the_first_send_to_a_new_topic_succeeds_without_retries() -> None:
    async with connected() as (node, _):
        assert await asyncio.to_thread(send, node.bootstrap_servers, "brand-new", None) == 0


def named(name: str | None = None, topic_id: bytes = ZERO_UUID) -> DeleteTopicState:
    return DeleteTopicState(name=name, topic_id=topic_id)


def deleting(*topics: DeleteTopicState, timeout_ms: int = 5_000) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=list(topics), timeout_ms=timeout_ms)


async def test_i18_topics_are_deleted_by_name_and_by_id_and_their_names_are_free() -> None:
    async with connected() as (_, client):
        ids = {
            result.name: result.topic_id for result in (await client.call(creating(topic("a"), topic("b")), 7)).topics
        }
        results = (await client.call(deleting(named("a"), named(topic_id=ids["b"])), 6)).responses
        assert [(result.name, result.topic_id, result.error_code) for result in results] == [
            ("a", ids["a"], 0),
            ("b", ids["b"], 0),
        ]
        assert not await exists(client, "a")
        again = (await client.call(creating(topic("a")), 7)).topics[0]
        assert (again.error_code, again.topic_id != ids["a"]) == (0, True)


async def test_i18_ambiguous_and_unknown_topics() -> None:
    async with connected() as (_, client):
        created = (await client.call(creating(topic("a")), 7)).topics[0]
        request = deleting(
            named("nope"), named(topic_id=UNKNOWN_ID), named(), named("q", b"\x08" * 16), named("d"), named("d")
        )
        results = (await client.call(request, 6)).responses
        assert {(result.name, result.topic_id): ErrorCode(result.error_code) for result in results} == {
            ("nope", ZERO_UUID): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (None, UNKNOWN_ID): ErrorCode.UNKNOWN_TOPIC_ID,
            (None, ZERO_UUID): ErrorCode.INVALID_REQUEST,
            ("q", b"\x08" * 16): ErrorCode.INVALID_REQUEST,
            ("d", ZERO_UUID): ErrorCode.INVALID_REQUEST,
        }
        assert all(result.error_message for result in results)
        (both,) = (await client.call(deleting(named("a"), named(topic_id=created.topic_id)), 6)).responses
        assert (both.name, both.topic_id, both.error_code) == ("a", created.topic_id, ErrorCode.INVALID_REQUEST)
        assert await exists(client, "a")


async def test_older_versions_delete_by_name() -> None:
    async with connected() as (_, client):
        await client.call(creating(topic("a"), topic("b")), 7)
        for version, name in ((1, "a"), (5, "b")):
            request = DeleteTopicsRequest(topic_names=[name, "nope"], timeout_ms=5_000)
            results = (await client.call(request, version)).responses
            assert {result.name: result.error_code for result in results} == {
                name: 0,
                "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED), (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)
async def test_i18_deletion_can_be_switched_off(version: int, code: ErrorCode) -> None:
    async with connected(delete_topic_enable="false") as (_, client):
        await client.call(creating(topic("a")), 7)
        request = deleting(named("a")) if version >= 6 else DeleteTopicsRequest(topic_names=["a"], timeout_ms=5_000)
        assert codes((await client.call(request, version)).responses) == [code]
        assert await exists(client, "a")
