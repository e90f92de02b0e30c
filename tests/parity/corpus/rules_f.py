"""Offsets by time, ends of epochs, deleting records: who asks, what is asked twice, transactions that are open."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.produce_and_fetch import BASE_TIME_MS, batch, create, fetch, offsets, produce
from tests.parity.corpus.transactions import await_stable, ready
from tests.parity.player import Player
from wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from wire.messages.end_txn import EndTxnRequest
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.records import Compression, NewRecord, build_batch


def scenario_offsets_of_whom(player: Player) -> None:
    """Replicas, debuggers and consumers; isolation levels; epochs; topics twice and without partitions."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    for _ in range(2):
        connection.call(produce(topic, (0, batch(b"a", b"b"))), 9)
    for replica in (-3, -2, -1, 0, 1, 99):
        for special in (-1, -2, -3, BASE_TIME_MS):
            request = offsets(topic, (0, special))
            request.replica_id = replica
            connection.call(request, 8, f"replica {replica} asks {special}")
    for level in (0, 1, 2, -1):
        connection.call(offsets(topic, (0, -1), isolation_level=level), 8, f"isolation level {level}")
    for version in (4, 8):
        for epoch in (-2, -1, 0, 1, 2**31 - 1):
            request = offsets(topic, (0, -1), (1, BASE_TIME_MS))
            for partition in request.topics[0].partitions:
                partition.current_leader_epoch = epoch
            connection.call(request, version, f"leader epoch {epoch} v{version}")
    twice = offsets(topic, (0, -1))
    twice.topics.append(offsets(topic, (1, -1)).topics[0])
    connection.call(twice, 8, "topic twice")
    twice.topics.append(offsets(topic, (0, -2)).topics[0])
    connection.call(twice, 8, "partition twice in two topics")
    connection.call(offsets(topic, (7, -1), (7, -1)), 8, "unknown partition twice")
    connection.call(offsets(topic, (0, -99), (0, -1)), 8, "twice, one of no kind")
    connection.call(offsets(topic), 8, "no partitions")
    nothing = offsets(topic)
    nothing.topics = []
    connection.call(nothing, 8, "no topics")
    connection.call(offsets("", (0, -1)), 8, "no name")
    connection.call(offsets(topic, (-1, -1)), 8, "partition -1")
    for timestamp in (2**63 - 1, -(2**63), -8, -99):
        connection.call(offsets(topic, (0, timestamp)), 11, f"timestamp {timestamp}")
    for timeout in (0, -1):
        connection.call(offsets(topic, (0, -1), timeout_ms=timeout), 10, f"timeout {timeout}")


def scenario_offsets_by_time(player: Player) -> None:
    """Times out of order, equal, missing; batches of one time; after records were deleted; compressed."""
    connection = player.connect()
    for codec in (Compression.NONE, Compression.GZIP):
        topic = player.name(codec.name.lower())
        create(connection, topic)
        for times in ([5, 1, 9, 3], [-1, 9], [9, 9, 2], [-1, -1], [20, 4], [6], [0]):
            records = [NewRecord(key=b"k", value=b"v", timestamp=time) for time in times]
            request = produce(topic, (0, build_batch(records, compression=codec)))
            player.unwritten(lambda request=request: connection.call(request, 9))
        for timestamp in (0, 1, 2, 3, 4, 5, 6, 9, 10, 20, 21):
            connection.call(offsets(topic, (0, timestamp)), 8, f"{codec.name}: {timestamp}")
        connection.call(offsets(topic, (0, -3)), 8, f"{codec.name}: largest")
        for end in (1, 3, 7, 11, 12, -1):
            item = DeleteRecordsPartition(partition_index=0, offset=end)
            delete = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[item])], timeout_ms=10_000)
            connection.call(delete, 2, f"delete to {end}")
            for timestamp in (0, 5, 9, 10, 20, -1, -2, -3, -4):
                connection.call(offsets(topic, (0, timestamp)), 8, f"{codec.name}: {timestamp} after {end}")


