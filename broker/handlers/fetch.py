"""Fetch (key 1): read record batches, by consumers and by followers.

Versions 4-18.

Behaviour: long poll under min_bytes and max_wait_ms, one wait for the whole request; incremental sessions (KIP-227).
The first batch of the first partition with data is always whole, whatever the limits (KIP-74); later partitions are
cut to what is left. Bytes are sent as stored, from the batch that holds the fetch offset. Consumers see up to the high
watermark, with read_committed up to the last stable offset together with the aborted transactions; followers see the
log end, and their fetch offset is what the leader knows of them.

v5   log_start_offset (KIP-107)
v7   fetch sessions (KIP-227)
v9   current_leader_epoch, fencing (KIP-320)
v11  rack_id; consumers may read from any replica (KIP-392)
v12  flexible; last_fetched_epoch and diverging_epoch (KIP-595)
v13  topics by id (KIP-516)
v15  replica_state with the broker epoch (KIP-903)
v16  current_leader and node_endpoints on errors about leaders (KIP-951)
v17  replica_directory_id: of voters of the metadata quorum only (KIP-853)
v18  high_watermark of the follower: used for the metadata quorum only (KIP-1166)

Left out: quotas (throttle_time_ms is 0), replica.selector.class (no preferred read replica is named).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from broker.replication.current_leader import current_leader
from broker.replication.fetch_session import FetchEntry, FetchKey, FetchParameters, Outcome
from broker.replication.reading import ReadLimits, ReadResult, ReadTarget, fetch
from broker.replication.waits import FetchIsolation
from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext

ANY_REPLICA_FROM_VERSION = 11
TOPIC_IDS_FROM_VERSION = 13
REPLICA_STATE_FROM_VERSION = 15
LEADER_HINTS_FROM_VERSION = 16
STORAGE_ERROR_FROM_VERSION = 6
_ISOLATION_OF_LEVEL = {0: FetchIsolation.HIGH_WATERMARK, 1: FetchIsolation.TXN_COMMITTED}
_LEADER_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


async def handle(request: FetchRequest, context: RequestContext) -> FetchResponse:
    """Read what the request and its session name, waiting for enough bytes. Session errors are at the top level."""
    node = context.node
    topics = node.metadata.image.topics

    def name_of(topic_id: bytes) -> str | None:
        topic = topics.by_id(topic_id)
        return None if topic is None else topic.name

    limits = _limits(request, context)
    session = node.fetch_sessions.begin(
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        version=context.api_version,
        is_follower=limits.is_follower,
        partitions=_asked(request),
        forgotten=_forgotten(request),
        name_of=name_of,
        now_ms=node.clock.now_ms(),
    )
    targets, entries, refused = _sort_out(session.entries(), limits, context)
    if targets and request.isolation_level not in _ISOLATION_OF_LEVEL:
        # Looked at only now: a session that does not exist, or nothing to read, is answered as such.
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {request.isolation_level} is neither 0 nor 1"
        )
    results = await fetch(node.replica_manager, targets, limits) if targets else []
    outcomes = [Outcome(entry.key, entry.topic, result) for entry, result in zip(entries, results, strict=True)]
    answer = session.answer(outcomes + refused, node.clock.now_ms())
    response = _respond(answer.error, answer.session_id, answer.outcomes, context)
    if limits.is_follower:
        response.node_endpoints = []  # followers have theirs from the metadata
    return response


# --- what is asked ---------------------------------------------------------------------------------


def _limits(request: FetchRequest, context: RequestContext) -> ReadLimits:
    version = context.api_version
    replica_id, broker_epoch = request.replica_id, -1
    if version >= REPLICA_STATE_FROM_VERSION:
        replica_id, broker_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    is_follower = replica_id >= 0
    level = _ISOLATION_OF_LEVEL.get(request.isolation_level, FetchIsolation.HIGH_WATERMARK)
    max_bytes = min(request.max_bytes, context.node.replica_manager.fetch_max_bytes)
    return ReadLimits(
        FetchIsolation.LOG_END if is_follower else level,
        max_bytes=max_bytes,
        min_bytes=min(request.min_bytes, max_bytes),
        max_wait_ms=request.max_wait_ms,
        leader_only=is_follower or version < ANY_REPLICA_FROM_VERSION,
        replica_id=replica_id,
        broker_epoch=broker_epoch,
    )


def _asked(request: FetchRequest) -> dict[FetchKey, FetchParameters]:
    return {
        FetchKey(topic.topic, topic.topic_id, partition.partition): FetchParameters(
            partition.fetch_offset,
            partition.partition_max_bytes,
            # Any negative epoch is none.
            max(partition.current_leader_epoch, -1),
            max(partition.last_fetched_epoch, -1),
            partition.log_start_offset,
        )
        for topic in request.topics
        for partition in topic.partitions
    }


def _forgotten(request: FetchRequest) -> list[FetchKey]:
    return [
        FetchKey(topic.topic, topic.topic_id, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def _sort_out(
    entries: Iterable[FetchEntry], limits: ReadLimits, context: RequestContext
) -> tuple[list[ReadTarget], list[FetchEntry], list[Outcome]]:
    """Steps 1 to 3 of E.2: what to read (twice, as targets and as entries), and what is refused before reading."""
    topics = context.node.metadata.image.topics
    follower_may = not limits.is_follower or context.authorize_cluster(Operation.CLUSTER_ACTION)
    may_read: dict[str, bool] = {}
    targets: list[ReadTarget] = []
    read: list[FetchEntry] = []
    refused: list[Outcome] = []
    for entry in entries:
        key, name, parameters = entry
        error = ErrorCode.NONE
        if not follower_may:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name is None or (not name and context.api_version >= TOPIC_IDS_FROM_VERSION):
            error = ErrorCode.UNKNOWN_TOPIC_ID  # the id of zeros is none
        else:
            if not limits.is_follower and name not in may_read:
                may_read[name] = context.authorize(Operation.READ, ResourceType.TOPIC, name)
            if not may_read.get(name, True):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topics.partition(name, key.partition) is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error or name is None:
            # No transactions, where what was read says null: so Kafka answers before it reads.
            refused.append(Outcome(key, name, ReadResult(int(error), aborted=())))
            continue
        targets.append(ReadTarget(TopicPartition(name, key.partition), key.topic_id, *parameters))
        read.append(entry)
    # Kafka looks for names of ids before anything else.
    refused.sort(key=lambda outcome: outcome.result.error_code != ErrorCode.UNKNOWN_TOPIC_ID)
    return targets, read, refused


# --- answering -------------------------------------------------------------------------------------


def _answer(partition: int, result: ReadResult, context: RequestContext) -> PartitionData:
    error_code = result.error_code
    if error_code == ErrorCode.KAFKA_STORAGE_ERROR and context.api_version < STORAGE_ERROR_FROM_VERSION:
        error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = PartitionData(
        partition_index=partition,
        error_code=error_code,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=result.preferred_read_replica,
        records=result.records,
    )
    if result.aborted is not None:
        answer.aborted_transactions = [
            AbortedTransaction(producer_id=entry.producer_id, first_offset=entry.first_offset)
            for entry in result.aborted
        ]
    if result.diverging is not None:
        answer.diverging_epoch = EpochEndOffset(
            epoch=result.diverging.leader_epoch, end_offset=result.diverging.end_offset
        )
    return answer


def _respond(error: ErrorCode, session_id: int, outcomes: Sequence[Outcome], context: RequestContext) -> FetchResponse:
    responses: list[FetchableTopicResponse] = []
    endpoints: dict[int, NodeEndpoint] = {}
    hints_leaders = context.api_version >= LEADER_HINTS_FROM_VERSION
    last_topic: tuple[str, bytes] | None = None
    for key, topic, result in outcomes:
        answer = _answer(key.partition, result, context)
        # Neighbours of one topic share an entry; the order of partitions is the order of reading.
        if last_topic != (key.topic, key.topic_id):
            last_topic = (key.topic, key.topic_id)
            responses.append(FetchableTopicResponse(topic=key.topic, topic_id=key.topic_id, partitions=[]))
        if hints_leaders and answer.error_code in _LEADER_ERRORS and topic is not None:
            _hint_leader(TopicPartition(topic, key.partition), answer, endpoints, context)
        responses[-1].partitions.append(answer)
    return FetchResponse(
        error_code=int(error), session_id=session_id, responses=responses, node_endpoints=list(endpoints.values())
    )


def _hint_leader(
    topic_partition: TopicPartition,
    answer: PartitionData,
    endpoints: dict[int, NodeEndpoint],
    context: RequestContext,
) -> None:
    leader = current_leader(context.node.replica_manager, topic_partition, context.listener_name)
    answer.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
    if leader.endpoint is not None:
        endpoints[leader.leader_id] = NodeEndpoint(
            node_id=leader.leader_id, host=leader.endpoint.host, port=leader.endpoint.port, rack=leader.rack
        )
