"""Settings of the broker about the cluster: roles, quorum, replication, quotas, metrics, requests.

One line each: name, type, importance, when it may change, default, rule of valid values; see
`definition.py` for the notation. Source: Kafka's KRaftConfigs, QuorumConfig, MetadataLogConfig, ReplicationConfigs, QuotaConfig, MetricConfigs, ServerConfigs.
"""

# ruff: noqa: E501

TABLE = """\
alter.log.dirs.replication.quota.window.num           int       low     read-only     11  >=1
alter.log.dirs.replication.quota.window.size.seconds  int       low     read-only     1  >=1
authorizer.class.name                                 string    low     read-only     ""  any
auto.leader.rebalance.enable                          boolean   high    read-only     true  any
background.threads                                    int       high    cluster-wide  10  >=1
broker.heartbeat.interval.ms                          int       medium  read-only     2000  any
broker.id                                             int       high    read-only     -1  any
broker.rack                                           string    medium  read-only     -  any
broker.session.timeout.ms                             int       medium  read-only     9000  any
client.quota.callback.class                           class     low     read-only     -  any
compression.gzip.level                                int       medium  cluster-wide  -1  1..9|-1
compression.lz4.level                                 int       medium  cluster-wide  9  1..17
compression.type                                      string    high    cluster-wide  producer  {uncompressed,zstd,lz4,snappy,gzip,producer}
compression.zstd.level                                int       medium  cluster-wide  3  -131072..22
config.providers                                      list      low     cluster-wide  ""  unique
controlled.shutdown.enable                            boolean   medium  read-only     true  any
controller.listener.names                             list      high    read-only     !  unique+
controller.performance.always.log.threshold.ms        long      medium  read-only     2000  >=0  internal
controller.performance.sample.period.ms               long      medium  read-only     60000  >=100  internal
controller.quorum.append.linger.ms                    int       medium  read-only     25  >=0
controller.quorum.auto.join.enable                    boolean   low     read-only     false  any
controller.quorum.bootstrap.servers                   list      high    read-only     ""  addresses
controller.quorum.election.backoff.max.ms             int       high    read-only     1000  >=0
controller.quorum.election.timeout.ms                 int       high    read-only     1000  >=0
controller.quorum.fetch.max.bytes                     int       low     read-only     1048576  >=1
controller.quorum.fetch.snapshot.max.bytes            int       low     read-only     1048576  >=1
controller.quorum.fetch.timeout.ms                    int       high    read-only     2000  >=0
controller.quorum.request.timeout.ms                  int       medium  read-only     2000  >=0
controller.quorum.retry.backoff.ms                    int       low     read-only     20  >=0
controller.quorum.voters                              list      high    read-only     ""  voters
controller.quota.window.num                           int       low     read-only     11  >=1
controller.quota.window.size.seconds                  int       low     read-only     1  >=1
controller.socket.timeout.ms                          int       medium  read-only     30000  any
default.replication.factor                            int       medium  read-only     1  any
delete.records.purgatory.purge.interval.requests      int       medium  read-only     1  any
delete.topic.enable                                   boolean   high    read-only     true  any
early.start.listeners                                 list      high    read-only     -  unique
fetch.max.bytes                                       int       medium  read-only     57671680  >=1024
fetch.purgatory.purge.interval.requests               int       medium  read-only     1000  any
follower.fetch.last.tiered.offset.enable              boolean   medium  cluster-wide  false  any
follower.replication.throttled.rate                   long      medium  dynamic-only  9223372036854775807  >=0
initial.broker.registration.timeout.ms                int       medium  read-only     60000  any
inter.broker.listener.name                            string    medium  read-only     -  any
internal.metadata.delete.delay.millis                 long      low     read-only     60000  any  internal
internal.metadata.log.segment.bytes                   int       low     read-only     -  any  internal
internal.metadata.max.batch.size.in.bytes             int       low     read-only     8388608  any  internal
kafka.metrics.polling.interval.secs                   int       low     read-only     10  >=1
kafka.metrics.reporters                               list      low     read-only     ""  unique
leader.imbalance.check.interval.seconds               long      high    read-only     300  >=1
leader.replication.throttled.rate                     long      medium  dynamic-only  9223372036854775807  >=0
max.decompressed.message.bytes                        int       high    cluster-wide  2147483639  >=0
max.incremental.fetch.session.cache.slots             int       medium  read-only     1000  >=0
max.request.partition.size.limit                      int       medium  read-only     2000  >=1
message.max.bytes                                     int       high    cluster-wide  1048588  >=0
metadata.log.dir                                      string    high    read-only     -  any
metadata.log.max.record.bytes.between.snapshots       long      high    read-only     20971520  >=1
metadata.log.max.snapshot.interval.ms                 long      high    read-only     3600000  >=0
metadata.log.segment.bytes                            int       high    read-only     1073741824  >=8388608
metadata.log.segment.ms                               long      high    read-only     604800000  any
metadata.max.idle.interval.ms                         int       low     read-only     500  >=0
metadata.max.retention.bytes                          long      high    read-only     104857600  any
metadata.max.retention.ms                             long      high    read-only     604800000  any
metric.reporters                                      list      low     cluster-wide  org.apache.kafka.common.metrics.JmxReporter  unique
metrics.num.samples                                   int       low     read-only     2  >=1
metrics.recording.level                               string    low     read-only     INFO  any
metrics.sample.window.ms                              long      low     read-only     30000  >=1
node.id                                               int       high    read-only     !  >=0
num.io.threads                                        int       high    cluster-wide  8  >=1
num.replica.alter.log.dirs.threads                    int       high    read-only     -  any
num.replica.fetchers                                  int       high    cluster-wide  1  >=1
process.roles                                         list      high    read-only     !  [broker,controller]+
producer.purgatory.purge.interval.requests            int       medium  read-only     1000  any
quota.window.num                                      int       low     read-only     11  >=1
quota.window.size.seconds                             int       low     read-only     1  >=1
replica.alter.log.dirs.io.max.bytes.per.second        long      medium  dynamic-only  9223372036854775807  >=0
replica.fetch.backoff.ms                              int       medium  read-only     1000  >=0
replica.fetch.max.bytes                               int       medium  read-only     1048576  >=0
replica.fetch.min.bytes                               int       high    read-only     1  any
replica.fetch.response.max.bytes                      int       medium  read-only     10485760  >=0
replica.fetch.wait.max.ms                             int       high    read-only     500  any
replica.high.watermark.checkpoint.interval.ms         long      high    read-only     5000  any
replica.lag.time.max.ms                               long      high    read-only     30000  any
replica.selector.class                                string    medium  read-only     -  any
replica.socket.receive.buffer.bytes                   int       high    read-only     65536  any
replica.socket.timeout.ms                             int       high    read-only     30000  any
replication.quota.window.num                          int       low     read-only     11  >=1
replication.quota.window.size.seconds                 int       low     read-only     1  >=1
request.timeout.ms                                    int       high    read-only     30000  any
sasl.mechanism.controller.protocol                    string    high    read-only     GSSAPI  any
security.inter.broker.protocol                        string    medium  read-only     PLAINTEXT  {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL}
server.max.startup.time.ms                            long      medium  read-only     9223372036854775807  >=0  internal
socket.connection.setup.timeout.max.ms                long      medium  read-only     30000  any
socket.connection.setup.timeout.ms                    long      medium  read-only     10000  any
telemetry.max.bytes                                   int       low     read-only     1048576  >=1
unclean.leader.election.enable                        boolean   high    cluster-wide  false  any
unclean.leader.election.interval.ms                   long      medium  read-only     300000  >=1  internal
unstable.api.versions.enable                          boolean   high    read-only     false  any  internal
unstable.feature.versions.enable                      boolean   high    read-only     false  any  internal
"""
