"""Rules about records: written, read, looked up by time, deleted; producers with identities."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.parity.live import data_requests as drawn
from tests.parity.live.group_requests import mostly, versions
from tests.parity.live.machine import ADMIN
from tests.parity.live.topic_rules import TopicRules
from tests.parity.live.twins import CLOSED
from tests.parity.live.values import Ref
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from wire.messages.describe_producers import DescribeProducersRequest
from wire.messages.describe_producers import TopicRequest as ProducedTopic
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.primitives import ZERO_UUID

WRITER = "writer"
"""Produces without acknowledgement: its connection may be closed for that."""


class LogRules(TopicRules):
    """What one idempotent producer and anonymous ones write, and what is read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.sequences: dict[tuple[str, int], int] = {}
        self.session_epoch: int | None = None
        self.has_producer = False

    # --- writing ------------------------------------------------------------------------------

    @rule(version=versions(0, 5))
    def init_producer_id(self, version: int) -> None:
        """InitProducerId without a transactional id."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = self.ask(ADMIN, request, version, captures={"producer": lambda found: found.producer_id})
        if answer not in (None, CLOSED):
            self.has_producer, self.sequences = True, {}

    @rule(
        data=st.data(),
        version=versions(3, 13),
        acks=mostly(st.sampled_from([-1, -1, 1]), 0, 2, -2, weight=9),
        count=st.sampled_from([1, 1, 1, 2, 0]),
    )
    def produce(self, data: Any, version: int, acks: int, count: int) -> None:
        """Produce of good and flawed batches."""
        request = ProduceRequest(acks=acks, timeout_ms=10_000)
        for _ in range(count):
            topic = TopicProduceData()
            name = data.draw(drawn.NAMES)
            if version >= 13:
                topic.topic_id = data.draw(drawn.TOPIC_IDS)
            else:
                topic.name = self.topic(name)
            for _ in range(data.draw(st.sampled_from([1, 1, 2, 0]))):
                index = data.draw(drawn.PARTITIONS)
                batch = data.draw(drawn.records(self.identity(data, name, index)))
                topic.partition_data.append(PartitionProduceData(index=index, records=batch))
            request.topic_data.append(topic)
        self.write(request, version)

    def write(self, request: ProduceRequest, version: int) -> Any:
        """One Produce; without acknowledgement what follows on its connection is compared."""
        if request.acks:
            return self.ask(ADMIN, request, version)
        if not self.is_over:
            try:
                self.twins.tell(WRITER, request, version)
            except ValueError:
                return None
            return self.ask(WRITER, ApiVersionsRequest(), 0, shorten=lambda answer, _: type(answer)())
        return None

    def identity(self, data: Any, name: str, index: int) -> dict[str, Any]:
        """Whose batch it is: nobody's, or the producer's with the next sequence, or another."""
        if not self.has_producer or not data.draw(st.integers(0, 2)):
            return {}
        key = name, index
        sequence = self.sequences.get(key, 0)
        twist = data.draw(mostly(st.just(""), "gap", "old", "epoch", "negative", "none", weight=5))
        if not twist:
            self.sequences[key] = sequence + 1
        shift = {"gap": 5, "old": -1}.get(twist, 0)
        fields: dict[str, Any] = {"producer_id": Ref("producer"), "producer_epoch": 0}
        fields["base_sequence"] = max(sequence + shift, 0)
        fields |= {"epoch": {"producer_epoch": 1}, "negative": {"producer_epoch": -1}}.get(twist, {})
        fields |= {"base_sequence": -1} if twist == "none" else {}
        return fields

    # --- reading ------------------------------------------------------------------------------

    def fetched(self, data: Any, version: int) -> list[FetchTopic]:
        topics = []
        for _ in range(data.draw(st.sampled_from([1, 1, 1, 2, 0]))):
            topic = FetchTopic()
            if version >= 13:
                topic.topic_id = data.draw(drawn.TOPIC_IDS.filter(lambda topic_id: topic_id != ZERO_UUID))
            else:
                topic.topic = self.topic(data.draw(drawn.NAMES))
            for _ in range(data.draw(st.sampled_from([1, 1, 2, 0]))):
                topic.partitions.append(
                    FetchPartition(
                        partition=data.draw(drawn.PARTITIONS),
                        current_leader_epoch=data.draw(drawn.LEADER_EPOCHS) if version >= 9 else -1,
                        fetch_offset=data.draw(drawn.OFFSETS),
                        last_fetched_epoch=data.draw(mostly(st.just(-1), 0, 1, 5)) if version >= 12 else -1,
                        partition_max_bytes=data.draw(drawn.LIMITS),
                    )
                )
            topics.append(topic)
        return topics

    @rule(data=st.data(), version=versions(4, 18), isolation=mostly(st.sampled_from([0, 1]), 2, -1))
    def fetch(self, data: Any, version: int, isolation: int) -> None:
        """Fetch without a session."""
        request = FetchRequest(
            max_wait_ms=data.draw(mostly(st.just(0), 30)),
            min_bytes=data.draw(mostly(st.just(0), 1, -1)),
            max_bytes=data.draw(drawn.LIMITS),
            isolation_level=isolation,
            topics=self.fetched(data, version),
        )
        self.ask(ADMIN, request, version)

    @rule(
        data=st.data(), version=versions(7, 18), twist=mostly(st.just(""), "new", "unknown", "epoch", "end", weight=3)
    )
    def fetch_in_session(self, data: Any, version: int, twist: str) -> None:
        """Fetch with a session: begun, continued, with a wrong epoch, ended."""
        request = FetchRequest(topics=self.fetched(data, version), max_bytes=1_000_000)
        request.session_epoch = 0
        if twist == "unknown":
            request.session_id, request.session_epoch = 12_345, data.draw(st.sampled_from([-1, 1, 0]))
        elif self.session_epoch is not None and twist != "new":
            request.session_id = Ref("session")
            request.session_epoch = {"epoch": self.session_epoch + 3, "end": -1}.get(twist, self.session_epoch)
            for name in data.draw(st.lists(st.sampled_from(["a", "b"]), max_size=1)):
                gone = ForgottenTopic(partitions=[0])
                if version >= 13:
                    gone.topic_id = Ref(name.upper())
                else:
                    gone.topic = self.topic(name)
                request.forgotten_topics_data.append(gone)
        starts = request.session_epoch == 0
        captures = {"session": lambda found: found.session_id} if starts else {}
        answer = self.ask(ADMIN, request, version, captures=captures)
        if answer in (None, CLOSED) or answer.error_code:
            return
        if starts:
            self.session_epoch = 1 if answer.session_id else None
        elif isinstance(request.session_id, Ref):
            self.session_epoch = None if twist == "end" else (self.session_epoch or 0) + 1

    @rule(data=st.data(), version=versions(1, 11), isolation=mostly(st.sampled_from([0, 1]), 2))
    def list_offsets(self, data: Any, version: int, isolation: int) -> None:
        """ListOffsets."""
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation if version >= 2 else 0)
        for name in data.draw(st.lists(drawn.NAMES, max_size=2)):
            parts = [
                ListOffsetsPartition(
                    partition_index=index,
                    current_leader_epoch=data.draw(drawn.LEADER_EPOCHS) if version >= 4 else -1,
                    timestamp=data.draw(drawn.TIMESTAMPS),
                )
                for index in data.draw(st.lists(drawn.PARTITIONS, max_size=2))
            ]
            request.topics.append(ListOffsetsTopic(name=self.topic(name), partitions=parts))
        self.ask(ADMIN, request, version)

    @rule(data=st.data(), version=versions(0, 2))
    def delete_records(self, data: Any, version: int) -> None:
        """DeleteRecords."""
        request = DeleteRecordsRequest(timeout_ms=10_000)
        for name in data.draw(st.lists(drawn.NAMES, max_size=2)):
            indexes = data.draw(st.lists(drawn.PARTITIONS, max_size=2))
            offset = mostly(st.integers(0, 3), -1, -2, 99)
            parts = [DeleteRecordsPartition(partition_index=index, offset=data.draw(offset)) for index in indexes]
            request.topics.append(DeleteRecordsTopic(name=self.topic(name), partitions=parts))
        self.ask(ADMIN, request, version)

    @rule(data=st.data(), version=versions(2, 4))
    def offset_for_leader_epoch(self, data: Any, version: int) -> None:
        """OffsetForLeaderEpoch."""
        request = OffsetForLeaderEpochRequest(replica_id=-1 if version >= 3 else -2)
        for name in data.draw(st.lists(drawn.NAMES, max_size=2)):
            parts = [
                OffsetForLeaderPartition(
                    partition=index,
                    current_leader_epoch=data.draw(drawn.LEADER_EPOCHS),
                    leader_epoch=data.draw(mostly(st.just(0), -1, 1, 5, -2)),
                )
                for index in data.draw(st.lists(drawn.PARTITIONS, max_size=2))
            ]
            request.topics.append(OffsetForLeaderTopic(topic=self.topic(name), partitions=parts))
        self.ask(ADMIN, request, version)

    @precondition(lambda self: self.has_producer)
    @rule(name=drawn.NAMES, indexes=st.lists(drawn.PARTITIONS, max_size=2))
    def describe_producers(self, name: str, indexes: list[int]) -> None:
        """DescribeProducers."""
        topic = ProducedTopic(name=self.topic(name), partition_indexes=indexes)
        self.ask(ADMIN, DescribeProducersRequest(topics=[topic]), 0)
