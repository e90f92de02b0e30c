"""One replica hosted on this node: its log, who leads it, who is in sync, who waits on it.

A `Partition` is owned by the event loop; nothing in it waits. Errors are KafkaErrors with the code that a
client gets. Source: Kafka's `kafka.cluster.Partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from broker.replication.high_watermark import effective_min_isr, low_watermark, next_high_watermark
from broker.replication.isr import IsrState, ReplicaState, may_join, out_of_sync
from broker.replication.waits import FetchIsolation, FetchWaits, OffsetWaits
from broker.storage.log import AppendOrigin
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.storage.log import AppendInfo, Log, LogRead
    from broker.storage.producer_state import VerificationGuard
    from coordinator.metadata.image import PartitionImage
    from wire.primitives import TopicPartition

NO_LEADER = -1
NO_EPOCH = -1
CONSUMER_REPLICA_ID = -1
ACKS_ALL = -1


@dataclass(slots=True)
class Surroundings:
    """What every partition of a node shares; kept up to date by the replica manager."""

    broker_id: int
    replica_lag_time_max_ms: int = 30_000
    registered_epochs: Mapping[int, int] = field(default_factory=dict)
    """Epoch of every broker that may be in an ISR: neither fenced nor shutting down."""
    unfenced: frozenset[int] = frozenset()
    propose_isr: Callable[[Partition, frozenset[int]], None] | None = None
    """Sends a wished in-sync set to the controller; None where there is nobody to ask."""


class EpochEnd(NamedTuple):
    """Where an epoch ends in a log; (-1, -1) when it cannot be said."""

    leader_epoch: int
    end_offset: int


class PartitionRead(NamedTuple):
    """What a reader got: bytes from the batch holding its offset on (None: nothing), and the offsets then."""

    read: LogRead | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging: EpochEnd | None = None
    """The reader's log and this one part here: it must truncate before it can go on (KIP-595)."""


