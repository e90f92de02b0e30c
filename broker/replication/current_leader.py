"""Who leads a partition as far as this node knows, for answers that send a client there (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.replication.replica_manager import ReplicaManager
    from coordinator.metadata.image import Endpoint
    from wire.primitives import TopicPartition


class CurrentLeader(NamedTuple):
    """Leader id and epoch, -1 where unknown; `endpoint` on the listener of the request, None if it has none."""

    leader_id: int
    leader_epoch: int
    endpoint: Endpoint | None
    rack: str | None


def current_leader(replicas: ReplicaManager, topic_partition: TopicPartition, listener_name: str) -> CurrentLeader:
    """The leader by the local replica's word if there is one, else by metadata."""
    partition = replicas.partitions.get(topic_partition)
    if partition is not None:
        leader_id, leader_epoch = partition.leader_id, partition.leader_epoch
    else:
        image = replicas.image.topics.partition(*topic_partition)
        leader_id, leader_epoch = (-1, -1) if image is None else (image.leader, image.leader_epoch)
    broker = replicas.image.brokers.get(leader_id)
    if broker is None or broker.fenced:
        return CurrentLeader(leader_id, leader_epoch, None, None)
    return CurrentLeader(leader_id, leader_epoch, broker.endpoint(listener_name), broker.rack)
