"""What logs need from time to time: checkpoints, syncing of sealed segments, retention, expiry of producers.

Each duty has Kafka's interval, but no timer of its own beat: a duty is armed when the node is asked
for something, runs an interval later (and again, if more was asked for meanwhile), and is armed by the
next request again; a change of settings, which comes after its request, counts as one. Only what time
itself brings (records grow too old, the delay of deletions ends) has a timer for its hour. So a node
that nobody speaks to does nothing. Source: Kafka's `LogManager.startup`, `ReplicaManager` (high
watermark checkpoint), `ProducerStateManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from broker.log_cleaner import LogCleaner
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.clock import Clock, Timer
    from broker.config import BrokerConfig
    from broker.storage.flush_task import FlushTask
    from broker.storage.log import Log
    from broker.storage.log_manager import LogManager

logger = logging.getLogger(__name__)

NEVER_MS = 10 * 365 * 24 * 3_600_000
"""An interval as long as this is one that never ends (Kafka's default of some is 2^63-1)."""


class Upshot(NamedTuple):
    """What compaction or retention has made of a topic's logs on this node."""

    topic: str
    partitions: int
    bytes_before: int
    bytes_after: int


class LogUpkeep:
    """The duties of one node's logs; `touched` is called with every request."""

    def __init__(self, log_manager: LogManager, clock: Clock, config: BrokerConfig) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self.cleaner = LogCleaner(log_manager, clock, config, on_end=self.arm_deletions)
        self._syncing: asyncio.Task[None] | None = None
        self._is_closed = False
        self._idle_duties: list[tuple[int, Callable[[], None]]] = []
        self._timers: dict[Callable[[], None], Timer] = {}
        self._touches = 0
        duties = [
            (config["producer.id.expiration.check.interval.ms"], self._remove_expired_producers),
            (config["log.retention.check.interval.ms"], self.delete_old_segments),
        ]
        if self.cleaner.is_enabled:
            duties.append((config["log.cleaner.backoff.ms"], self.cleaner.start))
        if not config.in_memory:
            duties += [
                (config["replica.high.watermark.checkpoint.interval.ms"], log_manager.checkpoint_high_watermarks),
                (config["log.flush.offset.checkpoint.interval.ms"], self._sync_and_checkpoint),
                (config["log.flush.start.offset.checkpoint.interval.ms"], log_manager.checkpoint_log_start_offsets),
                (config["log.flush.scheduler.interval.ms"], self._flush_due),
            ]
        self._idle_duties = [(interval_ms, duty) for interval_ms, duty in duties if interval_ms < NEVER_MS]
        self._retention_interval_ms = config["log.retention.check.interval.ms"]
        self._expiry_timer: Timer | None = None
        self._deletion_timer: Timer | None = None
        self._arm_expiry()
        # What the last run, or a reset, left to be deleted.
        self.arm_deletions()

    def touched(self) -> None:
        """Something may have changed, or is about to: see that every duty will run an interval from now, or later."""
        self._touches += 1
        if self._idle_duties and not self._is_closed:
            for interval_ms, duty in self._idle_duties:
                self._arm(interval_ms, duty)
            self._idle_duties = []

    def _arm(self, interval_ms: int, duty: Callable[[], None]) -> None:
        self._timers[duty] = self._clock.call_later(interval_ms, self._run, interval_ms, duty, self._touches)

    def _run(self, interval_ms: int, duty: Callable[[], None], touches: int) -> None:
        del self._timers[duty]
        if touches == self._touches:
            self._idle_duties.append((interval_ms, duty))
        else:
            # Who came since may have changed something a moment ago, or will: nobody else may come to say so.
            self._arm(interval_ms, duty)
        duty()

    def _remove_expired_producers(self) -> None:
        self._log_manager.remove_expired_producers(now_ms=self._clock.now_ms())

    def delete_old_segments(self) -> None:
        """Retention for every log."""
        self._log_manager.delete_old_segments(now_ms=self._clock.now_ms())
        self._arm_expiry()
        self.arm_deletions()

    def _arm_expiry(self) -> None:
        """Records become too old without anybody's request: be there then, at most once an interval."""
        for timer in (self._expiry_timer, self._deletion_timer):
            if timer is not None:
                timer.cancel()
            self._expiry_timer = None
        due_ms = self._log_manager.next_expiry_ms()
        if due_ms is not None and not self._is_closed and self._retention_interval_ms < NEVER_MS:
            earliest_ms = self._clock.now_ms() + self._retention_interval_ms
            self._expiry_timer = self._clock.call_at(max(due_ms, earliest_ms), self.delete_old_segments)

    def arm_deletions(self) -> None:
        """Wake when the delay of the next deleted log or segment is over; with nothing to delete there is no timer."""
        if self._deletion_timer is not None:
            self._deletion_timer.cancel()
            self._deletion_timer = None
        due_ms = self._log_manager.next_deadline_ms()
        if due_ms is not None and not self._is_closed:
            self._deletion_timer = self._clock.call_at(due_ms, self._delete_due)

    def _delete_due(self) -> None:
        self._deletion_timer = None
        self._log_manager.run_due(now_ms=self._clock.now_ms())
        self.arm_deletions()

    # --- at once -------------------------------------------------------------------------------

    def _logs_of(self, topic: str) -> list[Log]:
        """The logs of a topic on this node. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
        logs = [log for partition, log in self._log_manager.logs.items() if partition.topic == topic]
        if not logs:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r} on this node")
        return logs

    async def compact_now(self, topic: str) -> Upshot:
        """Compact a topic up to its last stable offsets. Raises KafkaError for a topic that is not there, is not
        compacted, or cannot be."""
        logs = self._logs_of(topic)
        if not logs[0].config.compacts:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"topic {topic!r} has no compact in its cleanup.policy: nothing to compact"
            )
        before = sum(log.size_bytes for log in logs)
        await self.cleaner.clean_now(logs)
        for log in logs:
            if log.uncleanable is not None or log.offline is not None:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{log.topic_partition} cannot be compacted: {log.uncleanable or log.offline}",
                )
        return Upshot(topic, len(logs), before, sum(log.size_bytes for log in logs))

    def retain_now(self, topic: str) -> Upshot:
        """Apply a topic's retention. Raises KafkaError for a topic that is not there."""
        logs = self._logs_of(topic)
        before = sum(log.size_bytes for log in logs)
        self._log_manager.delete_old_segments(now_ms=self._clock.now_ms(), logs=logs)
        self.arm_deletions()
        return Upshot(topic, len(logs), before, sum(log.size_bytes for log in logs))

    def _flush_due(self) -> None:
        self._log_manager.flush_due(now_ms=self._clock.now_ms())

    def _sync_and_checkpoint(self) -> None:
        """Bring sealed segments to the device in a thread, then note how far the logs are there."""
        if self._syncing is None:
            self._syncing = self._clock.loop.create_task(self._sync())

    async def _sync(self) -> None:
        try:
            for log, task in self._log_manager.flush_tasks():
                await self._sync_one(log, task)
            self._log_manager.checkpoint_recovery_points()
        finally:
            self._syncing = None

    async def _sync_one(self, log: Log, task: FlushTask) -> None:
        try:
            await asyncio.to_thread(task.sync_files)
            task.install()
            await asyncio.to_thread(task.sync_directory)
        except OSError as error:
            if not task.is_overtaken:
                log.fail(error)
        else:
            log.finish_flush(task)
        finally:
            task.release()

    async def close(self) -> None:
        """Stop; a sync that is under way ends first, its thread cannot be stopped."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for pending in (self._expiry_timer, self._deletion_timer):
            if pending is not None:
                pending.cancel()
        if self._syncing is not None:
            await self._syncing
        await self.cleaner.close()
