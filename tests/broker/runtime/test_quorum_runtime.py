"""The metadata log of one voter: starts, restarts, crashes, snapshots, and directories that are refused."""

from __future__ import annotations

import asyncio
import errno
import gc
from random import Random

import pytest

from broker.runtime.metadata_batches import quorum_batch, read_batches
from broker.runtime.metadata_snapshots import BOOTSTRAP_ID, SnapshotId, Snapshots
from broker.runtime.snapshot_schedule import SnapshotSettings
from broker.storage.faulty_files import Crash, Fault, FaultyFiles
from broker.storage.files import StorageFault
from broker.storage.memory_files import MemoryFiles
from coordinator.machine import MetadataRecord
from coordinator.metadata.delta import MetadataDelta
from coordinator.metadata.image import MetadataImage
from coordinator.quorum.voters import Quorum, Voter
from tests.broker.runtime.metadata_world import METADATA_DIRECTORY, MetadataWorld, contents
from tests.simulation import virtual_loop
from wire.errors import ErrorCode, KafkaError
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.records.cluster_metadata import FeatureLevelRecord
from wire.messages.records.control_records import KRaftVersionRecord, LeaderChangeMessage


def log_records(world: MetadataWorld) -> list[str]:
    """The kinds of everything in the metadata log, in order."""
    content = world.log.read(0, max_bytes=2**20).records
    kinds = []
    for batch in read_batches(content):
        kinds += [type(message).__name__ for message in batch.control]
        kinds += [type(record.message).__name__ for record in batch.records]
    return kinds


async def test_a_new_directory_gets_what_a_format_and_a_first_leader_write() -> None:
    world = MetadataWorld()
    world.open()
    await world.join()
    assert log_records(world) == [
        "LeaderChangeMessage",
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "FeatureLevelRecord",
        "FeatureLevelRecord",
        "FeatureLevelRecord",
        "ConfigRecord",
        "EndTransactionRecord",
        "RegisterBrokerRecord",
        "BrokerRegistrationChangeRecord",
    ]
    assert world.image.features.metadata_version == 33
    (snapshot,) = Snapshots(world.files, METADATA_DIRECTORY).ids()
    assert snapshot == BOOTSTRAP_ID
    state = world.files.read(f"{METADATA_DIRECTORY}/quorum-state")
    assert state == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    await world.close()


async def test_a_restart_finds_everything_in_the_next_epoch() -> None:
    first = MetadataWorld()
    first.open()
    await first.join()
    await first.create("a", "b", partitions=3)
    before, epoch = first.image, first.lifecycle.broker_epoch
    await first.lifecycle.shut_down()
    assert first.image.brokers[1].fenced
    await first.close()
    second = MetadataWorld(first.files)
    second.open()
    assert second.image.topics.ids == before.topics.ids
    assert second.quorum.raft.epoch == 2
    await second.join(previous_broker_epoch=epoch)
    partition = second.image.topics.partition("a", 2)
    assert partition is not None
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 0)
    assert partition.leader_epoch == 2
    assert second.lifecycle.broker_epoch > epoch
    await second.close()


async def test_the_broker_of_the_process_returns_at_once_after_a_crash() -> None:
    first = MetadataWorld()
    first.open()
    await first.join()
    await first.create("a")
    second = MetadataWorld(first.files)
    second.open()
    await second.join()
    partition = second.image.topics.partition("a", 0)
    assert partition is not None
    assert (partition.leader, partition.isr) == (1, (1,))
    await second.close()


async def test_requests_of_one_turn_share_one_flush() -> None:
    files = FaultyFiles()
    world = MetadataWorld(files)
    world.open()
    await world.join()
    log_file = "00000000000000000000.log"
    before = sum(name == "sync" and path.endswith(log_file) for name, path in files.calls)
    await asyncio.gather(*(world.create(f"t{index}") for index in range(20)))
    after = sum(name == "sync" and path.endswith(log_file) for name, path in files.calls)
    assert after - before == 1
    assert len(world.names()) == 20
    await world.close()


