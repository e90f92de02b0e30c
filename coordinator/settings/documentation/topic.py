"""What each setting of a topic is for."""

# ruff: noqa: E501

SENTENCES = """\
cleanup.policy: What becomes of old records: delete drops whole segments by age and size, compact keeps the newest record of each key, both do both.
compression.gzip.level: The gzip level the broker uses when it compresses this topic itself; -1 is gzip's own default.
compression.lz4.level: The lz4 level the broker uses when it compresses this topic itself.
compression.type: The codec batches are stored with; producer keeps what the producer chose.
compression.zstd.level: The zstd level the broker uses when it compresses this topic itself.
delete.retention.ms: How many milliseconds tombstones and transaction markers outlive their compaction, so that readers from the beginning can see them.
errors.deadletterqueue.group.enable: Whether share groups may write the records they gave up on to this topic.
file.delete.delay.ms: How many milliseconds pass between marking a file as deleted and removing it from the disk.
flush.messages: After how many records the log is forced to disk; 1 forces every batch.
flush.ms: After how many milliseconds appended records are forced to disk at the latest.
follower.replication.throttled.replicas: The replicas whose fetching as follower counts against the throttle, as partition:broker pairs or * for all.
index.interval.bytes: About how many bytes of records lie between two entries of a segment's offset index.
internal.segment.bytes: A segment size below the lowest that segment.bytes takes, meant for tests.
leader.replication.throttled.replicas: The replicas whose serving as leader counts against the throttle, as partition:broker pairs or * for all.
local.retention.bytes: How many bytes of a partition stay on local disks once they are in remote storage; -2 takes retention.bytes.
local.retention.ms: How many milliseconds records stay on local disks once they are in remote storage; -2 takes retention.ms.
max.compaction.lag.ms: The longest a record may wait before it takes part in compaction, in milliseconds.
max.decompressed.message.bytes: The largest a single record may be once its batch is decompressed, in bytes.
max.message.bytes: The largest batch the topic takes, in bytes as it is stored, compressed if it is.
message.timestamp.after.max.ms: How far a record's timestamp may lie ahead of the broker's clock, in milliseconds, before it is refused.
message.timestamp.before.max.ms: How far a record's timestamp may lie behind the broker's clock, in milliseconds, before it is refused.
message.timestamp.type: Whose clock stamps a record: CreateTime keeps the producer's time, LogAppendTime takes the broker's.
min.cleanable.dirty.ratio: Which share of a log must be new since the last compaction before it is compacted again.
min.compaction.lag.ms: How many milliseconds a record is safe from compaction.
min.insync.replicas: How many replicas must have a record before acks=all is answered; with fewer in sync, such a produce is refused.
preallocate: Whether the file of a new segment gets its full size on disk at once.
remote.copy.lag.bytes: How many bytes of closed segments may wait before they must be copied to remote storage; -1 copies at once.
remote.copy.lag.ms: How many milliseconds a closed segment may wait before it must be copied to remote storage; 0 copies at once.
remote.log.copy.disable: Whether copying to remote storage stops while what is there stays readable.
remote.log.delete.on.disable: Whether the remote data is deleted when remote storage is turned off for the topic.
remote.storage.enable: Whether closed segments of the topic go to remote storage.
retention.bytes: How many bytes a partition keeps before its oldest segments are deleted; -1 sets no limit.
retention.ms: How many milliseconds records are kept before their segment is deleted; -1 keeps them for ever.
segment.bytes: At how many bytes a segment is closed and a new one begun; deletion and compaction work on closed ones only.
segment.index.bytes: The largest an index file of a segment may become, in bytes; a full index closes the segment.
segment.jitter.ms: At most how many milliseconds are randomly taken off segment.ms, so that many segments do not close at once.
segment.ms: After how many milliseconds a segment that is not full is closed too.
unclean.leader.election.enable: Whether a replica that may have missed records can lead when no other is left; records can be lost then.
"""
