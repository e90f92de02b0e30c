"""A node in process with the record APIs: real logs in memory, metadata from records, requests through dispatch.

node = RecordsNode()
node.create_topic("t", partitions=2)
response = await node.call(ProduceRequest(...), version=9)
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from broker.clock import Clock
from broker.config_log import LogConfig
from broker.handlers.context import Node
from broker.handlers.dispatch import ApiRow, Dispatcher
from broker.network.peer import Peer
from broker.replication.fetch_session import FetchSessionCache
from broker.replication.producer_ids import ProducerIdBlock, ProducerIds
from broker.replication.replica_manager import LeadershipChange, ReplicaManager
from broker.security.authorizer import AllowAllAuthorizer, Operation, ResourceType
from broker.storage.files import Files
from broker.storage.log_manager import LogManager
from broker.storage.memory_files import MemoryFiles
from coordinator.metadata.delta import MetadataDelta
from coordinator.metadata.image import EMPTY_IMAGE, MetadataImage
from wire.api import ApiKey
from wire.frames import decode_response, encode_request
from wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic, ReplicaState
from wire.messages.produce import PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData
from wire.messages.records.cluster_metadata import (
    BrokerEndpoint,
    ConfigRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
)
from wire.primitives import ZERO_UUID, TopicPartition
from wire.records import Compression, NewRecord, RecordBatch, batches, build_batch

BROKER_ID = 1
NOW_MS = 1_700_000_000_000
ROWS = (
    ApiRow(ApiKey.PRODUCE, "produce"),
    ApiRow(ApiKey.FETCH, "fetch"),
    ApiRow(ApiKey.LIST_OFFSETS, "list_offsets"),
    ApiRow(ApiKey.DELETE_RECORDS, "delete_records"),
    ApiRow(ApiKey.INIT_PRODUCER_ID, "init_producer_id"),
    ApiRow(ApiKey.OFFSET_FOR_LEADER_EPOCH, "offset_for_leader_epoch"),
    ApiRow(ApiKey.DESCRIBE_LOG_DIRS, "describe_log_dirs"),
    ApiRow(ApiKey.DESCRIBE_PRODUCERS, "describe_producers"),
)


def log_config(_topic: str, overrides: Mapping[str, str]) -> LogConfig:
    """What is set on a topic in these tests, over Kafka's defaults."""
    readers: dict[str, Any] = {
        "cleanup.policy": lambda text: frozenset(text.split(",")),
        "compression.type": str,
        "message.timestamp.type": str,
    }
    return LogConfig(**{name.replace(".", "_"): readers.get(name, int)(value) for name, value in overrides.items()})


