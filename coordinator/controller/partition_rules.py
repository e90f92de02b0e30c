"""What holds for the partitions of a topic when the controller changes them: who may lead, the
effective min ISR, whether unclean elections are allowed, where a new replica goes."""

from __future__ import annotations

from coordinator.controller.partition_change import ChangeRules, Election
from coordinator.controller.view import ControllerView
from coordinator.metadata.features import ELR_VERSION
from coordinator.metadata.image import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    BrokerImage,
    PartitionImage,
)

NOBODY = -1


def default_directory(broker: BrokerImage | None) -> bytes:
    """The log directory a new replica on this broker gets: the only one if there is one, else the
    broker chooses (Kafka: ClusterControlManager.defaultDir)."""
    if broker is None or not broker.log_dirs:
        return DIRECTORY_MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else DIRECTORY_UNASSIGNED


def may_lead(broker: BrokerImage | None, partition: PartitionImage) -> bool:
    """Whether the broker is active and its replica's log directory is online (LeaderAcceptor)."""
    if broker is None or not broker.active:
        return False
    return broker.is_online(partition.directory_of(broker.broker_id))


class TopicRules:
    """The rules of one topic's partitions during one decision.

    While a decision fences, unfences or re-registers a broker its image still shows the old state:
    `removed` never leads and `added` does, whatever the image says.
    """

    def __init__(self, view: ControllerView, topic: str, removed: int = NOBODY, added: int = NOBODY) -> None:
        self._view = view
        self._removed = removed
        self._added = added
        self.elr_enabled = view.image.features.level(ELR_VERSION) >= 1
        self.min_isr = self._min_isr(topic)
        unclean = view.topic_setting(topic, "unclean.leader.election.enable")
        self.election = (
            Election.UNCLEAN
            if (unclean == "true" if unclean else view.settings.unclean_leader_election_enable)
            else Election.ONLINE
        )

    def _min_isr(self, topic: str) -> int:
        configured = self._view.topic_setting(topic, "min.insync.replicas")
        return int(configured) if configured else self._view.settings.min_insync_replicas

    def of(self, partition: PartitionImage) -> ChangeRules:
        """The rules of one of the topic's partitions."""
        brokers = self._view.image.brokers

        def is_acceptable_leader(broker_id: int) -> bool:
            if broker_id == self._removed:
                return False
            return broker_id == self._added or may_lead(brokers.get(broker_id), partition)

        return ChangeRules(
            is_acceptable_leader=is_acceptable_leader,
            default_directory=lambda broker_id: default_directory(brokers.get(broker_id)),
            metadata_version=self._view.metadata_version,
            elr_enabled=self.elr_enabled,
            # A topic cannot have more replicas in sync than it has replicas (K17).
            min_isr=min(self.min_isr, len(partition.replicas)),
        )
