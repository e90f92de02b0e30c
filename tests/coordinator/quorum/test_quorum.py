"""The quorum of one voter, its state file, its voters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.quorum.quorum_state import (
    ElectionState,
    QuorumStateError,
    Role,
    decode_election_state,
    encode_election_state,
)
from coordinator.quorum.raft_node import NOTHING, Flushed, RaftNode
from coordinator.quorum.voters import Quorum, Voter, majority_offset
from wire.messages.records.control_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord

DIRECTORY = b"\xaa" * 16
ME = Voter(1)


def node(state: ElectionState = ElectionState(), log_end_offset: int = 0, quorum: Quorum = Quorum((ME,))) -> RaftNode:  # noqa: B008
    return RaftNode(quorum.voters[0], quorum, state, log_end_offset)


def test_a_lone_voter_stands_wins_and_leads_in_a_new_epoch() -> None:
    raft = node(ElectionState(epoch=4, leader_id=1), log_end_offset=70)
    assert (raft.role, raft.is_leader()) == (Role.UNATTACHED, False)
    ready = raft.tick(0)
    assert ready.persist == ElectionState(epoch=5, leader_id=1)
    (change,) = ready.append
    assert isinstance(change, LeaderChangeMessage)
    assert (change.version, change.leader_id, ready.append_epoch) == (0, 1, 5)
    assert [voter.voter_id for voter in change.voters] == [voter.voter_id for voter in change.granting_voters] == [1]
    assert (raft.role, raft.epoch, raft.tick(1)) == (Role.LEADER, 5, NOTHING)


def test_nothing_is_committed_before_the_leaders_epoch_begins_in_the_log() -> None:
    raft = node(log_end_offset=70)
    assert raft.step(Flushed(70), 0) == NOTHING
    raft.tick(0)
    assert raft.step(Flushed(70), 0) == NOTHING
    assert raft.high_watermark is None
    assert raft.step(Flushed(71), 0).high_watermark == 71
    assert raft.step(Flushed(71), 0) == NOTHING
    assert raft.step(Flushed(75), 0).high_watermark == 75
    assert raft.step(Flushed(73), 0) == NOTHING


def test_with_kraft_version_1_the_voters_are_in_the_log() -> None:
    me = Voter(1, DIRECTORY, (("CONTROLLER", "h", 9093),))
    ready = node(quorum=Quorum((me,), kraft_version=1)).tick(0)
    change, version, voters = ready.append
    assert (change.version, change.voters[0].voter_id) == (0, 1)
    assert version == KRaftVersionRecord(version=0, k_raft_version=1)
    assert isinstance(voters, VotersRecord)
    again = Quorum(()).replay(version, in_log=True).replay(voters, in_log=True)
    assert again == Quorum((me,), kraft_version=1, in_log=True)
    assert len(node(quorum=again).tick(0).append) == 1


def test_a_quorum_of_others_is_refused_with_the_setting_and_the_ids() -> None:
    for voters in ((Voter(1), Voter(2)), (Voter(2),)):
        with pytest.raises(QuorumStateError) as raised:
            RaftNode(ME, Quorum(voters), ElectionState(), 0)
        assert "controller.quorum.voters" in str(raised.value)
        assert str([voter.voter_id for voter in voters]) in str(raised.value)


def test_a_kraft_version_of_tomorrow_is_refused() -> None:
    with pytest.raises(QuorumStateError, match="level 2"):
        Quorum((ME,)).replay(KRaftVersionRecord(version=0, k_raft_version=2), in_log=True)


def test_the_state_file_is_kafkas() -> None:
    # As Apache Kafka 4.4.0 writes it with controller.quorum.voters.
    written = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert decode_election_state(written) == ElectionState(epoch=1, leader_id=1)
    assert encode_election_state(ElectionState(epoch=1, leader_id=1), [1], 0) == written
    newer = encode_election_state(ElectionState(3, -1, 1, DIRECTORY), [1], 1)
    assert json.loads(newer) == {
        "leaderId": -1,
        "leaderEpoch": 3,
        "votedId": 1,
        "votedDirectoryId": "qqqqqqqqqqqqqqqqqqqqqg",
        "data_version": 1,
    }


@given(st.integers(0, 2**31 - 1), st.integers(-1, 9), st.integers(-1, 9), st.sampled_from([0, 1]))
def test_the_state_survives_its_file(epoch: int, leader_id: int, voted_id: int, kraft_version: int) -> None:
    state = ElectionState(epoch, leader_id, voted_id, DIRECTORY if kraft_version else bytes(16))
    assert decode_election_state(encode_election_state(state, [1], kraft_version)) == state


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b'{"data_version":2,"leaderId":1,"leaderEpoch":1,"votedId":-1}',
        b'{"data_version":0,"leaderId":1,"leaderEpoch":-4,"votedId":-1}',
        b'{"data_version":1,"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"short"}',
    ],
)
def test_a_broken_state_file_is_refused_in_one_sentence(content: bytes) -> None:
    with pytest.raises(QuorumStateError) as raised:
        decode_election_state(content)
    assert str(raised.value).startswith("quorum-state")


@given(st.lists(st.integers(0, 50), min_size=1, max_size=7), st.integers(0, 51))
def test_a_majority_has_what_is_below_the_majority_offset(end_offsets: list[int], offset: int) -> None:
    have = sum(1 for end in end_offsets if end >= offset)
    assert (offset <= majority_offset(end_offsets)) == (have > len(end_offsets) // 2)
