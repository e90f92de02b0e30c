"""ElectLeaders: move leaders to the preferred replicas, or elect from what is left (I22).

Source: ReplicationControlManager.electLeaders; KIP-460.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.controller.partition_change import Election, PartitionTarget, partition_change
from coordinator.controller.partition_rules import TopicRules
from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import MetadataRecord
from coordinator.metadata.image import NO_LEADER
from wire.errors import ErrorCode, KafkaError
from wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(request: ElectLeadersRequest, view: ControllerView) -> Outcome:
    """Elect in the named partitions, or in all when none are named. Raises KafkaError
    INVALID_REQUEST for an unknown election type."""
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unknown election type {request.election_type}: 0 is preferred, 1 is unclean.",
        )
    records: list[MetadataRecord] = []
    results: dict[str, list[PartitionResult]] = {}
    named = request.topic_partitions is not None
    for asked in request.topic_partitions or ():
        results[asked.topic] = []
    for topic, partition_id in _wanted(request, view):
        code, message, record = _elect(topic, partition_id, election, view)
        partitions = results.setdefault(topic, [])
        if not named and code is ErrorCode.ELECTION_NOT_NEEDED:
            continue
        if record is not None:
            records.append(record)
        partitions.append(PartitionResult(partition_id=partition_id, error_code=code, error_message=message))
    response = ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=partitions) for topic, partitions in results.items()
        ]
    )
    return Outcome(response, records)


def _wanted(request: ElectLeadersRequest, view: ControllerView) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        for topic in view.image.topics:
            for partition_id in range(len(topic.partitions)):
                yield topic.name, partition_id
        return
    for named in request.topic_partitions:
        for partition_id in named.partitions:
            yield named.topic, partition_id


def _elect(
    topic_name: str, partition_id: int, election: Election, view: ControllerView
) -> tuple[ErrorCode, str | None, MetadataRecord | None]:
    topic = view.image.topics.by_name(topic_name)
    partition = None if topic is None else topic.partitions.get(partition_id)
    if topic is None or partition is None:
        text = f"No such topic or partition as {topic_name}-{partition_id}."
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text, None
    unneeded = (
        partition.leader == partition.replicas[0] if election is Election.PREFERRED else partition.leader != NO_LEADER
    )
    if unneeded:
        text = f"Leader election is not needed: {topic_name}-{partition_id} is led by broker "
        return ErrorCode.ELECTION_NOT_NEEDED, f"{text}{partition.leader}.", None
    rules = TopicRules(view, topic_name)
    target = PartitionTarget(election=election)
    record = partition_change(topic.topic_id, partition_id, partition, target, rules.of(partition))
    elected = None if record is None else record.message.leader
    if election is Election.PREFERRED and elected != partition.replicas[0]:
        text = f"The preferred leader {partition.replicas[0]} of {topic_name}-{partition_id} "
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"{text}was not available.", None
    if elected is None or elected < 0:
        text = f"No replica of {topic_name}-{partition_id} is alive."
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text, None
    return ErrorCode.NONE, None, record
