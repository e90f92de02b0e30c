"""Settings of the broker about logs: segments, retention, compaction, remote storage.

One line each: name, type, importance, when it may change, default, rule of valid values; see
`definition.py` for the notation. Source: Kafka's LogConfig, CleanerConfig, RemoteLogManagerConfig.
"""

# ruff: noqa: E501

TABLE = """\
alter.config.policy.class.name                      class     low     read-only     -  any
auto.create.topics.enable                           boolean   high    read-only     true  any
cordoned.log.dirs                                   list      medium  per-broker    ""  unique
create.topic.policy.class.name                      class     low     read-only     -  any
log.cleaner.backoff.ms                              long      medium  cluster-wide  15000  >=0
log.cleaner.dedupe.buffer.size                      long      medium  cluster-wide  134217728  any
log.cleaner.delete.retention.ms                     long      medium  cluster-wide  86400000  >=0
log.cleaner.enable                                  boolean   medium  read-only     true  any
log.cleaner.io.buffer.load.factor                   double    medium  cluster-wide  0.9  any
log.cleaner.io.buffer.size                          int       medium  cluster-wide  524288  >=0
log.cleaner.io.max.bytes.per.second                 double    medium  cluster-wide  1.7976931348623157E308  any
log.cleaner.max.compaction.lag.ms                   long      medium  cluster-wide  9223372036854775807  >=1
log.cleaner.min.cleanable.ratio                     double    medium  cluster-wide  0.5  0..1
log.cleaner.min.compaction.lag.ms                   long      medium  cluster-wide  0  >=0
log.cleaner.threads                                 int       medium  cluster-wide  1  >=0
log.cleanup.policy                                  list      medium  cluster-wide  delete  [compact,delete]
log.dir                                             list      high    read-only     /tmp/kafka-logs  unique+
log.dir.failure.timeout.ms                          long      low     read-only     30000  >=1
log.dirs                                            list      high    read-only     -  unique+
log.flush.interval.messages                         long      high    cluster-wide  9223372036854775807  >=1
log.flush.interval.ms                               long      high    cluster-wide  -  any
log.flush.offset.checkpoint.interval.ms             int       high    read-only     60000  >=0
log.flush.scheduler.interval.ms                     long      high    read-only     9223372036854775807  any
log.flush.start.offset.checkpoint.interval.ms       int       high    read-only     60000  >=0
log.index.interval.bytes                            int       medium  cluster-wide  4096  >=0
log.index.size.max.bytes                            int       medium  cluster-wide  10485760  >=4
log.initial.task.delay.ms                           long      low     read-only     30000  >=0  internal
log.local.retention.bytes                           long      medium  cluster-wide  -2  >=-2
log.local.retention.ms                              long      medium  cluster-wide  -2  >=-2
log.message.timestamp.after.max.ms                  long      medium  cluster-wide  3600000  >=0
log.message.timestamp.before.max.ms                 long      medium  cluster-wide  9223372036854775807  >=0
log.message.timestamp.type                          string    medium  cluster-wide  CreateTime  {CreateTime,LogAppendTime}
log.preallocate                                     boolean   medium  cluster-wide  false  any
log.remote.copy.lag.bytes                           long      medium  cluster-wide  -1  >=-1
log.remote.copy.lag.ms                              long      medium  cluster-wide  0  >=-1
log.retention.bytes                                 long      high    cluster-wide  -1  any
log.retention.check.interval.ms                     long      medium  read-only     300000  >=1
log.retention.hours                                 int       high    read-only     168  any
log.retention.minutes                               int       high    read-only     -  any
log.retention.ms                                    long      high    cluster-wide  -  any
log.roll.hours                                      int       high    read-only     168  >=1
log.roll.jitter.hours                               int       high    read-only     0  >=0
log.roll.jitter.ms                                  long      high    cluster-wide  -  any
log.roll.ms                                         long      high    cluster-wide  -  any
log.segment.bytes                                   int       high    cluster-wide  1073741824  >=1048576
log.segment.delete.delay.ms                         long      high    cluster-wide  60000  >=0
min.insync.replicas                                 int       high    cluster-wide  1  >=1
num.partitions                                      int       medium  read-only     1  >=1
num.recovery.threads.per.data.dir                   int       high    cluster-wide  2  >=1
remote.fetch.max.wait.ms                            int       medium  cluster-wide  500  >=1
remote.list.offsets.request.timeout.ms              long      medium  cluster-wide  30000  >=1
remote.log.index.file.cache.total.size.bytes        long      low     cluster-wide  1073741824  >=1
remote.log.index.file.cache.ttl.ms                  long      low     read-only     900000  >=-1  internal
remote.log.manager.copier.thread.pool.size          int       medium  cluster-wide  10  >=1
remote.log.manager.copy.max.bytes.per.second        long      medium  cluster-wide  9223372036854775807  >=1
remote.log.manager.copy.quota.window.num            int       medium  read-only     11  >=1
remote.log.manager.copy.quota.window.size.seconds   int       medium  read-only     1  >=1
remote.log.manager.expiration.thread.pool.size      int       medium  cluster-wide  10  >=1
remote.log.manager.fetch.max.bytes.per.second       long      medium  cluster-wide  9223372036854775807  >=1
remote.log.manager.fetch.quota.window.num           int       medium  read-only     11  >=1
remote.log.manager.fetch.quota.window.size.seconds  int       medium  read-only     1  >=1
remote.log.manager.follower.thread.pool.size        int       medium  cluster-wide  2  >=1
remote.log.manager.task.interval.ms                 long      low     read-only     30000  >=1
remote.log.manager.task.retry.backoff.max.ms        long      low     read-only     30000  >=1  internal
remote.log.manager.task.retry.backoff.ms            long      low     read-only     500  >=1  internal
remote.log.manager.task.retry.jitter                double    low     read-only     0.2  0..0.5  internal
remote.log.manager.thread.pool.size                 int       medium  read-only     2  >=1
remote.log.metadata.custom.metadata.max.bytes       int       low     read-only     128  >=0
remote.log.metadata.manager.class.name              string    medium  read-only     org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  nonempty
remote.log.metadata.manager.class.path              string    medium  read-only     -  any
remote.log.metadata.manager.impl.prefix             string    medium  read-only     rlmm.config.  nonempty
remote.log.metadata.manager.listener.name           string    medium  read-only     -  nonempty
remote.log.reader.max.pending.tasks                 int       medium  read-only     100  >=1
remote.log.reader.threads                           int       medium  cluster-wide  10  >=1
remote.log.storage.manager.class.name               string    medium  read-only     -  nonempty
remote.log.storage.manager.class.path               string    medium  read-only     -  any
remote.log.storage.manager.impl.prefix              string    medium  read-only     rsm.config.  nonempty
remote.log.storage.system.enable                    boolean   medium  read-only     false  any
"""
