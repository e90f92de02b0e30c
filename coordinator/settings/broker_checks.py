"""What must hold between the settings of one broker, at start and for every dynamic change.

Each refusal names both settings and both values. Source: Kafka's KafkaConfig.validateValues,
GroupCoordinatorConfig.validate, ShareGroupConfig.validate, DynamicLogConfig, LogCleaner.
"""

from __future__ import annotations

from coordinator.settings import listeners
from coordinator.settings.layers import BrokerValues, find_setting
from coordinator.settings.values import InvalidSetting

_AT_MOST = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.share.min.delivery.count.limit", "group.share.delivery.count.limit"),
    ("group.share.delivery.count.limit", "group.share.max.delivery.count.limit"),
    ("group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    ("group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    ("group.share.min.partition.max.record.locks", "group.share.partition.max.record.locks"),
    ("group.share.partition.max.record.locks", "group.share.max.partition.max.record.locks"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ("group.streams.num.warmup.replicas", "group.streams.max.warmup.replicas"),
    ("add.partitions.to.txn.retry.backoff.ms", "add.partitions.to.txn.retry.backoff.max.ms"),
)
"""The first must not be greater than the second."""

_LIMITED = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_MEBIBYTE = 1024 * 1024
JMX_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"


def check_broker(values: BrokerValues) -> None:
    """Raise InvalidSetting unless the settings hold, each alone and all together."""
    check_each(values)
    check_log(values)
    check_groups(values)
    for low, high in _AT_MOST:
        _check_order(values, low, high)
    if integer(values, "max.connections.per.ip") == 0 and not values.text("max.connections.per.ip.overrides"):
        raise InvalidSetting(
            "max.connections.per.ip=0 refuses every client: "
            "it is allowed only where max.connections.per.ip.overrides lets some in."
        )
    parse_connection_overrides(values.text("max.connections.per.ip.overrides") or "")
    check_reporters(values)
    check_roles(values)


def check_each(values: BrokerValues) -> None:
    """Every setting that is set has a valid value."""
    for name in values.layers.effective():
        if find_setting(name) is not None:
            values.value(name)


def check_log(values: BrokerValues) -> None:
    """Retention, cleaner and directories."""
    retention_ms = None
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if values.value(name) is not None:
            retention_ms = integer(values, name)
            if retention_ms == 0:
                raise InvalidSetting(f"{name} must be unlimited (-1) or, greater than or equal to 1, not 0.")
            break
    _check_local(values, "log.local.retention.ms", integer_of(values.topic_default("retention.ms")), "log.retention.ms")
    _check_local(values, "log.local.retention.bytes", integer(values, "log.retention.bytes"), "log.retention.bytes")
    threads, buffer = integer(values, "log.cleaner.threads"), integer(values, "log.cleaner.dedupe.buffer.size")
    if threads and buffer // threads < _MEBIBYTE:
        raise InvalidSetting(
            f"log.cleaner.dedupe.buffer.size={buffer} must be at least 1MB per cleaner thread "
            f"(log.cleaner.threads={threads})."
        )
    cordoned, directories = values.value("cordoned.log.dirs"), log_dirs(values)
    assert isinstance(cordoned, tuple)
    missing = [directory for directory in cordoned if directory not in directories and directory != "*"]
    if missing:
        raise InvalidSetting(
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            f"Missing entries : {','.join(missing)}"
        )


def log_dirs(values: BrokerValues) -> tuple[str, ...]:
    """The directories of the logs: `log.dirs`, else `log.dir`."""
    for name in ("log.dirs", "log.dir"):
        directories = values.value(name)
        if isinstance(directories, tuple) and directories:
            return directories
    return ()


def _check_local(values: BrokerValues, name: str, whole: int, of: str) -> None:
    local = integer(values, name)
    if local == -2 or whole == -1:
        return
    if local == -1:
        raise InvalidSetting(f"Invalid value -1 for configuration {name}: Value must not be -1 as {of} is {whole}.")
    if local > whole:
        raise InvalidSetting(
            f"Invalid value {local} for configuration {name}: Value must not be more than {of} property value: {whole}"
        )


def check_reporters(values: BrokerValues) -> None:
    """Reporters of metrics are Java classes; Kafka's own for JMX is what a node without them has."""
    for name in ("metric.reporters", "kafka.metrics.reporters"):
        reporters = values.value(name)
        assert isinstance(reporters, tuple)
        for reporter in reporters:
            if reporter != JMX_REPORTER:
                raise InvalidSetting(
                    f"Invalid value {reporter} for configuration {name}: Class {reporter} could not be found: "
                    "no Java classes run here."
                )


def check_groups(values: BrokerValues) -> None:
    """Each kind of group: the default lies between its limits, heartbeats come before the session ends."""
    for kind in ("consumer", "share", "streams"):
        for what in _LIMITED:
            low, high = f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"
            _check_order(values, low, high)
            _check_order(values, low, f"group.{kind}.{what}")
            _check_order(values, f"group.{kind}.{what}", high)
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if integer(values, heartbeat) >= integer(values, session):
            raise InvalidSetting(
                f"{heartbeat}={values.text(heartbeat)} must be less than {session}={values.text(session)}."
            )


def check_roles(values: BrokerValues) -> None:
    """Roles, voters and listeners fit together."""
    roles = values.value("process.roles")
    assert isinstance(roles, tuple)
    node_id, voters = integer(values, "node.id"), listeners.voters(values)
    addresses = listeners.listeners(values)
    if "controller" in roles and voters and node_id not in {voter.node_id for voter in voters}:
        raise InvalidSetting(
            f"node.id={node_id} has the controller role and must be among the voters: "
            f"add it to controller.quorum.voters={values.text('controller.quorum.voters')}."
        )
    if "controller" not in roles and not voters and not values.value("controller.quorum.bootstrap.servers"):
        raise InvalidSetting(
            "process.roles=broker needs controllers elsewhere: set controller.quorum.voters or "
            "controller.quorum.bootstrap.servers."
        )
    if "controller" in roles and len(voters) > 1 and not any(address.is_controller for address in addresses):
        raise InvalidSetting(
            "controller.listener.names must contain at least one value appearing in the 'listeners' configuration "
            f"when a quorum has several voters: listeners={values.text('listeners')} has none of "
            f"{values.text('controller.listener.names')}."
        )
    if "broker" in roles:
        listeners.inter_broker_listener_name(values, addresses)
    heartbeat, session = integer(values, "broker.heartbeat.interval.ms"), integer(values, "broker.session.timeout.ms")
    if heartbeat * 2 > session:
        raise InvalidSetting(
            f"broker.heartbeat.interval.ms={heartbeat} must be at most half of broker.session.timeout.ms={session}."
        )


def parse_connection_overrides(text: str) -> dict[str, int]:
    """`host:limit,...` of `max.connections.per.ip.overrides`; raises InvalidSetting."""
    overrides = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, colon, limit = entry.rpartition(":")
        if not colon or not limit.strip().isdecimal():
            raise InvalidSetting(
                f"Error parsing configuration property 'max.connections.per.ip.overrides': {entry!r} "
                "must read host:limit."
            )
        overrides[host.strip()] = int(limit)
    return overrides


def _check_order(values: BrokerValues, low: str, high: str) -> None:
    if integer(values, low) > integer(values, high):
        raise InvalidSetting(
            f"{low} must be less than or equal to {high}: {values.text(low)} is more than {values.text(high)}."
        )


def integer(values: BrokerValues, name: str) -> int:
    """The value of a number setting."""
    return integer_of(values.value(name))


def integer_of(value: object) -> int:
    """A value that is known to be a number."""
    assert isinstance(value, int)
    return value
