"""What the group machine may know of the world besides its own state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator.group.consumer_settings import ConsumerGroupSettings
from coordinator.metadata.image import MetadataImage

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The broker settings that decide about groups, with the defaults of this broker.

    Source: Kafka's GroupCoordinatorConfig. Only `initial_rebalance_delay_ms` differs from Kafka
    (3000 there), so that the first record of a test does not wait for three seconds.
    """

    initial_rebalance_delay_ms: int = 0
    """`group.initial.rebalance.delay.ms`"""
    group_max_size: int = 2**31 - 1
    """`group.max.size`"""
    min_session_timeout_ms: int = 6_000
    """`group.min.session.timeout.ms`"""
    max_session_timeout_ms: int = 30 * MINUTE_MS
    """`group.max.session.timeout.ms`"""
    new_member_join_timeout_ms: int = 5 * MINUTE_MS
    """Not a setting in Kafka either (GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS)."""
    offset_metadata_max_bytes: int = 4096
    """`offset.metadata.max.bytes`"""
    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    """`offsets.retention.minutes`"""
    offsets_retention_check_interval_ms: int = 10 * MINUTE_MS
    """`offsets.retention.check.interval.ms`"""
    consumer: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)
    """Those of consumer groups"""


def _everything(topic: str) -> bool:
    return True


class GroupContext(NamedTuple):
    """Who asks, at which version, under which settings, in which cluster.

    `client_host` is written as Java prints an address ("/127.0.0.1"): it is stored in records and
    shown by DescribeGroups in this form. `may_describe` says whether whoever asks may know of a topic.
    """

    settings: GroupSettings = GroupSettings()
    api_version: int = 0
    client_id: str = ""
    client_host: str = ""
    image: MetadataImage = MetadataImage()
    may_describe: Callable[[str], bool] = _everything
