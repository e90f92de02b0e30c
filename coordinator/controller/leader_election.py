"""What a broker's coming and going does to the partitions: ISR, ELR and leaders (K13 to K16).

These events are rare and touch most partitions of the broker, so they walk all partitions instead
of keeping an index that every ISR change would have to maintain. Source:
ReplicationControlManager.generateLeaderAndIsrUpdates and its callers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from coordinator.controller.partition_change import PartitionTarget, partition_change
from coordinator.controller.partition_rules import NOBODY, TopicRules
from coordinator.controller.view import ControllerView
from coordinator.machine import MetadataRecord
from coordinator.metadata.image import NO_LEADER, PartitionImage


def leads_any(view: ControllerView, broker_id: int) -> bool:
    """Whether the broker leads a partition."""
    return any(partition.leader == broker_id for topic in view.image.topics for partition in topic.partitions.values())


def records_without_broker(view: ControllerView, broker_id: int, *, unclean: bool = False) -> Iterator[MetadataRecord]:
    """The changes when a broker stops leading and being in sync: fenced, shut down, unregistered,
    or registered anew. `unclean`: it may have lost records, so it is not an eligible leader either.
    """

    def concerns(partition: PartitionImage) -> bool:
        return broker_id in partition.isr or (unclean and broker_id in partition.elr)

    yield from _records_without(view, broker_id, concerns, unclean=unclean)


def records_without_directories(
    view: ControllerView, broker_id: int, directories: Container[bytes]
) -> Iterator[MetadataRecord]:
    """The changes when log directories of a broker have failed: the replicas in them are offline (K22)."""

    def concerns(partition: PartitionImage) -> bool:
        return broker_id in partition.isr and partition.directory_of(broker_id) in directories

    yield from _records_without(view, broker_id, concerns, unclean=False)


def _records_without(
    view: ControllerView, broker_id: int, concerns: Callable[[PartitionImage], bool], *, unclean: bool
) -> Iterator[MetadataRecord]:
    for topic in view.image.topics:
        rules = None
        for index, partition in topic.in_order():
            if not concerns(partition):
                continue
            if rules is None:
                rules = TopicRules(view, topic.name, removed=broker_id)
            target = PartitionTarget(
                isr=tuple(replica for replica in partition.isr if replica != broker_id),
                unclean_shutdown=(broker_id,) if unclean else (),
                election=rules.election,
            )
            record = partition_change(topic.topic_id, index, partition, target, rules.of(partition))
            if record is not None:
                yield record


def records_with_broker(view: ControllerView, broker_id: int) -> Iterator[MetadataRecord]:
    """The changes when a broker comes alive: it leads what has no leader, if it may."""
    for topic in view.image.topics:
        rules = None
        for index, partition in topic.in_order():
            if partition.leader != NO_LEADER:
                continue
            if rules is None:
                rules = TopicRules(view, topic.name, removed=NOBODY, added=broker_id)
            target = PartitionTarget(election=rules.election)
            record = partition_change(topic.topic_id, index, partition, target, rules.of(partition))
            if record is not None:
                yield record
