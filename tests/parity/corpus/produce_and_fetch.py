"""Produce, Fetch and what lies between: batches, sequences, limits, sessions, offsets by time."""

from __future__ import annotations

import time
from typing import Any

from tests.parity.player import Connection, Player
from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.records import Compression, NewRecord, build_batch

BASE_TIME_MS = 1_700_000_000_000


def create(connection: Connection, name: str, partitions: int = 1, **configs: str) -> bytes:
    """Make a topic; returns its id. Nothing in it gets too old, however old the timestamps are."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    configs = {"retention_ms": "-1", **configs}
    topic.configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    answer = connection.player.unwritten(lambda: connection.call(request, 7))
    ends = offsets(name, *((partition, -1) for partition in range(partitions)))
    led = connection.player.until
    connection.player.unwritten(
        lambda: led(
            lambda: connection.call(ends, 7),
            lambda found: not any(part.error_code for part in found.topics[0].partitions),
        )
    )
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


def batch(*values: bytes, timestamps: list[int] | None = None, **fields: Any) -> bytes:
    """A batch of records with keys "k0", "k1" … and these values."""
    times = timestamps or [BASE_TIME_MS + index for index in range(len(values))]
    records = [NewRecord(key=b"k%d" % index, value=value, timestamp=times[index]) for index, value in enumerate(values)]
    return build_batch(records, **fields)


def produce(topic: str, *partitions: tuple[int, bytes], **fields: Any) -> ProduceRequest:
    """A Produce to one topic with acks=all unless told otherwise."""
    data = [PartitionProduceData(index=index, records=records) for index, records in partitions]
    values = {"acks": -1, "timeout_ms": 10_000, **fields}
    return ProduceRequest(topic_data=[TopicProduceData(name=topic, partition_data=data)], **values)


def fetch(topic: str, *partitions: tuple[int, int], **fields: Any) -> FetchRequest:
    """A Fetch below v13 of (partition, offset) pairs, not waiting."""
    wanted = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1_048_576)
        for index, offset in partitions
    ]
    topics = [FetchTopic(topic=topic, partitions=wanted)]
    values = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 10_000_000, "session_epoch": -1}
    return FetchRequest(topics=topics, **{**values, **fields})


def offsets(topic: str, *times: tuple[int, int], **fields: Any) -> ListOffsetsRequest:
    """A ListOffsets of (partition, timestamp) pairs."""
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index, timestamp in times]
    topics = [ListOffsetsTopic(name=topic, partitions=wanted)]
    return ListOffsetsRequest(replica_id=-1, topics=topics, **fields)


def with_crc(data: bytearray) -> bytes:
    """The batch with its checksum made right again."""
    import crc32c

    data[17:21] = crc32c.crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def scenario_produce_versions(player: Player) -> None:
    """Produce and fetch back in every version, every codec."""
    connection, topic = player.connect(), player.name("t")
    topic_id = create(connection, topic)
    for version in range(3, 14):
        request = produce(topic, (0, batch(b"v%d" % version)))
        if version == 13:
            request.topic_data[0].name, request.topic_data[0].topic_id = "", topic_id
        connection.call(request, version, f"produce v{version}")
    for codec in Compression:
        connection.call(produce(topic, (0, batch(b"a", b"b", compression=codec))), 9, codec.name)
    for version in range(4, 19):
        request = fetch(topic, (0, 9))
        if version >= 13:
            request.topics[0].topic, request.topics[0].topic_id = "", topic_id
        connection.call(request, version, f"fetch v{version}")
    for version in (0, 1, 2):
        stranger = player.connect()
        request = produce(topic, (0, batch(b"old")))
        try:
            stranger.call(request, version, f"produce v{version}")
        except ValueError:
            break


def scenario_produce_errors(player: Player) -> None:
    """What a partition refuses, and which of two refusals wins."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2, max_message_bytes="50000")
    good = batch(b"good")
    connection.call(produce(player.name("nosuch"), (0, good)), 9, "unknown topic")
    connection.call(produce(topic, (7, good)), 9, "unknown partition")
    connection.call(produce(topic, (0, good), acks=2), 9, "bad acks")
    mixed = produce(topic, (0, good), (7, good), acks=2)
    connection.call(mixed, 9, "bad acks and unknown partition")
    connection.call(produce(topic, (0, b"")), 9, "no batch")
    connection.call(produce(topic, (0, good[:-1])), 9, "half a batch")
    connection.call(produce(topic, (0, good + good)), 9, "two batches")
    connection.call(produce(topic, (0, good[:16] + b"\x01" + good[17:])), 9, "magic 1")
    connection.call(produce(topic, (0, good[:16] + b"\x03" + good[17:])), 9, "magic 3")
    large = batch(bytes(60_000))
    connection.call(produce(topic, (0, large), (1, good)), 9, "one too large, one good")
    corrupt = large[:-1] + b"\x01"
    connection.call(produce(topic, (0, corrupt)), 9, "too large and corrupt")
    connection.call(produce(topic, (0, good[:-1] + b"\x01")), 9, "corrupt")
    for at, value, what in (
        (57, 9, "more records than there are"),
        (57, -1, "count -1"),
        (57, 0, "count 0"),
        (23, 4, "last offset delta"),
    ):
        data = bytearray(good)
        data[at : at + 4] = value.to_bytes(4, "big", signed=True)
        connection.call(produce(topic, (0, with_crc(data))), 9, what)
    data = bytearray(good)
    data[61] = 0x7E
    connection.call(produce(topic, (0, with_crc(data))), 9, "record longer than the batch")
    data = bytearray(good)
    data[0:8] = (5).to_bytes(8, "big")
    connection.call(produce(topic, (0, bytes(data))), 9, "base offset not zero")
    connection.call(produce(topic, (0, batch(b"x", is_control=True))), 9, "control batch")
    data = bytearray(batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0))
    data[53:57] = b"\xff\xff\xff\xff"
    connection.call(produce(topic, (0, with_crc(data))), 9, "producer without sequence")
    zstd = batch(b"x", compression=Compression.ZSTD)
    connection.call(produce(topic, (0, zstd)), 6, "zstd below v7")
    connection.call(produce("__consumer_offsets", (0, good)), 9, "internal topic")
    connection.call(offsets(topic, (0, -1), (1, -1)), 7, "end offsets")
    for leader_epoch in (0, 7, -1):
        sent = batch(b"epoch", partition_leader_epoch=leader_epoch)
        connection.call(produce(topic, (0, sent)), 9, f"leader epoch {leader_epoch}")
    connection.call(fetch(topic, (0, 0)), 12, "leader epochs are overwritten")


