"""The error answer of each request type: what a request gets when its handler raised.

Most responses have one error code at the top. The others carry an error per item, so the answer
repeats the request's items, each with the error; `ITEM_ERRORS` says which lists those are.
Source: `getErrorResponse` of each class in `org.apache.kafka.common.requests`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from wire.api import API_SPECS, ApiKey
from wire.errors import ErrorCode, KafkaError


class Items(NamedTuple):
    """One list of a request and the list of its response that mirrors it.

    `copied` maps the item's fields to the fields of the response's struct. For a list of plain
    values (partition numbers, group ids) the single entry names the struct's field under "".
    """

    request_list: str
    response_list: str
    struct: str
    copied: dict[str, str]
    children: Items | None = None
    has_message: bool = True
    """False where Kafka leaves the item's message out: versions without the field could not carry it."""
    constants: tuple[tuple[str, int], ...] = ()
    """Fields of the response's struct that say "unknown" by another value than the schema's default."""


_BY_NAME = {"name": "name"}
_BY_NAME_AND_ID = {"name": "name", "topic_id": "topic_id"}
_BY_INDEX = {"partition_index": "partition_index"}
_BY_GROUP = {"": "group_id"}
_BY_RESOURCE = {"resource_type": "resource_type", "resource_name": "resource_name"}
_STATE_BY_TOPIC = {"topic_id": "topic_id"}
_STATE_PARTITIONS = Items("partitions", "partitions", "PartitionResult", {"partition": "partition"})

