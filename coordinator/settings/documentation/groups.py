"""What each setting of the broker about groups, shares and transactions is for."""

# ruff: noqa: E501

SENTENCES = """\
add.partitions.to.txn.retry.backoff.max.ms: The longest wait between two attempts to add partitions to a transaction, in milliseconds.
add.partitions.to.txn.retry.backoff.ms: The first wait between two attempts to add partitions to a transaction, in milliseconds.
errors.deadletterqueue.auto.create.topics.enable: Whether the dead letter topic of a share group is created when it is first needed.
errors.deadletterqueue.topic.name.prefix: With what the name of a dead letter topic must begin for it to be created by itself.
group.consumer.assignment.interval.ms: The least time between two new assignments of a consumer group, in milliseconds, for groups that do not say.
group.consumer.assignor.offload.enable: Whether assignments of consumer groups are worked out beside the coordinator's own work.
group.consumer.assignors: The assignors on the broker's side, the first being the default.
group.consumer.heartbeat.interval.ms: How often members of consumer groups must send heartbeats, in milliseconds, for groups that do not say.
group.consumer.max.assignment.interval.ms: The longest time between two assignments a consumer group may ask for, in milliseconds.
group.consumer.max.heartbeat.interval.ms: The longest heartbeat interval a consumer group may ask for, in milliseconds.
group.consumer.max.session.timeout.ms: The longest session timeout a consumer group may ask for, in milliseconds.
group.consumer.max.size: How many members a consumer group of the new protocol may have.
group.consumer.migration.policy: Whether groups may move from the classic protocol to the new one, back, both or neither.
group.consumer.min.assignment.interval.ms: The shortest time between two assignments a consumer group may ask for, in milliseconds.
group.consumer.min.heartbeat.interval.ms: The shortest heartbeat interval a consumer group may ask for, in milliseconds.
group.consumer.min.session.timeout.ms: The shortest session timeout a consumer group may ask for, in milliseconds.
group.consumer.regex.refresh.interval.ms: How often subscriptions by pattern are matched with the topics again, in milliseconds.
group.consumer.session.timeout.ms: After how many milliseconds without a heartbeat a member is removed, for groups that do not say.
group.coordinator.append.linger.ms: How long the coordinator gathers records into one batch, in milliseconds; -1 lets it judge by load.
group.coordinator.background.threads: How many threads do the coordinator's side work in Kafka.
group.coordinator.cached.buffer.max.bytes: How large a write buffer the coordinator keeps for reuse, in bytes.
group.coordinator.rebalance.protocols: The protocols of groups that the coordinator speaks.
group.coordinator.threads: How many threads run the coordinator in Kafka; here the one loop does.
group.initial.rebalance.delay.ms: How many milliseconds an empty classic group waits for more members before its first assignment.
group.max.session.timeout.ms: The longest session timeout a classic member may ask for, in milliseconds.
group.max.size: How many members a classic group may have.
group.min.session.timeout.ms: The shortest session timeout a classic member may ask for, in milliseconds.
group.share.assignment.interval.ms: The least time between two new assignments of a share group, in milliseconds, for groups that do not say.
group.share.assignor.offload.enable: Whether assignments of share groups are worked out beside the coordinator's own work.
group.share.assignors: The assignors of share groups, the first being the default.
group.share.delivery.count.limit: How often a record is given to a share group before it counts as undeliverable, for groups that do not say.
group.share.dlq.manager.class.name: The Java class that writes dead letters.
group.share.heartbeat.interval.ms: How often members of share groups must send heartbeats, in milliseconds, for groups that do not say.
group.share.initialize.retry.interval.ms: How long the coordinator waits before it asks again for the start of a share partition, in milliseconds.
group.share.max.assignment.interval.ms: The longest time between two assignments a share group may ask for, in milliseconds.
group.share.max.delivery.count.limit: The highest number of deliveries a share group may ask for.
group.share.max.heartbeat.interval.ms: The longest heartbeat interval a share group may ask for, in milliseconds.
group.share.max.partition.max.record.locks: The highest number of records out at a time a share group may ask for.
group.share.max.record.lock.duration.ms: The longest hold on a record a share group may ask for, in milliseconds.
group.share.max.session.timeout.ms: The longest session timeout a share group may ask for, in milliseconds.
group.share.max.share.sessions: How many share sessions the broker keeps.
group.share.max.size: How many members a share group may have.
group.share.min.assignment.interval.ms: The shortest time between two assignments a share group may ask for, in milliseconds.
group.share.min.delivery.count.limit: The lowest number of deliveries a share group may ask for.
group.share.min.heartbeat.interval.ms: The shortest heartbeat interval a share group may ask for, in milliseconds.
group.share.min.partition.max.record.locks: The lowest number of records out at a time a share group may ask for.
group.share.min.record.lock.duration.ms: The shortest hold on a record a share group may ask for, in milliseconds.
group.share.min.session.timeout.ms: The shortest session timeout a share group may ask for, in milliseconds.
group.share.partition.max.record.locks: How many records of a share partition may be out at a time, for groups that do not say.
group.share.persister.class.name: The Java class that keeps the state of share partitions.
group.share.record.lock.duration.ms: How many milliseconds a member has to acknowledge a record, for share groups that do not say.
group.share.session.timeout.ms: After how many milliseconds without a heartbeat a member of a share group is removed, for groups that do not say.
group.streams.acceptable.recovery.lag: How many records a store may be behind and still count as caught up, for streams groups that do not say.
group.streams.assignment.interval.ms: The least time between two new assignments of a streams group, in milliseconds, for groups that do not say.
group.streams.assignor.offload.enable: Whether assignments of streams groups are worked out beside the coordinator's own work.
group.streams.assignors: The assignors of streams groups, the first being the default.
group.streams.heartbeat.interval.ms: How often members of streams groups must send heartbeats, in milliseconds, for groups that do not say.
group.streams.initial.rebalance.delay.ms: How many milliseconds an empty streams group waits for more members, for groups that do not say.
group.streams.max.assignment.interval.ms: The longest time between two assignments a streams group may ask for, in milliseconds.
group.streams.max.heartbeat.interval.ms: The longest heartbeat interval a streams group may ask for, in milliseconds.
group.streams.max.session.timeout.ms: The longest session timeout a streams group may ask for, in milliseconds.
group.streams.max.size: How many members a streams group may have.
group.streams.max.standby.replicas: The highest number of standby copies a streams group may ask for.
group.streams.max.warmup.replicas: The highest number of copies to warm up at a time a streams group may ask for.
group.streams.min.assignment.interval.ms: The shortest time between two assignments a streams group may ask for, in milliseconds.
group.streams.min.heartbeat.interval.ms: The shortest heartbeat interval a streams group may ask for, in milliseconds.
group.streams.min.session.timeout.ms: The shortest session timeout a streams group may ask for, in milliseconds.
group.streams.min.task.offset.interval.ms: The shortest interval of reports on stores a streams group may ask for, in milliseconds.
group.streams.num.standby.replicas: How many standby copies of each store are kept, for streams groups that do not say.
group.streams.num.warmup.replicas: How many copies of stores may be warming up at a time, for streams groups that do not say.
group.streams.rack.aware.assignment.tags: The client tags by which standby copies are spread, for streams groups that do not say.
group.streams.session.timeout.ms: After how many milliseconds without a heartbeat a member of a streams group is removed, for groups that do not say.
group.streams.task.offset.interval.ms: How often members report how far their stores are, in milliseconds, for streams groups that do not say.
group.streams.topology.description.plugin.class: The Java class that stores descriptions of topologies.
offset.metadata.max.bytes: How many bytes of text a client may attach to a committed offset.
offsets.commit.timeout.ms: How long a commit of offsets waits for its replicas, in milliseconds.
offsets.load.buffer.size: How many bytes are read at a time when committed offsets are loaded.
offsets.retention.check.interval.ms: How often expired offsets are removed, in milliseconds.
offsets.retention.minutes: How many minutes offsets are kept after their group has become empty.
offsets.topic.compression.codec: The number of the codec of the topic of committed offsets; 0 is none.
offsets.topic.num.partitions: How many partitions the topic of committed offsets gets; not to be changed later.
offsets.topic.replication.factor: How many replicas the topic of committed offsets gets; with a single voter no more than there are brokers.
offsets.topic.segment.bytes: The segment size of the topic of committed offsets, in bytes.
producer.id.expiration.check.interval.ms: How often producer ids are looked through for expired ones, in milliseconds.
producer.id.expiration.ms: After how many milliseconds without a write the broker forgets an idempotent producer on a partition.
share.coordinator.append.linger.ms: How long the share coordinator gathers records into one batch, in milliseconds; -1 lets it judge by load.
share.coordinator.cached.buffer.max.bytes: How large a write buffer the share coordinator keeps for reuse, in bytes.
share.coordinator.cold.partition.snapshot.interval.ms: After how many milliseconds without use a share partition is written down whole.
share.coordinator.load.buffer.size: How many bytes are read at a time when the state of share groups is loaded.
share.coordinator.snapshot.update.records.per.snapshot: How many changes of a share partition are written before its whole state is.
share.coordinator.state.topic.compression.codec: The number of the codec of the topic of share state; 0 is none.
share.coordinator.state.topic.min.isr: How many replicas of the topic of share state must be in sync for a write.
share.coordinator.state.topic.num.partitions: How many partitions the topic of share state gets; not to be changed later.
share.coordinator.state.topic.prune.interval.ms: How often what is no longer needed of the topic of share state is deleted, in milliseconds.
share.coordinator.state.topic.replication.factor: How many replicas the topic of share state gets; with a single voter no more than there are brokers.
share.coordinator.state.topic.segment.bytes: The segment size of the topic of share state, in bytes.
share.coordinator.threads: How many threads run the share coordinator in Kafka.
share.coordinator.write.timeout.ms: How long a write of share state waits for its replicas, in milliseconds.
share.fetch.purgatory.purge.interval.requests: After how many waiting share fetches Kafka sweeps out the finished ones.
transaction.abort.timed.out.transaction.cleanup.interval.ms: How often transactions are looked through for timed out ones, in milliseconds.
transaction.max.timeout.ms: The longest timeout a transactional producer may ask for, in milliseconds.
transaction.partition.verification.enable: Whether a partition asks the coordinator that a transaction is open before it takes its records.
transaction.remove.expired.transaction.cleanup.interval.ms: How often expired transactional ids are removed, in milliseconds.
transaction.state.log.load.buffer.size: How many bytes are read at a time when transactions are loaded.
transaction.state.log.min.isr: How many replicas of the topic of transactions must be in sync for a write.
transaction.state.log.num.partitions: How many partitions the topic of transactions gets; not to be changed later.
transaction.state.log.replication.factor: How many replicas the topic of transactions gets; with a single voter no more than there are brokers.
transaction.state.log.segment.bytes: The segment size of the topic of transactions, in bytes.
transaction.two.phase.commit.enable: Whether producers may take part in a two-phase commit that others decide.
transactional.id.expiration.ms: After how many milliseconds without use a transactional id is forgotten.
"""
