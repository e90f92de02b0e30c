"""DescribeLogDirs (key 35): what lies in this broker's log directories, and how large it is.

Versions 1-5.

Behaviour: one result per log directory; a null topic list means every partition. The size is that of the log's
segments in bytes, the lag that of a replica behind the high watermark. A directory that has failed is
KAFKA_STORAGE_ERROR without topics.

v2  flexible
v3  error code at the top (CLUSTER_AUTHORIZATION_FAILED)
v4  total and usable bytes of the volume (KIP-827), -1 where that is not known
v5  cordoned directories (KIP-1066)

Left out: replicas moving between directories (is_future_key is always false). Quotas (throttle_time_ms is 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.authorizer import Operation
from wire.errors import ErrorCode
from wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from wire.primitives import TopicPartition

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext
    from broker.storage.log import Log


async def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    """Answer every log directory; without DESCRIBE on the cluster only an error."""
    if not context.authorize_cluster(Operation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), results=[])
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}
    log_manager = context.node.log_manager
    by_directory: dict[str, list[Log]] = {directory: [] for directory in log_manager.directory_ids}
    for topic_partition, log in log_manager.logs.items():
        directory = log_manager.directory_of(topic_partition)
        if directory in by_directory and (wanted is None or topic_partition in wanted):
            by_directory[directory].append(log)
    results = [_describe(directory, logs, context) for directory, logs in by_directory.items()]
    results += [_failed(directory) for directory in log_manager.failed_directories]
    return DescribeLogDirsResponse(results=results)


def _failed(directory: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=directory, topics=[])


def _describe(directory: str, logs: list[Log], context: RequestContext) -> DescribeLogDirsResult:
    log_manager = context.node.log_manager
    try:
        total_bytes, usable_bytes = log_manager.space(directory)
    except OSError:
        return _failed(directory)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in logs:
        lag = max(log.high_watermark - log.log_end_offset, 0)
        topics.setdefault(log.topic_partition.topic, []).append(
            DescribeLogDirsPartition(
                partition_index=log.topic_partition.partition,
                partition_size=log.size_bytes,
                offset_lag=lag,
                is_future_key=False,
            )
        )
    broker = context.node.metadata.image.brokers.get(context.node.broker_id)
    cordoned = () if broker is None else broker.cordoned_log_dirs or ()
    return DescribeLogDirsResult(
        error_code=0,
        log_dir=directory,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=log_manager.directory_ids[directory] in cordoned,
    )
