"""The metadata of the whole cluster at one offset of `__cluster_metadata-0`, as an immutable value.

Every part is a persistent map, so an image is shared freely between requests, and the cost of a
change depends on what changed, not on how many topics or partitions exist. A newer image is made by
`coordinator.metadata.delta.MetadataDelta` alone. Source: Kafka's org.apache.kafka.image.MetadataImage.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from immutables import Map

from coordinator.metadata.features import METADATA_VERSION, MINIMUM_METADATA_VERSION

NO_LEADER = -1

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_BROKER_LOGGER = 8
RESOURCE_CLIENT_METRICS = 16
RESOURCE_GROUP = 32

RECOVERED = 0
RECOVERING = 1

NO_ENTRIES: Map[Any, Any] = Map()

DIRECTORY_MIGRATING = bytes(16)
DIRECTORY_UNASSIGNED = bytes(15) + b"\x01"
DIRECTORY_LOST = bytes(15) + b"\x02"


class PartitionImage(NamedTuple):
    """One partition as the controller has decided it (Kafka: PartitionRegistration).

    `directories[i]` is the id of the log directory that holds the replica `replicas[i]`.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    directories: tuple[bytes, ...] = ()
    leader_recovery_state: int = RECOVERED

    def directory_of(self, broker_id: int) -> bytes:
        """The id of the log directory of this broker's replica; the "unassigned" id without one."""
        if broker_id in self.replicas:
            index = self.replicas.index(broker_id)
            if index < len(self.directories):
                return self.directories[index]
        return DIRECTORY_UNASSIGNED


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and its partitions, which are numbered 0 .. len(partitions) - 1."""

    name: str
    topic_id: bytes
    partitions: Map[int, PartitionImage]

    def in_order(self) -> Iterator[tuple[int, PartitionImage]]:
        """The partitions by rising number."""
        partitions = self.partitions
        for index in range(len(partitions)):
            yield index, partitions[index]


@dataclass(frozen=True, slots=True)
class TopicsImage:
    """All topics, to be found by name and by id."""

    ids: Map[str, bytes] = NO_ENTRIES
    topics: Map[bytes, TopicImage] = NO_ENTRIES

    def by_name(self, name: str) -> TopicImage | None:
        """The topic of this name, or None."""
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def by_id(self, topic_id: bytes) -> TopicImage | None:
        """The topic with this 16-byte id, or None."""
        return self.topics.get(topic_id)

    def partition(self, name: str, partition: int) -> PartitionImage | None:
        """One partition by topic name and number, or None."""
        topic = self.by_name(name)
        return None if topic is None else topic.partitions.get(partition)

    def names(self) -> Iterator[str]:
        """All topic names, in no order."""
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.topics)

    def __iter__(self) -> Iterator[TopicImage]:
        return iter(self.topics.values())


class Endpoint(NamedTuple):
    """Where a node listens under one listener name. `security_protocol` is Kafka's number:
    0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    listener_name: str
    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(NamedTuple):
    """The levels of one feature that a node supports."""

    min_level: int
    max_level: int


class _EveryDirectory(Container[bytes]):
    """All directory ids but the one that says that the directory is lost."""

    def __contains__(self, directory_id: object) -> bool:
        return directory_id != DIRECTORY_LOST


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A registered broker (Kafka: BrokerRegistration). Fenced brokers are registered, not alive."""

    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[tuple[str, FeatureRange], ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None

    def endpoint(self, listener_name: str) -> Endpoint | None:
        """The broker's endpoint under this listener name, or None."""
        for endpoint in self.endpoints:
            if endpoint.listener_name == listener_name:
                return endpoint
        return None

    def online_directories(self) -> Container[bytes]:
        """The ids of the log directories in which a replica on this broker can be read: its live ones, and the
        ids that stand for "not known yet". A broker that has named none has them all online."""
        if not self.log_dirs:
            return _EveryDirectory()
        return frozenset((*self.log_dirs, DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING))

    def is_online(self, directory_id: bytes) -> bool:
        """Whether a replica in this log directory can be read."""
        return directory_id in self.online_directories()

    @property
    def active(self) -> bool:
        """Whether it may be elected and be in an ISR: neither fenced nor shutting down."""
        return not self.fenced and not self.in_controlled_shutdown


@dataclass(frozen=True, slots=True)
class ControllerImage:
    """A registered controller (Kafka: ControllerRegistration)."""

    controller_id: int
    incarnation_id: bytes
    zk_migration_ready: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[tuple[str, FeatureRange], ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigsImage:
    """Dynamic settings by resource. The cluster-wide default of brokers is (RESOURCE_BROKER, "")."""

    resources: Map[tuple[int, str], Map[str, str]] = NO_ENTRIES

    def of(self, resource_type: int, name: str) -> Mapping[str, str]:
        """What is set on this resource; empty if nothing is."""
        return self.resources.get((resource_type, name), NO_ENTRIES)


@dataclass(frozen=True, slots=True)
class FeaturesImage:
    """The finalized feature levels. A feature that is absent has level 0."""

    levels: Map[str, int] = NO_ENTRIES

    def level(self, name: str) -> int:
        """The finalized level of a feature, 0 when it is not finalized."""
        return self.levels.get(name, 0)

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version; the lowest one before the first record."""
        return self.levels.get(METADATA_VERSION, MINIMUM_METADATA_VERSION)


class ScramCredential(NamedTuple):
    """What is kept of a SCRAM password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class AclEntry(NamedTuple):
    """One access rule; numbers are Kafka's AclOperation, AclPermissionType and so on."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True)
class DelegationTokenImage:
    """A delegation token; the HMAC is not stored, it follows from the token id and a secret."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int


QuotaEntity = frozenset[tuple[str, str | None]]
"""A set of (entity type, entity name); the name is None for the default entity."""


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Everything the cluster knows, as of `offset` (the last record that is in it, -1 for none)
    written in the quorum epoch `epoch`."""

    topics: TopicsImage = TopicsImage()
    brokers: Map[int, BrokerImage] = NO_ENTRIES
    controllers: Map[int, ControllerImage] = NO_ENTRIES
    configs: ConfigsImage = ConfigsImage()
    features: FeaturesImage = FeaturesImage()
    client_quotas: Map[QuotaEntity, Map[str, float]] = NO_ENTRIES
    next_producer_id: int = 0
    acls: Map[bytes, AclEntry] = NO_ENTRIES
    scram: Map[tuple[int, str], ScramCredential] = NO_ENTRIES
    delegation_tokens: Map[str, DelegationTokenImage] = NO_ENTRIES
    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1

    def alive_brokers(self) -> list[BrokerImage]:
        """The brokers that are not fenced, by rising id."""
        return sorted(
            (broker for broker in self.brokers.values() if not broker.fenced),
            key=lambda broker: broker.broker_id,
        )

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced


EMPTY_IMAGE = MetadataImage()
