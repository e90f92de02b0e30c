"""What a voter must remember across a restart, and the states it goes through as a table.

`quorum-state` is written before the node acts on what it says, or it could vote twice in an epoch.
Source: Kafka's QuorumState, ElectionState and FileQuorumStateStore; KIP-595, KIP-853.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from wire.primitives import ZERO_UUID, uuid_from_text, uuid_text

NOBODY = -1


class Role(Enum):
    """Kafka's names for what a node of the quorum is."""

    UNATTACHED = "Unattached"
    CANDIDATE = "Candidate"
    LEADER = "Leader"


TRANSITIONS: Mapping[Role, frozenset[Role]] = {
    Role.UNATTACHED: frozenset({Role.CANDIDATE}),
    Role.CANDIDATE: frozenset({Role.LEADER}),
    Role.LEADER: frozenset(),
}
"""From where to where. A lone voter meets no other node: it is never refused, so it neither asks
first (Prospective) nor follows, and it leads until it stops."""


class ElectionState(NamedTuple):
    """The content of `quorum-state`: the epoch, who leads in it, for whom this node has voted."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: bytes = ZERO_UUID


class QuorumStateError(Exception):
    """A `quorum-state` file that cannot be used; the text is one sentence."""


def encode_election_state(state: ElectionState, voter_ids: Sequence[int], kraft_version: int) -> bytes:
    """The file's content: one line of JSON, data_version 0 with kraft.version 0, else 1."""
    fields: dict[str, object]
    if kraft_version == 0:
        fields = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
            "data_version": 0,
        }
    else:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": uuid_text(state.voted_directory_id),
            "data_version": 1,
        }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_election_state(content: bytes) -> ElectionState:
    """The state in a `quorum-state` file; raises QuorumStateError for one that is broken or newer."""
    try:
        fields = json.loads(content)
        data_version = fields["data_version"]
        if data_version not in (0, 1):
            raise QuorumStateError(f"quorum-state has data_version {data_version}, only 0 and 1 are known")
        directory = fields.get("votedDirectoryId")
        state = ElectionState(
            epoch=int(fields["leaderEpoch"]),
            leader_id=int(fields["leaderId"]),
            voted_id=int(fields["votedId"]),
            voted_directory_id=uuid_from_text(directory) if directory else ZERO_UUID,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise QuorumStateError(f"quorum-state is no election state: {error!r}") from error
    if state.epoch < 0:
        raise QuorumStateError(f"quorum-state has the negative epoch {state.epoch}")
    return state
