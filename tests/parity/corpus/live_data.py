"""Requests about topics and records that random play against Apache Kafka found to be answered differently."""

from __future__ import annotations

from tests.parity.corpus.produce_and_fetch import batch, create
from tests.parity.player import Player
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.messages.describe_producers import DescribeProducersRequest
from wire.messages.describe_producers import TopicRequest as ProducedTopic
from wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def scenario_full_page_before_unknown_topics(player: Player) -> None:
    """A page of DescribeTopicPartitions is full: the next topic is its cursor, even if there is none."""
    connection = player.connect()
    create(connection, player.name("b"), 2)
    for limit in (1, 2, 3):
        topics = [TopicRequest(name=player.name(name)) for name in ("a", "b", "c", "d")]
        request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit)
        connection.call(request, 0, f"at most {limit}")
    unknown = ProducedTopic(name=player.name("no"), partition_indexes=[0, 1])
    connection.call(DescribeProducersRequest(topics=[unknown]), 0, "producers of an unknown topic")


def scenario_first_batches_that_are_none(player: Player) -> None:
    """One batch that cannot be one refuses a whole Produce, unless a transactional batch stands before it."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    flaws: dict[str, bytes] = {"good": batch(b"v")}
    for size in (-1, 0, 13, 14, 49, 10_000_000):
        flaws[f"size {size}"] = flaws["good"][:8] + size.to_bytes(4, "big", signed=True) + flaws["good"][12:]
    for magic in (-1, 0, 1, 3):
        flaws[f"magic {magic}"] = flaws["good"][:16] + magic.to_bytes(1, "big", signed=True) + flaws["good"][17:]
    flaws["11 bytes"], flaws["16 bytes"] = flaws["good"][:11], flaws["size 0"][:16]
    transactional = batch(b"v", is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    flaws["half of a transactional one"] = transactional[:-1]

    def produce(label: str, version: int, *entries: tuple[str, int, bytes]) -> None:
        data = [
            TopicProduceData(name=name, partition_data=[PartitionProduceData(index=index, records=records)])
            for name, index, records in entries
        ]
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data)
        connection.call(request, version, f"{label} v{version}")

    for label, records in flaws.items():
        for version in (3, 12):
            entries = (player.name("no"), 0, flaws["good"]), (topic, 1, records)
            produce(f"{label} after an unknown topic", version, *entries)
    produce("transactional before size 0", 9, (topic, 0, transactional), (player.name("no"), 1, flaws["size 0"]))
    produce("size 0 before transactional", 9, (topic, 1, flaws["size 0"]), (player.name("no"), 0, transactional))


def scenario_unknown_ids_before_unknown_partitions(player: Player) -> None:
    """Fetch names a partition that there is not, and then an id that there is not: the id is answered first."""
    connection = player.connect()
    topic_id = create(connection, player.name("t"))
    for named in ([(topic_id, 9), (b"\x01" * 16, 0), (topic_id, 0)], [(b"\x01" * 16, 0), (topic_id, 9), (topic_id, 0)]):
        topics = [
            FetchTopic(topic_id=each, partitions=[FetchPartition(partition=index, partition_max_bytes=1000)])
            for each, index in named
        ]
        connection.call(FetchRequest(topics=topics), 17, "without a session")
        connection.call(FetchRequest(topics=topics, session_epoch=0), 17, "in a session")


def scenario_partitions_added_twice(player: Player) -> None:
    """AddPartitionsToTxn names partitions and topics twice: the transaction's outcome is told as often."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    transactional_id = player.name("x")
    init = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    known = player.until(lambda: connection.call(init, 4, "init"), lambda answer: not answer.error_code)
    for epoch in (0, 5):
        for index in (0, 9):
            partitions = [AddPartitionsToTxnTopic(name=topic, partitions=[index, index]) for _ in range(2)]
            old = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=known.producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=partitions,
            )
            connection.call(old, 3, f"epoch {epoch}, partition {index} v3")
            for verify_only in (False, True):
                transaction = AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=known.producer_id,
                    producer_epoch=epoch,
                    verify_only=verify_only,
                    topics=partitions,
                )
                label = f"epoch {epoch}, partition {index} v5, only verify: {verify_only}"
                connection.call(AddPartitionsToTxnRequest(transactions=[transaction]), 5, label)


def scenario_quorum_partitions_named_twice(player: Player) -> None:
    """DescribeQuorum describes the one partition of the metadata log if nothing else is named."""
    connection = player.connect()
    named = [("__cluster_metadata", [0, 0]), ("__cluster_metadata", [0, 1]), ("__cluster_metadata", []), ("t", [0])]
    for topic, indexes in named:
        parts = [DescribeQuorumRequestPartitionData(partition_index=index) for index in indexes]
        topics = [DescribeQuorumRequestTopicData(topic_name=topic, partitions=parts)]
        connection.call(DescribeQuorumRequest(topics=topics), 2, f"{topic} {indexes}")
    good = DescribeQuorumRequestTopicData(partitions=[DescribeQuorumRequestPartitionData(partition_index=0)])
    good.topic_name = "__cluster_metadata"
    connection.call(DescribeQuorumRequest(topics=[good, good]), 2, "twice")
    empty = DescribeQuorumRequestTopicData(topic_name="t")
    connection.call(DescribeQuorumRequest(topics=[good, empty]), 2, "beside a topic without partitions")
