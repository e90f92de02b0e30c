"""What a controller decision may look at, and what it consists of.

Every decider is a plain function `(request, view) -> Outcome` in the module of its subject; the
table in `controller.py` says which request goes to which. A decider changes nothing: it reads the
view and describes records and the response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from coordinator.controller.sessions import BrokerContact, BrokerSessions
from coordinator.machine import Event, Ids, MetadataRecord
from coordinator.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC, MetadataImage


class EffectiveSetting(NamedTuple):
    """One setting of a topic as CreateTopics answers it. `source` is Kafka's ConfigSource number."""

    name: str
    value: str | None
    read_only: bool
    source: int
    is_sensitive: bool


class TopicSettings(Protocol):
    """What the controller needs to know about the settings of topics, and of what else has some."""

    def check(self, configs: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
        """Raise KafkaError INVALID_CONFIG, naming key, value and limit, unless every key is a topic
        setting and every value is valid, alone and together. `before` is what an existing topic had."""
        ...

    def effective(self, configs: Mapping[str, str], cluster_default: Mapping[str, str]) -> Sequence[EffectiveSetting]:
        """Every topic setting by name, for a topic with these overrides in a cluster with these
        dynamic broker defaults."""
        ...

    def check_group(self, configs: Mapping[str, str]) -> None:
        """`check` for a group."""
        ...

    def check_client_metrics(self, name: str, configs: Mapping[str, str]) -> None:
        """`check` for a client metrics subscription; INVALID_REQUEST for unknown keys."""
        ...

    def is_list_of_topic(self, name: str) -> bool:
        """Whether a topic's setting takes APPEND and SUBTRACT."""
        ...

    def is_list_of_broker(self, name: str) -> bool:
        """Whether a broker's setting takes APPEND and SUBTRACT."""
        ...

    def topic_list_start(self, name: str) -> list[str]:
        """What APPEND to an unset list of a topic starts from."""
        ...

    def broker_list_start(self, name: str) -> list[str]:
        """What APPEND to an unset list of a broker starts from."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The static settings the controller decides by, under Kafka's names in snake_case."""

    cluster_id: str
    topic_settings: TopicSettings
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    broker_session_timeout_ms: int = 9_000
    local_broker_id: int | None = None
    """The broker in the controller's own process: its session cannot lapse without the
    controller's, so it needs no heartbeat to stay alive."""


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What comes with one request: the settings, the offset its first record will get, and the
    version at which it was asked."""

    settings: ControllerSettings
    next_offset: int
    api_version: int = -1


@dataclass(frozen=True, slots=True)
class ControllerView:
    """The controller's world at the time of one decision."""

    image: MetadataImage
    sessions: BrokerSessions
    context: ControllerContext
    now_ms: int
    ids: Ids

    @property
    def settings(self) -> ControllerSettings:
        """The static settings."""
        return self.context.settings

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version: decides how records are written."""
        return self.image.features.metadata_version

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker may lead and be in an ISR: registered, not fenced, not shutting down."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.active

    def topic_setting(self, topic: str, name: str) -> str | None:
        """A dynamic setting as it holds for a topic: its own, else the cluster-wide default."""
        value = self.image.configs.of(RESOURCE_TOPIC, topic).get(name)
        if value is None:
            value = self.image.configs.of(RESOURCE_BROKER, "").get(name)
        return value


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a decider wants: records (all or nothing), the response, sentences for the process's
    log, and contacts of brokers, which are kept in memory only."""

    response: Any
    records: Sequence[MetadataRecord] = ()
    events: Sequence[Event] = ()
    contacts: Sequence[BrokerContact] = field(default=())
