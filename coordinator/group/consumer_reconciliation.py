"""One member's next step from what it has to what the target gives it.

    STABLE ── target is newer ──► has to give something up? ── yes ──► UNREVOKED_PARTITIONS
                                          │ no                         keeps its old epoch until it
                                          ▼                            no longer says it owns that
              takes the target's epoch and what is free
                 │ something is still others'         │ all there
                 ▼                                    ▼
        UNREVOKED… of others end:             STABLE
        UNRELEASED_PARTITIONS, tries at each heartbeat

Because a partition is given only when nobody else has it, and is taken only with the member's word, no
partition ever has two owners. Source: Kafka's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from coordinator.group.consumer_member import (
    NO_EPOCHED,
    ConsumerMember,
    EpochedPartitions,
    MemberState,
    TopicPartitions,
)
from wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the step depends on besides the member itself.

    target_epoch, target   the target assignment, and of which epoch it is.
    subscription_changed   in this very request: partitions of other topics go at once.
    is_subscribed          whether the member is subscribed to a topic id.
    is_free                whether no other member has a partition: (topic id, partition).
    owned                  what the member says it owns; None if it says nothing.
    """

    target_epoch: int
    target: TopicPartitions
    subscription_changed: bool
    is_subscribed: Callable[[bytes], bool]
    is_free: Callable[[bytes, int], bool]
    owned: TopicPartitions | None


def reconcile(member: ConsumerMember, now: Circumstances) -> ConsumerMember:
    """The member after its step; the same object if there is nothing to do.

    Raises FENCED_MEMBER_EPOCH if the member is in a state of a newer release and has to begin anew.
    """
    if member.state is MemberState.STABLE:
        if member.member_epoch != now.target_epoch:
            return _towards_target(member, member.member_epoch, now)
        return _without_unsubscribed(member, now) if now.subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if not _owns_any(now.owned, member.pending_revocation):
            return _towards_target(member, member.member_epoch, now)
        return _without_unsubscribed(member, now) if now.subscription_changed else member
    if member.state is MemberState.UNKNOWN:
        if now.owned is None or now.owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its partitions"
                " and rejoin.",
            )
        return _towards_target(member, now.target_epoch, now)
    return _towards_target(member, member.member_epoch, now)


def _owns_any(owned: TopicPartitions | None, partitions: EpochedPartitions) -> bool:
    """True if the member says it owns one of these, or says nothing, which proves nothing."""
    if owned is None:
        return True
    return any(
        partition in partitions.get(topic_id, ()) for topic_id, indexes in owned.items() for partition in indexes
    )


def _towards_target(member: ConsumerMember, member_epoch: int, now: Circumstances) -> ConsumerMember:
    kept: dict[bytes, dict[int, int]] = {}
    revoked: dict[bytes, dict[int, int]] = {}
    given: dict[bytes, list[int]] = {}
    waits = False
    for topic_id in sorted({*now.target, *member.assigned}):
        target = now.target.get(topic_id, frozenset()) if now.is_subscribed(topic_id) else frozenset()
        current = member.assigned.get(topic_id, {})
        for partition, epoch in current.items():
            (kept if partition in target else revoked).setdefault(topic_id, {})[partition] = epoch
        for partition in sorted(target):
            if partition in current:
                continue
            if now.is_free(topic_id, partition):
                given.setdefault(topic_id, []).append(partition)
            else:
                waits = True
    if revoked and _owns_any(now.owned, revoked):
        return _unrevoked(member, member_epoch, kept, revoked)
    for topic_id, partitions in given.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, now.target_epoch))
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        member_epoch=now.target_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=kept,
        pending_revocation=NO_EPOCHED,
    )


def _unrevoked(
    member: ConsumerMember, member_epoch: int, assigned: EpochedPartitions, revoked: EpochedPartitions
) -> ConsumerMember:
    return replace(
        member,
        state=MemberState.UNREVOKED_PARTITIONS,
        member_epoch=member_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=revoked,
    )


def _without_unsubscribed(member: ConsumerMember, now: Circumstances) -> ConsumerMember:
    """The member without partitions of topics that it is no longer subscribed to; the target is not
    looked at."""
    gone = {topic_id: epochs for topic_id, epochs in member.assigned.items() if not now.is_subscribed(topic_id)}
    if not gone:
        return member
    assigned = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in gone}
    revoked: dict[bytes, dict[int, int]] = {
        topic_id: dict(epochs) for topic_id, epochs in member.pending_revocation.items()
    }
    for topic_id, epochs in gone.items():
        revoked.setdefault(topic_id, {}).update(epochs)
    if _owns_any(now.owned, revoked):
        return _unrevoked(member, member.member_epoch, assigned, revoked)
    # The member no longer owns them: nothing is to be waited for.
    return replace(member, previous_member_epoch=member.member_epoch, assigned=assigned)
