"""Committed offsets: who may commit, what is stored, what is seen, how it goes."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.context import GroupSettings
from coordinator.group.offset_commit import java_length
from coordinator.group.requests import DeletePartitionOffsets
from tests.coordinator.group.shard_world import (
    CODEC,
    World,
    commit,
    commit_in_transaction,
    join,
    leave,
    subscription,
    sync,
)
from wire.errors import ErrorCode, KafkaError
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from wire.primitives import TopicPartition

DAY_MS = 24 * 60 * 60 * 1000


def codes(response: Any) -> list[int]:
    """The error code of every partition; or the one code with which all is refused."""
    if isinstance(response, KafkaError):
        return [response.code]
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


def committed(world: World, **fields: Any) -> int:
    """The code with which one commit is answered."""
    api_version = fields.pop("api_version", 9)
    return codes(world.call(commit(**fields), api_version))[0]


# --- who may commit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api_version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_members_commit_to_a_group_that_does_not_exist(api_version: int, code: ErrorCode) -> None:
    world = World()
    assert committed(world, generation_id=1, member_id="m", api_version=api_version) == code
    assert not world.exists()


def test_g09_commits_without_membership() -> None:
    world = World()
    assert committed(world) == ErrorCode.NONE
    assert (world.describe().group_state, world.describe().protocol_type) == ("Empty", "")
    assert committed(world, instance_id="i") == ErrorCode.NONE, "an empty group asks for no membership"
    assert committed(world, member_id="m", generation_id=3) == ErrorCode.UNKNOWN_MEMBER_ID
    world.stable("a", group_id="live")
    assert committed(world, group_id="live") == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.offset(group_id="live") == -1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "nobody", "generation_id": 7}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "i", "generation_id": 7}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({}, ErrorCode.NONE),
    ],
)
def test_refusals_of_a_members_commit(fields: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    (member_id,) = world.stable("a")
    assert committed(world, **{"member_id": member_id, "generation_id": 1, **fields}) == code
    assert world.offset() == (1 if code is ErrorCode.NONE else -1)


def test_a_commit_between_join_and_sync_is_refused_and_one_in_the_join_phase_is_not() -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    world.ask(join(member_id=leader), 9)
    assert committed(world, member_id=follower, generation_id=2) == ErrorCode.NONE
    world.ask(join(member_id=follower), 9)
    assert world.state() == "CompletingRebalance"
    assert committed(world, member_id=follower, generation_id=3) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("rebalancing", [False, True])
def test_a_commit_keeps_a_member_alive(rebalancing: bool) -> None:
    world = World()
    leader, follower = world.stable("a", "b")
    if rebalancing:
        world.ask(join(member_id=leader), 9)
    for _ in range(3):
        world.pass_time(9_000)
        assert committed(world, member_id=follower, generation_id=2) == ErrorCode.NONE
    assert follower in world.group().members


# --- what is stored ---------------------------------------------------------------------------


def test_g11_long_metadata_is_refused_for_its_partition_alone() -> None:
    world = World()
    world.call(commit(offsets={("t", 0): 1, ("t", 1): 1}))
    request = commit(offsets={("t", 0): 5, ("t", 1): 5})
    request.topics[0].partitions[0].committed_metadata = "x"
    request.topics[0].partitions[1].committed_metadata = "y" * 5_000
    assert codes(world.call(request)) == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert (world.offset(partition=0), world.offset(partition=1)) == (5, 1)


@pytest.mark.parametrize("metadata", ["x", "", "\x00a\x00", "y" * 4096, "é" * 4096])
def test_g11_metadata_comes_back_as_it_was(metadata: str) -> None:
    world = World()
    assert committed(world, metadata=metadata) == ErrorCode.NONE
    world.reload()
    response = world.shard.fetch_offsets(OffsetFetchRequestGroup(group_id="g", topics=None))
    assert response.topics[0].partitions[0].metadata == metadata


def test_null_metadata_is_stored_as_empty() -> None:
    world = World()
    world.call(commit(metadata=None))
    response = world.shard.fetch_offsets(OffsetFetchRequestGroup(group_id="g", topics=None))
    assert response.topics[0].partitions[0].metadata == ""


def test_metadata_is_measured_as_java_does() -> None:
    assert [java_length(text) for text in ("", "abc", "é", "😀")] == [0, 3, 1, 2]
    world = World()
    assert committed(world, metadata="😀" * 2_048) == ErrorCode.NONE
    assert committed(world, metadata="😀" * 2_049) == ErrorCode.OFFSET_METADATA_TOO_LARGE


@pytest.mark.parametrize("offset", [-1, -7, 0, 2**63 - 1])
def test_offsets_are_not_compared_with_anything(offset: int) -> None:
    world = World()
    assert codes(world.call(commit(offsets={("t", 0): offset}))) == [ErrorCode.NONE]
    assert world.offset() == offset


def test_records_are_those_of_kafka_4_4() -> None:
    world = World()
    world.call(commit(topic_id=bytes(range(16))))
    world.call(commit(retention_time_ms=1_000), 2)
    plain, with_expiry = (CODEC.decode(entry.key, entry.value) for entry in world.log)
    assert plain is not None
    assert with_expiry is not None
    assert (plain.value_version, with_expiry.value_version) == (4, 1)
    assert plain.value is not None
    assert (plain.value.topic_id, plain.value.commit_timestamp) == (bytes(range(16)), world.now_ms)
    assert with_expiry.value is not None
    assert with_expiry.value.expire_timestamp == world.now_ms + 1_000
    world.stable("a")
    stored = CODEC.decode(world.log[-1].key, world.log[-1].value)
    assert stored is not None
    assert stored.value_version == 3


def test_the_records_bytes_are_kafkas() -> None:
    """Bytes as Apache Kafka 4.4 wrote them for the same commit."""
    world = World(now_ms=0x01A227BEC3B0)
    topic_id = bytes.fromhex("535cdc24f39d446b9c5dcad417a33749")
    request = commit("grp-probe-g", {("grp-probe-t", 0): 1}, topic_id=topic_id)
    request.topics[0].partitions[0].committed_leader_epoch = 0
    world.call(request)
    assert world.log[0].key == bytes.fromhex("0001 000b6772702d70726f62652d67 000b6772702d70726f62652d74 00000000")
    assert world.log[0].value == bytes.fromhex(
        "0004 0000000000000001 00000000 01 000001a227bec3b0 01 00 10 535cdc24f39d446b9c5dcad417a33749"
    )


# --- what is seen -----------------------------------------------------------------------------


def test_g16_fetching_all_lists_what_is_committed_in_order() -> None:
    world = World()
    world.call(commit(offsets={("b", 1): 1, ("a", 2): 2, ("b", 0): 3}))
    response = world.shard.fetch_offsets(OffsetFetchRequestGroup(group_id="g", topics=None))
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in response.topics] == [
        ("a", [2]),
        ("b", [0, 1]),
    ]
    unknown = world.shard.fetch_offsets(OffsetFetchRequestGroup(group_id="nosuch", topics=None))
    assert (unknown.topics, unknown.error_code) == ([], 0)
    assert world.fetch("t", 9) == world.fetch("t", 0, "nosuch") == (-1, ErrorCode.NONE)


def test_only_replicated_offsets_are_seen_without_require_stable() -> None:
    world = World()
    world.call(commit(offsets={("t", 0): 1}))
    world.replicated = False
    world.call(commit(offsets={("t", 0): 2}))
    assert world.offset() == 1
    assert world.fetch_stable()[0] == 2, "the runtime holds this answer back until it is replicated"
    world.replicate()
    assert world.offset() == 2


def test_an_offset_of_another_topic_of_the_same_name_is_not_seen() -> None:
    world = World()
    world.call(commit(topic_id=b"\x01" * 16))
    request = OffsetFetchRequestGroup(group_id="g", topics=[])
    for topic_id, expected in ((b"\x01" * 16, 1), (b"\x02" * 16, -1), (bytes(16), 1)):
        request.topics = [OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=[0])]
        assert world.shard.fetch_offsets(request).topics[0].partitions[0].committed_offset == expected


def test_s06_everything_is_there_after_a_restart() -> None:
    world = World()
    for number in range(100):
        world.call(commit(f"g{number}", {("t", 0): number, ("u", 3): 7}, metadata=f"m{number}"))
    world.stable("a", group_id="live")
    before = world.shard.list_groups([], [])
    world.reload()
    assert world.shard.list_groups([], []) == before
    assert all(world.offset(group_id=f"g{number}") == number for number in range(100))


# --- transactions -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("restart", [True, False])
def test_t12_offsets_of_a_transaction_count_when_it_commits(is_commit: bool, restart: bool) -> None:
    world = World()
    world.call(commit(offsets={("t", 0): 1}))
    assert codes(world.call(commit_in_transaction(7, 5), 3)) == [ErrorCode.NONE]
    if restart:
        world.reload()
    assert world.fetch_stable() == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert world.fetch() == (1, ErrorCode.NONE)
    assert world.fetch_stable(partition=1) == (-1, ErrorCode.NONE)
    world.end_transaction(7, is_commit=is_commit)
    assert world.fetch() == world.fetch_stable() == (5 if is_commit else 1, ErrorCode.NONE)
    world.reload()
    assert world.fetch() == world.fetch_stable() == (5 if is_commit else 1, ErrorCode.NONE)


def test_a_plain_commit_after_a_pending_one_wins() -> None:
    world = World()
    world.call(commit_in_transaction(7, 5), 3)
    world.call(commit(offsets={("t", 0): 3}))
    world.end_transaction(7, is_commit=True)
    assert world.offset() == 3


def test_of_two_transactions_the_later_commit_wins_whatever_ends_first() -> None:
    world = World()
    world.call(commit_in_transaction(7, 5), 3)
    world.call(commit_in_transaction(8, 6), 3)
    world.end_transaction(8, is_commit=True)
    assert world.fetch_stable()[1] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    world.end_transaction(7, is_commit=True)
    assert world.fetch_stable() == (6, ErrorCode.NONE)


def test_a_transactional_commit_makes_the_group() -> None:
    world = World()
    world.call(commit_in_transaction(7, 5), 3)
    assert world.state() == "Empty"
    assert world.shard.fetch_offsets(OffsetFetchRequestGroup(group_id="g", topics=None)).topics == []


@pytest.mark.parametrize(
    ("fields", "api_version", "code"),
    [
        ({}, 2, ErrorCode.NONE),
        ({"member_id": "nobody", "generation_id_or_member_epoch": 1}, 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "?", "generation_id_or_member_epoch": 9}, 3, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "?", "generation_id_or_member_epoch": 1}, 3, ErrorCode.NONE),
    ],
)
def test_refusals_of_a_transactional_commit(fields: dict[str, Any], api_version: int, code: ErrorCode) -> None:
    world = World()
    (member_id,) = world.stable("a")
    fields = {name: member_id if value == "?" else value for name, value in fields.items()}
    assert codes(world.call(commit_in_transaction(7, 5, **fields), api_version)) == [code]


def test_a_transactional_commit_between_join_and_sync_is_allowed() -> None:
    world = World()
    member_id = world.call(join(), 3).member_id
    request = commit_in_transaction(7, 5, member_id=member_id, generation_id_or_member_epoch=1)
    assert codes(world.call(request, 3)) == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("api_version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_transactional_commit_of_a_member_of_no_group(api_version: int, code: ErrorCode) -> None:
    request = commit_in_transaction(7, 5, member_id="m", generation_id_or_member_epoch=1)
    assert codes(World().call(request, api_version)) == [code]


def test_a_refused_partition_leaves_nothing_pending() -> None:
    world = World()
    request = commit_in_transaction(7, 5)
    request.topics[0].partitions[0].committed_metadata = "y" * 5_000
    assert codes(world.call(request, 3)) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert world.fetch_stable() == (-1, ErrorCode.NONE)


# --- deletion ---------------------------------------------------------------------------------


def forget(group_id: str, *partitions: tuple[str, int]) -> OffsetDeleteRequest:
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for topic, index in partitions:
        wanted = topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic, partitions=[]))
        wanted.partitions.append(OffsetDeleteRequestPartition(partition_index=index))
    return OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))


def test_g19_offsets_of_subscribed_topics_stay() -> None:
    world = World()
    assert codes(world.call(forget("g", ("t", 0)))) == [ErrorCode.GROUP_ID_NOT_FOUND]
    (member_id,) = world.stable("a")
    world.call(commit(offsets={("t", 0): 1, ("u", 0): 1}, member_id=member_id, generation_id=1))
    response = world.call(forget("g", ("t", 0), ("u", 0), ("u", 9)))
    assert codes(response) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    assert (world.offset("t"), world.offset("u")) == (1, -1)
    world.call(leave("g", member_id))
    assert codes(world.call(forget("g", ("t", 0)))) == [ErrorCode.NONE]
    assert world.offset("t") == -1


def test_g19_a_group_of_another_protocol_must_be_empty() -> None:
    world = World()
    world.call(join(protocol_type="connect", protocols=("default",)), 3)
    assert codes(world.call(forget("g", ("t", 0)))) == [ErrorCode.NON_EMPTY_GROUP]


def test_a_consumer_group_with_an_unreadable_subscription_uses_everything() -> None:
    world = World()
    world.call(join(protocols={"range": b"\x00"}), 3)
    assert codes(world.call(forget("g", ("whatever", 0)))) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


def test_deleting_an_offset_deletes_the_pending_one_too() -> None:
    world = World()
    world.call(commit_in_transaction(7, 5), 3)
    assert codes(world.call(forget("g", ("t", 0)))) == [ErrorCode.NONE]
    assert world.fetch_stable() == (-1, ErrorCode.NONE)
    world.end_transaction(7, is_commit=True)
    assert world.offset() == -1


def test_g19_groups_with_members_are_not_deleted() -> None:
    world = World()
    (member_id,) = world.stable("a", group_id="live")
    world.call(commit("left", {("t", 0): 1, ("u", 1): 2}))
    world.call(commit_in_transaction(7, 5, group_id="left", topic="v"), 3)
    response = world.call(DeleteGroupsRequest(groups_names=["live", "nosuch", "left", "left"]))
    assert [(result.group_id, ErrorCode(result.error_code)) for result in response.results] == [
        ("live", ErrorCode.NON_EMPTY_GROUP),
        ("nosuch", ErrorCode.GROUP_ID_NOT_FOUND),
        ("left", ErrorCode.NONE),
    ]
    assert not world.exists("left")
    world.end_transaction(7, is_commit=True)
    assert world.offset("v", 0, "left") == -1
    world.reload()
    assert not world.exists("left")
    world.call(leave("live", member_id))
    assert world.call(DeleteGroupsRequest(groups_names=["live"])).results[0].error_code == ErrorCode.NONE
    assert world.shard.next_deadline_ms() is None, "a shard without groups waits for nothing"


def test_offsets_of_deleted_topics_go_in_all_groups() -> None:
    world = World()
    world.call(commit("g1", {("t", 0): 1, ("u", 0): 1}))
    world.call(commit("g2", {("t", 1): 1}))
    world.call(commit_in_transaction(7, 5, group_id="g3"), 3)
    gone = frozenset({TopicPartition("t", 0), TopicPartition("t", 1)})
    assert world.call(DeletePartitionOffsets(gone)) is False
    assert [world.offset("t", 0, "g1"), world.offset("u", 0, "g1"), world.offset("t", 1, "g2")] == [-1, 1, -1]
    world.end_transaction(7, is_commit=True)
    assert world.offset("t", 0, "g3") == -1


def test_the_deletion_of_very_many_offsets_is_cut_into_appends() -> None:
    world = World()
    for number in range(9):
        world.call(commit(f"g{number}", {("t", index): 1 for index in range(1_000)}))
    request = DeletePartitionOffsets(frozenset(TopicPartition("t", index) for index in range(1_000)))
    assert [world.call(request) for _ in range(2)] == [True, False]
    assert all(world.offset("t", 999, f"g{number}") == -1 for number in range(9))


# --- expiry -----------------------------------------------------------------------------------


def test_g35_offsets_of_a_simple_group_age_from_their_commit() -> None:
    world = World()
    world.call(commit(offsets={("t", 0): 1}))
    world.pass_time(DAY_MS)
    world.call(commit(offsets={("t", 1): 1}))
    world.pass_time(6 * DAY_MS + 600_000)
    assert (world.offset(partition=0), world.offset(partition=1)) == (-1, 1)
    world.pass_time(DAY_MS)
    assert not world.exists(), "the group goes with its last offset"


def test_g35_offsets_of_a_left_group_age_from_when_it_was_left() -> None:
    world = World()
    (member_id,) = world.stable("a", session_timeout_ms=1_800_000)
    world.call(commit(member_id=member_id, generation_id=1))
    for _ in range(10 * 24 * 2):
        world.pass_time(1_799_000)
        world.call(commit(offsets={("u", 0): 1}, member_id=member_id, generation_id=1))
    assert world.offset("t") == 1, "ten days old and in use"
    world.call(leave("g", member_id))
    world.pass_time(7 * DAY_MS - 600_000)
    assert world.offset("t") == 1
    world.pass_time(2 * 600_000)
    assert not world.exists()


def test_g35_of_a_live_group_only_topics_that_nobody_subscribes_to_expire() -> None:
    world = World(GroupSettings(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=10_000))
    (member_id,) = world.stable("a", session_timeout_ms=1_800_000)
    world.call(commit(offsets={("t", 0): 1, ("old", 0): 1}, member_id=member_id, generation_id=1))
    world.pass_time(70_000)
    assert (world.offset("t"), world.offset("old")) == (1, -1)


@pytest.mark.parametrize("metadata", [b"", subscription("u")])
def test_nothing_expires_where_the_subscription_is_unknown_or_the_group_rebalances(metadata: bytes) -> None:
    world = World(GroupSettings(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=10_000))
    world.call(commit(offsets={("t", 0): 1}))
    world.call(join(protocols={"range": metadata}, session_timeout_ms=1_800_000, rebalance_timeout_ms=1_800_000), 3)
    if metadata:
        assert world.state() == "CompletingRebalance"
    else:
        (member_id,) = world.group().members
        world.call(sync("g", member_id, 1, {member_id: b""}))
    world.pass_time(100_000)
    assert world.offset("t") == 1


def test_g26_a_commit_with_its_own_retention_expires_by_it() -> None:
    world = World()
    world.call(commit(offsets={("t", 0): 1}, retention_time_ms=3_600_000), 2)
    world.pass_time(3_600_000 - 600_000)
    assert world.offset() == 1
    world.pass_time(600_000)
    assert world.offset() == -1


def test_g36_partitions_with_a_pending_offset_do_not_expire() -> None:
    world = World(GroupSettings(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=10_000))
    world.call(commit(offsets={("t", 0): 1, ("t", 1): 1}))
    world.call(commit_in_transaction(7, 5), 3)
    world.pass_time(100_000)
    assert (world.offset(partition=0), world.offset(partition=1)) == (1, -1)
    world.end_transaction(7, is_commit=False)
    world.pass_time(10_000)
    assert not world.exists()


def test_an_empty_group_without_offsets_is_deleted() -> None:
    world = World()
    (member_id,) = world.stable("a")
    world.call(leave("g", member_id))
    world.pass_time(600_000)
    assert not world.exists()
    world.reload()
    assert not world.exists()
