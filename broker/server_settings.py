"""From the node's settings to what each part takes: one function for each part.

Parts take plain values, so that none but this module and `broker.config` know how settings are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.connection_set import ConnectionLimits
from broker.network.listener import ListenerConfig
from broker.replication.replica_manager import VerificationSettings
from broker.runtime.auto_topics import AutoTopicSettings
from broker.runtime.metadata_log import metadata_log_config as metadata_log_settings
from broker.runtime.snapshot_schedule import SnapshotSettings
from broker.storage.producer_state import ProducerSettings
from coordinator.controller.view import ControllerSettings, TopicSettings
from coordinator.group.consumer_settings import ConsumerGroupSettings, Limited
from coordinator.group.context import GroupSettings
from coordinator.transaction.context import TransactionSettings

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from broker.config_log import LogConfig

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""`org.apache.kafka.common.security.auth.SecurityProtocol`, with its ids."""

LONG_MAX = 2**63 - 1


LIMIT_SETTINGS = (
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.connection.creation.rate",
)
"""What of `connection_limits` may change while the node runs."""

# --- network ---------------------------------------------------------------------------------------


def connection_limits(config: BrokerConfig) -> ConnectionLimits:
    """The limits on connections."""
    broker_listeners = [listener.name for listener in config.listeners if not listener.is_controller]
    budget = config["queued.max.request.bytes"]
    return ConnectionLimits(
        socket_request_max_bytes=config["socket.request.max.bytes"],
        request_budget_bytes=LONG_MAX if budget <= 0 else budget,
        connections_max_idle_ms=config["connections.max.idle.ms"],
        max_connections=config["max.connections"],
        listener_max_connections={
            name: int(str(config.listener_value(name, "max.connections"))) for name in broker_listeners
        },
        max_connections_per_ip=config["max.connections.per.ip"],
        max_connections_per_ip_overrides=config.max_connections_per_ip_overrides,
        max_connection_creation_rate=config["max.connection.creation.rate"],
        listener_max_connection_creation_rate={
            name: int(str(config.listener_value(name, "max.connection.creation.rate"))) for name in broker_listeners
        },
        protected_listener=config.inter_broker_listener_name if len(broker_listeners) > 1 else None,
        socket_listen_backlog_size=config["socket.listen.backlog.size"],
    )


def listener_configs(config: BrokerConfig) -> list[ListenerConfig]:
    """The broker's listeners (not the controller's) with what each tells clients."""
    return [
        ListenerConfig(
            name=listener.name,
            host=listener.host,
            port=listener.port,
            security_protocol=listener.security_protocol,
            advertised_host=listener.advertised_host,
            # An advertised port 0 is the one the listener is given.
            advertised_port=listener.advertised_port or None,
        )
        for listener in config.listeners
        if not listener.is_controller
    ]


# --- metadata ----------------------------------------------------------------------------------------


def metadata_log_config(config: BrokerConfig) -> LogConfig:
    """Settings of the metadata log itself."""
    return metadata_log_settings(config["metadata.log.segment.bytes"], config["metadata.log.segment.ms"])


def snapshot_settings(config: BrokerConfig) -> SnapshotSettings:
    """When the metadata log gets snapshots."""
    return SnapshotSettings(
        config["metadata.log.max.record.bytes.between.snapshots"],
        config["metadata.log.max.snapshot.interval.ms"],
        config["metadata.max.retention.bytes"],
        config["metadata.max.retention.ms"],
    )


# --- runtimes --------------------------------------------------------------------------------------


def controller_settings(config: BrokerConfig, cluster_id: str, topic_settings: TopicSettings) -> ControllerSettings:
    """What the controller decides by."""
    return ControllerSettings(
        cluster_id=cluster_id,
        topic_settings=topic_settings,
        num_partitions=config["num.partitions"],
        default_replication_factor=config["default.replication.factor"],
        min_insync_replicas=config["min.insync.replicas"],
        unclean_leader_election_enable=config["unclean.leader.election.enable"],
        broker_session_timeout_ms=config["broker.session.timeout.ms"],
        local_broker_id=config["node.id"],
    )


