"""Everything a node keeps: logs, metadata, partitions, coordinators. A reset replaces it whole.

Opened in the order in which one part needs another, closed in reverse. Source: the order of
Kafka's `ControllerServer.startup` and `BrokerServer.startup`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker import server_settings
from broker.chance import SystemIds
from broker.log_upkeep import LogUpkeep
from broker.replication.directory_assignments import DirectoryAssignments
from broker.replication.fetch_session import FetchSessionCache
from broker.replication.isr_changes import IsrChanges
from broker.replication.producer_ids import ProducerIds
from broker.replication.replica_manager import ReplicaManager
from broker.runtime.auto_topics import AutoTopics
from broker.runtime.broker_lifecycle import BrokerIdentity, BrokerLifecycle
from broker.runtime.controller_client import ControllerClient
from broker.runtime.group_coordinator import GroupCoordinator
from broker.runtime.marker_writer import LocalMarkerWriter
from broker.runtime.metadata_check import refuse_unserved
from broker.runtime.metadata_log import open_metadata_log
from broker.runtime.metadata_publisher import MetadataCache
from broker.runtime.quorum_runtime import QuorumPlace, QuorumRuntime
from broker.runtime.transaction_coordinator import TransactionCoordinator
from broker.runtime.transaction_verifier import LocalTransactionVerifier
from broker.storage.files import reason_of
from broker.storage.log_manager import LogManager
from coordinator.controller.config_rules import ConfigRules
from coordinator.machine import MetadataRecord
from coordinator.metadata.features import TRANSACTION_VERSION
from coordinator.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC, Endpoint
from coordinator.quorum.voters import Voter
from wire.compression import Compression
from wire.errors import ErrorCode, KafkaError
from wire.messages.records.cluster_metadata import ProducerIdsRecord

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.config import BrokerConfig
    from broker.config_log import LogConfig
    from broker.handlers.context import Node
    from broker.network.listener import ListenerSet
    from broker.storage.files import Files
    from broker.storage.log import Log
    from coordinator.metadata.delta import MetadataDelta
    from coordinator.metadata.image import MetadataImage

logger = logging.getLogger(__name__)


class NodeState:
    """The state of one node between `open` and `close`. `fill` gives its parts to the handlers."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        listeners: ListenerSet,
        files: Files,
        *,
        on_fault: Callable[[KafkaError], None],
        cluster_id: str | None = None,
        first_producer_id: int = 0,
    ) -> None:
        """`on_fault` is told when the metadata log fails; the node cannot go on then. `cluster_id` and
        `first_producer_id` are for a new cluster that takes the place of an old one: producers that
        live on must not meet others with their ids."""
        self._config = config
        self._clock = clock
        self._listeners = listeners
        self._files = files
        self.ids = SystemIds()
        self._on_fault = on_fault
        self._cluster_id = cluster_id or config["odradek.cluster.id"]
        self._first_producer_id = first_producer_id
        self._is_open = False
        self._telling: asyncio.Task[None] | None = None
        self._metadata_log: Log | None = None
        self._isr_changes: IsrChanges
        self._assignments: DirectoryAssignments | None = None
        self._quorum: QuorumRuntime | None = None
        self._producer_ids: ProducerIds | None = None
        self.metadata = MetadataCache()
        self.log_manager: LogManager | None = None
        self._upkeep: LogUpkeep | None = None
        self.controller: ControllerClient
        self.lifecycle: BrokerLifecycle
        self.replica_manager: ReplicaManager | None = None
        self.groups: GroupCoordinator | None = None
        self.transactions: TransactionCoordinator | None = None
        self._marker_writer: LocalMarkerWriter | None = None

    @property
    def cluster_id(self) -> str:
        """The cluster's id, from the log directories or new."""
        assert self.log_manager is not None
        return self.log_manager.cluster_id

    @property
    def upkeep(self) -> LogUpkeep:
        """The duties of the logs, once opened."""
        assert self._upkeep is not None
        return self._upkeep

    def fill(self, node: Node) -> None:
        """Hand the parts to the handlers."""
        node.cluster_id = self.cluster_id
        node.log_manager = self.log_manager
        node.metadata = self.metadata
        node.controller = self.controller
        node.quorum = self._quorum
        node.replica_manager = self.replica_manager
        node.producer_ids = self._producer_ids
        node.groups = self.groups
        node.transactions = self.transactions
        node.marker_writer = self._marker_writer
        node.auto_topics = AutoTopics(self.controller, self.metadata, server_settings.auto_topic_settings(self._config))
        node.fetch_sessions = FetchSessionCache(
            self._config["max.incremental.fetch.session.cache.slots"], self.ids.below
        )

    # --- opening -------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load what is there and join the cluster. Raises StorageFault, OSError, KafkaError."""
        self._open_log_directories()
        self._open_quorum()
        await self.lifecycle.register()
        assert self.log_manager is not None
        self.log_manager.load(now_ms=self._clock.now_ms())
        self._upkeep = LogUpkeep(self.log_manager, self._clock, self._config)
        self._open_partitions()
        await self.lifecycle.unfence()
        self._is_open = True
        if self.log_manager.failed_directories:
            self._tell_failures()

    def _open_log_directories(self) -> None:
        config = self._config
        self.log_manager = LogManager(
            self._files,
            config.log_dirs,
            config_for_topic=self._log_config_for_topic,
            producer_settings=server_settings.producer_settings(config),
            delete_at_once=config.in_memory,
            on_directory_failure=self._directory_failed,
            metadata_directory=config.metadata_log_dir,
        )
        # Whatever is refused is found by looking; a directory that was refused is as it was.
        self.log_manager.look(cluster_id=self._cluster_id, node_id=config.node_id)
        refuse_unserved(self._files, config.metadata_log_dir)
        self.log_manager.open(cluster_id=self._cluster_id, node_id=config.node_id)

    def _log_config_for_topic(self, topic: str) -> LogConfig:
        return self._config.log_config(topic, self.metadata.image.configs.of(RESOURCE_TOPIC, topic))

    def _directory_failed(self, path: str, error: OSError) -> None:
        """J25: what lies there answers KAFKA_STORAGE_ERROR, the controller is told; the last directory, and that
        of the metadata, take the node with them."""
        logger.error("log directory %s has failed: %s", path, reason_of(error))
        if self.replica_manager is not None:
            self.replica_manager.directory_failed()
        if not self._is_open or self.log_manager is None:
            return  # Told once the node is registered, or closing already.
        if path == self._config.metadata_log_dir:
            why = "it holds the cluster's metadata"
        elif not self.log_manager.directory_ids:
            why = "no other of log.dirs is left"
        else:
            self._tell_failures()
            return
        self._on_fault(
            KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {path} has failed, and {why}: {reason_of(error)}")
        )

    def _tell_failures(self) -> None:
        """Tell the controller which directories are offline; one telling at a time says all."""
        if self._telling is None:
            self._telling = self._clock.loop.create_task(self._tell())

    async def _tell(self) -> None:
        assert self.log_manager is not None
        told: set[bytes] = set()
        try:
            while untold := {each for each in self.log_manager.failed_directories.values() if any(each)} - told:
                await self.lifecycle.directories_failed(sorted(untold | told))
                told |= untold
        except KafkaError as error:
            logger.error("the controller was not told of failed log directories: %s", error)
        finally:
            self._telling = None

    def _open_quorum(self) -> None:
        config, clock = self._config, self._clock
        node_id = config.node_id
        log_directory = config.metadata_log_dir
        self._metadata_log = open_metadata_log(
            self._files, log_directory, clock.now_ms(), server_settings.metadata_log_config(config)
        )
        self._quorum = QuorumRuntime(
            QuorumPlace(self._files, log_directory, self._metadata_log, Voter(node_id), (Voter(node_id),)),
            server_settings.controller_settings(config, self.cluster_id, ConfigRules(config.values)),
            self.metadata,
            clock,
            self.ids,
            snapshot_settings=server_settings.snapshot_settings(config),
            on_fault=self._on_fault,
            further_bootstrap=self._further_bootstrap(),
        )
        self._quorum.open()
        self.controller = ControllerClient(self._quorum, self.metadata, clock, node_id)
        self._producer_ids = ProducerIds(self.controller, clock)
        self.lifecycle = BrokerLifecycle(self.controller, self.metadata, self._identity())

    def _further_bootstrap(self) -> list[MetadataRecord]:
        if not self._first_producer_id:
            return []
        record = ProducerIdsRecord(
            broker_id=self._config.node_id, broker_epoch=-1, next_producer_id=self._first_producer_id
        )
        return [MetadataRecord(record)]

    def _identity(self) -> BrokerIdentity:
        assert self.log_manager is not None
        endpoints = []
        for listener in self._listeners.all():
            host, port = listener.advertised
            protocol = server_settings.SECURITY_PROTOCOLS[listener.config.security_protocol]
            endpoints.append(Endpoint(listener.name, host, port, protocol))
        return BrokerIdentity(
            broker_id=self._config.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.ids.uuid(),
            endpoints=endpoints,
            log_dirs=sorted(self.log_manager.directory_ids.values()),
            rack=self._config["broker.rack"],
            previous_broker_epoch=self.log_manager.previous_broker_epoch,
        )

    def _open_partitions(self) -> None:
        config = self._config
        assert self.log_manager is not None
        replica_manager = ReplicaManager(
            self.log_manager,
            self._clock,
            broker_id=config.node_id,
            log_config_of=config.log_config,
            replica_lag_time_max_ms=config["replica.lag.time.max.ms"],
            fetch_max_bytes=config["fetch.max.bytes"],
        )
        replica_manager.transaction_verification = server_settings.verification_settings(config)
        self.replica_manager = replica_manager
        self._isr_changes = IsrChanges(
            self.controller, self._clock, replica_manager.surroundings, lambda: self.lifecycle.broker_epoch
        )
        replica_manager.surroundings.propose_isr = self._isr_changes.propose
        self.groups = GroupCoordinator(
            server_settings.group_settings(config),
            replica_manager=replica_manager,
            clock=self._clock,
            ids=self.ids,
            commit_timeout_ms=config["offsets.commit.timeout.ms"],
            compression=Compression(config["offsets.topic.compression.codec"]),
        )
        replica_manager.on_leadership_change.append(self.groups.leadership_changed)
        self._open_transactions(replica_manager, self.groups)
        self.metadata.subscribe(self._settings_changed)
        self.metadata.subscribe(replica_manager.apply)
        self._assignments = DirectoryAssignments(
            self.log_manager, self.controller, self._clock, config.node_id, lambda: self.lifecycle.broker_epoch
        )
        self.metadata.subscribe(self._assignments.apply)
        replica_manager.set_strays_aside()
        self.metadata.subscribe(self.groups.metadata_changed)
        self.metadata.subscribe(self._logs_affected)

    def _logs_affected(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Other settings may leave the logs something to do. Only deletions leave something due; the deadline is looked
        for among all logs."""
        if delta.config_changes and self._is_open:
            self.upkeep.touched()
        if delta.deleted_topics:
            self.upkeep.arm_deletions()

    def _open_transactions(self, replica_manager: ReplicaManager, groups: GroupCoordinator) -> None:
        config = self._config
        assert self._producer_ids is not None
        self._marker_writer = LocalMarkerWriter(
            replica_manager, groups, self._clock, timeout_ms=config["request.timeout.ms"]
        )
        self.transactions = TransactionCoordinator(
            server_settings.transaction_settings(config),
            replica_manager=replica_manager,
            clock=self._clock,
            ids=self.ids,
            next_producer_id=self._producer_ids.next_id,
            transaction_version=lambda: self.metadata.image.features.level(TRANSACTION_VERSION),
            marker_writers={config.node_id: self._marker_writer},
        )
        replica_manager.on_leadership_change.append(self.transactions.leadership_changed)
        replica_manager.transaction_verifier = LocalTransactionVerifier(self.transactions)

    def _settings_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Dynamic settings of brokers take effect before anything that reads them."""
        if any(resource_type == RESOURCE_BROKER for resource_type, _ in delta.config_changes):
            self._config.apply_dynamic(
                image.configs.of(RESOURCE_BROKER, ""), image.configs.of(RESOURCE_BROKER, str(self._config.node_id))
            )
            self._apply_settings()

    def _apply_settings(self) -> None:
        config = self._config
        if self.groups is not None:
            self.groups.settings = server_settings.group_settings(config)
        if self.replica_manager is not None:
            self.replica_manager.transaction_verification = server_settings.verification_settings(config)
        if self.log_manager is not None:
            changed, shared = server_settings.producer_settings(config), self.log_manager.producer_settings
            shared.expiration_ms = changed.expiration_ms
            shared.verification_enabled = changed.verification_enabled

    # --- closing -------------------------------------------------------------------------------

    async def close(self) -> None:
        """Take leave of the cluster and close what was opened, so that the next start is clean.

        What did not open whole is let go of instead: nothing may vouch for directories that were not
        read, or that are another process's.
        """
        if not self._is_open or self.log_manager is None or self._metadata_log is None:
            await self.abandon()
            return
        self._is_open = False
        await self.lifecycle.shut_down()
        await self._close_parts()
        self._metadata_log.close()
        self.log_manager.close(now_ms=self._clock.now_ms(), broker_epoch=self.lifecycle.broker_epoch)

    async def abandon(self) -> None:
        """Let go of everything without a clean end, as a crash would (a reset deletes the files)."""
        await self._close_parts()
        if self._metadata_log is not None:
            self._metadata_log.segments.close_files()
        if self.log_manager is not None:
            self.log_manager.abandon()

    async def _close_parts(self) -> None:
        if self._telling is not None:
            await asyncio.wait([self._telling])
        if self._assignments is not None:
            await self._assignments.close()
        if self._upkeep is not None:
            await self._upkeep.close()
        if self.transactions is not None:
            await self.transactions.close()
        if self.groups is not None:
            self.groups.close()
        if self.replica_manager is not None:
            self.replica_manager.close()
            await self._isr_changes.close()
        if self._producer_ids is not None:
            await self._producer_ids.close()
        if self._quorum is not None:
            await self._quorum.close()
