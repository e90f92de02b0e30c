"""Consumer groups as raw requests to a whole node: who may, what is asked first, settings, time, restarts.

What Apache Kafka answers field by field is in tests/parity; here is what cannot be recorded from a broker without
an authorizer, with other settings, or over a restart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.clock import Clock
from broker.security.authorizer import Operation, ResourceType
from tests.broker.handlers.test_group_apis import Client, a_node, connected, deny
from tests.broker.node_fixture import running_node
from tests.coordinator.group.consumer.consumer_world import beat, enter
from wire.errors import ErrorCode
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

BROKER, GROUP = 4, 32
UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION


async def set_config(client: Client, resource_type: int, name: str, **values: str) -> None:
    """IncrementalAlterConfigs; `_` stands for `.` in names."""
    configs = [AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()]
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
    answer = await client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer


async def described(client: Client, group_id: str = "g") -> DescribedGroup:
    answer = await client.call(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1)
    group: DescribedGroup = answer.groups[0]
    return group


# --- enabled or not ------------------------------------------------------------------------------------


async def test_without_the_protocol_both_requests_are_unsupported() -> None:
    async with a_node({"group.coordinator.rebalance.protocols": "classic"}, "t") as (node, client):
        denied = deny(node)
        assert (await client.call(enter("m", "t"), 1)).error_code == UNSUPPORTED
        answer = await client.call(ConsumerGroupDescribeRequest(group_ids=["g", "h"]), 1)
        assert [(each.group_id, each.error_code) for each in answer.groups] == [("g", UNSUPPORTED), ("h", UNSUPPORTED)]
        assert not denied.asked, "nothing else is looked at"


async def test_without_the_feature_both_requests_are_unsupported() -> None:
    async with a_node(None, "t") as (_, client):
        assert (await client.call(enter("m", "t"), 1)).error_code == ErrorCode.NONE
        update = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
        answer = await client.call(UpdateFeaturesRequest(feature_updates=[update]), 1)
        assert answer.error_code == ErrorCode.NONE, answer
        assert (await client.call(beat("m", 2), 1)).error_code == UNSUPPORTED
        assert (await described(client)).error_code == UNSUPPORTED


# --- who may -----------------------------------------------------------------------------------------------


async def test_members_need_read_on_the_group_then_describe_on_each_topic() -> None:
    async with a_node(None, "t", "u") as (node, client):
        wrong = enter("", "t", "u", rebalance_timeout_ms=-1)
        deny(node, (Operation.READ, ResourceType.GROUP, "g"), (Operation.DESCRIBE, ResourceType.TOPIC, "u"))
        assert (await client.call(wrong, 1)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        deny(node, (Operation.DESCRIBE, ResourceType.TOPIC, "u"))
        answer = await client.call(wrong, 1)
        assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert answer.error_message is None
        deny(node)
        assert (await client.call(wrong, 1)).error_code == ErrorCode.INVALID_REQUEST
        asked = deny(node).asked
        assert (await client.call(enter("m", "t"), 1)).error_code == ErrorCode.NONE
        assert asked == [(Operation.READ, ResourceType.GROUP, "g"), (Operation.DESCRIBE, ResourceType.TOPIC, "t")]


async def test_an_expression_finds_only_what_may_be_described() -> None:
    async with a_node(None, "t1", "t2") as (node, client):
        deny(node, (Operation.DESCRIBE, ResourceType.TOPIC, "t2"))
        await client.call(enter("m", subscribed_topic_regex="t."), 1)
        await resolved(client)
        target = (await client.call(beat("m", 1), 1)).assignment
        topics = node.server.node.metadata.image.topics
        assert [topics.by_id(each.topic_id).name for each in target.topic_partitions] == ["t1"]


async def resolved(client: Client) -> None:
    """The expression is resolved right after the answer: any other request lets the loop turn."""
    for _ in range(20):
        if (await described(client)).group_epoch == 2:
            return
    raise AssertionError("the expression is not resolved")


async def test_describing_needs_describe_on_the_group_and_on_all_its_topics() -> None:
    async with a_node(None, "t") as (node, client):
        await client.call(enter("m", "t"), 1)
        deny(node, (Operation.DESCRIBE, ResourceType.GROUP, "no"))
        request = ConsumerGroupDescribeRequest(group_ids=["g", "no"], include_authorized_operations=True)
        refused, shown = (await client.call(request, 1)).groups
        assert (refused.group_id, refused.error_code) == ("no", ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert (shown.group_id, shown.error_code, len(shown.members)) == ("g", ErrorCode.NONE, 1)
        assert shown.authorized_operations == sum(1 << operation for operation in (3, 6, 8, 10, 11))
        deny(node, (Operation.DESCRIBE, ResourceType.TOPIC, "t"))
        hidden = await described(client)
        assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
        assert hidden.error_message


# --- settings ----------------------------------------------------------------------------------------------


async def test_groups_have_their_own_settings_at_once() -> None:
    async with a_node(None, "t") as (_, client):
        assert (await client.call(enter("m", "t"), 1)).heartbeat_interval_ms == 5_000
        await set_config(client, GROUP, "g", consumer_heartbeat_interval_ms="9000")
        assert (await client.call(beat("m", 2), 1)).heartbeat_interval_ms == 9_000


async def test_the_brokers_interval_changes_while_it_runs() -> None:
    async with a_node({"group.consumer.assignment.interval.ms": "15000"}, "t") as (_, client):
        await client.call(enter("a", "t"), 1)
        await client.call(enter("b", "t"), 1)
        assert (await described(client)).group_state == "Assigning"
        await set_config(client, BROKER, "", group_consumer_assignment_interval_ms="0")
        await client.call(beat("a", 2), 1)
        assert (await described(client)).group_state == "Reconciling"


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"group.consumer.max.size": "1"}, ErrorCode.GROUP_MAX_SIZE_REACHED),
        ({"group.consumer.assignors": "range"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (
            {"group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor"},
            ErrorCode.UNSUPPORTED_ASSIGNOR,
        ),
    ],
)
async def test_settings_reach_the_group(settings: dict[str, str], refused: ErrorCode) -> None:
    async with a_node(settings, "t") as (_, client):
        assert (await client.call(enter("a", "t"), 1)).error_code == ErrorCode.NONE
        assert (await client.call(enter("b", "t", server_assignor="uniform"), 1)).error_code == refused


# --- time and restarts -----------------------------------------------------------------------------------------


async def test_a_silent_member_is_fenced_by_the_nodes_clock() -> None:
    clock = Clock()
    settings = {"offsets.topic.num.partitions": "3"}
    async with running_node(settings, clock=clock) as node, connected(node) as client:
        await client.call(FindCoordinatorRequest(key="g"), 0)
        await make_topic(client)
        await client.call(enter("m", "t"), 1)
        clock.move(44_000)
        assert (await described(client)).group_state == "Stable"
        clock.move(2_000)
        assert (await described(client)).group_state == "Empty"
        assert (await client.call(beat("m", 2), 1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def make_topic(client: Client) -> None:
    wanted = [CreatableTopic(name="t", num_partitions=2, replication_factor=1)]
    await client.call(CreateTopicsRequest(topics=wanted), 5)


async def test_members_go_on_after_a_restart(tmp_path: Path) -> None:
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path), "offsets.topic.num.partitions": "3"}
    async with running_node(settings) as node, connected(node) as client:
        await client.call(FindCoordinatorRequest(key="g"), 0)
        await make_topic(client)
        await client.call(enter("a", "t"), 1)
        await client.call(enter("s", subscribed_topic_regex="t", group_id="h", instance_id="i"), 1)
        before: Any = await described(client)
    async with running_node(settings) as node, connected(node) as client:
        assert await described(client) == before
        assert (await client.call(beat("a", 2), 1)).error_code == ErrorCode.NONE
        (member,) = (await described(client, "h")).members
        assert (member.instance_id, member.subscribed_topic_regex, member.member_type) == ("i", "t", 1)


async def test_an_answer_says_which_group_and_why() -> None:
    async with a_node(None, "t") as (_, client):
        answer = await client.call(beat("m", 7), 1)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert answer.error_message == "Consumer group g not found."
        await client.call(enter("m", "t"), 1)
        answer = await client.call(beat("m", 7), 1)
        assert "greater member epoch (7) than the one known by the group coordinator (2)" in answer.error_message