async def test_subscribers_see_every_change_before_the_answer() -> None:
    world = MetadataWorld()
    world.open()
    seen: list[tuple[MetadataDelta, MetadataImage]] = []
    world.metadata.subscribe(lambda delta, image: seen.append((delta, image)))
    await world.join()
    await world.create("a")
    assert [image.offset for _, image in seen] == sorted(image.offset for _, image in seen)
    late: list[MetadataDelta] = []
    world.metadata.subscribe(lambda delta, image: late.append(delta))
    (whole,) = late
    assert {topic.name for topic in whole.topics.values()} == {"a"}
    image = seen[0][0].base
    for delta, after in seen:
        assert delta.base is image
        image = after
    assert contents(image) == contents(world.image)
    await world.close()


async def test_waiting_for_an_image() -> None:
    world = MetadataWorld()
    world.open()
    await world.join()
    waiting = asyncio.create_task(world.metadata.wait_for(lambda image: image.topics.by_name("b") is not None))
    await world.create("a")
    assert not waiting.done()
    await world.create("b")
    assert (await waiting).topics.by_name("b") is not None
    await world.close()


class Story:
    """Topics are created one by one until the files crash: what was asked for, what was acknowledged."""

    def __init__(self, files: FaultyFiles) -> None:
        self.files = files
        self.asked: set[str] = set()
        self.acknowledged: set[str] = set()

    async def run(self) -> None:
        """To the end, or to the crash, wherever in the loop it happens."""
        story = asyncio.ensure_future(self._run())
        # A crash in a callback of the loop reaches nobody: it is noticed at the files.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        while not story.done() and not self.files.crashed:  # noqa: ASYNC110 - the crash raises no event
            await asyncio.sleep(0)
        everything = asyncio.all_tasks() - {asyncio.current_task()}
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, story, return_exceptions=True)
        if not story.cancelled():
            error = story.exception()
            assert error is None or isinstance(error, Crash), error

    async def _run(self) -> None:
        world = MetadataWorld(self.files, snapshots=SnapshotSettings(max_record_bytes_between_snapshots=400))
        try:
            world.open()
            await world.join()
            for index in range(6):
                self.asked.add(f"t{index}")
                await world.create(f"t{index}")
                self.acknowledged.add(f"t{index}")
            await world.close()
        finally:
            world.clock.close()


async def survives(number: int, call: tuple[str, str], power_loss: bool) -> None:
    """Crash at one changing call; what the next start finds."""
    story = Story(FaultyFiles({number: Fault("crash", written=number % 90)}))
    await story.run()
    again = MetadataWorld(story.files.survivor(power_loss=Random(number) if power_loss else None))
    again.open()
    await again.join()
    assert story.acknowledged <= set(again.names()) <= story.asked, f"crash at call {number}: {call}"
    await again.create("after")
    await again.close()


@pytest.mark.parametrize("power_loss", [False, True])
def test_whatever_was_acknowledged_survives_a_crash_at_any_write(power_loss: bool) -> None:
    whole = Story(FaultyFiles())
    virtual_loop.run(lambda loop: whole.run())
    assert len(whole.acknowledged) == 6
    for number, call in enumerate(whole.files.calls):
        virtual_loop.run(lambda loop, number=number, call=call: survives(number, call, power_loss))


async def test_a_log_that_cannot_be_written_fails_the_node_once_and_every_request() -> None:
    files = FaultyFiles()
    world = MetadataWorld(files)
    world.open()
    await world.join()
    files.fail("sync", "__cluster_metadata-0")
    for _ in range(2):
        with pytest.raises(KafkaError) as raised:
            await world.create("a")
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [error.code for error in world.faults] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert world.names() == []
    world.clock.close()


async def test_a_refusal_that_comes_when_nobody_waits_any_more_is_no_fault() -> None:
    files = FaultyFiles()
    world = MetadataWorld(files)
    world.open()
    await world.join()
    message = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)])
    asking = asyncio.ensure_future(world.controller.request(message, timeout_ms=30_000))
    await asyncio.sleep(0)
    asking.cancel()
    files.fail("sync", "__cluster_metadata-0")
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert [error.code for error in world.faults] == [ErrorCode.KAFKA_STORAGE_ERROR]
    del asking
    gc.collect()  # conftest.py fails a test whose loop is told of an exception that nobody saw
    world.clock.close()


