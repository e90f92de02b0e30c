"""ListOffsets (key 2): offsets by timestamp, and the special ones: latest, earliest, largest timestamp.

Versions 1-11.

Behaviour: a timestamp t >= 0 finds the first record, in offset order, with a timestamp of at least t, looked up inside
its batch; nothing found is offset -1 and timestamp -1 without an error. Clients see up to the high watermark, with
read_committed up to the last stable offset. A special timestamp that the version does not know is
UNSUPPORTED_VERSION for its partition; a partition named twice is INVALID_REQUEST.

v2   isolation_level (KIP-98)
v4   current_leader_epoch, leader_epoch (KIP-320)
v5   OFFSET_NOT_AVAILABLE from a new leader; before: LEADER_NOT_AVAILABLE (KIP-207)
v6   flexible
v7   -3 largest timestamp (KIP-734)
v8   -4 earliest local (KIP-405)
v9   -5 latest tiered (KIP-1005)
v10  timeout_ms: for remote lookups only (KIP-1075)
v11  -6 earliest pending upload (KIP-1023)

Left out: tiered storage, so -4 is -2, and -5 and -6 find nothing. Quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker.replication.offset_lookup import SPECIAL_MIN_VERSIONS, FoundOffset, find_offset
from broker.replication.partition import CONSUMER_REPLICA_ID
from broker.replication.waits import FetchIsolation
from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

DEBUGGING_REPLICA_ID = -2
"""May ask any replica, and sees all that it has."""
LEADER_EPOCH_FROM_VERSION = 4
OFFSET_NOT_AVAILABLE_FROM_VERSION = 5
_ISOLATION_OF_LEVEL = {0: FetchIsolation.HIGH_WATERMARK, 1: FetchIsolation.TXN_COMMITTED}


async def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    """Answer every partition, each with its own error."""
    isolation = _ISOLATION_OF_LEVEL.get(request.isolation_level)
    if isolation is None:  # Refused even where it would not be looked at, as for a follower.
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {request.isolation_level} is neither 0 nor 1"
        )
    if request.replica_id != CONSUMER_REPLICA_ID:
        isolation = FetchIsolation.LOG_END
    times_named = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    twice = {key for key, times in times_named.items() if times > 1}
    leader_only = request.replica_id != DEBUGGING_REPLICA_ID
    return ListOffsetsResponse(
        topics=[_topic_response(topic, twice, isolation, leader_only, context) for topic in _merged(request.topics)]
    )


def _merged(topics: list[ListOffsetsTopic]) -> list[ListOffsetsTopic]:
    """Each topic once, each partition once: what is named twice gets one answer, a topic alone gets none."""
    merged: dict[str, dict[int, ListOffsetsPartition]] = {}
    for topic in topics:
        merged.setdefault(topic.name, {}).update(
            (partition.partition_index, partition) for partition in topic.partitions
        )
    return [
        ListOffsetsTopic(name=name, partitions=list(partitions.values()))
        for name, partitions in merged.items()
        if partitions
    ]


def _topic_response(
    topic: ListOffsetsTopic,
    twice: set[tuple[str, int]],
    isolation: FetchIsolation,
    leader_only: bool,
    context: RequestContext,
) -> ListOffsetsTopicResponse:
    allowed = context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
    partitions = []
    for partition in topic.partitions:
        try:
            if not allowed:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if (topic.name, partition.partition_index) in twice:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "the partition is named twice")
            found = _find(topic.name, partition, isolation, leader_only, context)
        except KafkaError as error:
            partitions.append(_refusal(partition.partition_index, error.code, context.api_version))
            continue
        partitions.append(_answer(partition.partition_index, found, context.api_version))
    return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)


def _find(
    topic: str, partition: ListOffsetsPartition, isolation: FetchIsolation, leader_only: bool, context: RequestContext
) -> FoundOffset:
    timestamp_ms = partition.timestamp
    if timestamp_ms < 0:
        since = SPECIAL_MIN_VERSIONS.get(timestamp_ms)
        if since is None or context.api_version < since:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"version {context.api_version} knows no timestamp {timestamp_ms}"
            )
    return find_offset(
        context.node.replica_manager.partition(TopicPartition(topic, partition.partition_index)),
        timestamp_ms,
        isolation=isolation,
        current_leader_epoch=partition.current_leader_epoch,
        leader_only=leader_only,
    )


def _answer(partition: int, found: FoundOffset, version: int) -> ListOffsetsPartitionResponse:
    response = ListOffsetsPartitionResponse(
        partition_index=partition, error_code=0, timestamp=found.timestamp_ms, offset=found.offset
    )
    if version >= LEADER_EPOCH_FROM_VERSION:
        response.leader_epoch = found.leader_epoch
    return response


def _refusal(partition: int, error: ErrorCode, version: int) -> ListOffsetsPartitionResponse:
    if error == ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_FROM_VERSION:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return ListOffsetsPartitionResponse(partition_index=partition, error_code=int(error), timestamp=-1, offset=-1)
