"""How one partition changes: election, ISR, eligible leader replicas, reassignment. Pure.

`partition_change` answers with the one record that takes a partition to its target, or None when
nothing changes. Rules K13 to K17. Source: Kafka's PartitionChangeBuilder and
PartitionReassignmentReplicas; KIP-966 for eligible leader replicas (ELR).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from coordinator.machine import MetadataRecord
from coordinator.metadata import features
from coordinator.metadata.image import NO_LEADER, RECOVERING, PartitionImage
from coordinator.metadata.replay_topics import NO_LEADER_CHANGE, NO_RECOVERY_STATE_CHANGE
from wire.messages.records.cluster_metadata import PartitionChangeRecord


class Election(Enum):
    """Which leader is wanted."""

    PREFERRED = "preferred"
    """The first replica if it may lead, else as ONLINE."""
    ONLINE = "online"
    """The present leader if it may go on, else the first in-sync replica that may lead."""
    UNCLEAN = "unclean"
    """As ONLINE, and if nobody is in sync the first replica that is alive: records may be lost."""


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """What holds for the partition's topic and cluster at the time of the change."""

    is_acceptable_leader: Callable[[int], bool]
    default_directory: Callable[[int], bytes]
    metadata_version: int
    elr_enabled: bool
    min_isr: int


@dataclass(slots=True)
class PartitionTarget:
    """Where a partition is to go; what is None stays as it is."""

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    leader_recovery_state: int | None = None
    unclean_shutdown: tuple[int, ...] = ()
    directories: dict[int, bytes] | None = None
    election: Election = Election.ONLINE


