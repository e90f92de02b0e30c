"""What a run of metadata records changes in an image, and the one replay of every record type.

    delta = MetadataDelta(image)
    delta.replay(message) ...          the records, in log order
    image = delta.apply(offset, epoch)

The delta is also what the broker reacts to: it says which topics, partitions, settings and brokers
are touched, so that nobody compares whole images. Its cost follows the number of records. Source:
Kafka's org.apache.kafka.image.MetadataDelta and its replay methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from immutables import Map

from coordinator.metadata import replay_cluster, replay_security, replay_topics
from coordinator.metadata.image import (
    EMPTY_IMAGE,
    AclEntry,
    BrokerImage,
    ConfigsImage,
    ControllerImage,
    DelegationTokenImage,
    FeaturesImage,
    MetadataImage,
    PartitionImage,
    QuotaEntity,
    ScramCredential,
    TopicImage,
    TopicsImage,
)
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.messages.records import cluster_metadata as records

K = TypeVar("K")
N = TypeVar("N")
V = TypeVar("V")


class TopicDelta:
    """A topic that was created or whose partitions changed. `changed` holds the new partitions."""

    __slots__ = ("before", "changed", "name", "topic_id")

    def __init__(self, name: str, topic_id: bytes, before: TopicImage | None) -> None:
        self.name = name
        self.topic_id = topic_id
        self.before = before
        self.changed: dict[int, PartitionImage] = {}

    @property
    def created(self) -> bool:
        """Whether the topic is new in this delta."""
        return self.before is None

    def partition(self, partition: int) -> PartitionImage | None:
        """The partition as of now, changed or not."""
        changed = self.changed.get(partition)
        if changed is not None or self.before is None:
            return changed
        return self.before.partitions.get(partition)

    def apply(self) -> TopicImage:
        """The topic with its changes."""
        partitions = Map() if self.before is None else self.before.partitions
        return TopicImage(self.name, self.topic_id, partitions.update(self.changed))


class MetadataDelta:
    """A set of changes on top of `base`; see the module docstring.

    topics           created or changed topics by id
    deleted_topics   deleted topics by id, as they were in `base`
    config_changes   per resource (type, name): setting -> new value, None when removed
    brokers          per broker id: its new image, None when unregistered
    features         per feature: its new level
    The other parts follow the same rule: key -> new value, None when removed.
    """

    __slots__ = (
        "_ids",
        "acls",
        "base",
        "brokers",
        "client_quotas",
        "config_changes",
        "controllers",
        "delegation_tokens",
        "deleted_topics",
        "features",
        "next_producer_id",
        "record_count",
        "scram",
        "topics",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.record_count = 0
        self.topics: dict[bytes, TopicDelta] = {}
        self.deleted_topics: dict[bytes, TopicImage] = {}
        self._ids: dict[str, bytes | None] = {}
        self.config_changes: dict[tuple[int, str], dict[str, str | None]] = {}
        self.brokers: dict[int, BrokerImage | None] = {}
        self.controllers: dict[int, ControllerImage | None] = {}
        self.features: dict[str, int] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float | None]] = {}
        self.next_producer_id: int | None = None
        self.acls: dict[bytes, AclEntry | None] = {}
        self.scram: dict[tuple[int, str], ScramCredential | None] = {}
        self.delegation_tokens: dict[str, DelegationTokenImage | None] = {}

    @classmethod
    def whole(cls, image: MetadataImage) -> MetadataDelta:
        """The delta from nothing to `image`: for a subscriber that comes late."""
        delta = cls(EMPTY_IMAGE)
        for topic in image.topics:
            topic_delta = TopicDelta(topic.name, topic.topic_id, None)
            topic_delta.changed.update(topic.partitions)
            delta.topics[topic.topic_id] = topic_delta
        delta._ids.update(image.topics.ids)
        delta.config_changes.update(
            (resource, dict(settings)) for resource, settings in image.configs.resources.items()
        )
        delta.brokers.update(image.brokers)
        delta.controllers.update(image.controllers)
        delta.features.update(image.features.levels)
        delta.client_quotas.update((entity, dict(quotas)) for entity, quotas in image.client_quotas.items())
        delta.next_producer_id = image.next_producer_id
        delta.acls.update(image.acls)
        delta.scram.update(image.scram)
        delta.delegation_tokens.update(image.delegation_tokens)
        return delta

    def replay(self, message: Any) -> None:
        """Add the effect of one record. Raises MetadataReplayError for a record that contradicts
        what came before it (an unknown topic, another broker epoch) or has an unknown type."""
        handler = _REPLAY.get(type(message))
        if handler is None:
            raise MetadataReplayError(f"{type(message).__name__} is no metadata record")
        handler(self, message)
        self.record_count += 1

    # Lookups that see the changes made so far.

    def topic(self, topic_id: bytes) -> TopicDelta | None:
        """The topic's changes, begun now if it is in the image; None when there is no such topic."""
        topic = self.topics.get(topic_id)
        if topic is None:
            before = self.base.topics.by_id(topic_id)
            if before is None or topic_id in self.deleted_topics:
                return None
            topic = self.topics[topic_id] = TopicDelta(before.name, topic_id, before)
        return topic

    def create_topic(self, name: str, topic_id: bytes) -> None:
        """Begin a new topic; its name must be free."""
        self.topics[topic_id] = TopicDelta(name, topic_id, None)
        self._ids[name] = topic_id

    def delete_topic(self, topic: TopicDelta) -> None:
        """Forget a topic and free its name."""
        del self.topics[topic.topic_id]
        if topic.before is not None:
            self.deleted_topics[topic.topic_id] = topic.before
        self._ids[topic.name] = None

    def topic_id(self, name: str) -> bytes | None:
        """The id of the topic of this name as of now, or None."""
        if name in self._ids:
            return self._ids[name]
        return self.base.topics.ids.get(name)

    def broker(self, broker_id: int) -> BrokerImage | None:
        """The broker as of now, or None."""
        if broker_id in self.brokers:
            return self.brokers[broker_id]
        return self.base.brokers.get(broker_id)

    # Applying.

    def apply(self, offset: int, epoch: int, timestamp_ms: int = -1) -> MetadataImage:
        """The image after these changes, which end with the record at `offset`, written in the
        quorum epoch `epoch` at `timestamp_ms`."""
        base = self.base
        return MetadataImage(
            topics=self._apply_topics() if self.topics or self.deleted_topics else base.topics,
            brokers=_changed(base.brokers, self.brokers),
            controllers=_changed(base.controllers, self.controllers),
            configs=self._apply_configs() if self.config_changes else base.configs,
            features=self._apply_features() if self.features else base.features,
            client_quotas=_changed_groups(base.client_quotas, self.client_quotas),
            next_producer_id=(base.next_producer_id if self.next_producer_id is None else self.next_producer_id),
            acls=_changed(base.acls, self.acls),
            scram=_changed(base.scram, self.scram),
            delegation_tokens=_changed(base.delegation_tokens, self.delegation_tokens),
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
        )

    def _apply_topics(self) -> TopicsImage:
        base = self.base.topics
        topics = base.topics.mutate()
        for topic_id in self.deleted_topics:
            del topics[topic_id]
        for topic_id, topic in self.topics.items():
            topics[topic_id] = topic.apply()
        return TopicsImage(ids=_changed(base.ids, self._ids), topics=topics.finish())

    def _apply_configs(self) -> ConfigsImage:
        return ConfigsImage(_changed_groups(self.base.configs.resources, self.config_changes))

    def _apply_features(self) -> FeaturesImage:
        return FeaturesImage(self.base.features.levels.update(self.features))


