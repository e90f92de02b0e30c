"""Topics that are created because somebody asked for them: by Metadata and by FindCoordinator.

A name is created once, however many ask at the same time; all of them wait for it, so that the answer
can be complete. Internal topics take as many replicas as there are live brokers when there are fewer
than configured, and never need more in-sync replicas than they have: one node works without settings.
Source: Kafka's DefaultAutoTopicCreationManager, and semantics K.6 for the settings of internal topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from broker.runtime.controller_client import ControllerClient
from broker.runtime.metadata_publisher import MetadataCache
from coordinator.metadata.image import RESOURCE_BROKER
from wire.errors import ErrorCode, KafkaError
from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """How an internal topic is created. `min_insync_replicas` is None where the cluster's value holds."""

    partition_count: int
    replication_factor: int
    segment_bytes: int
    cleanup_policy: str
    compression_type: str
    min_insync_replicas: int | None = None
    further_configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AutoTopicSettings:
    """offsets.topic.*, transaction.state.log.*, share.coordinator.state.topic.* and the cluster-wide
    min.insync.replicas, under these names; the defaults are Kafka's."""

    offsets_partitions: int = 50
    offsets_replication_factor: int = 3
    offsets_segment_bytes: int = 104_857_600
    transactions_partitions: int = 50
    transactions_replication_factor: int = 3
    transactions_segment_bytes: int = 104_857_600
    transactions_min_isr: int = 2
    shares_partitions: int = 50
    shares_replication_factor: int = 3
    shares_segment_bytes: int = 104_857_600
    shares_min_isr: int = 2
    min_insync_replicas: int = 1

    def internal_topic(self, name: str) -> InternalTopic | None:
        """How to create this topic if it is an internal one."""
        if name == CONSUMER_OFFSETS:
            return InternalTopic(
                self.offsets_partitions,
                self.offsets_replication_factor,
                self.offsets_segment_bytes,
                "compact",
                "producer",
            )
        if name == TRANSACTION_STATE:
            return InternalTopic(
                self.transactions_partitions,
                self.transactions_replication_factor,
                self.transactions_segment_bytes,
                "compact",
                "uncompressed",
                self.transactions_min_isr,
                (("unclean.leader.election.enable", "false"),),
            )
        if name == SHARE_GROUP_STATE:
            return InternalTopic(
                self.shares_partitions,
                self.shares_replication_factor,
                self.shares_segment_bytes,
                "delete",
                "producer",
                self.shares_min_isr,
                (("retention.ms", "-1"),),
            )
        return None


class AutoTopics:
    """Creates topics on demand, one creation in flight per name."""

    def __init__(self, controller: ControllerClient, metadata: MetadataCache, settings: AutoTopicSettings) -> None:
        self._controller = controller
        self._metadata = metadata
        self._settings = settings
        self._in_flight: dict[str, asyncio.Future[KafkaError | None]] = {}

    async def ensure(self, names: Iterable[str]) -> dict[str, KafkaError]:
        """See that the topics exist and are published here. Returns why, for those that do not."""
        own: list[str] = []
        others: dict[str, asyncio.Future[KafkaError | None]] = {}
        topics = self._metadata.image.topics
        for name in dict.fromkeys(names):
            if topics.by_name(name) is not None:
                continue
            in_flight = self._in_flight.get(name)
            if in_flight is None:
                own.append(name)
                self._in_flight[name] = asyncio.get_running_loop().create_future()
            else:
                others[name] = in_flight
        errors = await self._create(own) if own else {}
        for name, in_flight in others.items():
            error = await asyncio.shield(in_flight)
            if error is not None:
                errors[name] = error
        return errors

    async def _create(self, names: list[str]) -> dict[str, KafkaError]:
        errors: dict[str, KafkaError] = {}
        try:
            response = await self._controller.request(
                CreateTopicsRequest(topics=[self._creatable(name) for name in names])
            )
            for result in response.topics:
                # Somebody else was faster: what matters is that it is there.
                if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    errors[result.name] = KafkaError(ErrorCode(result.error_code), result.error_message)
        except KafkaError as error:
            errors = dict.fromkeys(names, error)
        finally:
            for name in names:
                future = self._in_flight.pop(name)
                if not future.done():
                    future.set_result(errors.get(name))
        return errors

    def _creatable(self, name: str) -> CreatableTopic:
        internal = self._settings.internal_topic(name)
        if internal is None:
            return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
        image = self._metadata.image
        replication_factor = min(internal.replication_factor, max(1, len(image.alive_brokers())))
        configs = {
            "cleanup.policy": internal.cleanup_policy,
            "compression.type": internal.compression_type,
            "segment.bytes": str(internal.segment_bytes),
            **dict(internal.further_configs),
        }
        cluster_wide = image.configs.of(RESOURCE_BROKER, "").get("min.insync.replicas")
        wanted = internal.min_insync_replicas
        if wanted is None and int(cluster_wide or self._settings.min_insync_replicas) > replication_factor:
            wanted = replication_factor
        if wanted is not None:
            configs["min.insync.replicas"] = str(min(wanted, replication_factor))
        return CreatableTopic(
            name=name,
            num_partitions=internal.partition_count,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
