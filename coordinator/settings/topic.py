"""Settings of topics, and what must hold between them.

Source: Kafka's TopicConfig, LogConfig (validate), ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.settings.definition import SettingTable
from coordinator.settings.rules import parse
from coordinator.settings.values import InvalidSetting, Value

# ruff: noqa: E501

TABLE = """\
cleanup.policy                           list     medium  topic  delete  [compact,delete]  = log.cleanup.policy
compression.gzip.level                   int      medium  topic  -1  1..9|-1  = compression.gzip.level
compression.lz4.level                    int      medium  topic  9  1..17  = compression.lz4.level
compression.type                         string   medium  topic  producer  {uncompressed,zstd,lz4,snappy,gzip,producer}  = compression.type
compression.zstd.level                   int      medium  topic  3  -131072..22  = compression.zstd.level
delete.retention.ms                      long     medium  topic  86400000  >=0  = log.cleaner.delete.retention.ms
errors.deadletterqueue.group.enable      boolean  medium  topic  false  any
file.delete.delay.ms                     long     medium  topic  60000  >=0  = log.segment.delete.delay.ms
flush.messages                           long     medium  topic  9223372036854775807  >=1  = log.flush.interval.messages
flush.ms                                 long     medium  topic  9223372036854775807  >=0  = log.flush.interval.ms,log.flush.scheduler.interval.ms
follower.replication.throttled.replicas  list     medium  topic  ""  replicas
index.interval.bytes                     int      medium  topic  4096  >=0  = log.index.interval.bytes
internal.segment.bytes                   int      medium  topic  -  any  internal
leader.replication.throttled.replicas    list     medium  topic  ""  replicas
local.retention.bytes                    long     medium  topic  -2  >=-2  = log.local.retention.bytes
local.retention.ms                       long     medium  topic  -2  >=-2  = log.local.retention.ms
max.compaction.lag.ms                    long     medium  topic  9223372036854775807  >=1  = log.cleaner.max.compaction.lag.ms
max.decompressed.message.bytes           int      medium  topic  2147483639  >=0  = max.decompressed.message.bytes
max.message.bytes                        int      medium  topic  1048588  >=0  = message.max.bytes
message.timestamp.after.max.ms           long     medium  topic  3600000  >=0  = log.message.timestamp.after.max.ms
message.timestamp.before.max.ms          long     medium  topic  9223372036854775807  >=0  = log.message.timestamp.before.max.ms
message.timestamp.type                   string   medium  topic  CreateTime  {CreateTime,LogAppendTime}  = log.message.timestamp.type
min.cleanable.dirty.ratio                double   medium  topic  0.5  0..1  = log.cleaner.min.cleanable.ratio
min.compaction.lag.ms                    long     medium  topic  0  >=0  = log.cleaner.min.compaction.lag.ms
min.insync.replicas                      int      medium  topic  1  >=1  = min.insync.replicas
preallocate                              boolean  medium  topic  false  any  = log.preallocate
remote.copy.lag.bytes                    long     medium  topic  -1  >=-1  = log.remote.copy.lag.bytes
remote.copy.lag.ms                       long     medium  topic  0  >=-1  = log.remote.copy.lag.ms
remote.log.copy.disable                  boolean  medium  topic  false  any
remote.log.delete.on.disable             boolean  medium  topic  false  any
remote.storage.enable                    boolean  medium  topic  false  any
retention.bytes                          long     medium  topic  -1  any  = log.retention.bytes
retention.ms                             long     medium  topic  604800000  >=-1  = log.retention.ms,log.retention.minutes*60000,log.retention.hours*3600000
segment.bytes                            int      medium  topic  1073741824  >=1048576  = log.segment.bytes
segment.index.bytes                      int      medium  topic  10485760  >=4  = log.index.size.max.bytes
segment.jitter.ms                        long     medium  topic  0  >=0  = log.roll.jitter.ms,log.roll.jitter.hours*3600000
segment.ms                               long     medium  topic  604800000  >=1  = log.roll.ms,log.roll.hours*3600000
unclean.leader.election.enable           boolean  medium  topic  false  any  = unclean.leader.election.enable
"""

TOPIC = SettingTable(TABLE)


def check_topic_configs(
    overrides: Mapping[str, str],
    defaults: Mapping[str, Value],
    *,
    before: Mapping[str, str] | None = None,
    remote_storage_system_enable: bool = False,
) -> None:
    """Raise InvalidSetting unless all that a topic overrides is valid, alone and together (I37).

    `defaults` are the values that hold for topics without overrides; `before` what the topic
    overrode until now, None for a new topic.
    """
    unknown = next((name for name in overrides if name not in TOPIC), None)
    if unknown is not None:
        raise InvalidSetting(f"Unknown topic config name: {unknown}")
    values = dict(defaults) | {name: parse(TOPIC[name], text) for name, text in overrides.items()}
    shortest, longest = _integer(values["min.compaction.lag.ms"]), _integer(values["max.compaction.lag.ms"])
    if shortest > longest:
        raise InvalidSetting(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
        )
    _check_remote_storage(values, before, remote_storage_system_enable)


def _integer(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _check_remote_storage(values: Mapping[str, Value], before: Mapping[str, str] | None, system_enable: bool) -> None:
    was_enabled = before is not None and before.get("remote.storage.enable", "false").strip().lower() == "true"
    enabled = values["remote.storage.enable"] is True
    if enabled:
        if not system_enable:
            raise InvalidSetting(
                "Tiered Storage functionality is disabled in the broker (remote.log.storage.system.enable=false). "
                "Topic cannot be configured with remote log storage: remote.storage.enable=true."
            )
        cleanup_policy = values["cleanup.policy"]
        assert isinstance(cleanup_policy, tuple)
        if "compact" in cleanup_policy:
            raise InvalidSetting(
                "Remote log storage is unsupported for the compacted topics: remote.storage.enable=true needs a "
                f"cleanup.policy without compact, not {','.join(cleanup_policy)}."
            )
        _check_local_retention(values, "retention.ms")
        _check_local_retention(values, "retention.bytes")
    elif was_enabled and values["remote.log.delete.on.disable"] is not True:
        raise InvalidSetting(
            "It is invalid to disable remote storage (remote.storage.enable=false) without deleting remote data: "
            "set remote.log.delete.on.disable=true too, or keep the data with remote.log.copy.disable=true."
        )


def _check_local_retention(values: Mapping[str, Value], name: str) -> None:
    """-2 means as the whole retention, -1 without limit."""
    whole, local = _integer(values[name]), _integer(values[f"local.{name}"])
    if local == -2 or whole == -1:
        return
    if local == -1:
        raise InvalidSetting(
            f"Invalid value -1 for configuration local.{name}: Value must not be -1 as {name} is {whole}."
        )
    if local > whole:
        raise InvalidSetting(
            f"Invalid value {local} for configuration local.{name}: Value must not be more than {name}={whole}."
        )