class _Change:
    """The target while it is being worked out. Each step follows the one before it."""

    def __init__(self, before: PartitionImage, target: PartitionTarget, rules: ChangeRules) -> None:
        self.before = before
        self.rules = rules
        self.target = target
        self.isr = before.isr if target.isr is None else target.isr
        self.replicas = before.replicas if target.replicas is None else target.replicas
        self.adding = before.adding_replicas if target.adding is None else target.adding
        self.removing = before.removing_replicas if target.removing is None else target.removing
        self.elr = before.elr
        self.leader = NO_LEADER_CHANGE
        self.unclean = False
        self.recovery_state = (
            before.leader_recovery_state if target.leader_recovery_state is None else target.leader_recovery_state
        )

    def complete_reassignment(self) -> None:
        """When every replica that is to stay is in sync, the others are let go."""
        if not self.adding and not self.removing:
            return
        target_replicas = tuple(r for r in self.replicas if r not in self.removing)
        target_isr = tuple(r for r in self.isr if r not in self.removing)
        if not target_replicas or not set(target_replicas) <= set(target_isr):
            return
        self.replicas, self.isr = target_replicas, target_isr
        self.adding = self.removing = ()

    def derive_elr(self) -> None:
        """Below min ISR, members that leave the ISR stay eligible, unless they crashed (K14)."""
        if not self.rules.elr_enabled:
            return
        if len(self.isr) >= self.rules.min_isr:
            self.elr = ()
            return
        candidates = dict.fromkeys((*self.before.elr, *self.before.isr))
        crashed = self.target.unclean_shutdown
        self.elr = tuple(r for r in candidates if r not in self.isr and r not in crashed)

    def elect(self) -> None:
        """Choose the leader; a leader from outside the ISR becomes the ISR."""
        leader, unclean = self._choose_leader()
        if leader == self.before.leader:
            return
        self.leader = leader
        if unclean:
            self.unclean = True
            self.isr = (leader,)
            self.recovery_state = RECOVERING
        elif leader in self.elr:
            self.isr = (leader,)
            self.elr = tuple(r for r in self.elr if r != leader)

    def _may_lead(self, replica: int) -> bool:
        eligible = replica in self.isr or (not self.isr and replica in self.elr)
        return eligible and self.rules.is_acceptable_leader(replica)

    def _choose_leader(self) -> tuple[int, bool]:
        """The leader, and whether it may lack records."""
        preference = [self.before.leader, *self.replicas]
        if self.target.election is Election.PREFERRED:
            preference.insert(0, self.replicas[0])
        for replica in preference:
            if self._may_lead(replica):
                return replica, False
        last_known = self.before.last_known_elr
        if self.rules.elr_enabled and not self.elr and not self.isr and len(last_known) == 1:
            if self.rules.is_acceptable_leader(last_known[0]):
                return last_known[0], True
        if self.target.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self.rules.is_acceptable_leader(replica):
                    return replica, True
        return NO_LEADER, False

    def bump_epoch_if_needed(self) -> None:
        """A replica that leaves must be fenced by a new leader epoch: always when it leaves the
        replicas, and under metadata.version below 3.6 also when it leaves the ISR (KAFKA-15021)."""
        if self.leader != NO_LEADER_CHANGE:
            return
        leaves = not set(self.before.replicas) <= set(self.replicas)
        if self.rules.metadata_version < 12:
            leaves = leaves or not set(self.before.isr) <= set(self.isr)
        if leaves:
            self.leader = self.before.leader

    def last_known_leader(self) -> tuple[int, ...]:
        """With an empty ISR the last leader is kept in mind, to be elected if all else fails."""
        before = self.before
        if not self.rules.elr_enabled:
            return ()
        leader = before.leader if self.leader == NO_LEADER_CHANGE else self.leader
        if leader != NO_LEADER:
            return ()
        if not self.isr and before.isr and before.leader != NO_LEADER:
            return (before.leader,)
        return before.last_known_elr

    def record(self, topic_id: bytes, partition_id: int) -> PartitionChangeRecord:
        """The record with the fields that differ."""
        before = self.before
        record = PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id)
        record.leader = self.leader
        # Without ELR an ISR is never emptied: its last members stay, dead or alive.
        if self.isr != before.isr and (self.isr or self.rules.elr_enabled):
            record.isr = list(self.isr)
        elr = self.elr if self.rules.elr_enabled and not self.unclean else ()
        if elr != before.elr:
            record.eligible_leader_replicas = list(elr)
        last_known = self.last_known_leader()
        if last_known != before.last_known_elr:
            record.last_known_elr = list(last_known)
        if self.replicas != before.replicas:
            record.replicas = list(self.replicas)
        if self.adding != before.adding_replicas:
            record.adding_replicas = list(self.adding)
        if self.removing != before.removing_replicas:
            record.removing_replicas = list(self.removing)
        if self.recovery_state != before.leader_recovery_state:
            record.leader_recovery_state = self.recovery_state
        if features.supports_directory_assignment(self.rules.metadata_version):
            directories = self._directories()
            if directories != before.directories:
                record.directories = list(directories)
        return record

    def _directories(self) -> tuple[bytes, ...]:
        assigned = dict(zip(self.before.replicas, self.before.directories, strict=False))
        assigned.update(self.target.directories or {})
        return tuple(
            assigned[replica] if replica in assigned else self.rules.default_directory(replica)
            for replica in self.replicas
        )


def partition_change(
    topic_id: bytes,
    partition_id: int,
    before: PartitionImage,
    target: PartitionTarget,
    rules: ChangeRules,
) -> MetadataRecord | None:
    """The record that takes the partition to its target; None when nothing changes."""
    change = _Change(before, target, rules)
    change.complete_reassignment()
    change.derive_elr()
    change.elect()
    change.bump_epoch_if_needed()
    record = change.record(topic_id, partition_id)
    if _is_empty(record):
        return None
    return MetadataRecord(record, features.partition_version(rules.metadata_version))


def _is_empty(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_STATE_CHANGE
        and all(
            value is None
            for value in (
                record.isr,
                record.replicas,
                record.adding_replicas,
                record.removing_replicas,
                record.directories,
                record.eligible_leader_replicas,
                record.last_known_elr,
            )
        )
    )