def group_settings(config: BrokerConfig) -> GroupSettings:
    """What the group coordinator decides by."""
    return GroupSettings(
        initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
        group_max_size=config["group.max.size"],
        min_session_timeout_ms=config["group.min.session.timeout.ms"],
        max_session_timeout_ms=config["group.max.session.timeout.ms"],
        offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
        offsets_retention_ms=config["offsets.retention.minutes"] * 60_000,
        offsets_retention_check_interval_ms=config["offsets.retention.check.interval.ms"],
        consumer=consumer_group_settings(config),
    )


def consumer_group_settings(config: BrokerConfig) -> ConsumerGroupSettings:
    """What the group coordinator decides by about consumer groups."""

    def limited(what: str) -> Limited:
        low, high = (config[f"group.consumer.{limit}.{what}"] for limit in ("min", "max"))
        # The broker's own value may be changed while it runs, the limits may not.
        return Limited(min(max(config[f"group.consumer.{what}"], low), high), low, high)

    policy = config["group.consumer.migration.policy"].lower()
    return ConsumerGroupSettings(
        # Java class names stand for the assignors of the same names (checked in config_served).
        assignors=tuple(
            name.rsplit(".", 1)[-1].removesuffix("Assignor").lower() for name in config["group.consumer.assignors"]
        ),
        group_max_size=config["group.consumer.max.size"],
        session_timeout_ms=limited("session.timeout.ms"),
        heartbeat_interval_ms=limited("heartbeat.interval.ms"),
        assignment_interval_ms=limited("assignment.interval.ms"),
        regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
        upgrade_enabled=policy in ("bidirectional", "upgrade"),
        downgrade_enabled=policy in ("bidirectional", "downgrade"),
        is_enabled="consumer" in config["group.coordinator.rebalance.protocols"],
    )


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    """What the transaction coordinator decides by."""
    return TransactionSettings(
        max_timeout_ms=config["transaction.max.timeout.ms"],
        two_phase_commit_enable=config["transaction.two.phase.commit.enable"],
        id_expiration_ms=config["transactional.id.expiration.ms"],
        abort_interval_ms=config["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
        expiry_interval_ms=config["transaction.remove.expired.transaction.cleanup.interval.ms"],
    )


def verification_settings(config: BrokerConfig) -> VerificationSettings:
    """How leaders of partitions speak with transaction coordinators."""
    return VerificationSettings(
        is_enabled=config["transaction.partition.verification.enable"],
        retry_backoff_ms=config["add.partitions.to.txn.retry.backoff.ms"],
        retry_max_ms=config["add.partitions.to.txn.retry.backoff.max.ms"],
    )


def producer_settings(config: BrokerConfig) -> ProducerSettings:
    """How partitions keep producers."""
    return ProducerSettings(
        expiration_ms=config["producer.id.expiration.ms"],
        verification_enabled=config["transaction.partition.verification.enable"],
    )


def auto_topic_settings(config: BrokerConfig) -> AutoTopicSettings:
    """How topics come to be that somebody only asked for."""
    return AutoTopicSettings(
        offsets_partitions=config["offsets.topic.num.partitions"],
        offsets_replication_factor=config["offsets.topic.replication.factor"],
        offsets_segment_bytes=config["offsets.topic.segment.bytes"],
        transactions_partitions=config["transaction.state.log.num.partitions"],
        transactions_replication_factor=config["transaction.state.log.replication.factor"],
        transactions_segment_bytes=config["transaction.state.log.segment.bytes"],
        transactions_min_isr=config["transaction.state.log.min.isr"],
        shares_partitions=config["share.coordinator.state.topic.num.partitions"],
        shares_replication_factor=config["share.coordinator.state.topic.replication.factor"],
        shares_segment_bytes=config["share.coordinator.state.topic.segment.bytes"],
        shares_min_isr=config["share.coordinator.state.topic.min.isr"],
        min_insync_replicas=config["min.insync.replicas"],
    )