def scenario_produce_record_errors(player: Player) -> None:
    """Refusals that name records: null keys on compacted topics, timestamps out of bounds."""
    connection = player.connect()
    compacted, bounded = player.name("compacted"), player.name("bounded")
    create(connection, compacted, cleanup_policy="compact")
    create(connection, bounded, message_timestamp_before_max_ms="3600000")
    now_ms = int(time.time() * 1000)
    records = [NewRecord(key=key, value=b"v", timestamp=BASE_TIME_MS) for key in (b"a", None, b"c")]
    for version in (7, 8, 12):
        request = produce(compacted, (0, build_batch(records)))
        connection.call(request, version, f"null key v{version}")
    old = [now_ms, now_ms - 7_200_000]
    new = [now_ms + 7_200_000, now_ms]
    for codec in (Compression.NONE, Compression.GZIP):
        for times, what in ((old, "too old"), (new, "too new")):
            sent = batch(b"x", b"y", timestamps=times, compression=codec)
            exchange = connection.call(produce(bounded, (0, sent)), 9, f"{what} {codec.name}")
            assert exchange is not None
    for entry in player.transcript.entries:
        entry["request"] = "<times>" if "too" in entry["label"] else entry["request"]


def scenario_log_append_time(player: Player) -> None:
    """The broker's time wins, in the answer and in the batch."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, message_timestamp_type="LogAppendTime")
    connection.call(produce(topic, (0, batch(b"a", b"b"))), 9, "plain")
    packed = batch(b"a", b"b", compression=Compression.LZ4)
    connection.call(produce(topic, (0, packed)), 9, "compressed")
    stamped = batch(b"a", log_append_time=True)
    connection.call(produce(topic, (0, stamped)), 9, "already stamped")
    connection.call(fetch(topic, (0, 0)), 12, "what is stored")
    plain = player.name("plain")
    create(connection, plain)
    connection.call(produce(plain, (0, stamped)), 9, "stamped on a CreateTime topic")
    connection.call(fetch(plain, (0, 0)), 12, "what is stored there")


def scenario_recompression(player: Player) -> None:
    """compression.type of the topic decides what is stored."""
    connection = player.connect()
    for kind in ("gzip", "snappy", "lz4", "zstd", "uncompressed", "producer"):
        topic = player.name(kind)
        create(connection, topic, compression_type=kind)
        for codec in (Compression.NONE, Compression.GZIP, Compression.ZSTD):
            sent = batch(b"a", b"b", b"c", compression=codec)
            connection.call(produce(topic, (0, sent)), 9, f"{codec.name} to {kind}")
        connection.call(fetch(topic, (0, 0)), 12, f"stored as {kind}")


def scenario_idempotence(player: Player) -> None:
    """Duplicates, gaps, epochs and wraparound of sequences."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 3)
    for version in range(6):
        connection.call(InitProducerIdRequest(), version, f"init v{version}")
    given = connection.call(InitProducerIdRequest(), 4, "init")
    half = InitProducerIdRequest(producer_id=given.producer_id)
    connection.call(half, 4, "id without epoch")

    def send(sequence: int, epoch: int = 0, count: int = 1, partition: int = 0) -> ProduceRequest:
        identity = {"producer_id": given.producer_id, "producer_epoch": epoch}
        values = [b"v"] * count
        return produce(topic, (partition, batch(*values, base_sequence=sequence, **identity)))

    for sequence in range(5):
        connection.call(send(sequence), 9, f"sequence {sequence}")
    for sequence in range(5):
        connection.call(send(sequence), 9, f"again {sequence}")
    connection.call(send(7), 9, "gap")
    connection.call(send(5), 9, "next")
    connection.call(send(0), 9, "six back")
    connection.call(send(4, count=2), 9, "overlaps")
    connection.call(send(3, epoch=1), 9, "new epoch, sequence not 0")
    connection.call(send(0, epoch=1), 9, "new epoch")
    connection.call(send(6, epoch=0), 9, "old epoch")
    connection.call(send(77, partition=1), 9, "first sequence seen may be any")
    connection.call(send(2**31 - 2, partition=2, count=3), 9, "wraps inside a batch")
    connection.call(send(1, partition=2), 9, "goes on after the wrap")
    connection.call(offsets(topic, (0, -1), (1, -1), (2, -1)), 7, "ends")
    connection.call(fetch(topic, (0, 0)), 12, "what is stored")


