"""The partitions hosted on this node: opened, led, followed and closed as metadata says; appended to and found.

`apply` is called by the metadata publisher for every change, in order, and at start with a delta that holds
everything. Reading for Fetch is in `reading`, offset questions in `offset_lookup`.
Source: Kafka's `kafka.server.ReplicaManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from broker.replication.partition import ACKS_ALL, Partition, Surroundings
from broker.replication.waits import OffsetWait
from broker.storage.log import AppendOrigin
from coordinator.controller.topic_names import is_internal
from coordinator.metadata.image import EMPTY_IMAGE, RESOURCE_BROKER, RESOURCE_TOPIC
from wire.errors import ErrorCode, KafkaError
from wire.primitives import ZERO_UUID, TopicPartition

if TYPE_CHECKING:
    from broker.clock import Clock, Timer
    from broker.config_log import LogConfig
    from broker.replication.transaction_verification import TransactionVerifier
    from broker.storage.log import AppendInfo, LogRead
    from broker.storage.log_manager import LogManager
    from broker.storage.producer_state import VerificationGuard
    from coordinator.metadata.delta import MetadataDelta
    from coordinator.metadata.image import MetadataImage, PartitionImage, TopicImage

logger = logging.getLogger(__name__)

_ERRORS_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)
"""After every other error Produce says where the log starts (B1; `ReplicaManager.appendRecordsToLeader`)."""


class LeadershipChange(NamedTuple):
    """This node began or ceased to lead a partition; `leader_epoch` is -1 when the partition is gone."""

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    is_leader: bool


@dataclass(slots=True)
class AppendOutcome:
    """What one partition of a Produce request came to. Offsets and times are -1 where nothing was appended (B2)."""

    error: ErrorCode = ErrorCode.NONE
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[tuple[int, str], ...] = ()
    message: str | None = None
    required_offset: int = -1
    """The high watermark that acks=all waits for."""


@dataclass(slots=True)
class VerificationSettings:
    """How leaders speak with transaction coordinators; the defaults are Kafka's."""

    is_enabled: bool = True
    """`transaction.partition.verification.enable`: whether producers that add partitions themselves are checked."""
    retry_backoff_ms: int = 20
    """`add.partitions.to.txn.retry.backoff.ms`"""
    retry_max_ms: int = 100
    """`add.partitions.to.txn.retry.backoff.max.ms`: how long adding is tried again, all in all."""