def _changed(base: Map[K, V], changes: Mapping[K, V | None]) -> Map[K, V]:
    """The map with the changes; None removes."""
    if not changes:
        return base
    mutation = base.mutate()
    for key, value in changes.items():
        if value is not None:
            mutation[key] = value
        elif key in mutation:
            del mutation[key]
    return mutation.finish()


def _changed_groups(base: Map[K, Map[N, V]], changes: Mapping[K, Mapping[N, V | None]]) -> Map[K, Map[N, V]]:
    """The map of maps with the changes; a group that becomes empty is removed."""
    if not changes:
        return base
    mutation = base.mutate()
    for key, group_changes in changes.items():
        group = _changed(mutation.get(key, Map()), group_changes)
        if group:
            mutation[key] = group
        elif key in mutation:
            del mutation[key]
    return mutation.finish()


def _no_effect(delta: MetadataDelta, record: Any) -> None:
    """Records that carry nothing for the image: NoOpRecord is a heartbeat of the log, the migration
    from ZooKeeper is over, and MetadataReplay has already acted on the bounds of a transaction."""


_REPLAY: dict[type, Callable[[MetadataDelta, Any], None]] = {
    records.RegisterBrokerRecord: replay_cluster.register_broker,
    records.UnregisterBrokerRecord: replay_cluster.unregister_broker,
    records.FenceBrokerRecord: replay_cluster.fence_broker,
    records.UnfenceBrokerRecord: replay_cluster.unfence_broker,
    records.BrokerRegistrationChangeRecord: replay_cluster.broker_registration_change,
    records.RegisterControllerRecord: replay_cluster.register_controller,
    records.UnregisterControllerRecord: replay_cluster.unregister_controller,
    records.FeatureLevelRecord: replay_cluster.feature_level,
    records.ProducerIdsRecord: replay_cluster.producer_ids,
    records.TopicRecord: replay_topics.topic,
    records.RemoveTopicRecord: replay_topics.remove_topic,
    records.PartitionRecord: replay_topics.partition,
    records.PartitionChangeRecord: replay_topics.partition_change,
    records.ClearElrRecord: replay_topics.clear_elr,
    records.ConfigRecord: replay_topics.config,
    records.ClientQuotaRecord: replay_security.client_quota,
    records.UserScramCredentialRecord: replay_security.user_scram_credential,
    records.RemoveUserScramCredentialRecord: replay_security.remove_user_scram_credential,
    records.AccessControlEntryRecord: replay_security.access_control_entry,
    records.RemoveAccessControlEntryRecord: replay_security.remove_access_control_entry,
    records.DelegationTokenRecord: replay_security.delegation_token,
    records.RemoveDelegationTokenRecord: replay_security.remove_delegation_token,
    records.NoOpRecord: _no_effect,
    records.ZkMigrationStateRecord: _no_effect,
    records.BeginTransactionRecord: _no_effect,
    records.EndTransactionRecord: _no_effect,
    records.AbortTransactionRecord: _no_effect,
}
"""Every record type of `__cluster_metadata` and what it does."""

KNOWN_RECORDS: dict[int, Any] = {record.API_KEY: record for record in _REPLAY}  # type: ignore[attr-defined]
"""Record classes by their type number."""
