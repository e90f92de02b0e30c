"""Who votes. Source: Kafka's VoterSet and KRaftControlRecordStateMachine; KIP-853.

With kraft.version 0 the voters are those of the settings. With kraft.version 1 they are in the log,
as control records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from coordinator.quorum.quorum_state import QuorumStateError
from wire.messages.records.control_records import Endpoint as VoterEndpoint
from wire.messages.records.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordVoter,
)
from wire.primitives import ZERO_UUID

KRAFT_VERSION_MAX = 1


class Voter(NamedTuple):
    """One voter. The directory id is the zero id with kraft.version 0, where it is not known."""

    voter_id: int
    directory_id: bytes = ZERO_UUID
    endpoints: tuple[tuple[str, str, int], ...] = ()


class Quorum(NamedTuple):
    """The voters and the level of kraft.version. `in_log` is False while they are known from
    the settings, or from the snapshot of the format, which no other node ever fetches."""

    voters: tuple[Voter, ...]
    kraft_version: int = 0
    in_log: bool = False

    def voter_ids(self) -> list[int]:
        """The ids, rising."""
        return sorted(voter.voter_id for voter in self.voters)

    def replay(self, record: Any, *, in_log: bool) -> Quorum:
        """The quorum after a control record (others than the two that concern it change nothing).
        Raises QuorumStateError for a kraft.version that is not known."""
        if isinstance(record, KRaftVersionRecord):
            level = record.k_raft_version
            if level > KRAFT_VERSION_MAX:
                raise QuorumStateError(
                    f"kraft.version is finalized at level {level}, but levels 0 to {KRAFT_VERSION_MAX} are served here"
                )
            return self._replace(kraft_version=level)
        if isinstance(record, VotersRecord):
            voters = tuple(
                Voter(
                    voter.voter_id,
                    voter.voter_directory_id,
                    tuple((e.name, e.host, e.port) for e in voter.endpoints),
                )
                for voter in record.voters
            )
            return self._replace(voters=voters, in_log=in_log)
        return self

    def records(self) -> list[Any]:
        """The control records that say this quorum; none with kraft.version 0."""
        if self.kraft_version == 0:
            return []
        return [
            KRaftVersionRecord(version=0, k_raft_version=self.kraft_version),
            VotersRecord(version=0, voters=[_voter_record(voter) for voter in self.voters]),
        ]


def _voter_record(voter: Voter) -> VotersRecordVoter:
    return VotersRecordVoter(
        voter_id=voter.voter_id,
        voter_directory_id=voter.directory_id,
        endpoints=[VoterEndpoint(name=name, host=host, port=port) for name, host, port in voter.endpoints],
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=KRAFT_VERSION_MAX),
    )


def majority_offset(end_offsets: Iterable[int]) -> int:
    """The offset below which a majority of the voters has everything on disk."""
    by_size = sorted(end_offsets, reverse=True)
    return by_size[len(by_size) // 2]
