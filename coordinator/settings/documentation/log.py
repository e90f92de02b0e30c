"""What each setting of the broker about logs is for."""

# ruff: noqa: E501

SENTENCES = """\
alter.config.policy.class.name: A Java class that may refuse changes of settings.
auto.create.topics.enable: Whether a topic comes into being when a client asks for its metadata and allows it.
cordoned.log.dirs: The log directories that get no new partitions; those in them stay.
create.topic.policy.class.name: A Java class that may refuse the creation of topics.
log.cleaner.backoff.ms: How long the cleaner sleeps when no log is worth compacting, in milliseconds.
log.cleaner.dedupe.buffer.size: The memory for the cleaner's map of keys, over all its threads, in bytes.
log.cleaner.delete.retention.ms: How many milliseconds tombstones and transaction markers outlive their compaction, for topics that do not say.
log.cleaner.enable: Whether logs are compacted at all.
log.cleaner.io.buffer.load.factor: How full the cleaner's map of keys may get; fuller means more keys in one pass and more collisions.
log.cleaner.io.buffer.size: The memory for the cleaner's read and write buffers, over all its threads, in bytes.
log.cleaner.io.max.bytes.per.second: How many bytes a second the cleaner may read and write in all.
log.cleaner.max.compaction.lag.ms: The longest a record may wait before it takes part in compaction, for topics that do not say.
log.cleaner.min.cleanable.ratio: Which share of a log must be new since its last compaction before it is compacted again, for topics that do not say.
log.cleaner.min.compaction.lag.ms: How many milliseconds a record is safe from compaction, for topics that do not say.
log.cleaner.threads: How many threads compact logs.
log.cleanup.policy: What becomes of old records of topics that do not say: delete, compact or both.
log.dir: The directory of the logs where log.dirs is not set.
log.dir.failure.timeout.ms: How long a broker may fail to report a broken log directory before it stops, in milliseconds.
log.dirs: The directories of the logs; a partition lies whole in one of them.
log.flush.interval.messages: After how many records a log is forced to disk, for topics that do not say.
log.flush.interval.ms: After how many milliseconds a log is forced to disk at the latest; unset takes log.flush.scheduler.interval.ms.
log.flush.offset.checkpoint.interval.ms: How often the points up to which logs are known to be on disk are noted, in milliseconds.
log.flush.scheduler.interval.ms: How often the broker looks for logs that are due to be forced to disk, in milliseconds.
log.flush.start.offset.checkpoint.interval.ms: How often the first offsets of logs are noted on disk, in milliseconds.
log.index.interval.bytes: About how many bytes of records lie between two entries of an offset index, for topics that do not say.
log.index.size.max.bytes: The largest an index file may become, in bytes, for topics that do not say.
log.initial.task.delay.ms: How many milliseconds after the start the periodic work on logs begins.
log.local.retention.bytes: How many bytes of a partition stay on local disks once they are in remote storage; -2 takes log.retention.bytes.
log.local.retention.ms: How many milliseconds records stay on local disks once they are in remote storage; -2 takes log.retention.ms.
log.message.timestamp.after.max.ms: How far a record's timestamp may lie ahead of the broker's clock, in milliseconds, for topics that do not say.
log.message.timestamp.before.max.ms: How far a record's timestamp may lie behind the broker's clock, in milliseconds, for topics that do not say.
log.message.timestamp.type: Whose clock stamps records of topics that do not say: CreateTime or LogAppendTime.
log.preallocate: Whether the file of a new segment gets its full size on disk at once, for topics that do not say.
log.remote.copy.lag.bytes: How many bytes of closed segments may wait for their copy to remote storage, for topics that do not say.
log.remote.copy.lag.ms: How many milliseconds a closed segment may wait for its copy to remote storage, for topics that do not say.
log.retention.bytes: How many bytes a partition keeps before its oldest segments are deleted, for topics that do not say; -1 sets no limit.
log.retention.check.interval.ms: How often the broker looks for segments to delete, in milliseconds.
log.retention.hours: How many hours records are kept, where neither log.retention.ms nor log.retention.minutes is set.
log.retention.minutes: How many minutes records are kept, where log.retention.ms is not set.
log.retention.ms: How many milliseconds records are kept, for topics that do not say; unset takes the minutes or hours, -1 keeps them for ever.
log.roll.hours: After how many hours a segment that is not full is closed, where log.roll.ms is not set.
log.roll.jitter.hours: At most how many hours are randomly taken off log.roll.hours, where log.roll.jitter.ms is not set.
log.roll.jitter.ms: At most how many milliseconds are randomly taken off the time after which segments are closed.
log.roll.ms: After how many milliseconds a segment that is not full is closed, for topics that do not say; unset takes log.roll.hours.
log.segment.bytes: At how many bytes a segment is closed, for topics that do not say.
log.segment.delete.delay.ms: How many milliseconds pass between marking a file as deleted and removing it, for topics that do not say.
min.insync.replicas: How many replicas must have a record before acks=all is answered, for topics that do not say.
num.partitions: How many partitions a topic gets that is created without a number.
num.recovery.threads.per.data.dir: How many threads load and close the logs of each directory at start and stop.
remote.fetch.max.wait.ms: How long a fetch waits for data from remote storage, in milliseconds.
remote.list.offsets.request.timeout.ms: How long a lookup of offsets waits for remote storage, in milliseconds.
remote.log.index.file.cache.total.size.bytes: How many bytes of remote indexes are kept on local disks.
remote.log.index.file.cache.ttl.ms: How long an unused remote index stays on local disks, in milliseconds.
remote.log.manager.copier.thread.pool.size: How many threads copy segments to remote storage.
remote.log.manager.copy.max.bytes.per.second: How many bytes a second may be copied to remote storage.
remote.log.manager.copy.quota.window.num: How many samples the quota of copying to remote storage keeps.
remote.log.manager.copy.quota.window.size.seconds: How many seconds each sample of the quota of copying lasts.
remote.log.manager.expiration.thread.pool.size: How many threads delete expired segments in remote storage.
remote.log.manager.fetch.max.bytes.per.second: How many bytes a second may be fetched from remote storage.
remote.log.manager.fetch.quota.window.num: How many samples the quota of fetching from remote storage keeps.
remote.log.manager.fetch.quota.window.size.seconds: How many seconds each sample of the quota of fetching lasts.
remote.log.manager.follower.thread.pool.size: How many threads follow what is in remote storage for partitions that others lead.
remote.log.manager.task.interval.ms: How often the work on remote storage is done, in milliseconds.
remote.log.manager.task.retry.backoff.max.ms: The longest wait between two attempts on remote storage, in milliseconds.
remote.log.manager.task.retry.backoff.ms: The first wait between two attempts on remote storage, in milliseconds.
remote.log.manager.task.retry.jitter: Which share of the wait between two attempts is random.
remote.log.manager.thread.pool.size: How many threads do the remaining work on remote storage.
remote.log.metadata.custom.metadata.max.bytes: How many bytes of its own a plugin for remote storage may attach to a segment.
remote.log.metadata.manager.class.name: The Java class that keeps the list of remote segments.
remote.log.metadata.manager.class.path: Where the Java class that keeps the list of remote segments is looked for.
remote.log.metadata.manager.impl.prefix: With what the names of that class's own settings begin.
remote.log.metadata.manager.listener.name: The listener over which the list of remote segments is kept.
remote.log.reader.max.pending.tasks: How many reads from remote storage may wait.
remote.log.reader.threads: How many threads read from remote storage.
remote.log.storage.manager.class.name: The Java class that reads and writes remote storage.
remote.log.storage.manager.class.path: Where the Java class for remote storage is looked for.
remote.log.storage.manager.impl.prefix: With what the names of the settings of the class for remote storage begin.
remote.log.storage.system.enable: Whether the broker has remote storage at all.
"""
