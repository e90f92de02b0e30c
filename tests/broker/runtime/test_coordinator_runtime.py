"""The runtime of coordinators over real logs in memory: load, append, replication, time, unload.

The machine is the group shard, as the one that uses everything the runtime offers.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from broker.chance import SystemIds
from broker.replication.replica_manager import LeadershipChange
from broker.runtime import coordinator_shard
from broker.runtime.group_coordinator import GroupCoordinator
from coordinator.group.context import GroupContext, GroupSettings
from coordinator.group.requests import FetchStableOffsets
from coordinator.metadata.delta import MetadataDelta
from coordinator.record_codec import RecordCodec
from tests.broker.handlers.records_node import RecordsNode, fetch_request, fetched
from tests.coordinator.group.shard_world import (
    commit,
    commit_in_transaction,
    heartbeat,
    join,
    sync,
)
from tests.coordinator.group.shard_world import (
    fetch_request as offsets_request,
)
from wire.errors import ErrorCode, KafkaError
from wire.messages.records import consumer_offsets
from wire.messages.records.cluster_metadata import RemoveTopicRecord
from wire.messages.records.consumer_offsets import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from wire.primitives import TopicPartition
from wire.records import NewRecord, build_batch, read_end_transaction_marker

TOPIC = "__consumer_offsets"
PARTITION = TopicPartition(TOPIC, 0)
GUARD_SECONDS = 20
"""Against hanging only; no test waits for it to pass."""
CODEC = RecordCodec(consumer_offsets)


class GroupsNode(RecordsNode):
    """A node with a group coordinator; `create_topic(TOPIC)` makes its topic."""

    def __init__(self) -> None:
        super().__init__()
        self.groups = self.take_over()

    def take_over(self) -> GroupCoordinator:
        """A coordinator as a node has it that becomes leader now."""
        groups = GroupCoordinator(GroupSettings(), replica_manager=self.replicas, clock=self.clock, ids=SystemIds())
        self.replicas.on_leadership_change[:] = [groups.leadership_changed]
        if PARTITION in self.replicas.partitions:
            groups.leadership_changed(LeadershipChange(PARTITION, bytes(16), 1, True))
        return groups

    async def write(self, request: Any, api_version: int = 9, group_id: str = "g") -> Any:
        context = GroupContext(self.groups.settings, api_version, "client", "/127.0.0.1")
        async with asyncio.timeout(GUARD_SECONDS):
            return await self.groups.write(group_id, request, context)

    async def refusal(self, request: Any, api_version: int = 9) -> ErrorCode:
        with pytest.raises(KafkaError) as refused:
            await self.write(request, api_version)
        return refused.value.code

    def offset(self, group_id: str = "g", partition: int = 0) -> int:
        """The committed offset as a fetch without `require_stable` sees it."""
        request = offsets_request(group_id, "t", partition)
        response = self.groups.read(group_id, lambda shard: shard.fetch_offsets(request))
        return response.topics[0].partitions[0].committed_offset

    async def follow(self) -> None:
        """Broker 2 fetches everything there is, and says so with its next fetch."""
        for _ in range(2):
            request = fetch_request({(TOPIC, 0): self.end(TOPIC)}, max_wait_ms=0, replica=(2, -1))
            await self.call(request, 11)

    async def write_in_transaction(self, request: Any) -> Any:
        """A TxnOffsetCommit whose transaction has been verified."""
        log = self.log(TOPIC)
        guard = log.start_verification(
            request.producer_id, -1, request.producer_epoch, supports_epoch_bump=False, now_ms=self.clock.now_ms()
        )
        context = GroupContext(self.groups.settings, 3, "client", "/127.0.0.1")
        return await self.groups.write("g", request, context, verification_guard=guard)

    def append(self, *records: NewRecord, **options: Any) -> None:
        self.replicas.append_records(PARTITION, build_batch(records, **options))


@pytest.fixture
def node() -> Iterator[GroupsNode]:
    groups_node = GroupsNode()
    yield groups_node
    groups_node.groups.close()
    groups_node.replicas.close()
    groups_node.log_manager.close(now_ms=0)
    groups_node.clock.close()


async def settled(coordinator: GroupCoordinator) -> None:
    """Wait until nothing loads any more."""
    async with asyncio.timeout(10):
        while True:
            try:
                list(coordinator.shards())
            except KafkaError:
                await asyncio.sleep(0)
            else:
                return


# --- who coordinates --------------------------------------------------------------------------


async def test_without_the_topic_nobody_coordinates(node: GroupsNode) -> None:
    assert await node.refusal(commit()) is ErrorCode.NOT_COORDINATOR


async def test_a_partition_that_is_led_elsewhere_is_not_coordinated_here(node: GroupsNode) -> None:
    node.create_topic(TOPIC, replicas=[1, 2], leader=2)
    assert await node.refusal(commit()) is ErrorCode.NOT_COORDINATOR
    assert list(node.groups.shards()) == []


async def test_groups_lie_in_the_partition_that_javas_hash_gives(node: GroupsNode) -> None:
    node.create_topic(TOPIC, partitions=50)
    assert node.groups.partition_for("grp-probe-g") == 46, "as Apache Kafka stored it"


async def test_a_stopped_node_is_not_available(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    node.groups.close()
    assert await node.refusal(commit()) is ErrorCode.COORDINATOR_NOT_AVAILABLE


# --- append -----------------------------------------------------------------------------------


async def test_a_decision_is_one_batch_as_kafka_writes_it(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    await node.write(commit(offsets={("t", 0): 1, ("t", 1): 2}))
    (batch,) = fetched(node.log(TOPIC).read(0, max_bytes=10_000, min_one_batch=True).records)
    assert (batch.record_count, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2, -1, -1, 0)
    assert not batch.is_transactional
    decoded = [CODEC.decode(record.key, record.value) for record in batch.records()]
    assert [(each.key.group, each.key.partition, each.value.offset) for each in decoded] == [("g", 0, 1), ("g", 1, 2)]
    assert all(record.timestamp == node.clock.now_ms() for record in batch.records())


async def test_a_read_appends_nothing(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    await node.write(commit())
    end = node.end(TOPIC)
    await node.write(FetchStableOffsets(offsets_request("g", "t", 0)))
    assert node.end(TOPIC) == end


@pytest.mark.parametrize(
    ("request_", "api_version"), [(commit(), 9), (join(), 9), (join(), 3)], ids=["commit", "id", "join"]
)
async def test_too_few_replicas_are_coordinator_not_available(
    node: GroupsNode, request_: Any, api_version: int
) -> None:
    node.create_topic(TOPIC, replicas=[1, 2], isr=[1], configs={"min.insync.replicas": "2"})
    assert await node.refusal(request_, api_version) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.end(TOPIC) == 0
    assert list(node.groups.read("g", lambda shard: shard.list_groups([], []))) == []
    node.change_partition(TOPIC.encode()[:16], isr=[1, 2])
    writing = asyncio.create_task(node.write(request_, api_version))
    await asyncio.sleep(0)
    await node.follow()
    assert (await writing) is not None


async def test_a_write_larger_than_a_batch_may_be_is_an_unknown_server_error(node: GroupsNode) -> None:
    node.create_topic(TOPIC, configs={"max.message.bytes": "1000"})
    request = commit(metadata="y" * 1_000)
    assert await node.refusal(request) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.offset() == -1


# --- replication ------------------------------------------------------------------------------


async def test_answers_wait_until_all_that_was_decided_before_is_replicated(node: GroupsNode) -> None:
    node.create_topic(TOPIC, replicas=[1, 2])
    writing = asyncio.create_task(node.write(commit()))
    reading = asyncio.create_task(node.write(FetchStableOffsets(offsets_request("g", "t", 0))))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not writing.done()
    assert not reading.done(), "an answer without records waits for those before it"
    assert node.offset() == -1, "what is not replicated is not seen"
    await node.follow()
    assert (await writing).topics[0].partitions[0].error_code == ErrorCode.NONE
    assert (await reading).topics[0].partitions[0].committed_offset == 1
    assert node.offset() == 1


async def test_a_write_that_is_not_replicated_in_time_is_not_available_and_may_still_count(node: GroupsNode) -> None:
    node.create_topic(TOPIC, replicas=[1, 2])
    writing = asyncio.create_task(node.refusal(commit()))
    for _ in range(5):
        await asyncio.sleep(0)
    node.clock.move(4_999)
    await asyncio.sleep(0)
    assert not writing.done()
    node.clock.move(1)
    assert await writing is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.offset() == -1
    await node.follow()
    later = asyncio.create_task(node.write(commit("other")))
    await asyncio.sleep(0)
    await node.follow()
    await later
    assert node.offset() == 1


# --- leadership -------------------------------------------------------------------------------


async def test_waiting_requests_are_told_that_the_coordinator_moved(node: GroupsNode) -> None:
    topic_id = node.create_topic(TOPIC, replicas=[1, 2])
    node.change_partition(topic_id, isr=[1])
    first = await node.write(join(), 3)
    waiting = asyncio.create_task(node.refusal(join(), 3))
    await asyncio.sleep(0)
    unreplicated = asyncio.create_task(node.write(heartbeat("g", first.member_id, 1), 4))
    await unreplicated
    assert not waiting.done()
    node.change_partition(topic_id, leader=2)
    assert await waiting is ErrorCode.NOT_COORDINATOR
    assert await node.refusal(heartbeat("g", first.member_id, 1)) is ErrorCode.NOT_COORDINATOR


async def test_a_new_leader_finds_what_was_stored(node: GroupsNode) -> None:
    topic_id = node.create_topic(TOPIC, replicas=[1, 2], isr=[1])
    member = (await node.write(join(), 3)).member_id
    await node.write(sync("g", member, 1, {member: b"mine"}))
    await node.write(commit(offsets={("t", 0): 5}, member_id=member, generation_id=1))
    node.change_partition(topic_id, leader=2)
    node.change_partition(topic_id, leader=1)
    assert await node.refusal(commit()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(KafkaError):
        list(node.groups.shards())
    await settled(node.groups)
    assert node.offset() == 5
    assert (await node.write(sync("g", member, 1))).assignment == b"mine"
    assert (await node.write(heartbeat("g", member, 1), 4)).error_code == ErrorCode.NONE


async def test_a_new_epoch_of_the_same_leader_keeps_members(node: GroupsNode) -> None:
    topic_id = node.create_topic(TOPIC)
    await node.write(join(), 3)
    waiting = asyncio.create_task(node.write(join(), 3))
    await asyncio.sleep(0)
    node.change_partition(topic_id, leader=1)
    await asyncio.sleep(0)
    assert not waiting.done()
    node.groups.close()
    with pytest.raises(KafkaError) as refused:
        await waiting
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_deleted_topic_ends_its_coordinators(node: GroupsNode) -> None:
    topic_id = node.create_topic(TOPIC)
    await node.write(join(), 3)
    waiting = asyncio.create_task(node.refusal(join(), 3))
    await asyncio.sleep(0)
    node.delete_topic(topic_id)
    assert await waiting is ErrorCode.NOT_COORDINATOR


# --- load -------------------------------------------------------------------------------------


async def test_a_long_log_is_read_in_slices_and_others_are_served_between(
    node: GroupsNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_shard, "LOAD_SLICE_BYTES", 4_096)
    node.create_topic(TOPIC)
    for number in range(500):
        await node.write(commit(offsets={("t", number % 7): number}))
    node.groups.close()
    node.groups = node.take_over()
    turns = 0

    async def another() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(another())
    assert await node.refusal(commit()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await settled(node.groups)
    other.cancel()
    assert turns > 10
    assert [node.offset(partition=index) for index in range(7)] == [497, 498, 499, 493, 494, 495, 496]


async def test_records_of_unknown_types_are_passed_over(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    await node.write(commit())
    timestamp = node.clock.now_ms()
    node.append(NewRecord(b"\x7f\xff\x00\x00", b"\x00\x00", (), timestamp))
    key, value = ConsumerGroupMetadataKey(group_id="modern"), ConsumerGroupMetadataValue(epoch=3)
    node.append(NewRecord(b"\x00\x03" + key.encode(0), b"\x00\x00" + value.encode(0), (), timestamp))
    await node.write(commit(offsets={("t", 1): 7}))
    node.groups.close()
    node.groups = node.take_over()
    await settled(node.groups)
    assert (node.offset(), node.offset(partition=1)) == (1, 7)


async def test_a_record_that_cannot_be_read_fails_the_load(node: GroupsNode, caplog: pytest.LogCaptureFixture) -> None:
    node.create_topic(TOPIC)
    await node.write(commit())
    key = fetched(node.log(TOPIC).read(0, max_bytes=10_000, min_one_batch=True).records)[0].records()
    node.append(NewRecord(next(iter(key)).key, b"\x00\x63", (), node.clock.now_ms()))
    node.groups.close()
    with caplog.at_level(logging.ERROR):
        node.groups = node.take_over()
        await settled(node.groups)
    assert await node.refusal(commit()) is ErrorCode.NOT_COORDINATOR
    assert "could not be loaded" in caplog.text
    assert "no version 99" in caplog.text


# --- time -------------------------------------------------------------------------------------


async def test_sessions_end_on_the_nodes_clock(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    member = (await node.write(join(), 3)).member_id
    await node.write(sync("g", member, 1, {member: b""}))
    node.clock.move(9_999)
    assert (await node.write(heartbeat("g", member, 1), 4)).error_code == ErrorCode.NONE
    node.clock.move(9_999)
    assert node.groups.read("g", lambda shard: shard.describe_group("g", 6)).group_state == "Stable"
    node.clock.move(1)
    assert node.groups.read("g", lambda shard: shard.describe_group("g", 6)).group_state == "Empty"


async def test_an_earlier_deadline_brings_the_timer_forward(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    await node.write(commit())
    given = (await node.write(join(session_timeout_ms=10_000), 9)).member_id
    node.clock.move(10_000)
    unknown = await node.write(join(member_id=given), 9)
    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_an_idle_coordinator_has_no_timer(node: GroupsNode) -> None:
    node.create_topic(TOPIC, partitions=50)
    assert not node.clock._heap, "fifty empty shards wait for nothing"
    await node.write(commit())
    assert len([entry for entry in node.clock._heap if entry[2].is_pending]) == 1, "one timer for all"


async def test_a_client_that_is_gone_leaves_its_member_behind(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    first = (await node.write(join(), 3)).member_id
    gone = asyncio.create_task(node.write(join(), 3))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    rejoined = await node.write(join(member_id=first), 3)
    assert len(rejoined.members) == 2, "it stays until its session ends"


async def test_a_refusal_that_meets_a_client_who_is_leaving_is_nobodys_fault(node: GroupsNode) -> None:
    node.create_topic(TOPIC, replicas=[1, 2])
    context = GroupContext(node.groups.settings, 9, "client", "/127.0.0.1")
    # The client goes within the turn in which its request is refused: nobody awaits the future again.
    request = node.groups.write("g", commit(), context)
    request.send(None)
    node.groups.close()
    request.close()
    del request
    gc.collect()  # conftest.py fails a test whose loop is told of an exception that nobody saw


# --- transactions -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_commit", [True, False])
async def test_offsets_of_transactions_are_transactional_batches_and_end_with_the_marker(
    node: GroupsNode, is_commit: bool
) -> None:
    node.create_topic(TOPIC)
    await node.write_in_transaction(commit_in_transaction(7, 5))
    (batch,) = fetched(node.log(TOPIC).read(0, max_bytes=10_000, min_one_batch=True).records)
    assert (batch.is_transactional, batch.producer_id, batch.producer_epoch) == (True, 7, 0)
    stable = FetchStableOffsets(offsets_request("g", "t", 0))
    pending = await node.write(stable)
    assert pending.topics[0].partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    await node.groups.write_marker(0, 7, 0, is_commit=is_commit, coordinator_epoch=3)
    control = fetched(node.log(TOPIC).read(1, max_bytes=10_000, min_one_batch=True).records)[0]
    marker = read_end_transaction_marker(control)
    assert marker is not None
    assert (marker.is_commit, marker.coordinator_epoch) == (is_commit, 3)
    expected = 5 if is_commit else -1
    assert node.offset() == expected
    node.groups.close()
    node.groups = node.take_over()
    await settled(node.groups)
    assert node.offset() == expected
    assert (await node.write(stable)).topics[0].partitions[0].error_code == ErrorCode.NONE


async def test_a_transaction_that_was_not_verified_is_refused(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    assert await node.refusal(commit_in_transaction(7, 5), 3) is ErrorCode.INVALID_TXN_STATE
    assert node.end(TOPIC) == 0


async def test_a_marker_of_an_older_epoch_is_refused_by_the_log(node: GroupsNode) -> None:
    node.create_topic(TOPIC)
    request = commit_in_transaction(7, 5)
    request.producer_epoch = 4
    await node.write_in_transaction(request)
    with pytest.raises(KafkaError) as refused:
        await node.groups.write_marker(0, 7, 3, is_commit=True, coordinator_epoch=0)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert node.offset() == -1


# --- topics -----------------------------------------------------------------------------------


async def test_offsets_of_a_deleted_topic_go(node: GroupsNode) -> None:
    node.create_topic(TOPIC, partitions=3)
    topic_id = node.create_topic("t", partitions=2)
    groups = [f"g{number}" for number in range(6)]
    for group_id in groups:
        await node.write(commit(group_id, {("t", 0): 1, ("u", 0): 1}), group_id=group_id)
    delta = MetadataDelta(node.image)
    delta.replay(RemoveTopicRecord(topic_id=topic_id))
    node.groups.metadata_changed(delta, delta.apply(node.image.offset + 1, 1))
    await asyncio.gather(*node.groups._cleaning)
    assert [node.offset(group_id) for group_id in groups] == [-1] * 6
    request = offsets_request("g1", "u", 0)
    kept = node.groups.read("g1", lambda shard: shard.fetch_offsets(request))
    assert kept.topics[0].partitions[0].committed_offset == 1
