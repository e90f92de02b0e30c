"""A group changes its kind while members are in it (KIP-848): classic to consumer, and back.

Up: the first member that joins by the consumer protocol takes the group along. Those who are there keep
speaking the classic protocol, and keep what they have.
Down: the last member that speaks the consumer protocol is gone. The group goes on as a classic one, in a
rebalance.
`group.consumer.migration.policy` allows either way. The one place that knows both kinds.
Source: Kafka's GroupMetadataManager (convertToConsumerGroup, convertToClassicGroup),
ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.group.classic_draft import ClassicDraft, join_error, sync_error
from coordinator.group.classic_group import ClassicGroup, ClassicGroupState, ClassicMember
from coordinator.group.classic_rebalance import prepare_rebalance
from coordinator.group.classic_records import group_record
from coordinator.group.consumer_draft import ConsumerDraft
from coordinator.group.consumer_group import ConsumerGroup
from coordinator.group.consumer_member import ClassicProtocolUse, ConsumerMember, TopicPartitions, with_epoch
from coordinator.group.consumer_protocol import by_topic_id, read_assignment, read_subscription, write_assignment
from coordinator.group.consumer_records import (
    current_assignment_record,
    group_epoch_record,
    group_tombstones,
    member_record,
    target_epoch_record,
    target_record,
)
from coordinator.group.context import GroupContext
from coordinator.group.settlement import GroupDecision, GroupReplaced, counted_members
from coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE
from coordinator.group.topic_hash import TopicHashes
from coordinator.machine import Ticket
from wire.errors import ErrorCode, KafkaError, MalformedMessage

# --- up --------------------------------------------------------------------------------------------


def upgraded(classic: ClassicGroup, context: GroupContext, now_ms: int, hashes: TopicHashes) -> ConsumerDraft:
    """The draft of a consumer group with the members of the classic one.

    It may be one (`check_upgrade`). Raises GROUP_ID_NOT_FOUND if it cannot be.
    """
    draft = ConsumerDraft(ConsumerGroup(classic.group_id), now_ms, before=classic.tombstones())
    draft.replies.extend(_sent_to_join_again(classic))
    try:
        members = [_consumer_member(member, classic, context) for member in classic.members.values()]
    except MalformedMessage as error:
        raise _cannot_upgrade(
            classic.group_id, f"because the embedded consumer protocol is malformed: {error}"
        ) from error
    names = {name for member, _ in members for name in member.subscribed_topic_names}
    group_id, generation = classic.group_id, classic.generation_id
    draft.add(*(member_record(group_id, member) for member, _ in members))
    draft.add(group_epoch_record(group_id, generation, hashes.of_group(names, context.image)))
    draft.add(*(target_record(group_id, member.member_id, target) for member, target in members))
    draft.add(target_epoch_record(group_id, generation, 0))
    draft.add(*(current_assignment_record(group_id, member) for member, _ in members))
    for classic_member in classic.members.values():
        timeout_ms = classic_member.session_timeout_ms
        draft.group.session_deadlines[classic_member.member_id] = now_ms + timeout_ms
    draft.before = draft.group.copy()
    draft.event(
        f"the classic group of generation {generation} became a consumer group with {counted_members(members)},"
        " because a member of the consumer protocol joins"
    )
    return draft


def _sent_to_join_again(classic: ClassicGroup) -> list[tuple[Ticket, object]]:
    """What those are answered who wait: there will be another rebalance."""
    code = ErrorCode.REBALANCE_IN_PROGRESS
    replies: list[tuple[Ticket, object]] = []
    for member in classic.members.values():
        if member.join_ticket is not None:
            replies.append((member.join_ticket, join_error(code, member.member_id)))
        if member.sync_ticket is not None:
            replies.append((member.sync_ticket, sync_error(code)))
    return replies


def refused_upgrade(classic: ClassicGroup, error: KafkaError, ticket: Ticket) -> GroupDecision:
    """The decision on the heartbeat that would have taken the group along, had it not been refused meanwhile:
    those who wait were sent to join again before. Raises the error if nobody waits."""
    sent = _sent_to_join_again(classic)
    if not sent:
        raise error
    group = classic.copy()
    for member in classic.members.values():
        group.members[member.member_id] = replace(member, join_ticket=None, sync_ticket=None)
    return GroupDecision(replies=[*sent, (ticket, error)], volatile=(GroupReplaced(group),))


def check_upgrade(classic: ClassicGroup, context: GroupContext) -> None:
    """Raises GROUP_ID_NOT_FOUND if the group may not become a consumer group."""
    settings = context.settings.consumer
    if not settings.upgrade_enabled:
        raise _cannot_upgrade(classic.group_id, "because online upgrade is disabled (group.consumer.migration.policy)")
    if not classic.is_consumer_protocol:
        raise _cannot_upgrade(
            classic.group_id,
            f"because the group does not use the consumer embedded protocol but {classic.protocol_type!r}",
        )
    if len(classic.members) > settings.group_max_size:
        raise _cannot_upgrade(
            classic.group_id,
            f"because its {len(classic.members)} members exceed group.consumer.max.size {settings.group_max_size}",
        )


def _cannot_upgrade(group_id: str, why: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group_id} to consumer group {why}.")


def _consumer_member(
    member: ClassicMember, classic: ClassicGroup, context: GroupContext
) -> tuple[ConsumerMember, TopicPartitions]:
    """A member as it will be, and its target: what the last generation gave it."""
    topics = context.image.topics
    target: TopicPartitions = {}
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _cannot_upgrade(
                classic.group_id,
                "because an unsupported custom assignor is in use: its user data would be lost."
                " Switch to a default assignor first",
            )
        target = by_topic_id(assignment.assigned_partitions, topics)
    protocol_name = classic.protocol_name or classic.select_protocol()
    subscription = read_subscription(member.metadata(protocol_name))
    converted = ConsumerMember(
        member.member_id,
        member_epoch=classic.generation_id,
        previous_member_epoch=classic.generation_id,
        group_instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned=with_epoch(target, classic.generation_id),
        classic=ClassicProtocolUse(member.session_timeout_ms, member.protocols),
    )
    return converted, target


# --- down ------------------------------------------------------------------------------------------


def may_downgrade(group: ConsumerGroup, context: GroupContext, *, without: frozenset[str]) -> bool:
    """Whether the group becomes a classic one when these members are gone: those who stay are not none,
    all speak the classic protocol, and that is allowed."""
    staying = len(group.members) - len(without)
    return (
        staying > 0
        and group.classic_member_count(without=without) == staying
        and context.settings.consumer.downgrade_enabled
        and staying <= context.settings.group_max_size
    )


def may_downgrade_replacing(group: ConsumerGroup, replaced: ConsumerMember, context: GroupContext) -> bool:
    """Whether the group becomes a classic one when this member comes back by the classic protocol."""
    return (
        replaced.classic is None
        and group.classic_member_count() == len(group.members) - 1
        and context.settings.consumer.downgrade_enabled
        and len(group.members) <= context.settings.group_max_size
    )


def downgraded(
    draft: ConsumerDraft, context: GroupContext, *, without: frozenset[str], rebalance_reason: str | None
) -> GroupDecision:
    """The decision that makes the draft's group a classic one without some members, and rebalances it if
    there is a reason.

    Raises GROUP_ID_NOT_FOUND if a member's embedded protocol is not readable.
    """
    group = draft.group
    classic = ClassicDraft(
        ClassicGroup(
            group.group_id,
            state=ClassicGroupState.STABLE,
            # That before this decision: Kafka does not look at the records it is about to write.
            generation_id=draft.before.group_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            state_timestamp_ms=draft.now_ms,
        ),
        context.settings,
        draft.now_ms,
    )
    for member in group.members.values():
        if member.member_id not in without:
            classic.add_member(_classic_member(member))
    classic.group.protocol_name = classic.group.select_protocol()
    classic.group.subscribed_topics = classic.group.compute_subscribed_topics()
    try:
        for each in list(classic.group.members.values()):
            subscription = each.metadata(classic.group.protocol_name)
            held = _held(group.members[each.member_id])
            assignment = write_assignment(held, subscription, context.image.topics)
            classic.group.members[each.member_id] = replace(each, assignment=assignment)
            classic.restart_session(each)
    except MalformedMessage as error:
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group.group_id}: {error}."
        ) from error
    classic.events.extend(draft.events)
    count = counted_members(classic.group.members)
    classic.event(f"the consumer group became a classic group with {count}: all who stay speak the classic protocol")
    classic.records = [
        *draft.records,
        *group_tombstones(group.group_id, list(group.members), list(group.subscriptions.resolved)),
        group_record(classic.group),
    ]
    classic.replies.extend(draft.replies)
    if rebalance_reason is not None:
        prepare_rebalance(classic, rebalance_reason)
    return classic.decision()


def _held(member: ConsumerMember) -> TopicPartitions:
    """What the member has, or has not given up yet. (Kafka takes the target, so that a group which goes up
    again at once gives away what a member still owns. For members that are at the target it is the same.)"""
    held: dict[bytes, frozenset[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            held[topic_id] = held.get(topic_id, frozenset()) | frozenset(epochs)
    return held


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        CONSUMER_PROTOCOL_TYPE,
        member.classic.protocols,
    )
