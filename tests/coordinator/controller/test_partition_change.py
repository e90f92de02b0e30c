"""Elections, ISR and ELR as tables (K13 to K17). The expectations are those of Kafka 4.4.0."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.controller.partition_change import ChangeRules, Election, PartitionTarget, partition_change
from coordinator.metadata.image import NO_LEADER, RECOVERED, RECOVERING, PartitionImage
from coordinator.metadata.replay_topics import merged

TOPIC_ID = b"\x05" * 16


def partition(**fields: Any) -> PartitionImage:
    values: dict[str, Any] = {
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader": 1,
        "leader_epoch": 5,
        "partition_epoch": 9,
        "directories": (b"\xaa" * 16,) * 3,
        **fields,
    }
    return PartitionImage(**values)


def change(
    before: PartitionImage,
    target: PartitionTarget,
    alive: tuple[int, ...] = (1, 2, 3),
    *,
    elr: bool = True,
    min_isr: int = 1,
    metadata_version: int = 33,
) -> PartitionImage:
    """The partition after the change; the same object when there is none."""
    rules = ChangeRules(
        is_acceptable_leader=lambda broker_id: broker_id in alive,
        default_directory=lambda broker_id: bytes([broker_id]) * 16,
        metadata_version=metadata_version,
        elr_enabled=elr,
        min_isr=min_isr,
    )
    record = partition_change(TOPIC_ID, 0, before, target, rules)
    return before if record is None else merged(before, record.message)


def test_nothing_to_change_is_no_record() -> None:
    before = partition()
    assert change(before, PartitionTarget()) is before


def test_the_leader_stays_while_it_may() -> None:
    after = change(partition(isr=(1, 2)), PartitionTarget(isr=(1, 2, 3)))
    assert (after.leader, after.leader_epoch, after.partition_epoch, after.isr) == (1, 5, 10, (1, 2, 3))


def test_the_first_in_sync_replica_in_replica_order_takes_over() -> None:
    after = change(partition(isr=(3, 1, 2)), PartitionTarget(isr=(3, 2)), alive=(2, 3))
    assert (after.leader, after.leader_epoch, after.isr) == (2, 6, (3, 2))


def test_the_preferred_leader_takes_the_lead_back() -> None:
    after = change(partition(leader=3), PartitionTarget(election=Election.PREFERRED))
    assert (after.leader, after.leader_epoch) == (1, 6)


def test_a_preferred_leader_out_of_sync_does_not() -> None:
    before = partition(leader=3, isr=(2, 3))
    assert change(before, PartitionTarget(election=Election.PREFERRED)) is before


def test_without_elr_the_last_member_stays_in_the_isr() -> None:
    before = partition(replicas=(1,), isr=(1,), directories=(b"\xaa" * 16,))
    after = change(before, PartitionTarget(isr=()), alive=(), elr=False)
    assert (after.leader, after.leader_epoch, after.isr) == (NO_LEADER, 6, (1,))
    back = change(after, PartitionTarget(), alive=(1,), elr=False)
    assert (back.leader, back.leader_epoch, back.isr) == (1, 7, (1,))


def test_with_elr_the_last_member_becomes_eligible_and_is_elected_cleanly() -> None:
    before = partition(replicas=(1,), isr=(1,), directories=(b"\xaa" * 16,))
    after = change(before, PartitionTarget(isr=()), alive=())
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (NO_LEADER, (), (1,), (1,))
    back = change(after, PartitionTarget(), alive=(1,))
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (1, (1,), (), ())
    assert back.leader_recovery_state == RECOVERED


def test_a_crashed_last_leader_is_elected_as_one_that_may_lack_records() -> None:
    before = partition(replicas=(1,), isr=(), elr=(1,), last_known_elr=(1,), leader=NO_LEADER)
    crashed = change(before, PartitionTarget(isr=(), unclean_shutdown=(1,)), alive=())
    assert (crashed.elr, crashed.last_known_elr) == ((), (1,))
    back = change(crashed, PartitionTarget(), alive=(1,))
    assert (back.leader, back.isr, back.last_known_elr) == (1, (1,), ())
    assert back.leader_recovery_state == RECOVERING


def test_below_min_isr_members_that_leave_become_eligible() -> None:
    after = change(partition(), PartitionTarget(isr=(1,)), min_isr=2)
    assert (after.isr, after.elr, after.leader_epoch) == ((1,), (2, 3), 5)
    restored = change(after, PartitionTarget(isr=(1, 2)), min_isr=2)
    assert restored.elr == ()


def test_an_unclean_election_takes_whoever_is_alive_and_only_when_allowed() -> None:
    before = partition(isr=(1,), leader=NO_LEADER)
    assert change(before, PartitionTarget(), alive=(2, 3), elr=False) is before
    after = change(before, PartitionTarget(election=Election.UNCLEAN), alive=(2, 3), elr=False)
    assert (after.leader, after.isr, after.leader_recovery_state) == (2, (2,), RECOVERING)


def test_a_completed_reassignment_lets_the_old_replicas_go() -> None:
    before = partition(replicas=(4, 1, 2, 3), isr=(1, 2, 3), adding_replicas=(4,), removing_replicas=(1,))
    waiting = change(before, PartitionTarget(isr=(1, 2)), alive=(1, 2, 3, 4))
    assert (waiting.replicas, waiting.leader) == ((4, 1, 2, 3), 1)
    after = change(before, PartitionTarget(isr=(1, 2, 3, 4)), alive=(1, 2, 3, 4))
    assert (after.replicas, after.isr) == ((4, 2, 3), (2, 3, 4))
    assert (after.adding_replicas, after.removing_replicas, after.leader) == ((), (), 4)


def test_a_removed_follower_is_fenced_by_a_new_epoch_of_the_same_leader() -> None:
    after = change(partition(), PartitionTarget(replicas=(1, 2), isr=(1, 2)))
    assert (after.leader, after.leader_epoch, after.replicas) == (1, 6, (1, 2))


@pytest.mark.parametrize(("metadata_version", "epoch"), [(11, 6), (12, 5)])
def test_old_metadata_versions_bump_the_epoch_when_the_isr_shrinks(metadata_version: int, epoch: int) -> None:
    after = change(partition(), PartitionTarget(isr=(1, 2)), elr=False, metadata_version=metadata_version)
    assert (after.leader, after.leader_epoch) == (1, epoch)


def test_a_new_replica_gets_the_brokers_directory() -> None:
    after = change(partition(), PartitionTarget(replicas=(1, 2, 3, 4), adding=(4,)), alive=(1, 2, 3, 4))
    assert after.directories == (b"\xaa" * 16,) * 3 + (b"\x04" * 16,)


members = st.lists(st.sampled_from([1, 2, 3]), unique=True).map(tuple)


@given(members, members, members, st.booleans(), st.integers(1, 3), st.sampled_from(list(Election)))
def test_whatever_happens_a_leader_is_alive_in_sync_and_epochs_grow(
    isr: tuple[int, ...], target: tuple[int, ...], alive: tuple[int, ...], elr: bool, min_isr: int, election: Election
) -> None:
    before = partition(isr=isr, leader=isr[0] if isr else NO_LEADER)
    # Who is taken out of the ISR is gone: the controller never takes out a broker that may lead.
    wanted = tuple(replica for replica in isr if replica in target)
    alive = tuple(replica for replica in alive if replica in wanted or replica not in isr)
    after = change(before, PartitionTarget(isr=wanted, election=election), alive, elr=elr, min_isr=min_isr)
    if after is before:
        return
    assert after.partition_epoch == before.partition_epoch + 1
    assert (after.leader_epoch > before.leader_epoch) == (after.leader != before.leader)
    if after.leader != NO_LEADER:
        assert after.leader in alive
        assert after.leader in after.isr
    assert not set(after.isr) & set(after.elr)
    assert elr or after.elr == ()
    assert elr or after.isr or not isr