class Partition:
    """See the module. `become` is the only way to change who leads."""

    __slots__ = (
        "_surroundings",
        "commit_waits",
        "fetch_waits",
        "followers",
        "is_leader",
        "isr_state",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "log",
        "low_watermark_waits",
        "partition_epoch",
        "replicas",
        "topic_id",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, topic_id: bytes, log: Log, surroundings: Surroundings) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self._surroundings = surroundings
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.is_leader = False
        self.leader_epoch_start_offset = 0
        self.replicas: tuple[int, ...] = ()
        self.isr_state = IsrState(frozenset())
        self.followers: dict[int, ReplicaState] = {}
        self.fetch_waits = FetchWaits()
        self.commit_waits = OffsetWaits()
        self.low_watermark_waits = OffsetWaits()

    # --- what metadata says --------------------------------------------------------------------

    def become(self, image: PartitionImage, now_ms: int) -> bool:
        """Take over what metadata says; True if leadership or leader epoch changed.

        An older partition epoch than the one known is ignored: the answer to an AlterPartition may be
        ahead of the metadata log (K5).
        """
        if image.partition_epoch < self.partition_epoch:
            return False
        leads = image.leader == self._surroundings.broker_id
        is_new_epoch = image.leader_epoch > self.leader_epoch
        was_leader = self.is_leader
        self.replicas = image.replicas
        self.partition_epoch = image.partition_epoch
        self.leader_id = image.leader
        self.is_leader = leads
        if leads:
            self.isr_state = IsrState(frozenset(image.isr))
            self._reset_followers(image, now_ms, is_new_leader=not was_leader, is_new_epoch=is_new_epoch)
        else:
            self.isr_state = IsrState(frozenset())
            self.followers = {}
        self.leader_epoch = image.leader_epoch
        changed = is_new_epoch or leads != was_leader
        if changed:
            if not leads:
                self._fail_waits(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self.fetch_waits.wake_all()
        if leads:
            # The ISR may be down to this replica alone.
            self.advance_high_watermark(now_ms)
        return changed

    def _reset_followers(self, image: PartitionImage, now_ms: int, *, is_new_leader: bool, is_new_epoch: bool) -> None:
        log_end_offset = self.log.log_end_offset
        me = self._surroundings.broker_id
        followers = {id_: self.followers.get(id_, ReplicaState()) for id_ in image.replicas if id_ != me}
        if is_new_epoch:
            self.leader_epoch_start_offset = log_end_offset
            self.log.assign_epoch_start_offset(image.leader_epoch, log_end_offset)
            followers = {
                id_: state.reset(
                    leader_log_end_offset=log_end_offset,
                    is_new_leader=is_new_leader,
                    is_in_isr=id_ in image.isr,
                    now_ms=now_ms,
                )
                for id_, state in followers.items()
            }
        self.followers = followers

    def close(self, outcome: ErrorCode) -> None:
        """This replica is going away (deleted, moved, its directory failed): nobody waits on it any more."""
        self.is_leader = False
        self._fail_waits(outcome)
        self.fetch_waits.wake_all()

    def _fail_waits(self, outcome: ErrorCode) -> None:
        self.commit_waits.fail(outcome)
        self.low_watermark_waits.fail(outcome)

    # --- checks --------------------------------------------------------------------------------

    def require_leader(self) -> None:
        """Raises NOT_LEADER_OR_FOLLOWER unless this replica leads."""
        if not self.is_leader:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {self._surroundings.broker_id} does not lead {self.topic_partition}:"
                f" broker {self.leader_id} does in leader epoch {self.leader_epoch}",
            )

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raises FENCED_LEADER_EPOCH for an epoch behind this replica's, UNKNOWN_LEADER_EPOCH for one ahead.

        -1, a client that does not say, always passes (KIP-320).
        """
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        behind = current_leader_epoch < self.leader_epoch
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH if behind else ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"leader epoch {current_leader_epoch} of {self.topic_partition} is"
            f" {'older' if behind else 'newer'} than this broker's {self.leader_epoch}",
        )

    @property
    def min_isr(self) -> int:
        """`min.insync.replicas` of the topic, at most the number of replicas."""
        return effective_min_isr(self.log.config.min_insync_replicas, len(self.replicas))

    # --- appending -----------------------------------------------------------------------------

    def append_as_leader(
        self,
        batch: bytes,
        *,
        acks: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = -1,
    ) -> AppendInfo:
        """Append one batch. Raises NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS (acks -1), and what the log raises."""
        if not self.is_leader:
            self.require_leader()
        if acks == ACKS_ALL and len(self.isr_state.isr) < self.min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.topic_partition} has {len(self.isr_state.isr)} replicas in sync,"
                f" min.insync.replicas asks for {self.min_isr}",
            )
        info = self.log.append_as_leader(
            batch,
            leader_epoch=self.leader_epoch,
            origin=origin,
            now_ms=now_ms,
            verification_guard=verification_guard,
            transaction_version=transaction_version,
        )
        if not self.advance_high_watermark(now_ms) and len(self.fetch_waits):
            self.fetch_waits.changed(self)
        return info

    def append_as_follower(
        self,
        batches: bytes,
        *,
        leader_epoch: int,
        leader_high_watermark: int,
        leader_log_start_offset: int,
        now_ms: int,
    ) -> None:
        """Append what was fetched from the leader, and follow its high watermark and log start (K3, F12)."""
        log = self.log
        if batches:
            log.append_as_follower(batches, leader_epoch=leader_epoch, now_ms=now_ms)
        log.advance_high_watermark(leader_high_watermark)
        if leader_log_start_offset > log.log_start_offset:
            log.delete_records_before(min(leader_log_start_offset, log.high_watermark))
        self.fetch_waits.changed(self)

    def advance_high_watermark(self, now_ms: int) -> bool:
        """Move the high watermark as far as the in-sync replicas allow (K7) and wake who waits; True if it moved."""
        log = self.log
        followers = self.followers
        if not followers:
            # The only replica: all it has is committed, unless it lost its place in the ISR.
            if len(self.isr_state.isr) < self.min_isr or not log.advance_high_watermark(log.log_end_offset):
                return False
        else:
            surroundings = self._surroundings
            reachable = next_high_watermark(
                log.high_watermark,
                leader_log_end_offset=log.log_end_offset,
                followers=followers,
                maximal_isr=self.isr_state.maximal_isr,
                isr_size=len(self.isr_state.isr),
                min_isr=self.min_isr,
                registered_epochs=surroundings.registered_epochs,
                replica_lag_time_max_ms=surroundings.replica_lag_time_max_ms,
                now_ms=now_ms,
            )
            if not log.advance_high_watermark(reachable):
                return False
        if len(self.commit_waits):
            enough = len(self.isr_state.maximal_isr) >= self.min_isr
            self.commit_waits.reached(
                log.high_watermark, ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            )
        if len(self.fetch_waits):
            self.fetch_waits.changed(self)
        return True

    # --- reading -------------------------------------------------------------------------------

    def fetch_limit(self, isolation: FetchIsolation) -> int:
        """The offset below which a reader may see (E.2.12)."""
        if isolation == FetchIsolation.HIGH_WATERMARK:
            return self.log.high_watermark
        return self.log.last_stable_offset if isolation == FetchIsolation.TXN_COMMITTED else self.log.log_end_offset

    def readable_bytes(self, from_offset: int, to_offset: int) -> int | None:
        """Bytes between two offsets; None where the second is in a newer segment (E17), or the log failed."""
        log = self.log
        if log.segments.floor_place(from_offset) != log.segments.floor_place(to_offset):
            return None
        try:
            return log.bytes_between(from_offset, to_offset)
        except KafkaError:
            # Whoever waits reads again, and is told.
            return None

    def read(
        self,
        fetch_offset: int,
        *,
        isolation: FetchIsolation,
        max_bytes: int,
        min_one_batch: bool,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        leader_only: bool = True,
        replica_id: int = CONSUMER_REPLICA_ID,
    ) -> PartitionRead:
        """Read for a Fetch: checks 7 to 12 of E.2. `replica_id` is 0 or more for a follower.

        Raises FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE.
        """
        if current_leader_epoch != NO_EPOCH:
            self.check_leader_epoch(current_leader_epoch)
        if leader_only and not self.is_leader:
            self.require_leader()
        if replica_id >= 0:
            self._require_follower(replica_id, current_leader_epoch)
        log = self.log
        high_watermark, last_stable_offset = log.high_watermark, log.last_stable_offset
        log_start_offset = log.log_start_offset
        if last_fetched_epoch != NO_EPOCH:
            diverging = self._diverging(fetch_offset, last_fetched_epoch)
            if diverging is not None:
                return PartitionRead(None, high_watermark, last_stable_offset, log_start_offset, diverging)
        limit = self.fetch_limit(isolation)
        if fetch_offset == limit and fetch_offset >= log_start_offset:
            # Most partitions of most fetches: all has been read.
            return PartitionRead(None, high_watermark, last_stable_offset, log_start_offset)
        read = log.read(fetch_offset, max_bytes=max_bytes, upper_offset=limit, min_one_batch=min_one_batch)
        return PartitionRead(read, high_watermark, last_stable_offset, log_start_offset)

    def _diverging(self, fetch_offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        """Where the reader's log parts from this one, None if it does not (E.2.10)."""
        end = self.end_of_epoch(last_fetched_epoch)
        if end.end_offset < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"where epoch {last_fetched_epoch} ends in {self.topic_partition} is not known",
            )
        if fetch_offset < self.log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {fetch_offset} of {self.topic_partition} is below the log start {self.log.log_start_offset}",
            )
        if end.leader_epoch < last_fetched_epoch or end.end_offset < fetch_offset:
            return end
        return None

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """Where `leader_epoch` ends in this log (F8); (-1, -1) when that cannot be said."""
        epoch, end_offset = self.log.leader_epochs.end_offset_for(leader_epoch, self.log.log_end_offset)
        return EpochEnd(epoch, end_offset)

    # --- deleting ------------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up to `offset` (-1: the high watermark); returns the offset that -1 stood for.

        Raises POLICY_VIOLATION for a topic that is only compacted, OFFSET_OUT_OF_RANGE below 0 and above the
        high watermark (F.3).
        """
        self.require_leader()
        log = self.log
        if log.config.compacts and not log.config.deletes:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"records of {self.topic_partition} are not deleted by offset: its cleanup.policy is compact",
            )
        wanted = log.high_watermark if offset == -1 else offset
        if wanted < 0 or wanted > log.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"records of {self.topic_partition} cannot be deleted below offset {wanted}:"
                f" its high watermark is {log.high_watermark}",
            )
        log.delete_records_before(wanted)
        self.low_watermark_waits.reached(self.low_watermark)
        return wanted

    @property
    def low_watermark(self) -> int:
        """The smallest log start of all alive replicas."""
        return low_watermark(self.log.log_start_offset, self.followers, self._surroundings.unfenced)

    # --- followers -----------------------------------------------------------------------------

    def _require_follower(self, replica_id: int, current_leader_epoch: int) -> None:
        """Raises unless `replica_id` is a replica of this partition (E.2.9): with an epoch the follower may be ahead
        of this broker's metadata, so UNKNOWN_LEADER_EPOCH asks it to try again."""
        if replica_id not in self.followers:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER
                if current_leader_epoch == NO_EPOCH
                else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {replica_id} is not a replica of {self.topic_partition}, which has {list(self.replicas)}",
            )

    def follower_fetched(
        self, replica_id: int, *, fetch_offset: int, log_start_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """Note how far a follower is (E21): it may join the ISR, move the high watermark, end waits.

        Raises NOT_LEADER_OR_FOLLOWER for the fetch of an earlier life of that broker (KIP-903).
        """
        registered = self._surroundings.registered_epochs.get(replica_id)
        if broker_epoch != -1 and registered is not None and broker_epoch < registered:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"the fetch of broker {replica_id} carries broker epoch {broker_epoch}, registered is {registered}",
            )
        before = self.followers[replica_id]
        self.followers[replica_id] = before.fetched(
            fetch_offset=fetch_offset,
            log_start_offset=log_start_offset,
            leader_log_end_offset=self.log.log_end_offset,
            broker_epoch=broker_epoch,
            now_ms=now_ms,
        )
        self._maybe_expand_isr(replica_id)
        if before.log_end_offset != fetch_offset:
            self.advance_high_watermark(now_ms)
        if len(self.low_watermark_waits):
            self.low_watermark_waits.reached(self.low_watermark)

    def _maybe_expand_isr(self, replica_id: int) -> None:
        if may_join(
            self.isr_state,
            replica_id,
            self.followers[replica_id],
            high_watermark=self.log.high_watermark,
            leader_epoch_start_offset=self.leader_epoch_start_offset,
            registered_epoch=self._surroundings.registered_epochs.get(replica_id),
        ):
            self._propose(self.isr_state.isr | {replica_id})

    def maybe_shrink_isr(self, now_ms: int) -> None:
        """Ask the controller to take out who has not been caught up for the lag time (K9)."""
        if not self.is_leader or self.isr_state.in_flight or len(self.isr_state.isr) < 2:
            return
        lost = out_of_sync(
            self.isr_state.isr,
            self._surroundings.broker_id,
            self.followers,
            leader_log_end_offset=self.log.log_end_offset,
            replica_lag_time_max_ms=self._surroundings.replica_lag_time_max_ms,
            now_ms=now_ms,
        )
        if lost:
            self._propose(self.isr_state.isr - lost)

    def _propose(self, isr: frozenset[int]) -> None:
        if self._surroundings.propose_isr is not None:
            self.isr_state = IsrState(self.isr_state.isr, isr)
            self._surroundings.propose_isr(self, isr)

    def isr_confirmed(self, isr: frozenset[int], partition_epoch: int, now_ms: int) -> None:
        """The controller took the proposal; metadata with the same partition epoch will follow."""
        if partition_epoch > self.partition_epoch:
            self.partition_epoch = partition_epoch
            self.isr_state = IsrState(isr)
            # A shrink may let the high watermark go on.
            self.advance_high_watermark(now_ms)

    def isr_refused(self) -> None:
        """The controller refused the proposal: what it confirmed last holds."""
        self.isr_state = IsrState(self.isr_state.isr)
