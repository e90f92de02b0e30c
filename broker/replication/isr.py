"""Who is in sync: what a leader remembers of each follower, and when the in-sync set grows and shrinks.

Pure: values in, values out; time is an argument.
Source: KIP-497, KIP-841, KIP-966; Kafka's `Replica`, `ReplicaState`, `Partition.maybeExpandIsr / maybeShrinkIsr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from wire.errors import ErrorCode

UNKNOWN_OFFSET = -1
NO_BROKER_EPOCH = -1


class ReplicaState(NamedTuple):
    """What the leader knows of one follower; offsets are -1 until its first fetch in this leader epoch."""

    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = UNKNOWN_OFFSET
    """The leader's log end at the follower's last fetch."""
    last_fetch_time_ms: int = 0
    last_caught_up_time_ms: int = 0
    """When the follower last had all that the leader had."""
    broker_epoch: int | None = None
    """As the follower's fetch said; None before the first fetch."""

    def fetched(
        self,
        *,
        fetch_offset: int,
        log_start_offset: int,
        leader_log_end_offset: int,
        broker_epoch: int,
        now_ms: int,
    ) -> ReplicaState:
        """The state after a fetch at `fetch_offset`.

        The follower was caught up now if it asks at the leader's end, and at its previous fetch if it now
        asks at or past the end the leader had then: a follower that is always one fetch behind is in sync.
        """
        if fetch_offset >= leader_log_end_offset:
            caught_up_ms = max(self.last_caught_up_time_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_log_end_offset:
            caught_up_ms = max(self.last_caught_up_time_ms, self.last_fetch_time_ms)
        else:
            caught_up_ms = self.last_caught_up_time_ms
        return ReplicaState(
            fetch_offset,
            log_start_offset,
            max(leader_log_end_offset, self.last_fetch_leader_log_end_offset),
            now_ms,
            caught_up_ms,
            broker_epoch,
        )

    def reset(self, *, leader_log_end_offset: int, is_new_leader: bool, is_in_isr: bool, now_ms: int) -> ReplicaState:
        """The state when this broker is elected, or told again that it leads (K6).

        A member of the ISR gets a whole lag time to show itself; nobody else is taken for caught up.
        """
        caught_up_ms = now_ms if is_in_isr else 0
        if is_new_leader:
            return ReplicaState(last_caught_up_time_ms=caught_up_ms)
        return ReplicaState(
            self.log_end_offset,
            self.log_start_offset,
            leader_log_end_offset,
            now_ms if is_in_isr else 0,
            caught_up_ms,
            self.broker_epoch,
        )

    def is_caught_up(self, *, leader_log_end_offset: int, replica_lag_time_max_ms: int, now_ms: int) -> bool:
        """True if it is at the leader's end, or was within the lag time."""
        return (
            self.log_end_offset == leader_log_end_offset
            or now_ms - self.last_caught_up_time_ms <= replica_lag_time_max_ms
        )


@dataclass(frozen=True, slots=True)
class IsrState:
    """The in-sync set as the controller last confirmed it, and the change that is on its way to the controller.

    `proposed` is None while nothing is in flight; one change at a time (K10).
    """

    isr: frozenset[int]
    proposed: frozenset[int] | None = None

    @property
    def in_flight(self) -> bool:
        """Whether an AlterPartition request is waiting for its answer."""
        return self.proposed is not None

    @property
    def maximal_isr(self) -> frozenset[int]:
        """Every replica that may be in sync: a pending expansion counts, a pending shrink does not remove yet."""
        return self.isr if self.proposed is None else self.isr | self.proposed


def is_eligible(broker_epoch: int | None, registered_epoch: int | None) -> bool:
    """Whether a follower may be in the ISR at all (KIP-841, KIP-903).

    `registered_epoch` is the epoch of its registration if the broker is alive (neither fenced nor shutting
    down), else None. A fetch without an epoch (-1, before Fetch v15) is taken at its word.
    """
    if broker_epoch is None or registered_epoch is None:
        return False
    return broker_epoch in (NO_BROKER_EPOCH, registered_epoch)


def may_join(
    state: IsrState,
    replica_id: int,
    replica: ReplicaState,
    *,
    high_watermark: int,
    leader_epoch_start_offset: int,
    registered_epoch: int | None,
) -> bool:
    """Whether the leader should ask the controller to add this follower (K9)."""
    return (
        not state.in_flight
        and replica_id not in state.isr
        and is_eligible(replica.broker_epoch, registered_epoch)
        and replica.log_end_offset >= high_watermark
        and replica.log_end_offset >= leader_epoch_start_offset
    )


def out_of_sync(
    isr: Iterable[int],
    leader_id: int,
    replicas: Mapping[int, ReplicaState],
    *,
    leader_log_end_offset: int,
    replica_lag_time_max_ms: int,
    now_ms: int,
) -> frozenset[int]:
    """Members of the ISR that have not been caught up for the lag time (`replica.lag.time.max.ms`)."""
    return frozenset(
        replica_id
        for replica_id in isr
        if replica_id != leader_id
        and not replicas.get(replica_id, ReplicaState()).is_caught_up(
            leader_log_end_offset=leader_log_end_offset,
            replica_lag_time_max_ms=replica_lag_time_max_ms,
            now_ms=now_ms,
        )
    )


class Reaction(Enum):
    """What a leader does after a refused AlterPartition."""

    GO_BACK = "go back to the confirmed set"
    WAIT_FOR_METADATA = "keep the proposal until metadata says what is"
    RETRY = "send again"


def reaction_to(error: ErrorCode) -> Reaction:
    """K12: what to do about an error for one partition of an AlterPartition answer."""
    if error in (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA):
        return Reaction.GO_BACK
    if error in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ):
        return Reaction.WAIT_FOR_METADATA
    return Reaction.RETRY
