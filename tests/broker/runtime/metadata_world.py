"""A metadata quorum of one voter over memory files, without the rest of a node.

world = MetadataWorld(files)
world.open()
await world.submit(CreateTopicsRequest(...))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broker.chance import SystemIds
from broker.clock import Clock
from broker.runtime.broker_lifecycle import BrokerIdentity, BrokerLifecycle
from broker.runtime.controller_client import ControllerClient
from broker.runtime.metadata_log import open_metadata_log
from broker.runtime.metadata_publisher import MetadataCache
from broker.runtime.quorum_runtime import QuorumPlace, QuorumRuntime
from broker.runtime.snapshot_schedule import SnapshotSettings
from broker.storage.files import Files
from broker.storage.memory_files import MemoryFiles
from coordinator.controller.view import ControllerSettings, EffectiveSetting
from coordinator.metadata.image import Endpoint, MetadataImage
from coordinator.quorum.voters import Voter
from wire.errors import KafkaError
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

DIRECTORY = "/data"
METADATA_DIRECTORY = f"{DIRECTORY}/__cluster_metadata-0"
CLUSTER_ID = "the-cluster"
LOG_DIR_ID = b"\xaa" * 16


class AnyTopicSettings:
    """Every setting of a topic is right."""

    def check(self, configs: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
        return

    def effective(self, configs: Mapping[str, str], cluster_default: Mapping[str, str]) -> Sequence[EffectiveSetting]:
        return []


class MetadataWorld:
    """One run of a quorum on `files`; make another on the same files to start again."""

    def __init__(
        self, files: Files | None = None, *, clock: Clock | None = None, snapshots: SnapshotSettings | None = None
    ) -> None:
        self.files: Files = MemoryFiles() if files is None else files
        self.clock = clock or Clock()
        self.metadata = MetadataCache()
        self.faults: list[KafkaError] = []
        self._snapshots = snapshots or SnapshotSettings()
        self.quorum: QuorumRuntime
        self.controller: ControllerClient
        self.lifecycle: BrokerLifecycle

    def open(self, *, voters: Sequence[int] = (1,)) -> None:
        """Open the log and lead."""
        self.log = open_metadata_log(self.files, DIRECTORY, self.clock.now_ms())
        self.quorum = QuorumRuntime(
            QuorumPlace(self.files, DIRECTORY, self.log, Voter(1), tuple(Voter(voter) for voter in voters)),
            ControllerSettings(CLUSTER_ID, AnyTopicSettings(), local_broker_id=1),  # type: ignore[arg-type]
            self.metadata,
            self.clock,
            SystemIds(),
            snapshot_settings=self._snapshots,
            on_fault=self.faults.append,
        )
        self.quorum.open()
        self.controller = ControllerClient(self.quorum, self.metadata, self.clock, 1)

    async def join(self, previous_broker_epoch: int = -1) -> None:
        """Register the broker of this process and unfence it."""
        identity = BrokerIdentity(
            broker_id=1,
            cluster_id=CLUSTER_ID,
            incarnation_id=SystemIds().uuid(),
            endpoints=[Endpoint("PLAINTEXT", "localhost", 9092)],
            log_dirs=[LOG_DIR_ID],
            previous_broker_epoch=previous_broker_epoch,
        )
        self.lifecycle = BrokerLifecycle(self.controller, self.metadata, identity)
        await self.lifecycle.register()
        await self.lifecycle.unfence()

    async def create(self, *names: str, partitions: int = 1) -> None:
        """Create topics; every one has to succeed."""
        topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
        response = await self.controller.request(CreateTopicsRequest(topics=topics))
        assert [result.error_code for result in response.topics] == [0] * len(names)

    async def close(self) -> None:
        """A clean stop."""
        await self.quorum.close()
        self.log.close()
        self.clock.close()

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image

    def names(self) -> list[str]:
        """The topics that are published."""
        return sorted(self.image.topics.names())


def contents(image: MetadataImage) -> tuple[Any, ...]:
    """Everything in an image that does not change from start to start."""
    return image.topics, image.configs, image.features, image.next_producer_id
