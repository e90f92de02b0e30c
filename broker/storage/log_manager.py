"""The logs of one node over its log directories: loading, making, deleting, checkpoints, a clean stop.

A directory that fails goes offline with all its logs (J25); the others go on. Nothing here waits: whoever
owns the loop calls ``run_due`` at ``next_deadline_ms``, the checkpoints at their intervals, and runs the
tasks of ``flush_tasks`` off the loop. Source: LogManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from random import Random, SystemRandom

from broker.config_log import LogConfig
from broker.storage.closing import close_logs
from broker.storage.files import REFUSED_WRITES, Files, StorageFault
from broker.storage.log import FlushTask, Log
from broker.storage.log_directories import LogDirectories
from broker.storage.log_directory import DELETE_SUFFIX, STRAY_SUFFIX, LogDirectory, leaving_name
from broker.storage.partition_metadata import write_topic_id
from broker.storage.producer_state import ProducerSettings
from broker.storage.recovery import LogLoading, load_log
from broker.storage.retention import delete_old_segments, next_expiry_ms
from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition, uuid_text

DELETIONS_PER_TURN = 8
"""Directories removed before the loop serves others: about a millisecond."""


class LogManager:
    """``logs`` holds every log that is not being deleted, offline ones included."""

    def __init__(
        self,
        files: Files,
        directories: Sequence[str],
        *,
        config_for_topic: Callable[[str], LogConfig],
        producer_settings: ProducerSettings | None = None,
        delete_at_once: bool = False,
        chance: Random | None = None,
        on_directory_failure: Callable[[str, OSError], None] | None = None,
        metadata_directory: str | None = None,
    ) -> None:
        """``directories`` are the absolute paths of log.dirs, ``metadata_directory`` that of metadata.log.dir.
        ``delete_at_once`` ignores file.delete.delay.ms (a memory node needs the room).
        ``on_directory_failure`` hears of each directory that goes offline, once."""
        self.logs: dict[TopicPartition, Log] = {}
        self._files = files
        self._config_for_topic = config_for_topic
        # Shared by all logs: a change of it takes effect at once.
        self.producer_settings = producer_settings or ProducerSettings()
        self._delete_at_once = delete_at_once
        self._chance = chance or SystemRandom()
        self._on_directory_failure = on_directory_failure
        self._directories = LogDirectories(
            files, directories, metadata_directory, self._chance, on_failure=self._directory_went
        )
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self._to_delete: list[tuple[int, str]] = []  # A heap of (when, directory).
        self._ran_due_ms = -1

    # --- start ----------------------------------------------------------------------------------

    @property
    def cluster_id(self) -> str:
        """The cluster that the directories are of, once looked at."""
        return self._directories.cluster_id

    def look(self, *, cluster_id: str | None, node_id: int) -> None:
        """See ``LogDirectories.look``."""
        self._directories.look(cluster_id=cluster_id, node_id=node_id)

    def open(self, *, cluster_id: str | None, node_id: int) -> None:
        """See ``LogDirectories.open``."""
        self._directories.open(cluster_id=cluster_id, node_id=node_id)

    def load(self, *, now_ms: int) -> None:
        """Load every log; those of a directory without the clean shutdown marker are recovered (J.5).

        Raises StorageFault for a partition that is there twice, and if no directory can be used.
        """
        for directory in self._directories.live():
            try:
                directory.read_state()
                configs: dict[str, LogConfig] = {}
                for path in directory.to_delete:
                    heappush(self._to_delete, (now_ms, path))
                for topic_partition, path in directory.partitions.items():
                    other = self.logs.get(topic_partition)
                    if other is not None:
                        raise StorageFault(f"{topic_partition} is there twice: {other.directory} and {path}")
                    config = configs.get(topic_partition.topic) or self._config_for_topic(topic_partition.topic)
                    configs[topic_partition.topic] = config
                    self._load(directory, topic_partition, path, config, now_ms)
                self._lower_recovery_points(directory)
            except OSError as error:
                self._directories.fail(directory, error)
        self._directories.require_one()

    def _lower_recovery_points(self, directory: LogDirectory) -> None:
        """A log that came back shorter than its recovery point must not have the old one with its new data."""
        logs = [log for log in self.logs.values() if self._directory_of[log.topic_partition] is directory]
        if any(log.recovery_point < directory.recovery_points.get(log.topic_partition, 0) for log in logs):
            directory.write_recovery_points(logs, durable=True)

    def _load(
        self, directory: LogDirectory, topic_partition: TopicPartition, path: str, config: LogConfig, now_ms: int
    ) -> None:
        log = self._load_log(directory, topic_partition, path, config, now_ms)
        log.set_high_watermark(directory.high_watermarks.get(topic_partition, 0))
        log.first_dirty_offset = directory.cleaner_offsets.get(topic_partition)
        self._hold(log, directory)

    def _hold(self, log: Log, directory: LogDirectory) -> None:
        self.logs[log.topic_partition] = log
        self._directory_of[log.topic_partition] = directory
        directory.log_count += 1

    def _load_log(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        path: str,
        config: LogConfig,
        now_ms: int,
        *,
        is_new: bool = False,
    ) -> Log:
        return load_log(
            LogLoading(
                self._files,
                path,
                topic_partition,
                config,
                now_ms,
                was_closed_cleanly=is_new or directory.was_closed_cleanly,
                recovery_point=0 if is_new else directory.recovery_points.get(topic_partition, 0),
                log_start_offset=0 if is_new else directory.log_start_offsets.get(topic_partition, 0),
                producer_settings=self.producer_settings,
                chance=self._chance,
            ),
            on_failure=self._log_failed,
            on_truncation=self._log_truncated,
        )

    # --- directories ----------------------------------------------------------------------------

    @property
    def directory_ids(self) -> Mapping[str, bytes]:
        """Directory id (16 bytes) of each directory that can be used, by path."""
        return self._directories.ids(failed=False)

    @property
    def failed_directories(self) -> Mapping[str, bytes]:
        """Directory id of each directory that failed, by path (zeros if it was never read)."""
        return self._directories.ids(failed=True)

    def directory_of(self, topic_partition: TopicPartition) -> str:
        """Path of the log directory a log lies in."""
        return self._directory_of[topic_partition].path

    def directory_id_of(self, topic_partition: TopicPartition) -> bytes | None:
        """Id of the log directory a log lies in; None without a log, and in a directory that was never read."""
        directory = self._directory_of.get(topic_partition)
        return None if directory is None else directory.identity.directory_id

    def space(self, directory: str) -> tuple[int, int]:
        """Total and usable bytes of the volume under a log directory. Raises OSError."""
        return self._files.space(directory)

    @property
    def previous_broker_epoch(self) -> int:
        """See ``LogDirectories.previous_broker_epoch``."""
        return self._directories.previous_broker_epoch

    def _log_failed(self, log: Log, error: OSError) -> None:
        directory = self._directory_of.get(log.topic_partition)
        if directory is not None:
            self._directories.fail(directory, error)

    def _directory_went(self, directory: LogDirectory, error: OSError) -> None:
        """A directory is offline: so is every log in it."""
        for topic_partition, log in self.logs.items():
            if self._directory_of[topic_partition] is directory and log.offline is None:
                log.offline = f"log directory {directory.path} failed: {directory.failure}"
        if self._on_directory_failure is not None:
            self._on_directory_failure(directory.path, error)

    # --- logs -----------------------------------------------------------------------------------

    def log(self, topic_partition: TopicPartition) -> Log | None:
        """The log of a partition, None if there is none."""
        return self.logs.get(topic_partition)

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        log_config: LogConfig,
        *,
        now_ms: int,
        may_be_offline: bool = False,
    ) -> Log:
        """The log of a partition; made in the directory with the fewest logs if there is none.

        ``may_be_offline``: the partition is not new, so what is missing may lie in a directory that failed.
        Raises KafkaError: INCONSISTENT_TOPIC_ID if it is of another topic id, KAFKA_STORAGE_ERROR if its
        directory failed or none is left.
        """
        log = self.logs.get(topic_partition)
        if log is None:
            failed = self.failed_directories
            if may_be_offline and failed:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"the log of {topic_partition} is not made anew while {', '.join(failed)} failed: it may lie there",
                )
            return self._create(topic_partition, topic_id, log_config, now_ms)
        log.require_online()
        # An id that no data waited for may be torn, and binds nobody: the log never held anything.
        if log.topic_id is None or (log.topic_id != topic_id and not log.topic_id_is_durable):
            self._assign_topic_id(log, topic_id)
        elif log.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"the log of {topic_partition} has topic id {uuid_text(log.topic_id)}, not {uuid_text(topic_id)}",
            )
        log.update_config(log_config)
        return log

    def _assign_topic_id(self, log: Log, topic_id: bytes) -> None:
        try:
            write_topic_id(self._files, log.directory, topic_id, durable=False)
        except OSError as error:
            raise log.fail(error) from error
        log.topic_id = topic_id
        log.topic_id_is_durable = False

    def _emptiest_directory(self) -> LogDirectory:
        live = self._directories.live()
        if not live:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "all log directories (log.dirs) failed")
        return min(live, key=lambda directory: directory.log_count)

    def _create(self, topic_partition: TopicPartition, topic_id: bytes, config: LogConfig, now_ms: int) -> Log:
        place = self._emptiest_directory()
        path = f"{place.path}/{topic_partition}"
        try:
            self._files.make_directory(path)
            log = self._load_log(place, topic_partition, path, config, now_ms, is_new=True)
        except OSError as error:
            self._directories.fail(place, error)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"cannot make the log of {topic_partition}: {error}"
            ) from error
        self._hold(log, place)
        self._assign_topic_id(log, topic_id)
        return log

    def delete(self, topic_partition: TopicPartition, *, now_ms: int) -> None:
        """Forget a log; its directory is renamed `...-delete` now and removed after file.delete.delay.ms.

        No effect if there is none. Raises KafkaError KAFKA_STORAGE_ERROR if renaming failed.
        """
        delay = self.logs[topic_partition].config.file_delete_delay_ms if topic_partition in self.logs else 0
        path = self._rename_away(topic_partition, DELETE_SUFFIX)
        if path is None:
            return
        if not self._delete_at_once:
            heappush(self._to_delete, (now_ms + delay, path))
            return
        # This directory alone: a topic of many partitions deletes many, one by one.
        try:
            self._files.delete_directory(path)
        except OSError as error:
            self._fail_path(path, error)

    def mark_stray(self, topic_partition: TopicPartition) -> None:
        """Forget a log that is not assigned here any more; its directory is kept as `...-stray`."""
        self._rename_away(topic_partition, STRAY_SUFFIX)

    def _rename_away(self, topic_partition: TopicPartition, suffix: str) -> str | None:
        log = self.logs.pop(topic_partition, None)
        if log is None:
            return None
        directory = self._directory_of.pop(topic_partition)
        directory.log_count -= 1
        log.offline = log.offline or "it was deleted"
        log.segments.close_files()
        if directory.failure is not None:
            return None
        path = f"{directory.path}/{leaving_name(topic_partition, suffix, self._chance)}"
        try:
            self._files.rename(log.directory, path)
        except OSError as error:
            self._directories.fail(directory, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot delete {topic_partition}: {error}") from error
        log.moved(path)
        return path

    # --- due work -------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When ``run_due`` has something to remove; None if nothing waits."""
        if self._to_delete and self._to_delete[0][0] <= self._ran_due_ms:
            return self._to_delete[0][0]  # Left over by the last turn: no need to look at every log.
        deadlines = [deadline for deadline, _ in self._to_delete[:1]]
        deadlines += [deadline for log in self.logs.values() if (deadline := log.segments.next_deletion_ms) is not None]
        return min(deadlines, default=None)

    def run_due(self, *, now_ms: int) -> None:
        """Remove directories and segments whose delay is over, a few directories at a time, before the segments:
        what is left is due at once."""
        self._ran_due_ms = now_ms
        for _ in range(DELETIONS_PER_TURN):
            if not self._to_delete or self._to_delete[0][0] > now_ms:
                break
            path = heappop(self._to_delete)[1]
            try:
                self._files.delete_directory(path)
            except OSError as error:
                self._fail_path(path, error)
        else:
            return  # There may be more of them: the segments' turn comes after.
        for log in self.logs.values():
            try:
                log.segments.delete_due(now_ms)
            except OSError as error:
                log.fail(error)

    def _fail_path(self, path: str, error: OSError) -> None:
        directory = self._directories.by_path.get(path.rpartition("/")[0])
        if directory is not None:
            self._directories.fail(directory, error)

    def next_expiry_ms(self) -> int | None:
        """When the first segment of any log becomes too old; None if none ever does."""
        return min((due for log in self.logs.values() if (due := next_expiry_ms(log)) is not None), default=None)

    def delete_old_segments(self, *, now_ms: int, logs: Iterable[Log] | None = None) -> int:
        """Retention for these logs, or for all (log.retention.check.interval.ms); the number of segments retired."""
        count = 0
        for log in list(self.logs.values() if logs is None else logs):
            if log.offline is None:
                try:
                    count += delete_old_segments(log, now_ms=now_ms)
                    if self._delete_at_once:
                        log.segments.delete_due(now_ms + log.config.file_delete_delay_ms)
                except KafkaError:
                    continue  # The directory is offline now, and whoever listens was told.
        return count

    def remove_expired_producers(self, *, now_ms: int) -> None:
        """C10, for every log (producer.id.expiration.check.interval.ms)."""
        for log in self.logs.values():
            log.producer_state.remove_expired(now_ms)

    def flush_tasks(self) -> Iterator[tuple[Log, FlushTask]]:
        """What rolls left to sync: run each task off the loop, then give it to ``log.finish_flush``."""
        for log in list(self.logs.values()):
            try:
                task = log.start_flush()
            except KafkaError:
                continue  # The directory is offline now, and whoever listens was told.
            if task is not None:
                yield log, task

    def flush_due(self, *, now_ms: int) -> None:
        """Flush the logs whose flush.ms is over (log.flush.scheduler.interval.ms)."""
        for log in list(self.logs.values()):
            if log.offline is None:
                try:
                    log.maybe_flush(now_ms)
                except KafkaError:
                    continue  # As above.

    # --- checkpoints ----------------------------------------------------------------------------

    def _by_directory(self) -> Iterator[tuple[LogDirectory, list[Log]]]:
        logs: dict[str, list[Log]] = {directory.path: [] for directory in self._directories.live()}
        for topic_partition, log in self.logs.items():
            if log.offline is None:
                logs[self._directory_of[topic_partition].path].append(log)
        for path, held in logs.items():
            yield self._directories.by_path[path], held

    def _checkpoint(self, write: Callable[[LogDirectory, list[Log]], None]) -> None:
        for directory, logs in self._by_directory():
            try:
                write(directory, logs)
            except OSError as error:
                # Without room the old file stays, which is safe: the next interval tries again.
                if error.errno not in REFUSED_WRITES:
                    self._directories.fail(directory, error)

    def checkpoint_high_watermarks(self) -> None:
        """replication-offset-checkpoint (every replica.high.watermark.checkpoint.interval.ms)."""
        self._checkpoint(lambda directory, logs: directory.write_high_watermarks(logs, durable=False))

    def checkpoint_recovery_points(self) -> None:
        """recovery-point-offset-checkpoint (log.flush.offset.checkpoint.interval.ms)."""
        self._checkpoint(lambda directory, logs: directory.write_recovery_points(logs, durable=False))

    def checkpoint_log_start_offsets(self) -> None:
        """log-start-offset-checkpoint (log.flush.start.offset.checkpoint.interval.ms)."""
        self._checkpoint(lambda directory, logs: directory.write_log_start_offsets(logs))

    def checkpoint_cleaner_offsets(self) -> None:
        """cleaner-offset-checkpoint, after the cleaner has run."""
        self._checkpoint(lambda directory, logs: directory.write_cleaner_offsets(logs))

    def _log_truncated(self, log: Log) -> None:
        """A lower recovery point must be known before anything is appended (OSError goes to the log)."""
        for directory, logs in self._by_directory():
            if log in logs:
                directory.write_recovery_points(logs, durable=True)
                directory.write_cleaner_offsets(logs)

    # --- stop -----------------------------------------------------------------------------------

    def close(self, *, now_ms: int, broker_epoch: int = -1) -> None:
        """A clean stop: everything flushed, snapshot and checkpointed, then the marker, then the lock.

        A directory that fails on the way gets no marker, and is recovered at the next start.
        """
        for directory, logs in list(self._by_directory()):
            try:
                close_logs(self._files, directory.path, logs, now_ms=now_ms)
                directory.write_recovery_points(logs, durable=True)
                directory.write_log_start_offsets(logs)
                directory.write_high_watermarks(logs, durable=True)
                directory.write_cleaner_offsets(logs)
                directory.write_clean_shutdown(broker_epoch)
            except OSError as error:
                self._directories.fail(directory, error)
            except KafkaError:
                continue  # The directory is offline now, and whoever listens was told.
        for log in self.logs.values():
            if log.offline is not None:
                log.close()
        self._directories.unlock()

    def abandon(self) -> None:
        """Let go of every file and lock without a clean end: what is there is to be deleted."""
        for log in self.logs.values():
            log.segments.close_files()
        self._directories.unlock()
