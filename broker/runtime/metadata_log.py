"""The log of `__cluster_metadata-0`: opened before all others, since it says what the others are.

Source: Kafka's KafkaRaftLog and KafkaRaftManager.
"""

from __future__ import annotations

from broker.config_log import LONG_MAX, LogConfig
from broker.runtime.metadata_batches import BATCH_BYTES_MAX
from broker.runtime.metadata_snapshots import Snapshots
from broker.storage.files import Files, StorageFault
from broker.storage.log import Log
from broker.storage.partition_metadata import read_topic_id, write_topic_id
from broker.storage.recovery import LogLoading, load_log
from wire.primitives import TopicPartition, uuid_text

CLUSTER_METADATA = TopicPartition("__cluster_metadata", 0)
CLUSTER_METADATA_ID = bytes(15) + b"\x01"


def metadata_log_config(segment_bytes: int = 1024**3, segment_ms: int = 604_800_000) -> LogConfig:
    """The settings of the metadata log: metadata.log.segment.bytes and .ms; no retention of its own,
    snapshots decide what may go."""
    return LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        max_message_bytes=BATCH_BYTES_MAX,
        retention_ms=-1,
        retention_bytes=-1,
        flush_messages=LONG_MAX,
        flush_ms=LONG_MAX,
    )


def open_metadata_log(files: Files, log_directory: str, now_ms: int, config: LogConfig | None = None) -> Log:
    """Open the metadata log in `log_directory` (metadata.log.dir), made if missing. Raises OSError,
    and StorageFault when the directory belongs to another topic."""
    directory = f"{log_directory}/{CLUSTER_METADATA}"
    files.make_directory(directory)
    topic_id = read_topic_id(files, directory)
    if topic_id is None:
        write_topic_id(files, directory, CLUSTER_METADATA_ID)
    elif topic_id != CLUSTER_METADATA_ID:
        raise StorageFault(
            f"{directory}/partition.metadata names topic id {uuid_text(topic_id)}, but the metadata "
            f"log has {uuid_text(CLUSTER_METADATA_ID)}"
        )
    # What a snapshot covers was committed, so it is on the device: only the rest is looked through.
    newest = max(Snapshots(files, directory).ids(), default=None)
    loading = LogLoading(
        files=files,
        directory=directory,
        topic_partition=CLUSTER_METADATA,
        config=metadata_log_config() if config is None else config,
        now_ms=now_ms,
        was_closed_cleanly=False,
        recovery_point=0 if newest is None else newest.end_offset,
    )
    return load_log(loading)
