"""How far a partition is committed, and how far down it is still needed.

Pure: values in, values out. Source: KIP-966; Kafka's `Partition.maybeIncrementLeaderHW`,
`Partition.lowWatermarkIfLeader`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from broker.replication.isr import ReplicaState, is_eligible


def effective_min_isr(min_insync_replicas: int, replica_count: int) -> int:
    """`min.insync.replicas`, but never more than there are replicas (B.2.3)."""
    return min(min_insync_replicas, replica_count)


def next_high_watermark(
    current: int,
    *,
    leader_log_end_offset: int,
    followers: Mapping[int, ReplicaState],
    maximal_isr: Collection[int],
    isr_size: int,
    min_isr: int,
    registered_epochs: Mapping[int, int],
    replica_lag_time_max_ms: int,
    now_ms: int,
) -> int:
    """The high watermark that a leader may announce now (K7); `current` when it may not move.

    It is the smallest log end over the maximal ISR and over the followers that are about to join: caught up
    within the lag time and eligible (`registered_epochs`: epoch of each broker that is alive). It never goes
    back, and stands still while the ISR is smaller than `min_isr`.
    """
    if isr_size < min_isr:
        return current
    committed = leader_log_end_offset
    for replica_id, replica in followers.items():
        if replica.log_end_offset < committed and (
            replica_id in maximal_isr
            or (
                replica.is_caught_up(
                    leader_log_end_offset=leader_log_end_offset,
                    replica_lag_time_max_ms=replica_lag_time_max_ms,
                    now_ms=now_ms,
                )
                and is_eligible(replica.broker_epoch, registered_epochs.get(replica_id))
            )
        ):
            committed = replica.log_end_offset
    return max(current, committed)


def low_watermark(leader_log_start_offset: int, followers: Mapping[int, ReplicaState], alive: Collection[int]) -> int:
    """The smallest log start over the leader and the followers that are alive: what DeleteRecords answers (F11)."""
    return min(
        [leader_log_start_offset]
        + [replica.log_start_offset for replica_id, replica in followers.items() if replica_id in alive]
    )
