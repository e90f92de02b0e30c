"""DescribeCluster, DescribeTopicPartitions, DescribeQuorum, ElectLeaders and the ACL requests over a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.broker.handlers.test_metadata import connected
from tests.broker.handlers.test_topics import creating, topic
from tests.broker.handlers.wire_client import codes
from wire.errors import ErrorCode
from wire.messages.create_acls import AclCreation, CreateAclsRequest
from wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from wire.messages.describe_acls import DescribeAclsRequest
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from wire.messages.unregister_broker import UnregisterBrokerRequest
from wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_cluster_of_one(version: int) -> None:
    async with connected() as (node, client):
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=True, include_fenced_brokers=version >= 2
        )
        response = await client.call(request, version)
        assert (response.error_code, response.controller_id) == (0, 1)
        assert response.cluster_id == node.server.node.cluster_id
        assert [(broker.broker_id, broker.port, broker.is_fenced) for broker in response.brokers] == [
            (1, node.port, False)
        ]
        assert response.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
async def test_i11_a_broker_has_no_endpoints_of_other_types(endpoint_type: int, code: ErrorCode) -> None:
    async with connected() as (_, client):
        response = await client.call(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
        assert ErrorCode(response.error_code) is code
        assert str(endpoint_type) in response.error_message


def page(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    at = None
    if cursor is not None:
        at = DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1])
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=at
    )


def shown(response: Any) -> list[tuple[str, list[int]]]:
    return [(one.name, [partition.partition_index for partition in one.partitions]) for one in response.topics]


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 100])
async def test_i10_pages_show_every_partition_once_and_in_order(limit: int) -> None:
    async with connected() as (_, client):
        await client.call(creating(topic("b", num_partitions=3), topic("a", num_partitions=2), topic("c")), 7)
        cursor, seen = None, []
        for _ in range(10):
            response = await client.call(page(limit=limit, cursor=cursor), 0)
            assert sum(len(one.partitions) for one in response.topics) <= max(limit, 1)
            seen += [(name, index) for name, indexes in shown(response) for index in indexes]
            if response.next_cursor is None:
                break
            cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
        assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


async def test_i10_named_topics_are_sorted_and_unknown_ones_told() -> None:
    async with connected() as (_, client):
        await client.call(creating(topic("b")), 7)
        response = await client.call(page("z", "b", "a d"), 0)
        assert [(one.name, ErrorCode(one.error_code)) for one in response.topics] == [
            ("a d", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("b", ErrorCode.NONE),
            ("z", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        (partition,) = response.topics[1].partitions
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


@pytest.mark.parametrize("cursor", [("a", -1), ("other", 0)])
async def test_i10_cursors_that_lead_nowhere(cursor: tuple[str, int]) -> None:
    async with connected() as (_, client):
        response = await client.call(page("a", cursor=cursor), 0)
        assert codes(response.topics) == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_quorum_of_one(version: int) -> None:
    async with connected() as (node, client):

        def asking(name: str, partition: int) -> DescribeQuorumRequest:
            asked = [DescribeQuorumRequestPartitionData(partition_index=partition)]
            return DescribeQuorumRequest(topics=[DescribeQuorumRequestTopicData(topic_name=name, partitions=asked)])

        response = await client.call(asking("__cluster_metadata", 0), version)
        (partition,) = response.topics[0].partitions
        (voter,) = partition.current_voters
        assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
        assert partition.high_watermark == voter.log_end_offset == node.server.node.quorum.log_end_offset
        assert (voter.last_fetch_timestamp > 0) == (version >= 1)
        assert [one.node_id for one in response.nodes] == ([1] if version >= 2 else [])
        for name, index in (("__cluster_metadata", 1), ("other", 0)):
            response = await client.call(asking(name, index), version)
            assert codes(response.topics[0].partitions) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
            assert response.nodes == []


async def test_i22_elections() -> None:
    async with connected() as (_, client):
        await client.call(creating(topic("a")), 7)
        named = [TopicPartitions(topic="a", partitions=[0, 7])]
        for election_type in (0, 1):
            request = ElectLeadersRequest(election_type=election_type, topic_partitions=named, timeout_ms=5_000)
            response = await client.call(request, 2)
            (result,) = response.replica_election_results
            assert response.error_code == 0
            assert codes(result.partition_result) == [
                ErrorCode.ELECTION_NOT_NEEDED,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ]
        everything = await client.call(ElectLeadersRequest(topic_partitions=None, timeout_ms=5_000), 2)
        assert [(one.topic, one.partition_result) for one in everything.replica_election_results] == [("a", [])]
        unknown = await client.call(ElectLeadersRequest(election_type=2, topic_partitions=named, timeout_ms=5_000), 2)
        assert ErrorCode(unknown.error_code) is ErrorCode.INVALID_REQUEST
        assert codes(unknown.replica_election_results[0].partition_result) == [ErrorCode.INVALID_REQUEST] * 2


async def test_i22_an_election_of_nothing_is_answered_whatever_its_type() -> None:
    async with connected() as (_, client):
        response = await client.call(ElectLeadersRequest(election_type=9, topic_partitions=[], timeout_ms=5_000), 2)
        assert (response.error_code, response.replica_election_results) == (0, [])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_i22_an_election_out_of_time_is_told_in_every_version(version: int) -> None:
    async with connected() as (_, client):
        await client.call(creating(topic("a")), 7)
        named = [TopicPartitions(topic="a", partitions=[0])]
        response = await client.call(ElectLeadersRequest(topic_partitions=named, timeout_ms=0), version)
        (result,) = response.replica_election_results
        assert codes(result.partition_result) == [ErrorCode.REQUEST_TIMED_OUT]
        assert response.error_code == (ErrorCode.REQUEST_TIMED_OUT if version else 0), "version 0 has none at the top"


ANY_ACL = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
RULE = {
    "resource_type": 2, "resource_name": "t", "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3,
}  # fmt: skip


async def test_a13_acls_are_disabled_without_an_authorizer() -> None:
    async with connected() as (_, client):
        described = await client.call(DescribeAclsRequest(**ANY_ACL), 3)
        assert (ErrorCode(described.error_code), described.resources) == (ErrorCode.SECURITY_DISABLED, [])
        assert "authorizer.class.name" in described.error_message
        created = await client.call(CreateAclsRequest(creations=[AclCreation(**RULE)] * 2), 3)
        assert codes(created.results) == [ErrorCode.SECURITY_DISABLED] * 2
        deleted = await client.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANY_ACL)]), 3)
        assert codes(deleted.filter_results) == [ErrorCode.SECURITY_DISABLED]


async def test_acl_codes_without_a_name_are_read_as_any_other() -> None:
    async with connected() as (_, client):
        for name in ANY_ACL:
            for code in (-1, 100):
                described = await client.call(DescribeAclsRequest(**{**ANY_ACL, name: code}), 3)
                assert ErrorCode(described.error_code) is ErrorCode.SECURITY_DISABLED
        created = await client.call(CreateAclsRequest(creations=[AclCreation(**{**RULE, "operation": 100})]), 3)
        assert codes(created.results) == [ErrorCode.SECURITY_DISABLED]
        deleted = await client.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**{**ANY_ACL, "operation": -3})]), 3)
        assert codes(deleted.filter_results) == [ErrorCode.SECURITY_DISABLED]


@pytest.mark.parametrize(
    "request_",
    [
        DescribeAclsRequest(),
        *(DescribeAclsRequest(**{**ANY_ACL, name: 0}) for name in ANY_ACL),
        CreateAclsRequest(creations=[AclCreation(**{**RULE, "resource_type": 0})]),
        CreateAclsRequest(creations=[AclCreation(**RULE), AclCreation(**{**RULE, "operation": 0})]),
        DeleteAclsRequest(filters=[DeleteAclsFilter(**{**ANY_ACL, "permission_type": 0})]),
    ],
)
async def test_acl_codes_that_are_unknown_close_the_connection(request_: Any) -> None:
    async with connected() as (_, client):
        with pytest.raises(asyncio.IncompleteReadError):
            await client.call(request_, 3)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_i25_features_are_updated_as_a_whole_or_not_at_all(version: int) -> None:
    async with connected() as (node, client):

        async def update(name: str, level: int) -> Any:
            update = FeatureUpdateKey(feature=name, max_version_level=level)
            if version == 0:
                update.allow_downgrade = True
            else:
                update.upgrade_type = 2
            request = UpdateFeaturesRequest(feature_updates=[update], timeout_ms=5_000)
            return await client.call(request, version)

        refused = await update("of.tomorrow", 1)
        assert ErrorCode(refused.error_code) is ErrorCode.INVALID_UPDATE_VERSION
        assert "of.tomorrow" in refused.error_message
        done = await update("eligible.leader.replicas.version", 0)
        assert (done.error_code, [result.error_code for result in done.results]) == (0, [0] if version <= 1 else [])
        assert node.server.node.metadata.image.features.level("eligible.leader.replicas.version") == 0


async def test_k21_an_unknown_broker_is_not_registered() -> None:
    async with connected() as (_, client):
        response = await client.call(UnregisterBrokerRequest(broker_id=9), 0)
        assert ErrorCode(response.error_code) is ErrorCode.BROKER_ID_NOT_REGISTERED
        assert "9" in response.error_message
