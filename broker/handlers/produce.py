"""Produce (key 0): append record batches to partitions led by this broker.

Versions 3-13; 0-2 are advertised (old clients look for them) and refused by closing (KAFKA-18659, KIP-896).

Behaviour: exactly one magic 2 batch per partition; a partition fails alone. acks=1 and 0 answer after the local
append, acks=-1 once the high watermark has passed the batch. acks=0 has no answer: on any error the connection is
closed so that the client looks for news. A batch that a producer id sent before is answered with its first offsets.

v3   transactional id, magic 2 only (KIP-98)
v5   log_start_offset (KIP-107)
v7   zstd (KIP-110)
v8   record_errors, error_message (KIP-467)
v9   flexible
v10  current_leader and node_endpoints on NOT_LEADER_OR_FOLLOWER (KIP-951)
v11  TRANSACTION_ABORTABLE (KIP-890)
v12  the partition is added to the transaction implicitly (KIP-890)
v13  topics by id (KIP-516)

Left out: quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from broker.network.peer import CloseConnection
from broker.replication.current_leader import current_leader
from broker.replication.partition import ACKS_ALL
from broker.replication.replica_manager import AppendOutcome
from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode, KafkaError
from wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from wire.primitives import TopicPartition
from wire.records import RecordBatch, sole_batch

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext
    from broker.storage.producer_state import VerificationGuard

TOPIC_IDS_FROM_VERSION = 13
LEADER_HINTS_FROM_VERSION = 10
STORAGE_ERROR_FROM_VERSION = 4
IMPLICIT_ADD_FROM_VERSION = 12
ABORTABLE_FROM_VERSION = 11
BATCH_SIZE_UNTIL, MAGIC_AT, ATTRIBUTES_AT = 12, 16, 22
"""Places in the header of a record batch"""
SMALLEST_BATCH_BYTES = 14
"""LegacyRecord.RECORD_OVERHEAD_V0"""
CURRENT_MAGIC, TRANSACTIONAL_FLAG = 2, 0x10
ADMIN_CLIENT_ID = "__admin_client"
"""The one client id that may write internal topics (`AdminUtils.ADMIN_CLIENT_ID`)."""

_Key = tuple[str | bytes, int]
"""TopicPartition, or (topic id, partition) of a topic id that no topic has."""


class _Produce:
    """One request on its way: what may be appended, and what each partition came to."""

    __slots__ = ("accepted", "answers", "context", "outcomes", "request")

    def __init__(self, request: ProduceRequest, context: RequestContext) -> None:
        self.request = request
        self.context = context
        # Partitions in the order of the request. One that is named twice is answered once: with a refusal if
        # one of its batches has one, though the last batch that may be appended is (B15).
        self.answers: list[tuple[TopicProduceData, dict[int, _Key]]] = []
        self.outcomes: dict[_Key, AppendOutcome] = {}
        self.accepted: dict[TopicPartition, tuple[RecordBatch, bytes, bytes]] = {}


async def handle(request: ProduceRequest, context: RequestContext) -> ProduceResponse | None:
    """Append and answer; None for acks=0. Raises CloseConnection where acks=0 met an error."""
    produce = _Produce(request, context)
    try:
        _check_first_batches(produce)
    except KafkaError as error:
        _refuse_all(produce, AppendOutcome(error.code, message=error.message))
    else:
        _sort_out(produce)
        if produce.accepted:
            await _append(produce)
    if request.acks == 0:
        failed = [key for key, outcome in produce.outcomes.items() if outcome.error]
        if failed:
            raise CloseConnection(f"produce with acks=0 failed for {len(failed)} partitions, the first is {failed[0]}")
        return None
    return _respond(produce)


# --- which partitions may be written (B.1) ---------------------------------------------------------


def _check_first_batches(produce: _Produce) -> None:
    """Look for a transactional batch before anything else, and whether its transactional id may be used.

    Raises CORRUPT_MESSAGE where a batch on the way cannot be one, TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    either refuses the whole request. Source: RequestUtils.hasTransactionalRecords.
    """
    request = produce.request
    if not any(
        _is_transactional(cast("bytes | None", partition.records) or b"")
        for topic in request.topic_data
        for partition in topic.partition_data
    ):
        return
    transactional_id = request.transactional_id
    if transactional_id is None or not produce.context.authorize(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _is_transactional(records: bytes) -> bool:
    """Whether the first batch is transactional; one that is not all there is refused later."""
    if len(records) < BATCH_SIZE_UNTIL:
        return False
    size_bytes = int.from_bytes(records[8:BATCH_SIZE_UNTIL], "big", signed=True)
    if size_bytes < SMALLEST_BATCH_BYTES:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"A batch of {size_bytes} bytes is shorter than any ({SMALLEST_BATCH_BYTES})."
        )
    if len(records) <= MAGIC_AT:
        return False
    magic = records[MAGIC_AT]
    if magic > CURRENT_MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"There are no batches of magic {magic}.")
    is_whole = len(records) >= size_bytes + BATCH_SIZE_UNTIL
    return is_whole and magic == CURRENT_MAGIC and bool(records[ATTRIBUTES_AT] & TRANSACTIONAL_FLAG)


def _refuse_all(produce: _Produce, outcome: AppendOutcome) -> None:
    answered: dict[bytes, dict[int, _Key]] = {}
    for topic in produce.request.topic_data:
        identity = topic.topic_id + topic.name.encode()
        if identity not in answered:
            answered[identity] = {}
            produce.answers.append((topic, answered[identity]))
        for partition in topic.partition_data:
            key = answered[identity][partition.index] = (identity, partition.index)
            produce.outcomes[key] = outcome


def _sort_out(produce: _Produce) -> None:
    """Steps 2 to 5: each partition is accepted for appending, or has its outcome."""
    context = produce.context
    version = context.api_version
    topics = context.node.metadata.image.topics
    answered: dict[str | bytes, dict[int, _Key]] = {}
    for topic in produce.request.topic_data:
        name: str | bytes = topic.name
        image = topics.by_name(topic.name) if version < TOPIC_IDS_FROM_VERSION else topics.by_id(topic.topic_id)
        error = ErrorCode.NONE
        if version >= TOPIC_IDS_FROM_VERSION:
            name = topic.topic_id if image is None else image.name
            if image is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
        if not error and not context.authorize(Operation.WRITE, ResourceType.TOPIC, str(name)):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        keys = answered.get(name)
        if keys is None:
            keys = answered[name] = {}
            produce.answers.append((topic, keys))
        for partition in topic.partition_data:
            if error or image is None or partition.index not in image.partitions:
                key: _Key = (name, partition.index)
                produce.outcomes[key] = AppendOutcome(error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                key = TopicPartition(image.name, partition.index)
                # A zero id: requests by name are for whichever topic has it now (B16).
                topic_id = image.topic_id if version >= TOPIC_IDS_FROM_VERSION else bytes(16)
                # Decoded record fields are bytes; buffer lists occur only where a message is written.
                _accept(
                    produce,
                    TopicPartition(image.name, partition.index),
                    topic_id,
                    cast("bytes | None", partition.records),
                )
            keys[partition.index] = key


def _accept(produce: _Produce, key: TopicPartition, topic_id: bytes, records: bytes | None) -> None:
    try:
        batch = sole_batch(records, produce.context.api_version)
    except KafkaError as error:
        produce.outcomes[key] = AppendOutcome(error.code, message=error.message)
        return
    whole = records or b""
    produce.accepted[key] = (batch, whole if batch.size_bytes == len(whole) else whole[: batch.size_bytes], topic_id)


# --- appending -------------------------------------------------------------------------------------


async def _append(produce: _Produce) -> None:
    """Steps 7 to 9, the appends, and the wait for acks=all."""
    request, context = produce.request, produce.context
    replicas = context.node.replica_manager
    guards: dict[TopicPartition, VerificationGuard | None] = {}
    if request.transactional_id is not None:
        guards = await _verify(produce, request.transactional_id)
    if request.acks not in (ACKS_ALL, 0, 1):
        for key in produce.accepted:
            produce.outcomes.setdefault(key, AppendOutcome(ErrorCode.INVALID_REQUIRED_ACKS))
        return
    may_write_internal = context.client_id == ADMIN_CLIENT_ID
    now_ms = context.node.clock.now_ms()
    appended: dict[TopicPartition, AppendOutcome] = {}
    for key, (_, records, topic_id) in produce.accepted.items():
        appended[key] = replicas.append(
            key,
            records,
            acks=request.acks,
            now_ms=now_ms,
            topic_id=topic_id,
            may_write_internal=may_write_internal,
            verification_guard=guards.get(key) if guards else None,
        )
    if request.acks == ACKS_ALL:
        await replicas.wait_for_acks(appended, request.timeout_ms)
    for key, outcome in appended.items():
        produce.outcomes.setdefault(key, outcome)


async def _verify(produce: _Produce, transactional_id: str) -> dict[TopicPartition, VerificationGuard | None]:
    """Let the coordinator confirm transactional batches (D.8); what it does not confirm is not appended."""
    transactional = {key: batch for key, (batch, _, _) in produce.accepted.items() if batch.is_transactional}
    if not transactional:
        return {}
    producers = {(batch.producer_id, batch.producer_epoch) for batch in transactional.values()}
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"transactional id '{transactional_id}' sent batches of {len(producers)} producers in one request",
        )
    from broker.replication.transaction_verification import (
        TransactionalBatch,
        TransactionSupport,
        verify_transaction,
    )

    version = produce.context.api_version
    verified = await verify_transaction(
        produce.context.node.replica_manager,
        transactional_id,
        {
            key: TransactionalBatch(batch.producer_id, batch.producer_epoch, batch.base_sequence)
            for key, batch in transactional.items()
        },
        support=TransactionSupport.IMPLICIT_ADD
        if version >= IMPLICIT_ADD_FROM_VERSION
        else TransactionSupport.ABORTABLE_ERROR
        if version >= ABORTABLE_FROM_VERSION
        else TransactionSupport.DEFAULT,
        timeout_ms=produce.request.timeout_ms,
    )
    for key, error in verified.refused.items():
        produce.outcomes[key] = AppendOutcome(error.code, message=error.message)
        del produce.accepted[key]
    return verified.guards


# --- answering -------------------------------------------------------------------------------------


def _respond(produce: _Produce) -> ProduceResponse:
    endpoints: dict[int, NodeEndpoint] = {}
    responses = []
    for topic, keys in produce.answers:
        if not keys:
            continue
        partitions = [_partition_response(produce, index, key, endpoints) for index, key in keys.items()]
        responses.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions))
    return ProduceResponse(responses=responses, node_endpoints=list(endpoints.values()))


def _partition_response(
    produce: _Produce, index: int, key: _Key, endpoints: dict[int, NodeEndpoint]
) -> PartitionProduceResponse:
    outcome = produce.outcomes[key]
    error = outcome.error
    response = PartitionProduceResponse(
        index=index,
        error_code=int(error),
        base_offset=outcome.base_offset,
        log_append_time_ms=outcome.log_append_time_ms,
        log_start_offset=outcome.log_start_offset,
    )
    if not error:
        return response
    version = produce.context.api_version
    response.error_message = outcome.message
    response.record_errors = [
        BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
        for batch_index, message in outcome.record_errors
    ]
    if error == ErrorCode.KAFKA_STORAGE_ERROR and version < STORAGE_ERROR_FROM_VERSION:
        response.error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    elif error == ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= LEADER_HINTS_FROM_VERSION:
        _hint_leader(produce, TopicPartition(str(key[0]), key[1]), response, endpoints)
    return response


def _hint_leader(
    produce: _Produce,
    topic_partition: TopicPartition,
    response: PartitionProduceResponse,
    endpoints: dict[int, NodeEndpoint],
) -> None:
    context = produce.context
    leader = current_leader(context.node.replica_manager, topic_partition, context.listener_name)
    response.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
    if leader.endpoint is not None:
        endpoints[leader.leader_id] = NodeEndpoint(
            node_id=leader.leader_id, host=leader.endpoint.host, port=leader.endpoint.port, rack=leader.rack
        )
