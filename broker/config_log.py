"""The effective settings of one log: what is left when every layer of a topic's configuration has spoken.

`LogConfig()` holds Apache Kafka's defaults, so that the log engine can be built without a node around it.
`broker.config.effective_log_config` makes one from a topic's overrides and the broker's settings (Kafka's `LogConfig`).
The log engine gets whole values only: it never sees text, layers or synonyms.
"""

from __future__ import annotations

from dataclasses import dataclass

LONG_MAX = 2**63 - 1

DELETE = "delete"
COMPACT = "compact"

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Effective topic settings under Kafka's names in snake_case; `*_ms` in milliseconds, `*_bytes` in bytes.

    -1 in `retention_ms` and `retention_bytes` means without limit, -2 in `local_retention_*` means "as retention_*".
    """

    cleanup_policy: frozenset[str] = frozenset({DELETE})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    errors_deadletterqueue_group_enable: bool = False
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = LONG_MAX
    max_decompressed_message_bytes: int = 2_147_483_639
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = CREATE_TIME
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_copy_lag_bytes: int = -1
    remote_copy_lag_ms: int = 0
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    """Already the internal override (`internal.segment.bytes`) where a topic has one."""
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    @property
    def compacts(self) -> bool:
        """Whether the cleaner keeps the newest record of each key."""
        return COMPACT in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old segments are dropped by time and size."""
        return DELETE in self.cleanup_policy

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker's clock, and not the producer's, stamps the records."""
        return self.message_timestamp_type == LOG_APPEND_TIME

    @property
    def retention_ms_limit(self) -> int | None:
        """Age in milliseconds past which a segment may go, None for never."""
        return None if self.retention_ms < 0 else self.retention_ms

    @property
    def retention_bytes_limit(self) -> int | None:
        """Size in bytes past which the oldest segments may go, None for never."""
        return None if self.retention_bytes < 0 else self.retention_bytes