def scenario_fetch_edges(player: Player) -> None:
    """Offsets around the log's ends, inside batches, limits, unknown partitions, epochs."""
    connection, topic = player.connect(), player.name("t")
    topic_id = create(connection, topic, 2)
    for _ in range(5):
        connection.call(produce(topic, (0, batch(b"a", b"b", b"c", b"d"))), 9)
    trim = DeleteRecordsPartition(partition_index=0, offset=10)
    topics = [DeleteRecordsTopic(name=topic, partitions=[trim])]
    connection.call(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2, "delete records")
    for offset in (9, 10, 11, 12, 19, 20, 21, -1):
        connection.call(fetch(topic, (0, offset)), 12, f"at {offset}")
    connection.call(fetch(topic, (0, 12), (1, 0), (9, 0)), 12, "several partitions")
    connection.call(fetch(player.name("nosuch"), (0, 0)), 12, "unknown topic")
    by_id = fetch("", (0, 12))
    by_id.topics[0].topic_id = b"\x01" * 16
    connection.call(by_id, 16, "unknown topic id")
    for epoch in (0, 1, 5):
        request = fetch(topic, (0, 20))
        request.topics[0].partitions[0].current_leader_epoch = epoch
        connection.call(request, 12, f"leader epoch {epoch}")
        request.topics[0].topic, request.topics[0].topic_id = "", topic_id
        connection.call(request, 16, f"leader epoch {epoch} v16")
    for epoch in (0, 1):
        request = fetch(topic, (0, 20))
        request.topics[0].partitions[0].last_fetched_epoch = epoch
        connection.call(request, 12, f"last fetched epoch {epoch}")
    small = fetch(topic, (0, 12), (0, 12), max_bytes=1)
    small.topics[0].partitions[0].partition_max_bytes = 1
    connection.call(small, 12, "one byte")
    for isolation in (0, 1):
        connection.call(fetch(topic, (0, 16), isolation_level=isolation), 11, f"{isolation=}")


