"""What each setting of the broker about the cluster is for."""

# ruff: noqa: E501

SENTENCES = """\
alter.log.dirs.replication.quota.window.num: How many samples the quota of moving replicas between directories keeps.
alter.log.dirs.replication.quota.window.size.seconds: How many seconds each sample of that quota lasts.
authorizer.class.name: The Java class that says who may do what; empty lets everybody do everything.
auto.leader.rebalance.enable: Whether preferred leaders take their partitions back by themselves.
background.threads: How many threads do periodic work in Kafka.
broker.heartbeat.interval.ms: How often a broker tells the controller that it is alive, in milliseconds.
broker.id: The older name of node.id.
broker.rack: The rack the broker stands in; replicas are spread over racks, and clients may read from their own.
broker.session.timeout.ms: After how many milliseconds without a heartbeat the controller takes a broker for dead.
client.quota.callback.class: The Java class that works out the quotas of clients.
compression.gzip.level: The gzip level where the broker compresses, for topics that do not say; -1 is gzip's own default.
compression.lz4.level: The lz4 level where the broker compresses, for topics that do not say.
compression.type: The codec batches are stored with, for topics that do not say; producer keeps what the producer chose.
compression.zstd.level: The zstd level where the broker compresses, for topics that do not say.
config.providers: Names of providers that fill in values of settings from elsewhere, such as files.
controlled.shutdown.enable: Whether a broker hands over its partitions before it stops.
controller.listener.names: The names of the listeners that controllers use among themselves.
controller.performance.always.log.threshold.ms: From how many milliseconds on every slow event of the controller is logged.
controller.performance.sample.period.ms: How often the slowest event of the controller is logged, in milliseconds.
controller.quorum.append.linger.ms: How long the leader of the metadata quorum gathers records before it writes them to disk, in milliseconds.
controller.quorum.auto.join.enable: Whether a controller adds itself to the voters.
controller.quorum.bootstrap.servers: Addresses at which the metadata quorum can be found.
controller.quorum.election.backoff.max.ms: The longest a voter waits after a lost election, in milliseconds.
controller.quorum.election.timeout.ms: After how many milliseconds a candidate without a majority gives up.
controller.quorum.fetch.max.bytes: How many bytes of the metadata log one fetch may bring.
controller.quorum.fetch.snapshot.max.bytes: How many bytes of a metadata snapshot one fetch may bring.
controller.quorum.fetch.timeout.ms: After how many milliseconds without a fetch from the leader a voter stands for election, and a leader without a majority steps down.
controller.quorum.request.timeout.ms: How long a request within the metadata quorum may take, in milliseconds.
controller.quorum.retry.backoff.ms: How long a failed request within the metadata quorum waits before it is sent again, in milliseconds.
controller.quorum.voters: The voters of the metadata quorum as id@host:port, for a quorum whose voters are fixed.
controller.quota.window.num: How many samples the quota of changes of topics keeps.
controller.quota.window.size.seconds: How many seconds each sample of that quota lasts.
controller.socket.timeout.ms: How long a request to the controller may take, in milliseconds.
default.replication.factor: How many replicas a partition gets when its topic is created without a number.
delete.records.purgatory.purge.interval.requests: After how many waiting deletions of records Kafka sweeps out the finished ones.
delete.topic.enable: Whether topics can be deleted.
early.start.listeners: Listeners that open before authorisation is ready.
fetch.max.bytes: How many bytes a fetch may bring at most, whatever the client asks for.
fetch.purgatory.purge.interval.requests: After how many waiting fetches Kafka sweeps out the finished ones.
follower.fetch.last.tiered.offset.enable: Whether a new follower starts at what is not yet in remote storage.
follower.replication.throttled.rate: How many bytes a second throttled replicas may fetch as followers.
initial.broker.registration.timeout.ms: How long a broker tries to register with the controller before it stops, in milliseconds.
inter.broker.listener.name: The listener brokers use among themselves.
internal.metadata.delete.delay.millis: How many milliseconds pass before files of the metadata log are removed.
internal.metadata.log.segment.bytes: A segment size of the metadata log for tests, in bytes.
internal.metadata.max.batch.size.in.bytes: The largest batch of the metadata log, in bytes.
kafka.metrics.polling.interval.secs: How often reporters of the older metrics are asked, in seconds.
kafka.metrics.reporters: Java classes that report the older metrics.
leader.imbalance.check.interval.seconds: How often the controller looks for leaders that are not the preferred ones, in seconds.
leader.replication.throttled.rate: How many bytes a second leaders may send to throttled replicas.
max.decompressed.message.bytes: The largest a single record may be once its batch is decompressed, in bytes, for topics that do not say.
max.incremental.fetch.session.cache.slots: How many incremental fetch sessions the broker keeps.
max.request.partition.size.limit: How many partitions one answer about topics may hold.
message.max.bytes: The largest batch the broker takes, in bytes as it is stored, for topics that do not say.
metadata.log.dir: The directory of the metadata log; unset takes the first of the log directories.
metadata.log.max.record.bytes.between.snapshots: After how many bytes of records a snapshot of the metadata is made.
metadata.log.max.snapshot.interval.ms: After how many milliseconds a snapshot of the metadata is made if there is anything new.
metadata.log.segment.bytes: The segment size of the metadata log, in bytes.
metadata.log.segment.ms: After how many milliseconds a segment of the metadata log is closed.
metadata.max.idle.interval.ms: How often an idle controller writes a record so that others see it alive, in milliseconds; 0 writes none.
metadata.max.retention.bytes: How many bytes of metadata log and snapshots are kept.
metadata.max.retention.ms: How many milliseconds metadata log and snapshots are kept.
metric.reporters: Java classes that report metrics.
metrics.num.samples: How many samples a metric keeps.
metrics.recording.level: How detailed the metrics are that are recorded.
metrics.sample.window.ms: How many milliseconds each sample of a metric lasts.
node.id: The number of the node, the same for its broker and its controller.
num.io.threads: How many threads handle requests in Kafka; here the one loop does.
num.replica.alter.log.dirs.threads: How many threads move replicas between directories.
num.replica.fetchers: How many threads fetch from each leader.
process.roles: What the node is: a broker, a controller or both.
producer.purgatory.purge.interval.requests: After how many waiting produces Kafka sweeps out the finished ones.
quota.window.num: How many samples the quotas of clients keep.
quota.window.size.seconds: How many seconds each sample of the quotas of clients lasts.
replica.alter.log.dirs.io.max.bytes.per.second: How many bytes a second may be moved between directories.
replica.fetch.backoff.ms: How long a follower waits after a failed fetch, in milliseconds.
replica.fetch.max.bytes: How many bytes of one partition a follower asks for at a time.
replica.fetch.min.bytes: How many bytes a follower waits for before its fetch is answered.
replica.fetch.response.max.bytes: How many bytes a follower asks for at a time over all partitions.
replica.fetch.wait.max.ms: How long a follower's fetch waits for new records, in milliseconds.
replica.high.watermark.checkpoint.interval.ms: How often high watermarks are noted on disk, in milliseconds.
replica.lag.time.max.ms: After how many milliseconds without having caught up a follower is out of sync.
replica.selector.class: The Java class that picks the replica a consumer reads from.
replica.socket.receive.buffer.bytes: The receive buffer of a follower's socket, in bytes.
replica.socket.timeout.ms: How long a follower's request may take, in milliseconds.
replication.quota.window.num: How many samples the quota of replication keeps.
replication.quota.window.size.seconds: How many seconds each sample of the quota of replication lasts.
request.timeout.ms: How long a request of the broker as a client may take, in milliseconds.
sasl.mechanism.controller.protocol: The SASL mechanism on the controllers' listeners.
security.inter.broker.protocol: The security protocol brokers use among themselves, where inter.broker.listener.name is not set.
server.max.startup.time.ms: How long a start may take before the node gives up, in milliseconds.
socket.connection.setup.timeout.max.ms: The longest an attempt to connect to another node may take, in milliseconds.
socket.connection.setup.timeout.ms: How long the first attempt to connect to another node may take, in milliseconds.
telemetry.max.bytes: The largest push of metrics the broker takes from a client, in bytes.
unclean.leader.election.enable: Whether a replica that may have missed records can lead when no other is left, for topics that do not say.
unclean.leader.election.interval.ms: How often the controller looks for partitions that only an unclean election can help, in milliseconds.
unstable.api.versions.enable: Whether API versions that may still change are offered.
unstable.feature.versions.enable: Whether feature levels that may still change are allowed.
"""