def scenario_largest_times_that_are_equal(player: Player) -> None:
    """The largest timestamp several times: in one batch, in several, in several segments, given by the broker."""
    connection = player.connect()
    for codec in (Compression.NONE, Compression.ZSTD):
        for kind, batches in (
            ("one batch", [[5, 5, 5]]),
            ("not at the start", [[4, 5, 5], [5, 4]]),
            ("several batches", [[5], [5], [5]]),
            ("later and lower", [[4], [5, 5], [3], [5]]),
        ):
            topic = player.name(f"{codec.name}-{kind.replace(' ', '-')}")
            create(connection, topic)
            for times in batches:
                records = [NewRecord(key=None, value=b"v", timestamp=time) for time in times]
                connection.call(produce(topic, (0, build_batch(records, compression=codec))), 9)
            connection.call(offsets(topic, (0, -3)), 8, f"{kind}, {codec.name}")
    segments = player.name("segments")
    create(connection, segments, segment_bytes=str(1 << 20))
    for times in ([4, 5, 5], [5, 5, 5], [3, 5, 5]):
        connection.call(produce(segments, (0, batch(b"a", b"b", b"c" * 600_000, timestamps=times))), 9)
        connection.call(offsets(segments, (0, -3)), 8, "several segments")
    stamped = player.name("stamped")
    create(connection, stamped, message_timestamp_type="LogAppendTime")
    for codec in (Compression.NONE, Compression.ZSTD):
        request = produce(stamped, (0, batch(b"a", b"b", b"c", timestamps=[2, 9, 5], compression=codec)))
        stamp = connection.call(request, 9).responses[0].partition_responses[0].log_append_time_ms
        connection.call(offsets(stamped, (0, -3)), 8, f"the broker's time, {codec.name}")
        await_later(player, stamp)


def await_later(player: Player, stamp: int) -> None:
    """Return when the broker's time is past `stamp`, in milliseconds."""
    connection, topic = player.connect(), player.name(f"clock-{stamp}")
    create(connection, topic, message_timestamp_type="LogAppendTime")
    player.unwritten(
        lambda: player.until(
            lambda: connection.call(produce(topic, (0, batch(b"tick"))), 9),
            lambda answer: answer.responses[0].partition_responses[0].log_append_time_ms > stamp,
        )
    )


def scenario_offsets_in_transactions(player: Player) -> None:
    """What the isolation level hides: latest, largest, by time; before and after the end."""
    producer = ready(player)
    producer.init()
    connection, topic = producer.connection, player.name("t")
    create(connection, topic)
    connection.call(produce(topic, (0, batch(b"plain", timestamps=[10]))), 9, "plain")
    open_batch = batch(
        b"a", b"b", timestamps=[20, 30], is_transactional=True, base_sequence=0,
        producer_id=producer.producer_id, producer_epoch=producer.producer_epoch,
    )  # fmt: skip
    request = produce(topic, (0, open_batch), transactional_id=producer.transactional_id)
    player.until(
        lambda: connection.call(request, 12, "in a transaction"),
        lambda answer: answer.responses[0].partition_responses[0].error_code not in (14, 15, 16, 19, 51),
    )
    connection.call(produce(topic, (0, batch(b"after", timestamps=[40]))), 9, "plain, after it")

    def ask(when: str) -> None:
        for level in (0, 1):
            for timestamp in (-1, -2, -3, 5, 15, 25, 35, 45):
                request = offsets(topic, (0, timestamp), isolation_level=level)
                connection.call(request, 8, f"{when}: {timestamp} at level {level}")
            for version in (4, 11):
                for offset in (0, 1, 3, 4):
                    request = fetch(topic, (0, offset), isolation_level=level)
                    connection.call(request, version, f"{when}: fetch at {offset}, level {level} v{version}")

    ask("open")
    end = EndTxnRequest(
        transactional_id=producer.transactional_id, producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch, committed=False,
    )  # fmt: skip
    connection.call(end, 5, "abort")
    await_stable(producer, topic, 5)
    for level in (0, 1):
        for timestamp in (-1, -2, 5, 15, 25, 35):
            request = offsets(topic, (0, timestamp), isolation_level=level)
            connection.call(request, 8, f"aborted: {timestamp} at level {level}")
        for offset in (0, 1, 2, 3, 4, 5):
            connection.call(fetch(topic, (0, offset), isolation_level=level), 11, f"aborted: fetch {offset}, {level}")


