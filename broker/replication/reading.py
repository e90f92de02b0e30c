"""Reads for Fetch: many partitions under one size limit, then one wait for enough bytes, then read again.

Source: Kafka's `ReplicaManager.fetchMessages / readFromLog`, `DelayedFetch`; semantics of `max_bytes` since KIP-74.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from broker.replication.partition import CONSUMER_REPLICA_ID, EpochEnd, Partition
from broker.replication.waits import FetchIsolation, FetchWait
from wire.errors import ErrorCode, KafkaError
from wire.primitives import ZERO_UUID, TopicPartition

if TYPE_CHECKING:
    from broker.replication.replica_manager import ReplicaManager
    from wire.log_files import AbortedTransactionEntry


class ReadTarget(NamedTuple):
    """One partition to read. `topic_id` is checked against the hosted one unless zero."""

    topic_partition: TopicPartition
    topic_id: bytes
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    """The follower's own log start; -1 from consumers."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What holds for a whole Fetch request; bytes and milliseconds."""

    isolation: FetchIsolation
    max_bytes: int
    min_bytes: int
    max_wait_ms: int
    leader_only: bool = True
    """False for consumers from Fetch v11 on: they may read from any replica (KIP-392)."""
    replica_id: int = CONSUMER_REPLICA_ID
    broker_epoch: int = -1
    """Of the follower that asks."""

    @property
    def is_follower(self) -> bool:
        """Whether a broker asks."""
        return self.replica_id >= 0


class ReadResult(NamedTuple):
    """What a partition answers; offsets are -1 on an error (E9). `aborted` is None unless read_committed asked."""

    error_code: int
    records: bytes = b""
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[AbortedTransactionEntry] | None = None
    diverging: EpochEnd | None = None
    preferred_read_replica: int = -1


async def fetch(replicas: ReplicaManager, targets: Sequence[ReadTarget], limits: ReadLimits) -> list[ReadResult]:
    """Read the targets in their order; under `min_bytes` wait once for all of them and read again (E16 to E18)."""
    results, bytes_read, must_answer = _read_all(replicas, targets, limits, is_first=True)
    if must_answer or limits.max_wait_ms <= 0 or not targets or bytes_read >= limits.min_bytes:
        return results
    wait = FetchWait(replicas.clock, missing_bytes=limits.min_bytes - bytes_read)
    for target, result in zip(targets, results, strict=True):
        partition = replicas.partitions[target.topic_partition]
        wait.watch(
            partition.fetch_waits,
            limits.isolation,
            fetch_offset=target.fetch_offset,
            max_bytes=target.max_bytes,
            counted_bytes=len(result.records),
        )
    await wait.wait(limits.max_wait_ms)
    if not wait.saw_change:
        return results
    return _read_all(replicas, targets, limits, is_first=False)[0]


def _read_all(
    replicas: ReplicaManager, targets: Sequence[ReadTarget], limits: ReadLimits, *, is_first: bool
) -> tuple[list[ReadResult], int, bool]:
    """The results, their bytes, and whether one of them (an error, a diverging epoch) ends the wait."""
    results = []
    left = limits.max_bytes
    bytes_read = 0
    must_answer = False
    for target in targets:
        try:
            partition = _find(replicas, target)
            # Until something is found the first batch may exceed all limits, so that no reader is stuck (E13).
            result = _read_one(partition, target, limits, min(target.max_bytes, left), min_one_batch=not bytes_read)
            if is_first and limits.is_follower and result.diverging is None:
                _note_follower(replicas, partition, target, limits)
        except KafkaError as error:
            results.append(ReadResult(int(error.code)))
            left = max(0, left)
            must_answer = True
            continue
        results.append(result)
        size = len(result.records)
        bytes_read += size
        left = max(0, left - size)
        must_answer = must_answer or result.diverging is not None
    return results, bytes_read, must_answer


def _find(replicas: ReplicaManager, target: ReadTarget) -> Partition:
    partition = replicas.partition(target.topic_partition)
    if target.topic_id != ZERO_UUID and target.topic_id != partition.topic_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"topic '{target.topic_partition.topic}' has another id than the request names",
        )
    return partition


def _read_one(
    partition: Partition, target: ReadTarget, limits: ReadLimits, max_bytes: int, *, min_one_batch: bool
) -> ReadResult:
    found = partition.read(
        target.fetch_offset,
        isolation=limits.isolation,
        max_bytes=max_bytes,
        min_one_batch=min_one_batch,
        current_leader_epoch=target.current_leader_epoch,
        last_fetched_epoch=target.last_fetched_epoch,
        leader_only=limits.leader_only,
        replica_id=limits.replica_id,
    )
    if max_bytes < 0 and target.fetch_offset < partition.fetch_limit(limits.isolation):
        # Kafka falls over it when it comes to reading.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"at most {max_bytes} bytes cannot be read")
    records = b"" if found.read is None else found.read.records
    aborted: Sequence[AbortedTransactionEntry] | None = None
    if limits.isolation == FetchIsolation.TXN_COMMITTED:
        aborted = ()
        if records and found.read is not None:
            aborted = partition.log.aborted_transactions(target.fetch_offset, found.read.end_offset_bound)
    return ReadResult(
        0,
        records,
        found.high_watermark,
        found.last_stable_offset,
        found.log_start_offset,
        aborted,
        found.diverging,
    )


def _note_follower(replicas: ReplicaManager, partition: Partition, target: ReadTarget, limits: ReadLimits) -> None:
    partition.follower_fetched(
        limits.replica_id,
        fetch_offset=target.fetch_offset,
        log_start_offset=target.log_start_offset,
        broker_epoch=limits.broker_epoch,
        now_ms=replicas.clock.now_ms(),
    )
