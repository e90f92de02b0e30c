"""A clean end of many logs: everything on the device, by one sync of the volume where that takes less time."""

from __future__ import annotations

from collections.abc import Sequence

from broker.storage.files import Files
from broker.storage.log import Log

SYNCED_SINGLY_MAX = 32
"""From more logs than that on, one sync of the whole volume takes less time than several of each log."""


def close_logs(files: Files, directory: str, logs: Sequence[Log], *, now_ms: int) -> None:
    """Close the logs of a log directory; their recovery points are their ends. Raises OSError, KafkaError."""
    unflushed = [log for log in logs if log.recovery_point < log.log_end_offset]
    at_once = len(unflushed) > SYNCED_SINGLY_MAX and files.sync_volume(directory)
    for log in logs:
        if not at_once and log.recovery_point < log.log_end_offset:
            log.flush(now_ms=now_ms)
        log.close(sync=not at_once)
    if at_once:
        # The batches are there since the first time; what closing has written follows.
        files.sync_volume(directory)
        for log in unflushed:
            log.recovery_point = log.log_end_offset
