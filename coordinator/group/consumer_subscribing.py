"""What a request changes of a member's wishes, and what follows for the group's epoch.

Shared by heartbeats and by JoinGroup of members that speak the classic protocol. Source: Kafka's
GroupMetadataManager (maybeUpdateRegularExpressions, updateSubscriptionMetadata,
handleRegularExpressionsResult).
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.group.consumer_draft import ConsumerDraft
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_member import ConsumerMember
from coordinator.group.consumer_records import (
    group_epoch_record,
    member_record,
    partition_metadata_tombstone,
    regex_record,
    regex_tombstone,
)
from coordinator.group.consumer_subscriptions import RegexRefresh, ResolvedRegex
from coordinator.group.context import GroupContext
from coordinator.group.topic_hash import TopicHashes
from coordinator.group.topic_regex import compile_regex, matching_topics
from coordinator.metadata.image import TopicsImage

REGEX_REFRESH_MIN_INTERVAL_MS = 10_000
"""Regular expressions are not resolved more often. Not a setting in Kafka either."""


@dataclass(frozen=True, slots=True)
class Change:
    """What of a member's wishes has changed.

    regex_resolved  the new expression is resolved already (or there is none any more), so that the
                    target can take it into account at once.
    """

    names: bool
    regex: bool
    regex_resolved: bool
    assignor: bool

    @property
    def subscription(self) -> bool:
        return self.names or self.regex


def update_member(
    draft: ConsumerDraft, member: ConsumerMember, updated: ConsumerMember, context: GroupContext
) -> Change:
    """Store what the member wants now, and see to its regular expression.

    Raises INVALID_REGULAR_EXPRESSION for a new expression that is none.
    """
    group = draft.group
    subscriptions = group.subscriptions
    assignors = context.settings.consumer.assignors
    preferred = subscriptions.preferred_assignor(assignors)
    refreshed_at_ms, resolved_count = subscriptions.refreshed_at_ms, len(subscriptions.resolved)
    if updated != member or member.member_id not in group.members:
        draft.add(member_record(group.group_id, updated))
    regex_changed = member.subscribed_topic_regex != updated.subscribed_topic_regex
    is_resolved = needs_refresh = False
    if regex_changed:
        if member.regex is not None and member.regex not in subscriptions.by_regex:
            draft.add(regex_tombstone(group.group_id, member.regex))
        if updated.regex is None:
            is_resolved = member.regex is not None
        elif subscriptions.by_regex[updated.regex] == 1:
            compile_regex(updated.regex)
            needs_refresh = True
        else:
            is_resolved = updated.regex in subscriptions.resolved
    if draft.now_ms > refreshed_at_ms + REGEX_REFRESH_MIN_INTERVAL_MS:
        interval_ms = context.settings.consumer.regex_refresh_interval_ms
        needs_refresh |= draft.now_ms > refreshed_at_ms + interval_ms
        needs_refresh |= len(subscriptions.by_regex) != resolved_count
        _refresh_regexes(draft, updated, context, needs_refresh=needs_refresh)
    return Change(
        names=member.subscribed_topic_names != updated.subscribed_topic_names,
        regex=regex_changed,
        regex_resolved=is_resolved,
        assignor=subscriptions.preferred_assignor(assignors) != preferred,
    )


def _refresh_regexes(
    draft: ConsumerDraft, member: ConsumerMember, context: GroupContext, *, needs_refresh: bool
) -> None:
    """Have the expressions resolved right after this decision, if that is needed or there are new topics."""
    group = draft.group
    if not group.subscriptions.by_regex or group.regex_refresh is not None:
        return
    if needs_refresh or has_new_topics(group, context.image.topics):
        group.regex_refresh = RegexRefresh(draft.now_ms, member.member_id, context.may_describe)
    else:
        group.resolved_topic_ids = context.image.topics.ids


def has_new_topics(group: ConsumerGroup, topics: TopicsImage) -> bool:
    """True if there are topics that were not there when expressions were last resolved."""
    looked_at = group.resolved_topic_ids
    if looked_at is None:
        return True
    if looked_at is topics.ids:
        return False
    return any(looked_at.get(name) != topic_id for name, topic_id in topics.ids.items())


def update_epoch(
    draft: ConsumerDraft, context: GroupContext, hashes: TopicHashes, *, is_due: bool, reason: str
) -> None:
    """Raise the group's epoch if that is due, or if its topics are not what they were."""
    group, image = draft.group, context.image
    if not is_due and group.seen_topics is image.topics:
        return
    metadata_hash = hashes.of_group(group.subscriptions.topics(), image)
    if is_due or metadata_hash != group.metadata_hash:
        raise_epoch(
            draft, metadata_hash, reason if is_due else "the subscribed topics or their partitions have changed"
        )
    group.seen_topics = image.topics
    if group.has_partition_metadata_record:
        draft.add(partition_metadata_tombstone(group.group_id))


def raise_epoch(draft: ConsumerDraft, metadata_hash: int, reason: str) -> None:
    """The target is to be computed anew, because of `reason`."""
    group = draft.group
    draft.add(group_epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))
    draft.event(f"a rebalance to epoch {group.group_epoch} begins: {reason}")


def resolve_regexes(draft: ConsumerDraft, context: GroupContext, hashes: TopicHashes) -> None:
    """Look for the topics of all regular expressions, and store them."""
    group, image = draft.group, context.image
    refresh = group.regex_refresh
    assert refresh is not None
    group.regex_refresh = None
    group.resolved_topic_ids = image.topics.ids
    has_changed = False
    for regex in sorted(group.subscriptions.by_regex):
        matching = matching_topics(regex, image.topics.names())
        topics = frozenset(topic for topic in matching if refresh.may_describe(topic))
        before = group.subscriptions.resolved.get(regex)
        has_changed |= topics != (frozenset() if before is None else before.topics)
        draft.add(regex_record(group.group_id, regex, ResolvedRegex(topics, image.offset, draft.now_ms)))
    metadata_hash = hashes.of_group(group.subscriptions.topics(), image)
    if has_changed:
        raise_epoch(draft, metadata_hash, "regular expressions match other topics")
    elif metadata_hash != group.metadata_hash:
        raise_epoch(draft, metadata_hash, "the subscribed topics or their partitions have changed")
    group.seen_topics = image.topics
