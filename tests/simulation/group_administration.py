"""What administrators do to groups and their topics while members are at work."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.simulation.group_clients import AGAIN, STABLE_TOPICS, GroupWorld, check_committed
from tests.simulation.offset_history import NONE
from tests.simulation.transport import Client
from wire.errors import ErrorCode
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic

PASSING_TOPICS = ("x0", "x1")
"""Created and deleted again and again."""
GROUP_RESOURCE = 32
SET = 0
PARTITIONS_MAX = 8
TIMEOUT_MS = 30_000


async def administrate(world: GroupWorld, groups: tuple[str, ...]) -> None:
    """One thing after the other, until all is calm."""
    client = world.transport.client()
    while not world.is_calm:
        await asyncio.sleep(world.random.choice([1, 2, 4]))
        await world.back_off()
        group = world.random.choice(groups)
        action = world.random.choice(
            ["topic", "topic", "partitions", "timeouts", "dismiss", "delete group", "delete offset", "read"]
        )
        world.note(f"administrator: {action}, {group}")
        if action == "topic":
            await _change_topic(world, client)
        elif action == "partitions":
            await _add_partition(world, client)
        elif action == "timeouts":
            await _change_timeouts(world, client, group)
        elif action == "dismiss":
            await _dismiss(world, client, group)
        elif action == "delete group":
            await _delete_group(world, client, group)
        elif action == "delete offset":
            await _delete_offset(world, client, group)
        else:
            for partition in world.history.offsets.of_group(group):
                await check_committed(world, client, group, partition)


# --- topics -------------------------------------------------------------------------------------


async def create_topic(world: GroupWorld, client: Client, topic: str, partitions: int) -> None:
    """Create a topic, and let everybody know."""
    creatable = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    await world.ask(client, CreateTopicsRequest(topics=[creatable], timeout_ms=TIMEOUT_MS), 7)
    await world.refresh(client)


async def _change_topic(world: GroupWorld, client: Client) -> None:
    topic = world.random.choice(PASSING_TOPICS)
    if topic not in world.topics:
        await create_topic(world, client, topic, world.random.choice([1, 3]))
        return
    world.history.reborn.add(topic)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=TIMEOUT_MS)
    await world.ask(client, request, 6)
    await world.refresh(client)


async def _add_partition(world: GroupWorld, client: Client) -> None:
    topic = world.random.choice(sorted(world.topics))
    count = world.topics[topic][1] + 1
    if count <= PARTITIONS_MAX:
        added = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        await world.ask(client, CreatePartitionsRequest(topics=[added], timeout_ms=TIMEOUT_MS), 3)
        await world.refresh(client)


# --- groups -------------------------------------------------------------------------------------


async def _change_timeouts(world: GroupWorld, client: Client, group: str) -> None:
    """Another session timeout for a consumer group, from some moment on."""
    session_ms = world.random.choice([6_000, 8_000, 12_000])
    changes = world.history.session_changes.setdefault(group, [])
    before_ms = changes[-1][1] if changes else world.history.default_session_ms
    config = AlterableConfig(name="consumer.session.timeout.ms", config_operation=SET, value=str(session_ms))
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=[config])
    changes.append((world.now_ms, session_ms))
    answer = await world.ask(client, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    if answer is None or answer.responses[0].error_code:
        # It may hold or not: another attempt decides, and until then the one before may hold as well.
        changes.append((world.now_ms, before_ms))
        await _settle_timeouts(world, client, resource)
        changes.append((world.now_ms, session_ms))


async def _settle_timeouts(world: GroupWorld, client: Client, resource: AlterConfigsResource) -> None:
    while True:
        await world.back_off()
        answer = await world.ask(client, IncrementalAlterConfigsRequest(resources=[resource]), 1)
        if answer is not None and not answer.responses[0].error_code:
            return


async def _dismiss(world: GroupWorld, client: Client, group: str) -> None:
    """An administrator sends a static member away by its instance id alone."""
    instances = sorted({each.instance_id for each in world.history.live(group) if each.instance_id is not None})
    if not instances:
        return
    instance_id = world.random.choice(instances)
    world.history.challenge(group, instance_id)
    identity = MemberIdentity(member_id="", group_instance_id=instance_id)
    world.history.dismissals.add((group, instance_id))
    answer = await world.ask(client, LeaveGroupRequest(group_id=group, members=[identity]), 5)
    world.history.dismissals.discard((group, instance_id))
    if answer is not None and not answer.error_code:
        code = ErrorCode(answer.members[0].error_code)
        assert code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID), f"LeaveGroup by an administrator gets {code.name}"


async def _delete_group(world: GroupWorld, client: Client, group: str) -> None:
    offsets = world.history.offsets
    certain = world.history.surely_in(group, world.now_ms)
    writes = {each: offsets.writing(group, each, NONE, world.now_ms) for each in offsets.of_group(group)}
    answer = await world.ask(client, DeleteGroupsRequest(groups_names=[group]), 2)
    code = None if answer is None else ErrorCode(answer.results[0].error_code)
    _finish(world, group, writes, code)
    still = [each for each in certain if world.history.is_surely_in(each, world.now_ms)]
    expected = code is None or code in AGAIN or code is ErrorCode.NON_EMPTY_GROUP
    assert not still or expected, f"DeleteGroups of {group} gets {code and code.name} when {still[0]} is in"
    assert expected or code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND), f"DeleteGroups gets {code}"


async def _delete_offset(world: GroupWorld, client: Client, group: str) -> None:
    offsets = world.history.offsets
    certain = world.history.surely_in(group, world.now_ms)
    topic = world.random.choice(STABLE_TOPICS)
    partition = (topic, world.random.randrange(world.topics[topic][1]))
    writes: dict[Any, Any] = {partition: offsets.writing(group, partition, NONE, world.now_ms)}
    asked = OffsetDeleteRequestTopic(
        name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition[1])]
    )
    answer = await world.ask(client, OffsetDeleteRequest(group_id=group, topics=[asked]), 0)
    code = None
    if answer is not None:
        code = ErrorCode(answer.error_code or answer.topics[0].partitions[0].error_code)
    _finish(world, group, writes, code)
    users = [each for each in certain if topic in each.topics and each.is_written]
    still = [each for each in users if world.history.is_surely_in(each, world.now_ms)]
    refused = code is None or code in AGAIN or code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert not still or refused, (
        f"OffsetsKept: OffsetDelete of {topic} in {group} gets {code and code.name}, {still[0]} uses it"
    )
    assert refused or code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND), f"OffsetDelete gets {code}"


def _finish(world: GroupWorld, group: str, writes: dict[Any, Any], code: ErrorCode | None) -> None:
    """Note what came of deletions."""
    for partition, write in writes.items():
        if code is None or code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            world.history.offsets.lost(write, world.now_ms)
        elif code is ErrorCode.NONE:
            world.history.offsets.done(group, partition, write, world.now_ms)
        else:
            world.history.offsets.refused(group, partition, write)
