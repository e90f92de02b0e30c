"""The settings of consumer groups: the broker's, and what a group overrides within the broker's limits.

Source: Kafka's GroupCoordinatorConfig, GroupConfig.evaluate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Limited:
    """A number with the limits within which a group may override it."""

    value: int
    low: int
    high: int

    def of_group(self, overrides: Mapping[str, str], name: str) -> int:
        """The group's value, brought within the limits if they were narrowed after it was set."""
        own = overrides.get(name)
        return self.value if own is None else min(max(int(own), self.low), self.high)


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """The broker's settings of consumer groups, with Kafka's defaults."""

    assignors: tuple[str, ...] = ("uniform", "range")
    """`group.consumer.assignors`; the first is the default."""
    group_max_size: int = INT_MAX
    """`group.consumer.max.size`"""
    session_timeout_ms: Limited = Limited(45_000, 45_000, 60_000)
    """`group.consumer.session.timeout.ms` with `min` and `max`"""
    heartbeat_interval_ms: Limited = Limited(5_000, 5_000, 15_000)
    """`group.consumer.heartbeat.interval.ms` with `min` and `max`"""
    assignment_interval_ms: Limited = Limited(1_000, 0, 15_000)
    """`group.consumer.assignment.interval.ms` with `min` and `max`"""
    regex_refresh_interval_ms: int = 600_000
    """`group.consumer.regex.refresh.interval.ms`"""
    upgrade_enabled: bool = True
    downgrade_enabled: bool = True
    """`group.consumer.migration.policy`: bidirectional is both, disabled neither"""
    is_enabled: bool = True
    """`group.coordinator.rebalance.protocols` has consumer"""

    def session_timeout_of(self, overrides: Mapping[str, str]) -> int:
        """A group's session timeout in ms."""
        return self.session_timeout_ms.of_group(overrides, "consumer.session.timeout.ms")

    def heartbeat_interval_of(self, overrides: Mapping[str, str]) -> int:
        """How often members of a group are to send heartbeats, in ms."""
        return self.heartbeat_interval_ms.of_group(overrides, "consumer.heartbeat.interval.ms")

    def assignment_interval_of(self, overrides: Mapping[str, str]) -> int:
        """The least time between two computations of a group's target, in ms."""
        return self.assignment_interval_ms.of_group(overrides, "consumer.assignment.interval.ms")
