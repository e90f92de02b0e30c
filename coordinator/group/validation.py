"""What is refused before the coordinator of a group is looked for.

Source: Kafka's GroupCoordinatorService, the checks at the head of each operation.
"""

from __future__ import annotations

from coordinator.group.context import GroupSettings
from wire.errors import ErrorCode, KafkaError


def check_group_id(group_id: str) -> None:
    """Raises INVALID_GROUP_ID for an empty id. (OffsetCommit and OffsetFetch accept one.)"""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")


def check_session_timeout(session_timeout_ms: int, settings: GroupSettings) -> None:
    """Raises INVALID_SESSION_TIMEOUT outside of the broker's limits."""
    lowest, highest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not lowest <= session_timeout_ms <= highest:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"session timeout {session_timeout_ms} ms is not within"
            f" group.min.session.timeout.ms {lowest} and group.max.session.timeout.ms {highest}",
        )
