"""Whether the metadata in a directory can be taken over: told before anything in the directory is changed.

A cluster that Apache Kafka, or a newer version, has written may have finalized features that are not
served here, or hold records that are not known. Loading would find that too, but only after the log was
opened, and an opened log is a mended one.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.config_log import LogConfig
from broker.runtime.metadata_log import CLUSTER_METADATA
from broker.runtime.metadata_snapshots import Snapshots
from broker.storage.files import Files, StorageFault
from broker.storage.replay import read_batches
from broker.storage.segment import Segment
from coordinator.metadata.delta import KNOWN_RECORDS
from coordinator.metadata.features import highest_level, refusal
from coordinator.metadata.framing import decode_record
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.errors import KafkaError, WireError
from wire.log_files import LOG_SUFFIX, offset_of_name
from wire.messages.records.cluster_metadata import FeatureLevelRecord
from wire.record_batch import AnyBatch, RecordBatch, any_batches
from wire.record_framing import read_metadata_frame

ANOTHER_DIRECTORY = "name another directory (--data, log.dirs)"


def refuse_unserved(files: Files, log_directory: str) -> None:
    """Look through the newest snapshot and the log after it in `log_directory` (metadata.log.dir).

    Raises StorageFault for a feature whose level is not served, and for a record of a newer version. Files
    that cannot be read and bytes that are broken are left to who loads them.
    """
    directory = f"{log_directory}/{CLUSTER_METADATA}"
    if not files.exists(directory):
        return
    levels: dict[str, int] = {}
    try:
        for batch in _batches(files, directory):
            if isinstance(batch, RecordBatch) and not batch.is_control and batch.has_valid_crc():
                for record in batch.records():
                    _note(record.value, levels)
    except MetadataReplayError as error:
        raise StorageFault(f"the metadata log in {directory} cannot be opened: {error}; {ANOTHER_DIRECTORY}") from error
    except (KafkaError, WireError, OSError):
        return
    problems = {name: problem for name, level in levels.items() if (problem := refusal(name, level)) is not None}
    if problems:
        lowered = "".join(f" --feature {name}={highest_level(name)}" for name in problems)
        raise StorageFault(
            f"the metadata log in {directory} cannot be opened: {'; '.join(problems.values())}; on the broker that "
            f"wrote it, kafka-features --bootstrap-server HOST:PORT downgrade{lowered} helps, else {ANOTHER_DIRECTORY}"
        )


def _batches(files: Files, directory: str) -> Iterator[AnyBatch]:
    """The batches of the newest snapshot and of every segment that goes on after it."""
    newest = max(Snapshots(files, directory).ids(), default=None)
    if newest is not None:
        yield from any_batches(files.read(f"{directory}/{newest.file_name}"))
    bases = sorted(
        base
        for name in files.list(directory)
        if name.endswith(LOG_SUFFIX) and (base := offset_of_name(name)) is not None
    )
    covered = 0 if newest is None else newest.end_offset
    for place, base in enumerate(bases):
        if place + 1 < len(bases) and bases[place + 1] <= covered:
            continue
        segment = Segment(files, directory, base, LogConfig(), now_ms=0)
        try:
            for _, batch in read_batches(segment):
                if batch.last_offset >= covered:
                    yield batch
        finally:
            segment.close_files()


def _note(value: bytes | None, levels: dict[str, int]) -> None:
    """Take down a finalized feature. Raises MetadataReplayError for a record that is not known."""
    record_type, version, _ = read_metadata_frame(value or b"")
    known = KNOWN_RECORDS.get(record_type)
    if known is None or version > known.MAX_VERSION or known is FeatureLevelRecord:
        message = decode_record(value).message
        levels[message.name] = message.feature_level
