"""OffsetFetch (key 9): how far groups have got.

Versions 1-10; flexible from 6. v2 all topics by a null list, and an error at the top; v5 leader
epoch; v7 require_stable (KIP-447); v8 several groups (KIP-709); v9 members of consumer groups; v10
topic ids instead of names (KIP-848).

Behaviour: what was never committed is offset -1 without an error, also for unknown groups.
Topics that may not be described are an error of their partitions, or left out where all were asked
for. `require_stable` waits for what is not replicated yet. `coordinator.group.offset_fetch` decides.

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.group_context import group_context, require_group, require_topic
from broker.security.authorizer import Operation, ResourceType
from coordinator.group.requests import FetchStableOffsets
from wire.errors import ErrorCode, KafkaError
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

GROUPS_FROM = 8
TOPIC_IDS_FROM = 10


async def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """Answer each group for itself; below v8 there is one, spread over the response's own fields."""
    if context.api_version >= GROUPS_FROM:
        groups = []
        for group in request.groups:
            try:
                groups.append(await _fetch(group, context, require_stable=request.require_stable))
            except KafkaError as error:
                groups.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code))
        return OffsetFetchResponse(groups=groups)
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    found = await _fetch(group, context, require_stable=request.require_stable)
    return OffsetFetchResponse(topics=[_flattened(topic) for topic in found.topics])


def _flattened(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    partitions = [
        OffsetFetchResponsePartition(
            partition_index=partition.partition_index,
            committed_offset=partition.committed_offset,
            committed_leader_epoch=partition.committed_leader_epoch,
            metadata=partition.metadata,
            error_code=partition.error_code,
        )
        for partition in topic.partitions
    ]
    return OffsetFetchResponseTopic(name=topic.name, partitions=partitions)


async def _fetch(
    group: OffsetFetchRequestGroup, context: RequestContext, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Offsets of one group. Raises KafkaError for an error of the group as a whole."""
    require_group(Operation.DESCRIBE, group.group_id, context)
    refused: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        wanted, refused = _sort_out(group.topics, context)
        group = OffsetFetchRequestGroup(
            group_id=group.group_id,
            member_id=group.member_id,
            member_epoch=group.member_epoch,
            topics=wanted,
        )
    coordinator = context.node.groups
    response: OffsetFetchResponseGroup
    if require_stable:
        request = FetchStableOffsets(group)
        try:
            response = await coordinator.write(group.group_id, request, group_context(context))
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                # What is stored is not replicated in time: of all APIs only this one says it so.
                raise KafkaError(ErrorCode.NOT_COORDINATOR, error.message) from error
            raise
    else:
        response = coordinator.read(group.group_id, lambda shard: shard.fetch_offsets(group))
    if group.topics is None:
        response.topics = _describable(response.topics, context)
    # Refused topics stand behind the others, as in Kafka.
    response.topics.extend(refused)
    return response


def _sort_out(
    topics: list[OffsetFetchRequestTopics], context: RequestContext
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """Topics to fetch, with names filled in, and the answers to those that may not be fetched."""
    wanted, refused = [], []
    by_id = context.api_version >= TOPIC_IDS_FROM
    for topic in topics:
        try:
            if by_id:
                found = context.node.metadata.image.topics.by_id(topic.topic_id)
                if found is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                topic.name = found.name
            require_topic(Operation.DESCRIBE, topic.name, context)
        except KafkaError as error:
            refused.append(_refusal(topic, error.code))
        else:
            wanted.append(topic)
    return wanted, refused


def _refusal(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=code
        )
        for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _describable(topics: list[OffsetFetchResponseTopics], context: RequestContext) -> list[OffsetFetchResponseTopics]:
    """Of all topics of a group, those that may be seen; v10 can name only those that still exist."""
    described = []
    for topic in topics:
        if not context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            continue
        found = context.node.metadata.image.topics.by_name(topic.name)
        topic.topic_id = ZERO_UUID if found is None else found.topic_id
        if found is not None or context.api_version < TOPIC_IDS_FROM:
            described.append(topic)
    return described