async def test_a_full_disk_refuses_the_request_and_leaves_the_log_as_it_was() -> None:
    files = FaultyFiles()
    world = MetadataWorld(files)
    world.open()
    await world.join()
    end = world.quorum.log_end_offset
    files.fail("append", "__cluster_metadata-0", Fault("error", error_number=errno.ENOSPC))
    with pytest.raises(KafkaError) as raised:
        await world.create("a")
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (world.quorum.log_end_offset, world.faults) == (end, [])
    files.heal()
    await world.create("a")
    await world.close()
    again = MetadataWorld(files)
    again.open()
    assert again.names() == ["a"]
    await again.close()


async def test_a_snapshot_takes_the_place_of_the_log_before_it() -> None:
    settings = SnapshotSettings(max_record_bytes_between_snapshots=500, max_retention_bytes=0)
    first = MetadataWorld(snapshots=settings)
    first.open()
    await first.join()
    for index in range(20):
        await first.create(f"t{index}")
    # Three more topics make the next one due, of two records each.
    await written(first, first.image.offset - 8)
    await first.close()
    snapshots = Snapshots(first.files, METADATA_DIRECTORY)
    (newest,) = snapshots.ids()
    assert newest.end_offset > 20
    assert newest.epoch == 1
    second = MetadataWorld(first.files)
    second.open()
    assert contents(second.image) == contents(first.image)
    assert second.log.log_start_offset <= newest.end_offset
    await second.close()


async def test_a_log_that_is_lost_is_taken_up_where_the_snapshot_ends() -> None:
    first = MetadataWorld(snapshots=SnapshotSettings(max_record_bytes_between_snapshots=1))
    first.open()
    await first.join()
    await first.create("a")
    await first.clock.wait_for(asyncio.ensure_future(written(first, first.image.offset + 1)), 10_000)
    await first.close()
    newest = max(Snapshots(first.files, METADATA_DIRECTORY).ids())
    for name in first.files.list(METADATA_DIRECTORY):
        if not name.endswith((".checkpoint", "partition.metadata", "quorum-state")):
            first.files.delete(f"{METADATA_DIRECTORY}/{name}")
    second = MetadataWorld(first.files)
    second.open()
    assert second.names() == ["a"]
    assert second.log.log_start_offset == newest.end_offset
    await second.join()
    await second.create("b")
    await second.close()
    third = MetadataWorld(first.files)
    third.open()
    assert third.names() == ["a", "b"]
    await third.close()


async def test_a_snapshot_is_due_after_the_interval_and_only_if_there_is_news() -> None:
    world = MetadataWorld()
    world.open()
    await world.join()
    snapshots = Snapshots(world.files, METADATA_DIRECTORY)
    world.clock.move(3_600_000)
    await world.clock.wait_for(asyncio.ensure_future(written(world, world.image.offset + 1)), 10_000)
    assert len(snapshots.ids()) == 2
    world.clock.move(7_200_000)
    await asyncio.sleep(0)
    assert len(snapshots.ids()) == 2
    await world.close()


async def written(world: MetadataWorld, end_offset: int) -> None:
    """Wait for a snapshot that a thread writes."""
    snapshots = Snapshots(world.files, METADATA_DIRECTORY)
    while max(snapshots.ids()).end_offset < end_offset:  # noqa: ASYNC110 - the file is the only sign
        await asyncio.sleep(0.001)


def write_format(files: MemoryFiles, features: dict[str, int], quorum: Quorum = Quorum((Voter(1),))) -> None:  # noqa: B008
    """Format a directory as `kafka-storage.sh format` does."""
    files.make_directory(METADATA_DIRECTORY)
    records = [MetadataRecord(FeatureLevelRecord(name=name, feature_level=level)) for name, level in features.items()]
    snapshots = Snapshots(files, METADATA_DIRECTORY)
    snapshots.write(BOOTSTRAP_ID, records, quorum, last_timestamp_ms=1, now_ms=1)
    snapshots.publish(BOOTSTRAP_ID)


