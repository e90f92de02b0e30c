"""Runs the compaction of logs: the filthiest first, one at a time, its long parts in a thread.

The thread reads sealed segments and writes files of its own (`storage/compaction.py`); choosing logs and
swapping segments in is done on the loop. Source: Kafka's LogCleaner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from broker.storage.cleaner import CleanableRange, filthiest
from broker.storage.compaction import BYTES_PER_KEY, Compaction, CompactionStopped
from broker.storage.segment import CorruptSegment
from wire.errors import KafkaError

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.config import BrokerConfig
    from broker.storage.log import Log
    from broker.storage.log_manager import LogManager

logger = logging.getLogger(__name__)


class LogCleaner:
    """The cleaner of one node's compacted logs."""

    def __init__(
        self,
        log_manager: LogManager,
        clock: Clock,
        config: BrokerConfig,
        *,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_end` is told when a run over the logs has ended: replaced segments wait to be deleted."""
        self._on_end = on_end
        self._log_manager = log_manager
        self._clock = clock
        self._config = config
        self._running: asyncio.Task[int] | None = None
        self._compaction: Compaction | None = None
        self._is_closed = False

    @property
    def is_enabled(self) -> bool:
        """log.cleaner.enable."""
        return bool(self._config["log.cleaner.enable"])

    def start(self) -> None:
        """Clean what is due, if nothing is being cleaned now."""
        now_ms = self._clock.now_ms()
        if self._running is None and not self._is_closed and filthiest(self._log_manager.logs.values(), now_ms=now_ms):
            self._begin(at_once=False)

    async def clean_now(self, logs: Collection[Log] | None = None) -> int:
        """Clean the compacted ones of these logs (None: of all) up to their last stable offset, whatever
        their settings say of when; the number of passes. Active segments are rolled for it, and what is clean
        already is looked at again: tombstones may have had their time."""
        while self._running is not None:
            await asyncio.wait([self._running])
        wanted = self._log_manager.logs.values() if logs is None else logs
        for log in list(wanted):
            if log.config.compacts and log.offline is None:
                log.roll(now_ms=self._clock.now_ms())
                log.first_dirty_offset = None
        self._begin(at_once=True, only=None if logs is None else frozenset(logs))
        assert self._running is not None
        # Who asked may be gone before the end; the run is not theirs alone.
        return await asyncio.shield(self._running)

    def _begin(self, *, at_once: bool, only: frozenset[Log] | None = None) -> None:
        self._running = self._clock.loop.create_task(self._clean_due(at_once, only))

    async def _clean_due(self, at_once: bool, only: frozenset[Log] | None) -> int:
        passes = 0
        cleaned: set[Log] = set()
        try:
            while not self._is_closed:
                now_ms = self._clock.now_ms()
                # A log whose map filled up is due again at once; one that was looked at in vain is not.
                logs = [
                    log
                    for log in self._log_manager.logs.values()
                    if log not in cleaned and (only is None or log in only)
                ]
                chosen = filthiest(logs, now_ms=now_ms, at_once=at_once)
                if chosen is None:
                    return passes
                log, cleanable = chosen
                before = log.first_dirty_offset
                passes += await self._clean(log, cleanable, now_ms)
                if log.first_dirty_offset in (before, cleanable.first_uncleanable_offset):
                    cleaned.add(log)
        finally:
            self._running = None
            self._log_manager.checkpoint_cleaner_offsets()
            self._on_end()
        return passes

    async def _clean(self, log: Log, cleanable: CleanableRange, now_ms: int) -> bool:
        """One pass over one log; False if it was given up."""
        keys_max = self._config["log.cleaner.dedupe.buffer.size"] // BYTES_PER_KEY
        compaction = self._compaction = Compaction(log, cleanable, now_ms=now_ms, keys_max=keys_max)
        size = log.size_bytes
        try:
            await self._in_thread(compaction.map_keys)
            while (group := compaction.next_group()) is not None:
                try:
                    await self._in_thread(group.clean)
                except BaseException:
                    group.abandon()
                    raise
                if not group.swap_in(now_ms=now_ms):
                    return False
        except CompactionStopped:
            return False
        except (CorruptSegment, OSError) as error:
            # Kept in memory: the next start tries again (J19).
            log.uncleanable = str(error)
            logger.error("%s is left uncleaned from now on: %s", log.topic_partition, error)
            return False
        except KafkaError as error:
            logger.error("cleaning %s failed: %s", log.topic_partition, error)
            return False
        finally:
            compaction.abandon()
            self._compaction = None
        logger.info(
            "cleaned %s up to %d: %d bytes are now %d",
            log.topic_partition,
            compaction.end_offset,
            size,
            log.size_bytes,
        )
        return True

    async def _in_thread(self, work: Callable[[], None]) -> None:
        """Run ``work`` off the loop; it is never left behind, as it uses files that the loop would close."""
        running = self._clock.loop.run_in_executor(None, work)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            if self._compaction is not None:
                self._compaction.stop()
            await asyncio.wait([running])
            running.exception()  # Most likely that it was stopped: nobody waits for it any more.
            raise

    async def close(self) -> None:
        """Stop; a pass under way ends at its next batch, and its half-written segment is removed."""
        self._is_closed = True
        if self._compaction is not None:
            self._compaction.stop()
        if self._running is not None:
            await asyncio.wait([self._running])
