"""Settings of the broker about its coordinators: groups, share groups, transactions.

One line each: name, type, importance, when it may change, default, rule of valid values; see
`definition.py` for the notation. Source: Kafka's GroupCoordinatorConfig, ShareCoordinatorConfig, ShareGroupConfig, TransactionLogConfig, TransactionStateManagerConfig, AddPartitionsToTxnConfig.
"""

# ruff: noqa: E501

TABLE = """\
add.partitions.to.txn.retry.backoff.max.ms                   int       high    read-only     100  >=0
add.partitions.to.txn.retry.backoff.ms                       int       high    read-only     20  >=1
errors.deadletterqueue.auto.create.topics.enable             boolean   medium  cluster-wide  false  any
errors.deadletterqueue.topic.name.prefix                     string    medium  cluster-wide  dlq.  any
group.consumer.assignment.interval.ms                        int       medium  cluster-wide  1000  >=0
group.consumer.assignor.offload.enable                       boolean   medium  cluster-wide  true  any  internal
group.consumer.assignors                                     list      medium  read-only     uniform,range  unique+
group.consumer.heartbeat.interval.ms                         int       medium  read-only     5000  >=1
group.consumer.max.assignment.interval.ms                    int       medium  read-only     15000  >=0
group.consumer.max.heartbeat.interval.ms                     int       medium  read-only     15000  >=1
group.consumer.max.session.timeout.ms                        int       medium  read-only     60000  >=1
group.consumer.max.size                                      int       medium  read-only     2147483647  >=1
group.consumer.migration.policy                              string    medium  read-only     bidirectional  {bidirectional,upgrade,downgrade,disabled}~
group.consumer.min.assignment.interval.ms                    int       medium  read-only     0  >=0
group.consumer.min.heartbeat.interval.ms                     int       medium  read-only     5000  >=1
group.consumer.min.session.timeout.ms                        int       medium  read-only     45000  >=1
group.consumer.regex.refresh.interval.ms                     int       medium  read-only     600000  >=10000  internal
group.consumer.session.timeout.ms                            int       medium  read-only     45000  >=1
group.coordinator.append.linger.ms                           int       medium  read-only     -1  >=-1
group.coordinator.background.threads                         int       high    read-only     2  >=1
group.coordinator.cached.buffer.max.bytes                    int       medium  cluster-wide  1048588  >=524288
group.coordinator.rebalance.protocols                        list      medium  read-only     classic,consumer,streams  [consumer,classic,share,streams]+
group.coordinator.threads                                    int       high    read-only     4  >=1
group.initial.rebalance.delay.ms                             int       medium  read-only     3000  any
group.max.session.timeout.ms                                 int       medium  read-only     1800000  any
group.max.size                                               int       medium  read-only     2147483647  >=1
group.min.session.timeout.ms                                 int       medium  read-only     6000  any
group.share.assignment.interval.ms                           int       medium  cluster-wide  1000  >=0
group.share.assignor.offload.enable                          boolean   medium  cluster-wide  true  any  internal
group.share.assignors                                        list      medium  read-only     simple  unique+
group.share.delivery.count.limit                             int       medium  read-only     5  2..10
group.share.dlq.manager.class.name                           string    medium  read-only     org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager  any  internal
group.share.heartbeat.interval.ms                            int       medium  read-only     5000  >=1
group.share.initialize.retry.interval.ms                     int       low     read-only     30000  >=1  internal
group.share.max.assignment.interval.ms                       int       medium  read-only     15000  >=0
group.share.max.delivery.count.limit                         int       medium  read-only     10  5..25
group.share.max.heartbeat.interval.ms                        int       medium  read-only     15000  >=1
group.share.max.partition.max.record.locks                   int       medium  read-only     4000  2000..10000
group.share.max.record.lock.duration.ms                      int       medium  read-only     60000  30000..3600000
group.share.max.session.timeout.ms                           int       medium  read-only     60000  >=1
group.share.max.share.sessions                               int       medium  read-only     2000  >=1
group.share.max.size                                         int       medium  read-only     200  1..1000
group.share.min.assignment.interval.ms                       int       medium  read-only     0  >=0
group.share.min.delivery.count.limit                         int       medium  read-only     2  2..5
group.share.min.heartbeat.interval.ms                        int       medium  read-only     5000  >=1
group.share.min.partition.max.record.locks                   int       medium  read-only     100  100..2000
group.share.min.record.lock.duration.ms                      int       medium  read-only     15000  1000..30000
group.share.min.session.timeout.ms                           int       medium  read-only     45000  >=1
group.share.partition.max.record.locks                       int       medium  read-only     2000  100..10000
group.share.persister.class.name                             string    medium  read-only     org.apache.kafka.server.share.persister.DefaultStatePersister  any  internal
group.share.record.lock.duration.ms                          int       medium  read-only     30000  1000..3600000
group.share.session.timeout.ms                               int       medium  read-only     45000  >=1
group.streams.acceptable.recovery.lag                        long      medium  read-only     10000  >=0  internal
group.streams.assignment.interval.ms                         int       medium  cluster-wide  1000  >=0
group.streams.assignor.offload.enable                        boolean   medium  cluster-wide  true  any  internal
group.streams.assignors                                      list      medium  read-only     sticky  unique+
group.streams.heartbeat.interval.ms                          int       medium  read-only     5000  >=1
group.streams.initial.rebalance.delay.ms                     int       medium  read-only     3000  >=0
group.streams.max.assignment.interval.ms                     int       medium  read-only     15000  >=0
group.streams.max.heartbeat.interval.ms                      int       medium  read-only     15000  >=1
group.streams.max.session.timeout.ms                         int       medium  read-only     60000  >=1
group.streams.max.size                                       int       medium  read-only     2147483647  >=1
group.streams.max.standby.replicas                           int       medium  read-only     2  >=0
group.streams.max.warmup.replicas                            int       medium  read-only     20  >=0  internal
group.streams.min.assignment.interval.ms                     int       medium  read-only     0  >=0
group.streams.min.heartbeat.interval.ms                      int       medium  read-only     5000  >=1
group.streams.min.session.timeout.ms                         int       medium  read-only     45000  >=1
group.streams.min.task.offset.interval.ms                    int       medium  read-only     15000  >=1  internal
group.streams.num.standby.replicas                           int       medium  read-only     0  >=0
group.streams.num.warmup.replicas                            int       medium  read-only     2  >=0  internal
group.streams.rack.aware.assignment.tags                     list      low     read-only     ""  unique
group.streams.session.timeout.ms                             int       medium  read-only     45000  >=1
group.streams.task.offset.interval.ms                        int       medium  read-only     60000  >=1  internal
group.streams.topology.description.plugin.class              class     medium  read-only     -  any
offset.metadata.max.bytes                                    int       high    read-only     4096  any
offsets.commit.timeout.ms                                    int       high    read-only     5000  >=1
offsets.load.buffer.size                                     int       high    read-only     5242880  >=1
offsets.retention.check.interval.ms                          long      high    read-only     600000  >=1
offsets.retention.minutes                                    int       high    read-only     10080  >=1
offsets.topic.compression.codec                              int       high    read-only     0  any
offsets.topic.num.partitions                                 int       high    read-only     50  >=1
offsets.topic.replication.factor                             short     high    read-only     3  >=1
offsets.topic.segment.bytes                                  int       high    read-only     104857600  >=1
producer.id.expiration.check.interval.ms                     int       low     read-only     600000  >=1  internal
producer.id.expiration.ms                                    int       low     cluster-wide  86400000  >=1
share.coordinator.append.linger.ms                           int       medium  read-only     -1  >=-1
share.coordinator.cached.buffer.max.bytes                    int       medium  cluster-wide  1048588  >=524288
share.coordinator.cold.partition.snapshot.interval.ms        int       low     read-only     300000  >=1  internal
share.coordinator.load.buffer.size                           int       high    read-only     5242880  >=1
share.coordinator.snapshot.update.records.per.snapshot       int       medium  read-only     500  0..500
share.coordinator.state.topic.compression.codec              int       high    read-only     0  any
share.coordinator.state.topic.min.isr                        short     high    read-only     2  >=1
share.coordinator.state.topic.num.partitions                 int       high    read-only     50  >=1
share.coordinator.state.topic.prune.interval.ms              int       low     read-only     300000  >=1  internal
share.coordinator.state.topic.replication.factor             short     high    read-only     3  >=1
share.coordinator.state.topic.segment.bytes                  int       high    read-only     104857600  >=1
share.coordinator.threads                                    int       medium  read-only     1  >=1
share.coordinator.write.timeout.ms                           int       high    read-only     5000  >=1
share.fetch.purgatory.purge.interval.requests                int       medium  read-only     1000  any
transaction.abort.timed.out.transaction.cleanup.interval.ms  int       low     read-only     10000  >=1
transaction.max.timeout.ms                                   int       high    read-only     900000  >=1
transaction.partition.verification.enable                    boolean   low     cluster-wide  true  any
transaction.remove.expired.transaction.cleanup.interval.ms   int       low     read-only     3600000  >=1
transaction.state.log.load.buffer.size                       int       high    read-only     5242880  >=1
transaction.state.log.min.isr                                int       high    read-only     2  >=1
transaction.state.log.num.partitions                         int       high    read-only     50  >=1
transaction.state.log.replication.factor                     short     high    read-only     3  >=1
transaction.state.log.segment.bytes                          int       high    read-only     104857600  >=1
transaction.two.phase.commit.enable                          boolean   low     read-only     false  any
transactional.id.expiration.ms                               int       high    read-only     604800000  >=1
"""
