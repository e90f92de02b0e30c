"""A partition of `__consumer_offsets` as Apache Kafka 4.4.0 wrote it, read by our machine.

The file holds a classic group with a member, one with a static member, a consumer group (KIP-848),
offsets committed plainly and in transactions that committed, aborted and are still open, a group
that only committed, and a deleted one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.group.shard import GroupShard
from tests.coordinator.group.shard_world import CODEC, START_MS, Logged, World, heartbeat, replayed
from wire.errors import ErrorCode, MalformedMessage
from wire.records import batches, read_end_transaction_marker

LOG = (Path(__file__).parents[2] / "golden" / "groups" / "consumer_offsets-4.4.0.segment").read_bytes()


def kafkas_log() -> list[Logged]:
    """The file's records and markers, in order; its offsets have no gaps."""
    entries = []
    for batch in batches(LOG):
        marker = read_end_transaction_marker(batch) if batch.is_control else None
        for record in batch.records():
            if marker is not None:
                entries.append(Logged(None, None, batch.producer_id, marker.is_commit))
            else:
                entries.append(Logged(record.key, record.value, batch.producer_id))
    return entries


def listed(shard: GroupShard) -> list[tuple[str, str, str]]:
    return [(each.group_id, each.protocol_type, each.group_state) for each in shard.list_groups([], [])]


def test_groups_and_offsets_are_read_as_kafka_meant_them() -> None:
    world = World(log=kafkas_log())
    world.reload()
    assert [each for each in listed(world.shard) if each[0] != "modern"] == [
        ("classic", "consumer", "Stable"),
        ("pending-group", "", "Empty"),
        ("simple", "", "Empty"),
        ("static", "consumer", "Stable"),
        ("txn-group", "", "Empty"),
    ]
    assert [world.offset("t", 0, "classic"), world.offset("t", 1, "classic")] == [5, 6]
    assert world.offset("t", 0, "modern") == 7
    assert world.offset("t", 0, "txn-group") == 50, "the commit counts, the abort does not"
    assert world.fetch_stable("t", 0, "pending-group") == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert world.offset("t", 1, "simple") == 9
    assert not world.exists("gone")


def test_members_that_kafka_stored_go_on_here() -> None:
    world = World(log=kafkas_log(), now_ms=START_MS)
    world.reload()
    (member,) = world.group("static").members.values()
    assert (member.group_instance_id, member.session_timeout_ms, member.rebalance_timeout_ms) == ("i1", 45_000, 300_000)
    assert world.group("static").subscribed_topics == {"t"}
    assert world.code(heartbeat("static", member.member_id, 1, "i1")) is ErrorCode.NONE


def test_every_record_is_written_as_kafka_wrote_it() -> None:
    records = [entry for entry in kafkas_log() if entry.key is not None]
    assert len(records) > 15
    for entry in records:
        decoded = CODEC.decode(entry.key, entry.value)
        assert decoded is not None
        assert CODEC.encode(decoded) == (entry.key, entry.value)


@pytest.mark.parametrize("cut", [1, 3])
def test_a_damaged_record_is_not_taken_for_another(cut: int) -> None:
    entry = next(entry for entry in kafkas_log() if entry.value is not None)
    assert entry.key is not None
    with pytest.raises(MalformedMessage):
        CODEC.decode(entry.key[:-cut], entry.value)
    with pytest.raises(MalformedMessage):
        CODEC.decode(entry.key, b"\x00")


def test_legacy_offset_records_count_as_commits() -> None:
    """Type 0: key group, topic, partition; value offset, metadata, time."""
    key = bytes.fromhex("000000016700017400000002")
    value = bytes.fromhex("0000000000000000002a00016d0000000000000001")
    shard = replayed([Logged(key, value)])
    assert listed(shard) == [("g", "", "Empty")]
    world = World(log=[Logged(key, value)])
    world.reload()
    assert world.offset("t", 2) == 42
    world.log.append(Logged(key, None))
    world.reload()
    assert world.offset("t", 2) == -1
