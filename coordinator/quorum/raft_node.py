"""One voter of the metadata quorum, as a pure machine: inputs in, `Ready` out (as in etcd's raft).

    ready = node.tick(now_ms)              time has passed
    ready = node.step(message, now_ms)     something has happened

The runtime does what `Ready` says, in its order: persist the election state, append the control
records, then let the new high watermark take effect. The node keeps no log; it is told where the
log ends. Rules K24 to K36; source: Kafka's KafkaRaftClient, QuorumState and LeaderState, KIP-595.

A quorum of one voter goes this very way: Unattached, Candidate with a new epoch and its own vote,
Leader. Nobody can vote against it, so all three happen in the first tick and are persisted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coordinator.machine import Event
from coordinator.quorum.quorum_state import (
    NOBODY,
    TRANSITIONS,
    ElectionState,
    QuorumStateError,
    Role,
)
from coordinator.quorum.voters import Quorum, Voter, majority_offset
from wire.messages.records.control_records import LeaderChangeMessage, LeaderChangeMessageVoter


@dataclass(frozen=True, slots=True)
class Flushed:
    """The local log is on disk up to `end_offset` (the next offset to be written)."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class Ready:
    """What the runtime has to do, in this order; what is None or empty is nothing to do.

    persist         to be in `quorum-state` before anything else of this Ready
    append          control records for the log, as one batch in the epoch `append_epoch`
    high_watermark  everything below is committed
    """

    persist: ElectionState | None = None
    append: tuple[Any, ...] = ()
    append_epoch: int = -1
    high_watermark: int | None = None
    events: tuple[Event, ...] = ()


NOTHING = Ready()


class RaftNode:
    """A voter. `state` is what `quorum-state` says, `log_end_offset` where the local log ends.

    Raises QuorumStateError unless the quorum is this node alone.
    """

    def __init__(self, voter: Voter, quorum: Quorum, state: ElectionState, log_end_offset: int) -> None:
        if quorum.voter_ids() != [voter.voter_id]:
            raise QuorumStateError(
                f"the quorum has the voters {quorum.voter_ids()} (controller.quorum.voters), but "
                f"only a quorum of this node alone, [{voter.voter_id}], is served"
            )
        # With kraft.version 1 the log knows the directory id and the addresses too.
        (self.voter,) = quorum.voters
        self.quorum = quorum
        self.role = Role.UNATTACHED
        self.state = state
        self.high_watermark: int | None = None
        self.epoch_start_offset = log_end_offset
        self._end_offsets: dict[int, int] = {}

    @property
    def epoch(self) -> int:
        """The quorum epoch this node is in."""
        return self.state.epoch

    def is_leader(self) -> bool:
        """Whether this node decides; it must not before its high watermark is known (K29)."""
        return self.role is Role.LEADER

    def tick(self, now_ms: int) -> Ready:
        """Time has passed. A lone voter that does not lead stands at once: there is nobody whose
        leadership it could disturb, so it waits for no election timeout."""
        if self.role is not Role.UNATTACHED:
            return NOTHING
        self._become_candidate()
        return self._become_leader()

    def step(self, message: Flushed, now_ms: int) -> Ready:
        """The log has reached the disk: what a majority has is committed, once the leader's own
        epoch has begun in it (K29)."""
        if self.role is not Role.LEADER:
            return NOTHING
        self._end_offsets[self.voter.voter_id] = message.end_offset
        committed = majority_offset(self._end_offsets.values())
        if committed <= self.epoch_start_offset:
            return NOTHING
        if self.high_watermark is not None and committed <= self.high_watermark:
            return NOTHING
        self.high_watermark = committed
        return Ready(high_watermark=committed)

    def _enter(self, role: Role) -> None:
        if role not in TRANSITIONS[self.role]:
            raise AssertionError(f"a node of the quorum cannot go from {self.role} to {role}")
        self.role = role

    def _become_candidate(self) -> None:
        self._enter(Role.CANDIDATE)
        self.state = ElectionState(
            epoch=self.state.epoch + 1,
            leader_id=NOBODY,
            voted_id=self.voter.voter_id,
            voted_directory_id=self.voter.directory_id,
        )

    def _become_leader(self) -> Ready:
        self._enter(Role.LEADER)
        # That it leads says that it has voted for itself; Kafka drops the vote here too.
        self.state = ElectionState(epoch=self.state.epoch, leader_id=self.voter.voter_id)
        self._end_offsets = dict.fromkeys(self.quorum.voter_ids(), 0)
        # Always at version 0, which has no directory ids: Apache Kafka reads no other.
        leader_change = LeaderChangeMessage(
            version=0,
            leader_id=self.voter.voter_id,
            voters=[LeaderChangeMessageVoter(voter_id=voter.voter_id) for voter in self.quorum.voters],
            granting_voters=[LeaderChangeMessageVoter(voter_id=self.voter.voter_id)],
        )
        append: tuple[Any, ...] = (leader_change,)
        if not self.quorum.in_log:
            append += tuple(self.quorum.records())
        return Ready(
            persist=self.state,
            append=append,
            append_epoch=self.state.epoch,
            events=(Event(f"Node {self.voter.voter_id} leads the metadata quorum in epoch {self.state.epoch}."),),
        )