def scenario_ends_of_epochs(player: Player) -> None:
    """Who asks, with which epochs; topics and partitions twice and unknown."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    connection.call(produce(topic, (0, batch(b"a", b"b"))), 9)

    def ask(what: str, *wanted: tuple[str, int, int, int], replica: int = -2, version: int = 4) -> None:
        topics = [
            OffsetForLeaderTopic(
                topic=name,
                partitions=[
                    OffsetForLeaderPartition(partition=index, leader_epoch=epoch, current_leader_epoch=current)
                ],
            )
            for name, index, epoch, current in wanted
        ]
        connection.call(OffsetForLeaderEpochRequest(replica_id=replica, topics=topics), version, what)

    for replica in (-3, -2, -1, 0, 1, 99):
        ask(f"replica {replica}", (topic, 0, 0, -1), replica=replica)
    for current in (-2, -1, 0, 1):
        for epoch in (-2, -1, 0, 1, 99):
            ask(f"epoch {epoch}, leader epoch {current}", (topic, 0, epoch, current))
    for version in (2, 3, 4):
        ask(f"empty partition v{version}", (topic, 1, 0, -1), version=version)
        ask(f"unknown v{version}", (topic, 9, 0, -1), (player.name("no"), 0, 0, 5), version=version)
    ask("twice", (topic, 0, 0, -1), (topic, 0, 1, -1))
    ask("nothing")
    connection.call(OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic)]), 4, "no partitions")


def scenario_delete_records_corners(player: Player) -> None:
    """Topics and partitions twice, none, timeouts, cleanup policies, order of refusals."""
    connection = player.connect()
    topic, both, compacted = player.name("t"), player.name("both"), player.name("c")
    create(connection, topic, 2)
    create(connection, both, cleanup_policy="compact,delete")
    create(connection, compacted, cleanup_policy="compact")
    for name in (topic, both, compacted):
        connection.call(produce(name, (0, batch(*[b"x"] * 10))), 9)

    def delete(what: str, *wanted: tuple[str, int, int], timeout_ms: int = 10_000, **fields: Any) -> None:
        topics = [
            DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
            for name, index, offset in wanted
        ]
        connection.call(DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms, **fields), 2, what)

    delete("two policies", (both, 0, 3))
    delete("only compacted, negative", (compacted, 0, -7))
    delete("only compacted, unknown partition", (compacted, 9, 1))
    delete("topic twice", (topic, 0, 2), (topic, 1, 0))
    delete("partition twice", (topic, 0, 4), (topic, 0, 3))
    delete("partition twice, one out of range", (topic, 0, 99), (topic, 0, 5))
    delete("partition twice, the other out of range", (topic, 0, 6), (topic, 0, 99))
    delete("empty partition", (topic, 1, 0), (topic, 1, -1))
    delete("empty partition, beyond", (topic, 1, 1))
    for timeout in (0, -1):
        delete(f"timeout {timeout}", (topic, 0, 7), timeout_ms=timeout)
    delete("unknown, negative", (player.name("no"), 0, -5), ("", 0, 0), (topic, -1, 0))
    delete("internal", ("__transaction_state", 0, 0), ("__consumer_offsets", 99, 0))
    delete("nothing")
    connection.call(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic)], timeout_ms=9), 2, "no partitions")
    connection.call(offsets(topic, (0, -2), (1, -2)), 8, "starts")
    connection.call(fetch(topic, (0, 7), (0, 6)), 12, "what is left")
