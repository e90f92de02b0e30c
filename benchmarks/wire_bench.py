"""Time the codecs and the kernels of ``wire``: ``python benchmarks/wire_bench.py [filter]``.

Prints, for each message, the microseconds that decoding and encoding take, best of several
repeats, and the nanoseconds per record of validation; with the compiled kernels where they are
there (``python compile_kernels.py``). Nothing here is a test: the numbers tell of one machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from wire import record_kernel
from wire.messages import fetch, join_group, metadata, offset_commit, produce
from wire.records import (
    Compression,
    NewRecord,
    RecordBatch,
    build_batch,
    check_batch_header,
    leader_batch,
    sole_batch,
    validate_records,
)

REPEATS = 7
TOPIC_ID = bytes(range(16))


def best_seconds(call: Callable[[], Any]) -> float:
    """Seconds of one call, the best of several repeats of about 20 ms each."""
    started = time.perf_counter()
    call()
    rounds = max(1, int(0.02 / max(time.perf_counter() - started, 1e-7)))
    best = float("inf")
    for _ in range(REPEATS):
        started = time.perf_counter()
        for _ in range(rounds):
            call()
        best = min(best, (time.perf_counter() - started) / rounds)
    return best


def batch_of(count: int, value_size: int, compression: Compression = Compression.NONE) -> bytes:
    """A batch of records with keys, such as a benchmark's producer sends."""
    records = [
        NewRecord(b"key-%06d" % index, (b"%08d" % index) * (value_size // 8), (), 1_700_000_000_000 + index // 10)
        for index in range(count)
    ]
    return build_batch(records, compression=compression)


Sample = tuple[str, Any, int]
"""Name, message and version."""


def produce_samples(batch: bytes) -> list[Sample]:
    """A request with one batch for each of ten partitions, and its answer."""
    partitions = [produce.PartitionProduceData(index=index, records=batch) for index in range(10)]
    answers = [
        produce.PartitionProduceResponse(index=index, base_offset=index * 1000, log_start_offset=0)
        for index in range(10)
    ]
    topics = [produce.TopicProduceData(name="orders", partition_data=partitions)]
    responses = [produce.TopicProduceResponse(name="orders", partition_responses=answers)]
    return [
        (
            "ProduceRequest v12, 10 partitions",
            produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics),
            12,
        ),
        ("ProduceResponse v12, 10 partitions", produce.ProduceResponse(responses=responses), 12),
    ]


def fetch_samples(batch: bytes) -> list[Sample]:
    """A request for ten partitions, and an answer with a batch for each."""
    partitions = [
        fetch.FetchPartition(partition=index, fetch_offset=index * 1000, partition_max_bytes=2**20)
        for index in range(10)
    ]
    answers = [fetch.PartitionData(partition_index=index, high_watermark=1000, records=batch) for index in range(10)]
    topics = [fetch.FetchTopic(topic_id=TOPIC_ID, partitions=partitions)]
    responses = [fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=answers)]
    return [
        ("FetchRequest v16, 10 partitions", fetch.FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics), 16),
        ("FetchResponse v16, 10 partitions", fetch.FetchResponse(responses=responses), 16),
    ]


def metadata_sample() -> Sample:
    """What a client asks when it starts: all topics of a small cluster."""
    brokers = [metadata.MetadataResponseBroker(node_id=node, host="localhost", port=9092 + node) for node in range(3)]
    partitions = [
        metadata.MetadataResponsePartition(
            partition_index=index, leader_id=1, replica_nodes=[0, 1, 2], isr_nodes=[0, 1, 2]
        )
        for index in range(6)
    ]
    topics = [
        metadata.MetadataResponseTopic(name=f"topic-{topic}", topic_id=TOPIC_ID, partitions=partitions)
        for topic in range(20)
    ]
    response = metadata.MetadataResponse(cluster_id="odradek", brokers=brokers, topics=topics)
    return "MetadataResponse v12, 3 brokers, 20 topics of 6", response, 12


def group_samples() -> list[Sample]:
    """What the members of a classic group send."""
    protocols = [
        join_group.JoinGroupRequestProtocol(name=name, metadata=b"\0\3" + bytes(40))
        for name in ("range", "cooperative-sticky")
    ]
    join = join_group.JoinGroupRequest(
        group_id="group",
        session_timeout_ms=45_000,
        member_id="consumer-1-5f0d1f2e",
        protocol_type="consumer",
        protocols=protocols,
    )
    partitions = [
        offset_commit.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=index * 1000, committed_metadata=""
        )
        for index in range(10)
    ]
    commit = offset_commit.OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=3,
        member_id="consumer-1-5f0d1f2e",
        topics=[offset_commit.OffsetCommitRequestTopic(name="orders", partitions=partitions)],
    )
    return [("JoinGroupRequest v9", join, 9), ("OffsetCommitRequest v9, 10 partitions", commit, 9)]


def sample_messages() -> list[Sample]:
    """What brokers read and write most."""
    batch = batch_of(1, 1024)
    return [*produce_samples(batch), *fetch_samples(batch), metadata_sample(), *group_samples()]


def bench_messages(wanted: str) -> None:
    """Print the table of messages."""
    print(f"{'message':50} {'bytes':>7} {'decode µs':>10} {'write µs':>9} {'encode µs':>10}")
    for name, message, version in sample_messages():
        if wanted.lower() not in name.lower():
            continue
        encoded = message.encode(version)
        message_class = type(message)
        decode = best_seconds(lambda: message_class.decode(encoded, version))  # noqa: B023
        write = best_seconds(lambda: message.write([], version))  # noqa: B023
        encode = best_seconds(lambda: message.encode(version))  # noqa: B023
        print(f"{name:50} {len(encoded):7} {decode * 1e6:10.1f} {write * 1e6:9.1f} {encode * 1e6:10.1f}")


def lead(batch_bytes: bytes) -> bytes:
    """All that Produce does with the bytes of one batch before they go into the log."""
    batch = sole_batch(batch_bytes, 12)
    check_batch_header(batch, max_message_bytes=1 << 24)
    validated = validate_records(batch, now_ms=1_700_000_000_000, timestamp_after_max_ms=3_600_000)
    return leader_batch(batch, validated, base_offset=10**6, partition_leader_epoch=3)


def bench_records(wanted: str) -> None:
    """Print the table of record batches."""
    kind = "interpreted" if record_kernel.__file__.endswith(".py") else "compiled"
    print(f"\n{'records (kernels ' + kind + ')':50} {'bytes':>7} {'walk ns/rec':>12} {'lead µs/batch':>14}")
    shapes = [(1, 1024), (15, 1024), (150, 100), (5000, 100), (100_000, 100)]
    for count, value_size in shapes:
        for compression in Compression:
            name = f"{count} of {value_size} bytes, {compression.label}"
            if wanted.lower() not in name:
                continue
            data = batch_of(count, value_size, compression)
            batch = RecordBatch(data)
            payload, start, end = batch.payload()

            def walk(payload: bytes = payload, start: int = start, count: int = count, end: int = end) -> None:
                record_kernel.RecordScan(start).advance(payload, count, end)

            per_record = best_seconds(walk) / count
            whole = best_seconds(lambda: lead(data))  # noqa: B023
            print(f"{name:50} {len(data):7} {per_record * 1e9:12.1f} {whole * 1e6:14.1f}")


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    bench_messages(chosen)
    bench_records(chosen)