class DenyingAuthorizer(AllowAllAuthorizer):
    """Allows all but what is in `denied`."""

    def __init__(self) -> None:
        self.denied: set[tuple[Operation, ResourceType, str]] = set()

    def authorize(
        self, principal: Any, client_host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return (operation, resource_type, resource_name) not in self.denied


class Blocks:
    """A controller that gives producer ids."""

    def __init__(self) -> None:
        self.given = 0

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        self.given += 1
        return ProducerIdBlock((self.given - 1) * 1000, 1000)


class RecordsNode:
    """See the module. Broker 1; brokers 2 and 3 exist in metadata only."""

    def __init__(self, files: Files | None = None) -> None:
        self.files = MemoryFiles() if files is None else files
        self.clock = Clock(wall_ms=lambda: NOW_MS)
        self.authorizer = DenyingAuthorizer()
        self.image: MetadataImage = EMPTY_IMAGE
        self.log_manager = LogManager(
            self.files, ["/logs"], config_for_topic=lambda topic: log_config(topic, self.image.configs.of(2, topic))
        )
        self.log_manager.open(cluster_id="cluster", node_id=BROKER_ID)
        self.log_manager.load(now_ms=NOW_MS)
        self.leadership: list[LeadershipChange] = []
        self.replicas = ReplicaManager(
            self.log_manager,
            self.clock,
            broker_id=BROKER_ID,
            log_config_of=log_config,
            on_leadership_change=[self.leadership.append],
        )
        node = Node(clock=self.clock, authorizer=self.authorizer, broker_id=BROKER_ID, cluster_id="cluster")
        self.node = node
        node.metadata = SimpleNamespace(image=self.image)
        node.replica_manager = self.replicas
        node.log_manager = self.log_manager
        chance = random.Random(1)
        node.fetch_sessions = FetchSessionCache(10, chance.randrange)
        node.producer_ids = ProducerIds(Blocks(), self.clock)
        self.dispatcher = Dispatcher(node, rows=ROWS)
        self.peer = Peer(listener_name="PLAINTEXT", client_host="127.0.0.1")
        for broker_id in (BROKER_ID, 2, 3):
            self.register_broker(broker_id)

    # --- metadata ------------------------------------------------------------------------------

    def publish(self, *messages: Any) -> None:
        """Replay metadata records and let the node apply them."""
        delta = MetadataDelta(self.image)
        for message in messages:
            delta.replay(message)
        self.image = delta.apply(self.image.offset + len(messages), 1)
        self.node.metadata.image = self.image
        self.replicas.apply(delta, self.image)

    def register_broker(self, broker_id: int, epoch: int = 10) -> None:
        endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"host{broker_id}", port=9090 + broker_id, security_protocol=0)
        self.publish(
            RegisterBrokerRecord(
                broker_id=broker_id,
                broker_epoch=epoch,
                incarnation_id=bytes([broker_id]) * 16,
                end_points=[endpoint],
                features=[],
                rack=f"rack{broker_id}",
                fenced=True,
            ),
            UnfenceBrokerRecord(id=broker_id, epoch=epoch),
        )

    def fence_broker(self, broker_id: int, epoch: int = 10) -> None:
        self.publish(FenceBrokerRecord(id=broker_id, epoch=epoch))

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replicas: Sequence[int] = (BROKER_ID,),
        isr: Sequence[int] | None = None,
        leader: int | None = None,
        leader_epoch: int = 0,
        topic_id: bytes | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> bytes:
        """Create a topic; returns its id."""
        topic_id = topic_id or name.encode().ljust(16, b"_")[:16]
        self.publish(
            TopicRecord(name=name, topic_id=topic_id),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=list(replicas),
                    isr=list(replicas if isr is None else isr),
                    removing_replicas=[],
                    adding_replicas=[],
                    leader=replicas[0] if leader is None else leader,
                    leader_epoch=leader_epoch,
                    partition_epoch=0,
                    directories=[bytes(15) + b"\x01"] * len(replicas),
                )
                for index in range(partitions)
            ),
            *(
                ConfigRecord(resource_type=2, resource_name=name, name=key, value=value)
                for key, value in (configs or {}).items()
            ),
        )
        return topic_id

    def set_config(self, topic: str, name: str, value: str | None) -> None:
        self.publish(ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value))

    def delete_topic(self, topic_id: bytes) -> None:
        self.publish(RemoveTopicRecord(topic_id=topic_id))

    def change_partition(
        self, topic_id: bytes, partition: int = 0, *, leader: int = -2, isr: list[int] | None = None
    ) -> None:
        """Elect `leader` (also the same one again), or set the ISR."""
        self.publish(PartitionChangeRecord(partition_id=partition, topic_id=topic_id, leader=leader, isr=isr))

    # --- requests ------------------------------------------------------------------------------

    async def frame(self, request: Any, version: int, client_id: str = "test") -> bytes | None:
        """The answer's bytes without their size; None where there is no answer."""
        encoded = b"".join(encode_request(request, version, 1, client_id))
        answer = await self.dispatcher.answer(encoded[4:], self.peer)
        return None if answer is None else b"".join(answer)[4:]

    async def call(self, request: Any, version: int, client_id: str = "test") -> Any:
        """The decoded answer."""
        frame = await self.frame(request, version, client_id)
        assert frame is not None, "an answer was expected"
        return decode_response(frame, request.API_KEY, version)[1]

    async def produce(
        self, batch: bytes | None, topic: str = "t", partition: int = 0, *, version: int = 9, acks: int = -1
    ) -> PartitionProduceResponse:
        """Produce one batch; returns its partition's answer."""
        response = await self.call(produce_request({(topic, partition): batch}, acks=acks), version)
        return response.responses[0].partition_responses[0]

    async def fetch(
        self, offset: int, topic: str = "t", partition: int = 0, *, version: int = 11, **options: Any
    ) -> Any:
        """Fetch one partition without waiting; returns its answer."""
        options.setdefault("max_wait_ms", 0)
        request = fetch_request({(topic, partition): offset}, version=version, **options)
        response: FetchResponse = await self.call(request, version)
        return response.responses[0].partitions[0]

    def log(self, topic: str = "t", partition: int = 0) -> Any:
        return self.replicas.partitions[TopicPartition(topic, partition)].log

    def end(self, topic: str = "t", partition: int = 0) -> int:
        """The partition's log end offset."""
        return self.log(topic, partition).log_end_offset

    async def close(self) -> None:
        self.replicas.close()
        await self.node.producer_ids.close()
        self.log_manager.close(now_ms=NOW_MS)
        self.clock.close()


def batch_of(count: int = 1, *, value: bytes = b"value", timestamp: int = NOW_MS, **options: Any) -> bytes:
    """A batch of `count` records with keys."""
    options.setdefault("compression", Compression.NONE)
    return build_batch([NewRecord(b"k%d" % index, value, (), timestamp) for index in range(count)], **options)


def produce_request(
    parts: Mapping[tuple[str, int], bytes | None],
    *,
    acks: int = -1,
    transactional_id: str | None = None,
    timeout_ms: int = 1_000,
    topic_ids: Mapping[str, bytes] | None = None,
) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for (topic, partition), records in parts.items():
        topics.setdefault(topic, []).append(PartitionProduceData(index=partition, records=records))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(name=name, topic_id=(topic_ids or {}).get(name, ZERO_UUID), partition_data=partitions)
            for name, partitions in topics.items()
        ],
    )


def fetch_request(
    parts: Mapping[tuple[str, int], int],
    *,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 2**30,
    partition_max_bytes: int = 2**20,
    isolation_level: int = 0,
    session: tuple[int, int] = (0, -1),
    topic_ids: Mapping[str, bytes] | None = None,
    forgotten: Mapping[str, list[int]] | None = None,
    replica: tuple[int, int] = (-1, -1),
    version: int = 11,
    **partition_options: Any,
) -> FetchRequest:
    ids = topic_ids or {}
    topics: dict[str, list[FetchPartition]] = {}
    for (topic, partition), offset in parts.items():
        topics.setdefault(topic, []).append(
            FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes, **partition_options
            )
        )
    return FetchRequest(
        replica_id=replica[0] if version < 15 else -1,
        replica_state=ReplicaState(replica_id=replica[0], replica_epoch=replica[1])
        if version >= 15
        else ReplicaState(),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(topic=name, topic_id=ids.get(name, ZERO_UUID), partitions=partitions)
            for name, partitions in topics.items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=name, topic_id=ids.get(name, ZERO_UUID), partitions=partitions)
            for name, partitions in (forgotten or {}).items()
        ],
    )


def fetched(records: bytes | None) -> list[RecordBatch]:
    """The whole batches of a fetch answer."""
    return list(batches(records or b""))