async def test_a_format_of_another_release_is_taken_over() -> None:
    files = MemoryFiles()
    write_format(files, {"metadata.version": 20})
    world = MetadataWorld(files)
    world.open()
    await world.join()
    assert dict(world.image.features.levels) == {"metadata.version": 20}
    await world.create("a")
    await world.close()


async def test_features_that_are_not_served_refuse_the_start_and_change_nothing() -> None:
    files = MemoryFiles()
    write_format(files, {"metadata.version": 33, "share.version": 99})
    before = {name: files.read(f"{METADATA_DIRECTORY}/{name}") for name in files.list(METADATA_DIRECTORY)}
    world = MetadataWorld(files)
    with pytest.raises(StorageFault) as raised:
        world.open()
    await world.close()
    text = str(raised.value)
    assert "share.version" in text
    assert "99" in text
    assert METADATA_DIRECTORY in text
    assert "\n" not in text
    after = {name: files.read(f"{METADATA_DIRECTORY}/{name}") for name in before}
    assert after == before


async def test_a_quorum_of_kraft_version_1_keeps_its_directory_ids() -> None:
    files = MemoryFiles()
    quorum = Quorum((Voter(1, b"\xdd" * 16, (("CONTROLLER", "h", 9093),)),), kraft_version=1)
    write_format(files, {"metadata.version": 33}, quorum)
    world = MetadataWorld(files)
    world.open()
    assert log_records(world)[:3] == ["LeaderChangeMessage", "KRaftVersionRecord", "VotersRecord"]
    assert b'"data_version":1' in files.read(f"{METADATA_DIRECTORY}/quorum-state")
    await world.close()
    again = MetadataWorld(files)
    again.open()
    assert again.quorum.raft.quorum == quorum._replace(in_log=True)
    assert log_records(again).count("VotersRecord") == 1
    await again.close()


async def test_more_voters_than_this_node_are_refused_with_the_setting() -> None:
    with pytest.raises(StorageFault, match=r"controller\.quorum\.voters"):
        MetadataWorld().open(voters=(1, 2, 3))


async def test_a_broken_batch_refuses_the_start_and_names_it() -> None:
    world = MetadataWorld(snapshots=SnapshotSettings(max_record_bytes_between_snapshots=1))
    world.open()
    await world.join()
    await world.close()
    newest = max(Snapshots(world.files, METADATA_DIRECTORY).ids())
    path = f"{METADATA_DIRECTORY}/{newest.file_name}"
    content = bytearray(world.files.read(path))
    content[100] ^= 1
    world.files.delete(path)
    file = world.files.open(path)
    file.append([bytes(content)])
    file.release()
    with pytest.raises(StorageFault) as raised:
        MetadataWorld(world.files).open()
    assert newest.file_name in str(raised.value)
    assert "checksum" in str(raised.value)


def test_control_batches_come_back_and_unknown_ones_are_passed_over() -> None:
    messages = [LeaderChangeMessage(version=1, leader_id=3), KRaftVersionRecord(version=0, k_raft_version=1)]
    (batch,) = read_batches(quorum_batch(messages, base_offset=7, epoch=4, timestamp_ms=9))
    assert batch.control == messages
    assert (batch.base_offset, batch.last_offset, batch.epoch, batch.records) == (7, 8, 4, [])


def test_names_of_snapshots_are_kafkas() -> None:
    assert SnapshotId(12, 3).file_name == "00000000000000000012-0000000003.checkpoint"
    files = MemoryFiles()
    files.make_directory("/m")
    for name in (SnapshotId(12, 3).file_name, SnapshotId(2, 9).file_name, "x.checkpoint", "a.part"):
        files.open(f"/m/{name}").release()
    files.open(f"/m/{SnapshotId(40, 3).file_name}.part").release()
    snapshots = Snapshots(files, "/m")
    snapshots.remove_unfinished()
    assert snapshots.ids() == [SnapshotId(2, 9), SnapshotId(12, 3)]
    assert files.list("/m") == sorted(
        [SnapshotId(12, 3).file_name, SnapshotId(2, 9).file_name, "x.checkpoint", "a.part"]
    )
