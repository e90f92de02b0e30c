"""What the members of a consumer group are subscribed to, all together: names, regular expressions,
assignors, each with how many want it.

Source: Kafka's ModernGroup.subscribedTopicNames, ConsumerGroup.subscriptionType, SubscriptionCount.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coordinator.group.consumer_member import ConsumerMember

NEVER_MS = -(2**63)


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regular expression matched.

    version       offset in the metadata log up to which topics were looked at.
    timestamp_ms  when that was.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class RegexRefresh:
    """All regular expressions of the group are to be resolved, for the member that asked.

    may_describe  whether that member may know of a topic; others are left out.
    """

    at_ms: int
    member_id: str
    may_describe: Callable[[str], bool]


@dataclass(slots=True)
class Subscriptions:
    """Counts of members by what they want, and what regular expressions have been resolved to."""

    by_name: dict[str, int] = field(default_factory=dict)
    by_regex: dict[str, int] = field(default_factory=dict)
    assignors: dict[str, int] = field(default_factory=dict)
    resolved: dict[str, ResolvedRegex] = field(default_factory=dict)
    """Kept until the last member that wants the expression is gone"""

    def copy(self) -> Subscriptions:
        """A copy to work on."""
        return Subscriptions(dict(self.by_name), dict(self.by_regex), dict(self.assignors), dict(self.resolved))

    def replace_member(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Count `new` instead of `old`."""
        old_names: frozenset[str] = frozenset() if old is None else old.subscribed_topic_names
        new_names: frozenset[str] = frozenset() if new is None else new.subscribed_topic_names
        if old_names is not new_names:
            for name in old_names:
                _count(self.by_name, name, -1)
            for name in new_names:
                _count(self.by_name, name, 1)
        if old is not None:
            _count(self.by_regex, old.regex, -1)
            _count(self.assignors, old.server_assignor, -1)
        if new is not None:
            _count(self.by_regex, new.regex, 1)
            _count(self.assignors, new.server_assignor, 1)

    def topics(self) -> set[str]:
        """All topics that somebody is subscribed to, whether they exist or not."""
        return set(self.by_name).union(*(resolved.topics for resolved in self.resolved.values()))

    def includes(self, topic: str) -> bool:
        """True if somebody is subscribed to the topic."""
        return topic in self.by_name or any(topic in resolved.topics for resolved in self.resolved.values())

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The member's topics. An expression that is not resolved yet counts as matching nothing."""
        resolved = self.resolved.get(member.regex) if member.regex is not None else None
        if resolved is None:
            return member.subscribed_topic_names
        if not member.subscribed_topic_names:
            return resolved.topics
        return member.subscribed_topic_names | resolved.topics

    def are_equal(self, member_count: int) -> bool:
        """True if all members are subscribed to the same topics in the same way."""
        if self.by_regex:
            is_one_for_all = next(iter(self.by_regex.values())) == member_count
            return is_one_for_all and not self.by_name and len(self.resolved) <= 1
        return all(count == member_count for count in self.by_name.values()) and all(
            topic in self.by_name for resolved in self.resolved.values() for topic in resolved.topics
        )

    def preferred_assignor(self, assignors: Sequence[str]) -> str:
        """The assignor that most members ask for, else the first. Kafka leaves ties open; here the one
        that the broker names first wins."""
        if not self.assignors:
            return assignors[0]
        most = max(self.assignors.values())
        preferred = [name for name, count in self.assignors.items() if count == most]
        return next((name for name in assignors if name in preferred), preferred[0])

    @property
    def refreshed_at_ms(self) -> int:
        """When regular expressions were last resolved; they all are at once."""
        return max((resolved.timestamp_ms for resolved in self.resolved.values()), default=NEVER_MS)

    @property
    def resolved_version(self) -> int:
        """Offset in the metadata log as of which regular expressions were last resolved."""
        return max((resolved.version for resolved in self.resolved.values()), default=0)


def _count(counts: dict[str, int], name: str | None, change: int) -> None:
    if name is None:
        return
    count = counts.get(name, 0) + change
    if count:
        counts[name] = count
    else:
        counts.pop(name, None)