def scenario_fetch_sessions(player: Player) -> None:
    """The table of session ids and epochs (KIP-227)."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    connection.call(produce(topic, (0, batch(b"a"))), 9)
    full = fetch(topic, (0, 0), (1, 0), session_epoch=0)
    session = connection.call(full, 12, "(0, 0) makes a session").session_id
    connection.call(fetch(topic, (0, 0), session_epoch=-1), 12, "(0, -1) makes none")

    def more(epoch: int, *partitions: tuple[int, int], number: int = session) -> FetchRequest:
        request = fetch(topic, *partitions, session_epoch=epoch, session_id=number)
        if not partitions:
            request.topics = []
        return request

    connection.call(more(1), 12, "the data comes again")
    connection.call(more(2, (0, 1)), 12, "moved on: nothing new")
    connection.call(produce(topic, (1, batch(b"b"))), 9)
    connection.call(more(3), 12, "only what changed")
    connection.call(more(3), 12, "epoch repeated")
    connection.call(more(9), 12, "epoch too high")
    forget = more(4)
    forget.forgotten_topics_data = [ForgottenTopic(topic=topic, partitions=[1])]
    connection.call(forget, 12, "one forgotten")
    connection.call(more(5), 12, "after forgetting")
    connection.call(more(1, number=123_456_789), 12, "unknown session")
    connection.call(more(-1, (0, 0)), 12, "(id, -1) closes")
    connection.call(more(6), 12, "closed session")
    again = connection.call(full, 12, "another session").session_id
    replaced = connection.call(fetch(topic, (0, 0), session_epoch=0, session_id=again), 12, "(id, 0)")
    connection.call(more(1, number=again), 12, "the replaced session")
    connection.call(more(1, number=replaced.session_id), 12, "the new session")


def scenario_list_offsets(player: Player) -> None:
    """Specials and times, inside batches too, in every version."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    base = BASE_TIME_MS
    for codec in (Compression.NONE, Compression.ZSTD):
        times = [base + 2, base + 4, base + 6, base + 8]
        sent = batch(b"a", b"b", b"c", b"d", timestamps=times, compression=codec)
        connection.call(produce(topic, (0, sent)), 9)
    crossed = [base + 50, base + 10, base + 90, base + 30]
    connection.call(produce(topic, (0, batch(b"a", b"b", b"c", b"d", timestamps=crossed))), 9)
    for version in range(1, 12):
        for special in (-1, -2, -3, -4, -5, -6, -7):
            connection.call(offsets(topic, (0, special)), version, f"{special} v{version}")
        connection.call(offsets(topic, (0, base + 5)), version, f"time v{version}")
    for delta in (*range(1, 12), 49, 50, 51, 89, 90, 91):
        connection.call(offsets(topic, (0, base + delta)), 7, f"time +{delta}")
    for special in (-1, -2, -3, base):
        connection.call(offsets(topic, (1, special)), 8, f"{special} of an empty partition")
    connection.call(offsets(topic, (0, -1), (0, -2)), 7, "partition twice")
    connection.call(offsets(topic, (9, -1)), 7, "unknown partition")
    connection.call(offsets(player.name("nosuch"), (0, -1)), 7, "unknown topic")
    for epoch in (0, 1):
        request = offsets(topic, (0, -1))
        request.topics[0].partitions[0].current_leader_epoch = epoch
        connection.call(request, 7, f"leader epoch {epoch}")
    connection.call(offsets(topic, (0, -1), isolation_level=1), 7, "read committed")


def scenario_delete_records(player: Player) -> None:
    """Inside a batch, to the end, beyond, on compacted and internal topics."""
    connection, topic, compacted = player.connect(), player.name("t"), player.name("c")
    create(connection, topic)
    create(connection, compacted, cleanup_policy="compact")
    connection.call(produce(topic, (0, batch(*[b"x"] * 10))), 9)
    connection.call(produce(compacted, (0, batch(b"x"))), 9)

    def delete(name: str, offset: int, partition: int = 0) -> DeleteRecordsRequest:
        item = DeleteRecordsPartition(partition_index=partition, offset=offset)
        topics = [DeleteRecordsTopic(name=name, partitions=[item])]
        return DeleteRecordsRequest(topics=topics, timeout_ms=10_000)

    for version in range(3):
        connection.call(delete(topic, 1 + version), version, f"to {1 + version} v{version}")
    connection.call(fetch(topic, (0, 3)), 12, "inside the batch")
    connection.call(fetch(topic, (0, 2)), 12, "below the start")
    connection.call(offsets(topic, (0, -2)), 7, "earliest")
    connection.call(delete(topic, 1), 2, "backwards")
    connection.call(delete(topic, 11), 2, "beyond the end")
    connection.call(delete(topic, -2), 2, "negative")
    connection.call(delete(topic, -1), 2, "everything")
    connection.call(delete(topic, 5, 9), 2, "unknown partition")
    connection.call(delete(player.name("nosuch"), 5), 2, "unknown topic")
    connection.call(delete(compacted, 1), 2, "compacted")
    connection.call(delete(compacted, 99), 2, "compacted and beyond")
    connection.call(delete("__consumer_offsets", 0), 2, "internal")


def scenario_offset_for_leader_epoch(player: Player) -> None:
    """Known, unknown and fenced epochs of a log with one epoch."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic)
    connection.call(produce(topic, (0, batch(b"a", b"b"))), 9)
    for version in (2, 3, 4):
        for epoch, current in ((0, -1), (1, -1), (-1, -1), (0, 0), (0, 1)):
            item = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
            topics = [OffsetForLeaderTopic(topic=topic, partitions=[item])]
            request = OffsetForLeaderEpochRequest(replica_id=-2, topics=topics)
            connection.call(request, version, f"epoch {epoch}, current {current} v{version}")
    item = OffsetForLeaderPartition(partition=9, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=topic, partitions=[item])]
    connection.call(OffsetForLeaderEpochRequest(replica_id=-2, topics=topics), 4, "unknown")
