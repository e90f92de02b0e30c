"""What each setting of a group is for."""

# ruff: noqa: E501

SENTENCES = """\
consumer.assignment.interval.ms: The least time between two new assignments of a consumer group, in milliseconds.
consumer.assignor.offload.enable: Whether assignments of a consumer group are worked out beside the coordinator's own work.
consumer.heartbeat.interval.ms: How often the members of a consumer group must send a heartbeat, in milliseconds.
consumer.session.timeout.ms: After how many milliseconds without a heartbeat a member of a consumer group is removed.
errors.deadletterqueue.copy.record.enable: Whether a dead letter carries the key, value and headers of the record it stands for.
errors.deadletterqueue.topic.name: The topic that takes the records a share group gave up on; empty for none.
share.assignment.interval.ms: The least time between two new assignments of a share group, in milliseconds.
share.assignor.offload.enable: Whether assignments of a share group are worked out beside the coordinator's own work.
share.auto.offset.reset: Where a share group starts on a partition it has not read: earliest, latest, or a duration back from now.
share.delivery.count.limit: How often a record is given to a share group before it counts as undeliverable.
share.heartbeat.interval.ms: How often the members of a share group must send a heartbeat, in milliseconds.
share.isolation.level: Whether a share group also sees records of transactions that are open or were aborted.
share.partition.max.record.locks: How many records of one partition may be out with members of a share group at a time.
share.record.lock.duration.ms: How many milliseconds a member of a share group has to acknowledge a record before it is given to another.
share.renew.acknowledge.enable: Whether a member of a share group may prolong its hold on a record.
share.session.timeout.ms: After how many milliseconds without a heartbeat a member of a share group is removed.
streams.acceptable.recovery.lag: How many records a replica of a store may be behind and still count as caught up.
streams.assignment.interval.ms: The least time between two new assignments of a streams group, in milliseconds.
streams.assignor.name: Which assignor gives tasks to the members of a streams group; unset takes the broker's first.
streams.assignor.offload.enable: Whether assignments of a streams group are worked out beside the coordinator's own work.
streams.heartbeat.interval.ms: How often the members of a streams group must send a heartbeat, in milliseconds.
streams.initial.rebalance.delay.ms: How many milliseconds an empty streams group waits for more members before its first assignment.
streams.num.standby.replicas: How many copies of each store a streams group keeps ready beside the one in use.
streams.num.warmup.replicas: How many copies of stores a streams group may be warming up at a time.
streams.rack.aware.assignment.tags: The client tags by which a streams group spreads its standby copies.
streams.session.timeout.ms: After how many milliseconds without a heartbeat a member of a streams group is removed.
streams.task.offset.interval.ms: How often the members of a streams group report how far their stores are, in milliseconds.
"""