class ReplicaManager:
    """Owner of the hosted partitions. Everything here is called on the event loop; only `wait_…` waits."""

    def __init__(
        self,
        log_manager: LogManager,
        clock: Clock,
        *,
        broker_id: int,
        log_config_of: Callable[[str, Mapping[str, str]], LogConfig],
        replica_lag_time_max_ms: int = 30_000,
        fetch_max_bytes: int = 57_671_680,
        on_leadership_change: Iterable[Callable[[LeadershipChange], None]] = (),
    ) -> None:
        """`log_config_of(topic, overrides)` makes a topic's effective settings from what is set on it;
        `on_leadership_change` are called in order once a whole metadata change has been applied."""
        self.clock = clock
        self.log_manager = log_manager
        self.surroundings = Surroundings(broker_id, replica_lag_time_max_ms)
        self.on_leadership_change = list(on_leadership_change)
        # The way to transaction coordinators; None while there is none: they then count as not available.
        self.transaction_verifier: TransactionVerifier | None = None
        self.transaction_verification = VerificationSettings()
        # fetch.max.bytes: no answer to a Fetch is larger, but for one batch.
        self.fetch_max_bytes = fetch_max_bytes
        self._log_config_of = log_config_of
        self._image: MetadataImage = EMPTY_IMAGE
        self._partitions: dict[TopicPartition, Partition] = {}
        # Partitions that should be here but whose directory failed.
        self._offline: set[TopicPartition] = set()
        self._shrink_timer: Timer | None = None
        self._opening_configs: dict[str, LogConfig] = {}
        # The first change is all that there is at the start; what comes later is new.
        self._has_started = False

    # --- finding -------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        """The metadata that was applied last."""
        return self._image

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """The hosted partitions whose logs are usable."""
        return self._partitions

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """The hosted partition. Raises KAFKA_STORAGE_ERROR where its directory failed, NOT_LEADER_OR_FOLLOWER
        where other brokers host it, UNKNOWN_TOPIC_OR_PARTITION where nobody does."""
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            if partition.log.offline:
                self._went_offline(partition)
                raise self._storage_error(topic_partition)
            return partition
        raise self._missing(topic_partition)

    def _missing(self, topic_partition: TopicPartition) -> KafkaError:
        if topic_partition in self._offline:
            return self._storage_error(topic_partition)
        if self._image.topics.partition(*topic_partition) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic_partition}")
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"broker {self.surroundings.broker_id} has no replica of {topic_partition}",
        )

    def _storage_error(self, topic_partition: TopicPartition) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {topic_partition} has failed")

    # --- appending -----------------------------------------------------------------------------

    def append(
        self,
        topic_partition: TopicPartition,
        batch: bytes,
        *,
        acks: int,
        now_ms: int,
        topic_id: bytes = ZERO_UUID,
        may_write_internal: bool = False,
        verification_guard: VerificationGuard | None = None,
    ) -> AppendOutcome:
        """Append one client batch here (B.2); an error is an outcome, never raised.

        `topic_id` is checked against the hosted one unless zero. `acks` decides about min.insync.replicas only:
        waiting is `wait_for_acks`.
        """
        try:
            if not may_write_internal and is_internal(topic_partition.topic):
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"clients may not write to internal topic '{topic_partition.topic}'",
                )
            partition = self.partition(topic_partition)
            if topic_id != ZERO_UUID and topic_id != partition.topic_id:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_ID, f"topic '{topic_partition.topic}' has another id than the request names"
                )
            info = partition.append_as_leader(batch, acks=acks, now_ms=now_ms, verification_guard=verification_guard)
        except KafkaError as error:
            return self._refused(topic_partition, error)
        return AppendOutcome(
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
            required_offset=info.last_offset + 1,
        )

    def _refused(self, topic_partition: TopicPartition, error: KafkaError) -> AppendOutcome:
        outcome = AppendOutcome(
            error.code, message=error.message, record_errors=tuple(getattr(error, "record_errors", ()))
        )
        partition = self._partitions.get(topic_partition)
        if partition is not None and error.code not in _ERRORS_WITHOUT_LOG_START:
            outcome.log_start_offset = partition.log.log_start_offset
        return outcome

    async def wait_for_acks(self, outcomes: Mapping[TopicPartition, AppendOutcome], timeout_ms: int) -> None:
        """Wait for acks=all: until the high watermark has passed every appended batch, or the time is over.

        Sets the error of outcomes that fail while waiting: REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND (B5, B6). In all three cases the data stays, and so does the base offset.
        """
        wait: OffsetWait[TopicPartition] | None = None
        for topic_partition, outcome in outcomes.items():
            if outcome.error:
                continue
            partition = self._partitions.get(topic_partition)
            if partition is None or not partition.is_leader:
                outcome.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif partition.log.high_watermark < outcome.required_offset:
                if wait is None:
                    wait = OffsetWait(self.clock)
                wait.expect(partition.commit_waits, outcome.required_offset, topic_partition)
            elif len(partition.isr_state.maximal_isr) < partition.min_isr:
                outcome.error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        if wait is None:
            return
        awaited = wait.keys()
        await wait.wait(timeout_ms)
        for topic_partition in awaited:
            outcomes[topic_partition].error = wait.outcomes.get(topic_partition, ErrorCode.REQUEST_TIMED_OUT)

    # --- for coordinators ----------------------------------------------------------------------

    def append_records(
        self,
        topic_partition: TopicPartition,
        batch: bytes,
        *,
        origin: AppendOrigin = AppendOrigin.COORDINATOR,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = -1,
    ) -> int:
        """Append one batch with acks=all, here and now; returns its base offset. Raises KafkaError.

        `await wait_for_high_watermark(topic_partition, last offset + 1)` waits for it to be committed.
        """
        return self.append_batch(
            topic_partition,
            batch,
            origin=origin,
            verification_guard=verification_guard,
            transaction_version=transaction_version,
        ).first_offset

    def append_batch(
        self,
        topic_partition: TopicPartition,
        batch: bytes,
        *,
        origin: AppendOrigin = AppendOrigin.COORDINATOR,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = -1,
    ) -> AppendInfo:
        """As `append_records`; returns all that the append did."""
        return self.partition(topic_partition).append_as_leader(
            batch,
            acks=ACKS_ALL,
            now_ms=self.clock.now_ms(),
            origin=origin,
            verification_guard=verification_guard,
            transaction_version=transaction_version,
        )

    async def wait_for_high_watermark(
        self, topic_partition: TopicPartition, offset: int, timeout_ms: int | None = None
    ) -> None:
        """Wait until everything below `offset` is committed.

        Raises NOT_LEADER_OR_FOLLOWER when this node loses the partition meanwhile, NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        REQUEST_TIMED_OUT after `timeout_ms`, and what `partition` raises.
        """
        partition = self.partition(topic_partition)
        partition.require_leader()
        if partition.log.high_watermark >= offset:
            return
        wait: OffsetWait[TopicPartition] = OffsetWait(self.clock)
        wait.expect(partition.commit_waits, offset, topic_partition)
        await wait.wait(timeout_ms)
        error = wait.outcomes.get(topic_partition, ErrorCode.REQUEST_TIMED_OUT)
        if error:
            raise KafkaError(error, f"offset {offset - 1} of {topic_partition} was not committed")

    def read_from(self, topic_partition: TopicPartition, offset: int, *, max_bytes: int = 5_242_880) -> LogRead:
        """Up to `max_bytes` of batches from `offset` to the log end, at least one batch: how a coordinator loads.

        Raises OFFSET_OUT_OF_RANGE and what `partition` raises.
        """
        return self.partition(topic_partition).log.read(offset, max_bytes=max_bytes, min_one_batch=True)

    # --- metadata ------------------------------------------------------------------------------

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Open, close, lead and follow partitions as `delta` says; `image` is the metadata after it."""
        self._image = image
        now_ms = self.clock.now_ms()
        changes: list[LeadershipChange] = []
        if delta.brokers:
            self._note_brokers(image)
        for topic in delta.deleted_topics.values():
            for index in topic.partitions:
                changes += self._remove(TopicPartition(topic.name, index), topic.topic_id, now_ms)
        self._opening_configs = {}
        for topic_id, topic_delta in delta.topics.items():
            for index, partition_image in topic_delta.changed.items():
                changes += self._update(TopicPartition(topic_delta.name, index), topic_id, partition_image, now_ms)
        if delta.config_changes:
            self._apply_configs(delta, image)
        self._has_started = True
        for change in changes:
            for listener in self.on_leadership_change:
                listener(change)

    def _note_brokers(self, image: MetadataImage) -> None:
        brokers = image.brokers.values()
        self.surroundings.registered_epochs = {
            broker.broker_id: broker.broker_epoch for broker in brokers if broker.active
        }
        self.surroundings.unfenced = frozenset(broker.broker_id for broker in brokers if not broker.fenced)

    def _update(
        self, topic_partition: TopicPartition, topic_id: bytes, image: PartitionImage, now_ms: int
    ) -> list[LeadershipChange]:
        if self.surroundings.broker_id not in image.replicas:
            return self._remove(topic_partition, topic_id, now_ms)
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._open(topic_partition, topic_id, now_ms)
            if partition is None:
                return []
        changed = partition.become(image, now_ms)
        if partition.is_leader and len(image.isr) > 1:
            self._arm_shrinking()
        if not changed:
            return []
        return [LeadershipChange(topic_partition, topic_id, image.leader_epoch, partition.is_leader)]

    def _open(self, topic_partition: TopicPartition, topic_id: bytes, now_ms: int) -> Partition | None:
        try:
            log = self.log_manager.get_or_create(
                topic_partition,
                topic_id,
                self._opening_config(topic_partition.topic),
                now_ms=now_ms,
                may_be_offline=not self._has_started,
            )
        except KafkaError as error:
            logger.error("the log of %s cannot be opened: %s", topic_partition, error)
            self._offline.add(topic_partition)
            return None
        self._offline.discard(topic_partition)
        partition = self._partitions[topic_partition] = Partition(topic_partition, topic_id, log, self.surroundings)
        return partition

    def _remove(self, topic_partition: TopicPartition, topic_id: bytes, now_ms: int) -> list[LeadershipChange]:
        """The replica is deleted with its log."""
        self._offline.discard(topic_partition)
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            partition.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            self.log_manager.delete(topic_partition, now_ms=now_ms)
        except KafkaError as error:
            logger.error("the log of %s cannot be deleted: %s", topic_partition, error)
        return [] if partition is None else [LeadershipChange(topic_partition, topic_id, -1, False)]

    def _went_offline(self, partition: Partition) -> None:
        """The directory failed under the partition: it stays known, and answers KAFKA_STORAGE_ERROR."""
        self._partitions.pop(partition.topic_partition, None)
        self._offline.add(partition.topic_partition)
        partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
        for listener in self.on_leadership_change:
            listener(LeadershipChange(partition.topic_partition, partition.topic_id, -1, False))

    def directory_failed(self) -> None:
        """A log directory failed: every partition whose log went offline with it answers KAFKA_STORAGE_ERROR."""
        for partition in [partition for partition in self._partitions.values() if partition.log.offline]:
            self._went_offline(partition)

    def set_strays_aside(self) -> None:
        """Rename the logs found at start that metadata does not give to this node (K23).

        To be called once the whole of metadata has been applied, never before.
        """
        for topic_partition in list(self.log_manager.logs):
            if topic_partition not in self._partitions and topic_partition not in self._offline:
                logger.warning("the log of %s is not of this cluster's metadata: set aside", topic_partition)
                self.log_manager.mark_stray(topic_partition)

    def _opening_config(self, topic: str) -> LogConfig:
        """A topic's settings, made once for all its partitions that a change opens."""
        config = self._opening_configs.get(topic)
        if config is None:
            config = self._opening_configs[topic] = self._log_config(topic, self._image)
        return config

    # --- settings ------------------------------------------------------------------------------

    def _log_config(self, topic: str, image: MetadataImage) -> LogConfig:
        return self._log_config_of(topic, image.configs.of(RESOURCE_TOPIC, topic))

    def _apply_configs(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if any(resource_type == RESOURCE_BROKER for resource_type, _ in delta.config_changes):
            # Broker settings are the defaults of every topic.
            self._reconfigure(image.topics, image)
            return
        named = (image.topics.by_name(name) for type_, name in delta.config_changes if type_ == RESOURCE_TOPIC)
        self._reconfigure((topic for topic in named if topic is not None), image)

    def _reconfigure(self, topics: Iterable[TopicImage], image: MetadataImage) -> None:
        now_ms = self.clock.now_ms()
        for topic in topics:
            config: LogConfig | None = None
            for partition in self._hosted_of(topic):
                if config is None:
                    config = self._log_config(topic.name, image)
                partition.log.update_config(config)
                if partition.is_leader:
                    # A smaller min.insync.replicas may let the high watermark move.
                    partition.advance_high_watermark(now_ms)

    def _hosted_of(self, topic: TopicImage) -> Iterator[Partition]:
        for index in topic.partitions:
            partition = self._partitions.get(TopicPartition(topic.name, index))
            if partition is not None:
                yield partition

    # --- in-sync sets --------------------------------------------------------------------------

    def _arm_shrinking(self) -> None:
        """Look for lagging followers every half lag time, as long as there is a follower that could lag."""
        if self._shrink_timer is None:
            self._shrink_timer = self.clock.call_later(self.surroundings.replica_lag_time_max_ms / 2, self._shrink_isrs)

    def _shrink_isrs(self) -> None:
        self._shrink_timer = None
        now_ms = self.clock.now_ms()
        for partition in self._partitions.values():
            if partition.is_leader and len(partition.isr_state.isr) > 1:
                self._arm_shrinking()
                partition.maybe_shrink_isr(now_ms)

    def close(self) -> None:
        """Stop: whoever waits is answered NOT_LEADER_OR_FOLLOWER. The logs are closed by the log manager."""
        if self._shrink_timer is not None:
            self._shrink_timer.cancel()
            self._shrink_timer = None
        for partition in self._partitions.values():
            partition.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