ITEM_ERRORS: dict[int, Items] = {
    ApiKey.PRODUCE: Items(
        "topic_data", "responses", "TopicProduceResponse", _BY_NAME_AND_ID,
        Items("partition_data", "partition_responses", "PartitionProduceResponse", {"index": "index"},
              constants=(("base_offset", -1),)),
    ),
    ApiKey.LIST_OFFSETS: Items(
        "topics", "topics", "ListOffsetsTopicResponse", _BY_NAME,
        Items("partitions", "partitions", "ListOffsetsPartitionResponse", _BY_INDEX),
    ),
    ApiKey.METADATA: Items("topics", "topics", "MetadataResponseTopic", _BY_NAME_AND_ID),
    ApiKey.OFFSET_COMMIT: Items(
        "topics", "topics", "OffsetCommitResponseTopic", _BY_NAME_AND_ID,
        Items("partitions", "partitions", "OffsetCommitResponsePartition", _BY_INDEX),
    ),
    ApiKey.DESCRIBE_GROUPS: Items(
        "groups", "groups", "DescribedGroup", _BY_GROUP, has_message=False
    ),
    ApiKey.CREATE_TOPICS: Items("topics", "topics", "CreatableTopicResult", _BY_NAME),
    ApiKey.DELETE_RECORDS: Items(
        "topics", "topics", "DeleteRecordsTopicResult", _BY_NAME,
        Items("partitions", "partitions", "DeleteRecordsPartitionResult", _BY_INDEX,
              constants=(("low_watermark", -1),)),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Items(
        "topics", "topics", "OffsetForLeaderTopicResult", {"topic": "topic"},
        Items("partitions", "partitions", "EpochEndOffset", {"partition": "partition"}),
    ),
    ApiKey.TXN_OFFSET_COMMIT: Items(
        "topics", "topics", "TxnOffsetCommitResponseTopic", _BY_NAME_AND_ID,
        Items("partitions", "partitions", "TxnOffsetCommitResponsePartition", _BY_INDEX),
    ),
    ApiKey.CREATE_ACLS: Items("creations", "results", "AclCreationResult", {}),
    ApiKey.DELETE_ACLS: Items("filters", "filter_results", "DeleteAclsFilterResult", {}),
    ApiKey.DESCRIBE_CONFIGS: Items("resources", "results", "DescribeConfigsResult", _BY_RESOURCE),
    ApiKey.ALTER_CONFIGS: Items("resources", "responses", "AlterConfigsResourceResponse", _BY_RESOURCE),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Items(
        "resources", "responses", "AlterConfigsResourceResponse", _BY_RESOURCE
    ),
    ApiKey.CREATE_PARTITIONS: Items("topics", "results", "CreatePartitionsTopicResult", _BY_NAME),
    ApiKey.DELETE_GROUPS: Items("groups_names", "results", "DeletableGroupResult", _BY_GROUP),
    ApiKey.DESCRIBE_PRODUCERS: Items(
        "topics", "topics", "TopicResponse", _BY_NAME,
        Items("partition_indexes", "partitions", "PartitionResponse", {"": "partition_index"}),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: Items(
        "transactional_ids", "transaction_states", "TransactionState", {"": "transactional_id"}
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Items("group_ids", "groups", "DescribedGroup", _BY_GROUP),
    ApiKey.SHARE_GROUP_DESCRIBE: Items("group_ids", "groups", "DescribedGroup", _BY_GROUP),
    ApiKey.STREAMS_GROUP_DESCRIBE: Items("group_ids", "groups", "DescribedGroup", _BY_GROUP),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Items(
        "topics", "topics", "DescribeTopicPartitionsResponseTopic", _BY_NAME
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Items(
        "groups", "groups", "DescribeShareGroupOffsetsResponseGroup", {"group_id": "group_id"}
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: Items(
        "topics", "results", "InitializeStateResult", _STATE_BY_TOPIC, _STATE_PARTITIONS
    ),
    ApiKey.READ_SHARE_GROUP_STATE: Items(
        "topics", "results", "ReadStateResult", _STATE_BY_TOPIC, _STATE_PARTITIONS
    ),
    ApiKey.WRITE_SHARE_GROUP_STATE: Items(
        "topics", "results", "WriteStateResult", _STATE_BY_TOPIC, _STATE_PARTITIONS
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: Items(
        "topics", "results", "DeleteStateResult", _STATE_BY_TOPIC, _STATE_PARTITIONS
    ),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: Items(
        "topics", "results", "ReadStateSummaryResult", _STATE_BY_TOPIC, _STATE_PARTITIONS
    ),
    ApiKey.WRITE_TXN_MARKERS: Items(
        "markers", "markers", "WritableTxnMarkerResult", {"producer_id": "producer_id"},
        Items(
            "topics", "topics", "WritableTxnMarkerTopicResult", _BY_NAME,
            Items("partition_indexes", "partitions", "WritableTxnMarkerPartitionResult", {"": "partition_index"}),
        ),
    ),
}  # fmt: skip


def error_response(request: Any, version: int, error: BaseException) -> Any | None:
    """The answer to `request` at `version` when its handler raised `error`.

    An error that is no KafkaError answers UNKNOWN_SERVER_ERROR with its generic text, as Kafka
    does, so that nothing internal leaks. None: this request has no error answer (Produce with
    acks=0), and the connection is to be closed.
    """
    if isinstance(error, KafkaError):
        code, message = int(error.code), error.message
    else:
        code = int(ErrorCode.UNKNOWN_SERVER_ERROR)
        message = "The server experienced an unexpected error when processing the request."
    key = request.API_KEY
    if key == ApiKey.PRODUCE and request.acks == 0:
        return None
    special = _SPECIAL.get(key)
    if special is not None:
        return special(request, version, code, message)
    response_class = API_SPECS[key].load()[1]
    if key in ITEM_ERRORS:
        items = ITEM_ERRORS[key]
        response = response_class(**{items.response_list: _mirror(items, key, request, code, message)})
    else:
        response = response_class()
    return _with_error(response, code, message)


def _with_error(struct: Any, code: int, message: str | None) -> Any:
    slots = type(struct).__slots__
    for name in ("error_code", "partition_error_code"):
        if name in slots:
            setattr(struct, name, code)
    if message is not None and "error_message" in slots:
        struct.error_message = message
    return struct


def _mirror(items: Items, key: int, parent: Any, code: int, message: str | None) -> list[Any]:
    struct_class = getattr(import_module(f"wire.messages.{API_SPECS[key].module}"), items.struct)
    mirrored = []
    for item in getattr(parent, items.request_list) or ():
        values = dict(items.constants) | {
            to_field: getattr(item, from_field) if from_field else item for from_field, to_field in items.copied.items()
        }
        if items.children is not None:
            values[items.children.response_list] = _mirror(items.children, key, item, code, message)
        mirrored.append(_with_error(struct_class(**values), code, message if items.has_message else None))
    return mirrored


def _fetch(request: Any, version: int, code: int, _message: str | None) -> Any:
    from wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

    topics = []
    # From version 13 on clients understand the code at the top, so no partitions are sent.
    if version < 13:
        topics = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(partition_index=partition.partition, error_code=code, high_watermark=-1, records=b"")
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    return FetchResponse(error_code=code, session_id=request.session_id, responses=topics)


def _offset_fetch(request: Any, version: int, code: int, _message: str | None) -> Any:
    from wire.messages import offset_fetch as messages

    if version >= 8:
        groups = [
            messages.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code) for group in request.groups
        ]
        return messages.OffsetFetchResponse(groups=groups)
    if version >= 2:
        return messages.OffsetFetchResponse(error_code=code)
    topics = [
        messages.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                messages.OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, metadata="", error_code=code
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return messages.OffsetFetchResponse(topics=topics)


def _find_coordinator(request: Any, version: int, code: int, message: str | None) -> Any:
    from wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse

    if version < 4:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
            for key in request.coordinator_keys
        ]
    )


def _delete_topics(request: Any, version: int, code: int, _message: str | None) -> Any:
    from wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse

    if version >= 6:
        results = [
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code) for topic in request.topics
        ]
    else:
        results = [DeletableTopicResult(name=name, error_code=code) for name in request.topic_names]
    return DeleteTopicsResponse(responses=results)


def _add_partitions_to_txn(request: Any, version: int, code: int, _message: str | None) -> Any:
    from wire.messages import add_partitions_to_txn as messages

    if version >= 4:
        return messages.AddPartitionsToTxnResponse(error_code=code)
    results = [
        messages.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                messages.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in request.v3_and_below_topics
    ]
    return messages.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def _alter_replica_log_dirs(request: Any, _version: int, code: int, _message: str | None) -> Any:
    from wire.messages import alter_replica_log_dirs as messages

    results = [
        messages.AlterReplicaLogDirTopicResult(
            topic_name=topic.name,
            partitions=[
                messages.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                for index in topic.partitions
            ],
        )
        for directory in request.dirs
        for topic in directory.topics
    ]
    return messages.AlterReplicaLogDirsResponse(results=results)


def _alter_client_quotas(request: Any, _version: int, code: int, message: str | None) -> Any:
    from wire.messages import alter_client_quotas as messages

    entries = [
        messages.AlterClientQuotasResponseEntryData(
            error_code=code,
            error_message=message,
            entity=[
                messages.AlterClientQuotasResponseEntityData(
                    entity_type=entity.entity_type, entity_name=entity.entity_name
                )
                for entity in entry.entity
            ],
        )
        for entry in request.entries
    ]
    return messages.AlterClientQuotasResponse(entries=entries)


def _alter_user_scram_credentials(request: Any, _version: int, code: int, message: str | None) -> Any:
    from wire.messages import alter_user_scram_credentials as messages

    names = dict.fromkeys(change.name for change in [*request.deletions, *request.upsertions])
    results = [
        messages.AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message)
        for name in sorted(names)
    ]
    return messages.AlterUserScramCredentialsResponse(results=results)


def _elect_leaders(request: Any, version: int, code: int, message: str | None) -> Any:
    from wire.messages import elect_leaders as messages

    results = [
        messages.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                messages.PartitionResult(partition_id=index, error_code=code, error_message=message)
                for index in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    return messages.ElectLeadersResponse(error_code=code if version >= 1 else 0, replica_election_results=results)


_SPECIAL = {
    ApiKey.FETCH: _fetch,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
    ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
}
"""Requests whose error answer depends on the version, or whose shape is not a mirror."""
