"""The logs of a node over its directories: identity, loading, deletion, failures, a clean stop. Errors first."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest
from log_fixture import NOW_MS, all_batches, append, idempotent, numbered

from broker.config_log import LogConfig
from broker.storage.closing import SYNCED_SINGLY_MAX
from broker.storage.faulty_files import Crash, Fault, FaultyFiles
from broker.storage.files import DiskFiles, Files, StorageFault, reason_of
from broker.storage.leader_epochs import LeaderEpochs
from broker.storage.log import Log
from broker.storage.log_manager import DELETIONS_PER_TURN, LogManager
from broker.storage.memory_files import MemoryFiles
from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition

TOPIC_ID, OTHER_ID = b"0123456789abcdef", b"fedcba9876543210"
PARTITION = TopicPartition("topic", 0)


def started(
    files: Files, *directories: str, node_id: int = 1, cluster_id: str | None = "cluster", **settings: object
) -> LogManager:
    manager = LogManager(files, directories or ("/data",), config_for_topic=lambda topic: LogConfig(), **settings)
    manager.open(cluster_id=cluster_id, node_id=node_id)
    manager.load(now_ms=NOW_MS)
    return manager


def created(manager: LogManager, topic: str = "topic", partition: int = 0, **settings: int):
    return manager.get_or_create(TopicPartition(topic, partition), TOPIC_ID, LogConfig(**settings), now_ms=NOW_MS)


# --- refused --------------------------------------------------------------------------------------


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    first = started(DiskFiles(), str(tmp_path / "data"))
    with pytest.raises(StorageFault, match="is locked"):
        started(DiskFiles(), str(tmp_path / "data"))
    first.close(now_ms=NOW_MS)
    started(DiskFiles(), str(tmp_path / "data")).close(now_ms=NOW_MS)


def test_a_directory_of_another_cluster_or_node_is_refused() -> None:
    files = MemoryFiles()
    started(files).close(now_ms=NOW_MS)
    with pytest.raises(StorageFault, match="belongs to cluster cluster, this node to another"):
        started(files, cluster_id="another")
    files.forget_locks()
    with pytest.raises(StorageFault, match=r"belongs to node 1, node\.id is 2"):
        started(files, node_id=2)


def test_a_directory_that_is_no_partition_is_refused() -> None:
    files = MemoryFiles()
    files.make_directory("/data/photos")
    with pytest.raises(StorageFault, match="/data/photos, which is not in the form of topic-partition"):
        started(files)


@pytest.mark.parametrize("kept", [None, b"", b"garbage\n", b"version=0\nbroker.id=1\n"])
def test_a_metadata_log_that_lost_whose_it_is_is_refused(kept: bytes | None) -> None:
    files = MemoryFiles()
    started(files).close(now_ms=NOW_MS)
    files.make_directory("/data/__cluster_metadata-0")
    started(files).close(now_ms=NOW_MS)
    files.delete("/data/meta.properties")
    if kept is not None:
        files.open("/data/meta.properties").append([kept])
    with pytest.raises(StorageFault, match=r"holds the metadata of a cluster, but /data/meta\.properties does not say"):
        started(files)
    assert (files.read("/data/meta.properties") if kept is not None else None) == kept, "it is as it was"


def test_a_partition_in_two_directories_is_refused() -> None:
    files = MemoryFiles()
    for directory in ("/one", "/two"):
        files.make_directory(f"{directory}/topic-0")
    with pytest.raises(StorageFault, match="is there twice"):
        started(files, "/one", "/two")


def test_another_topic_id_is_refused() -> None:
    files = MemoryFiles()
    manager = started(files)
    append(created(manager), numbered(1))
    manager.close(now_ms=NOW_MS)
    manager = started(files)
    with pytest.raises(KafkaError) as caught:
        manager.get_or_create(PARTITION, OTHER_ID, LogConfig(), now_ms=NOW_MS)
    assert caught.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    assert manager.get_or_create(PARTITION, TOPIC_ID, LogConfig(), now_ms=NOW_MS).log_end_offset == 1


# --- failing directories --------------------------------------------------------------------------


def test_j25_a_failed_directory_takes_its_logs_offline_and_the_others_go_on() -> None:
    files = FaultyFiles()
    failures: list[str] = []
    manager = started(files, "/one", "/two", on_directory_failure=lambda path, error: failures.append(path))
    logs = [created(manager, partition=number) for number in range(4)]
    assert sorted(manager.directory_of(log.topic_partition) for log in logs) == ["/one", "/one", "/two", "/two"]
    bad, good = ([log for log in logs if log.directory.startswith(path)] for path in ("/one", "/two"))
    append(bad[0], numbered(1))
    files.fail("append", "/one/", Fault("error", written=20, error_number=errno.EIO))
    for log in (*bad, bad[0]):
        with pytest.raises(KafkaError) as caught:
            append(log, numbered(1))
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError) as caught:
        bad[0].read(0, max_bytes=1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert failures == ["/one"]
    assert append(good[0], numbered(1)) == 0
    assert list(manager.directory_ids) == ["/two"]
    assert created(manager, partition=9).directory.startswith("/two")
    with pytest.raises(KafkaError):
        created(manager, partition=bad[1].topic_partition.partition)
    manager.close(now_ms=NOW_MS)
    assert files.content.exists("/two/.kafka_cleanshutdown")
    assert not files.content.exists("/one/.kafka_cleanshutdown")


def test_without_any_directory_the_node_does_not_start() -> None:
    files = FaultyFiles()
    files.make_directory("/data")
    files.fail("list", "/data")
    with pytest.raises(StorageFault, match=r"no log directory of log\.dirs can be used: /data: .*Input/output error"):
        started(files)


@pytest.mark.parametrize(
    ("others", "metadata", "names"),
    [
        ((), None, r"no log directory of log\.dirs can be used: {bad}: {why}; mend it, or name another"),
        ((), "{bad}", r"log directory {bad} cannot be used: {why}; .* mend it, or name another \(--data, log\.dirs\)"),
        (("good",), "{bad}", r"log directory {bad} cannot be used: {why}; .* another \(--data, log\.dirs\)"),
        (("good",), "{bad}/..", r"log directory {bad}/\.\. cannot be used: .* another \(metadata\.log\.dir\)"),
    ],
)
@pytest.mark.parametrize("below", ["", "/data"])
def test_a_file_in_the_place_of_a_directory_is_named_once(
    tmp_path: Path, others: tuple[str, ...], metadata: str | None, names: str, below: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    bad = f"{file}{below}"
    why = f"{file} is a file, not a directory" if below else "it is a file, not a directory"
    told: list[str] = []
    directories = [bad, *(str(tmp_path / name) for name in others)]
    with pytest.raises(StorageFault, match=names.format(bad=bad, why=why)) as caught:
        started(
            DiskFiles(),
            *directories,
            metadata_directory=metadata and metadata.format(bad=bad),
            on_directory_failure=lambda path, error: told.append(path),
        )
    assert "Errno" not in str(caught.value)
    assert told == [], "the sentence says it, nothing else is to"


def test_a_file_in_the_place_of_one_of_two_directories_takes_that_offline(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_bytes(b"")
    told: list[str] = []
    manager = started(
        DiskFiles(),
        str(good),
        str(bad),
        metadata_directory=str(good),
        on_directory_failure=lambda path, error: told.append(f"{path}: {reason_of(error)}"),
    )
    assert told == [f"{bad}: it is a file, not a directory"]
    assert list(manager.directory_ids) == [str(good)]
    manager.close(now_ms=NOW_MS)


def test_no_room_refuses_the_append_and_leaves_the_log_as_it_was() -> None:
    files = MemoryFiles(20_000, setting="memory.max.bytes")
    manager = started(files)
    log = created(manager)
    expected = []
    while files.used_bytes < 19_000:
        expected.append(append(log, numbered(1, size=500)))
    with pytest.raises(KafkaError, match=r"memory\.max\.bytes is 20000") as caught:
        append(log, numbered(1, size=1000))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline is None
    assert len(all_batches(log)) == len(expected) == log.log_end_offset > 20
    # What is freed can be written again.
    log.roll(now_ms=NOW_MS)
    log.retire_segments(1, now_ms=NOW_MS)
    log.segments.delete_due(NOW_MS + 60_000)
    assert append(log, numbered(1, size=500)) == len(expected)


@pytest.mark.parametrize("written", [0, 1, 60, 90])
def test_a_write_cut_short_leaves_nothing_that_the_next_could_follow(written: int) -> None:
    files = FaultyFiles()
    log = created(started(files))
    first = numbered(2)
    append(log, first)
    size = log.size_bytes
    files.fail("append", ".log", Fault("error", written=written, error_number=errno.ENOSPC))
    with pytest.raises(KafkaError, match="refused, nothing was written"):
        append(log, numbered(2))
    files.heal()
    assert len(files.content.read(f"{log.directory}/{0:020d}.log")) == size
    assert append(log, numbered(2)) == 2
    assert [int.from_bytes(content[:8], "big") for content in all_batches(log)] == [0, 2]


def test_if_the_rest_of_a_failed_write_cannot_be_cut_off_the_log_goes_offline() -> None:
    files = FaultyFiles()
    log = created(started(files))
    append(log, numbered(2))
    files.fail("append", ".log", Fault("error", written=90, error_number=errno.ENOSPC))
    files.fail("truncate", ".log")
    with pytest.raises(KafkaError):
        append(log, numbered(2))
    files.heal()
    with pytest.raises(KafkaError, match="offline"):
        append(log, numbered(2))


# --- going on -------------------------------------------------------------------------------------


def test_a_clean_stop_and_start_keeps_everything_and_scans_nothing() -> None:
    files = FaultyFiles()
    manager = started(files)
    log = created(manager, segment_bytes=700)
    for number in range(20):
        append(log, idempotent(number), leader_epoch=number // 10)
    log.advance_high_watermark(20)
    log.delete_records_before(12)
    batches = all_batches(log)
    manager.close(now_ms=NOW_MS, broker_epoch=42)
    again = started(files)
    assert again.previous_broker_epoch == 42
    assert again.cluster_id == "cluster"
    assert again.directory_ids == manager.directory_ids
    log = again.logs[PARTITION]
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.recovery_point) == (12, 20, 20, 20)
    assert all_batches(log) == batches
    assert log.topic_id == TOPIC_ID
    assert log.append_as_leader(idempotent(19), leader_epoch=1, now_ms=NOW_MS).duplicate
    assert not files.content.exists("/data/.kafka_cleanshutdown")


def test_after_a_kill_checkpoints_say_what_is_known() -> None:
    files = MemoryFiles()
    manager = started(files)
    log = created(manager)
    for _ in range(10):
        append(log, numbered(1))
    log.advance_high_watermark(8)
    log.delete_records_before(3)
    manager.checkpoint_high_watermarks()
    manager.checkpoint_log_start_offsets()
    append(log, numbered(1))
    files.forget_locks()
    again = started(files)
    log = again.logs[PARTITION]
    assert again.previous_broker_epoch == -1
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (3, 8, 11)


def test_checkpoints_that_did_not_change_are_not_written_again() -> None:
    files = FaultyFiles()
    manager = started(files)
    append(created(manager), numbered(1))
    for checkpoint in (
        manager.checkpoint_high_watermarks,
        manager.checkpoint_recovery_points,
        manager.checkpoint_log_start_offsets,
    ):
        checkpoint()
        before = len(files.calls)
        checkpoint()
        assert len(files.calls) == before


def test_flush_tasks_move_the_recovery_point_to_the_active_segment() -> None:
    manager = started(MemoryFiles())
    log = created(manager, segment_bytes=500)
    for _ in range(10):
        append(log, numbered(1))
    ((flushed, task),) = manager.flush_tasks()
    task.run()
    flushed.finish_flush(task)
    assert log.recovery_point == log.segments.base_offsets[-1] > 0
    assert list(manager.flush_tasks()) == []


def rolled_in_a_new_epoch(files: FaultyFiles) -> tuple[LogManager, Log]:
    """A log with sealed segments, their producer snapshots, and a leader epoch that no file has yet."""
    manager = started(files)
    log = created(manager, segment_bytes=500)
    for leader_epoch in (3, 4):
        for sequence in range(5):
            append(log, idempotent(sequence, producer_id=leader_epoch), leader_epoch=leader_epoch)
        log.roll(now_ms=NOW_MS)
    append(log, numbered(1), leader_epoch=4)
    return manager, log


def test_what_a_flush_task_syncs_is_found_by_name_before_the_loop_says_so() -> None:
    files = FaultyFiles()
    manager, log = rolled_in_a_new_epoch(files)
    before = len(files.calls)
    ((_, task),) = manager.flush_tasks()
    assert not [call for call in files.calls[before:] if "sync" in call[0]], "the loop waits for no disk"
    task.run()
    log.finish_flush(task)
    synced = {path.rpartition("/")[2] for kind, path in files.calls[before:] if kind == "sync"}
    assert {"00000000000000000005.snapshot", "00000000000000000010.snapshot"} <= synced
    assert "leader-epoch-checkpoint.tmp" in synced
    assert log.leader_epochs.entries == [(3, 0), (4, 5)]
    found = LeaderEpochs(files.survivor(power_loss=Random(1)), log.directory)
    assert found.entries == [(3, 0), (4, 5)]
    before = len(files.calls)
    log.leader_epochs.sync()
    assert len(files.calls) == before, "nothing is left to sync"


def test_an_epoch_file_written_anew_while_a_flush_is_under_way_stays() -> None:
    files = FaultyFiles()
    manager, log = rolled_in_a_new_epoch(files)
    ((_, task),) = manager.flush_tasks()
    task.sync_files()
    log.leader_epochs.truncate_from_start(6)
    task.install()
    task.sync_directory()
    log.finish_flush(task)
    assert LeaderEpochs(files, log.directory).entries == [(4, 6)]


def test_an_epoch_that_comes_up_while_a_flush_is_under_way_is_still_to_be_synced() -> None:
    files = FaultyFiles()
    manager, log = rolled_in_a_new_epoch(files)
    ((_, task),) = manager.flush_tasks()
    log.leader_epochs.assign(5, 11)
    task.run()
    log.finish_flush(task)
    assert LeaderEpochs(files, log.directory).entries == [(3, 0), (4, 5)]
    log.leader_epochs.sync()
    assert LeaderEpochs(files, log.directory).entries == [(3, 0), (4, 5), (5, 11)]


def test_a_log_that_is_deleted_while_a_flush_is_under_way_has_overtaken_it(tmp_path: Path) -> None:
    manager = started(DiskFiles(), str(tmp_path / "data"))
    log = created(manager, segment_bytes=500)
    for _ in range(10):
        append(log, numbered(1))
    ((_, task),) = manager.flush_tasks()
    task.sync_files()
    manager.delete(PARTITION, now_ms=NOW_MS)
    with pytest.raises(FileNotFoundError):
        task.sync_directory()
    assert task.is_overtaken
    task.release()
    manager.close(now_ms=NOW_MS)


def test_flush_messages_and_flush_ms_are_kept() -> None:
    manager = started(MemoryFiles())
    by_count = created(manager, partition=0, flush_messages=3)
    for expected in (0, 0, 3, 3):
        append(by_count, numbered(1))
        assert by_count.recovery_point == expected
    by_time = created(manager, partition=1, flush_ms=1000)
    append(by_time, numbered(1), now_ms=NOW_MS + 10)
    assert by_time.recovery_point == 0
    manager.flush_due(now_ms=NOW_MS + 1000)
    assert by_time.recovery_point == 1


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_deletion_renames_at_once_and_removes_after_the_delay(kind: str, tmp_path: Path) -> None:
    files: Files = MemoryFiles() if kind == "memory" else DiskFiles()
    root = str(tmp_path / "data")
    manager = started(files, root)
    log = created(manager)
    append(log, numbered(1))
    reading = log.segments.active.log
    reading.acquire()
    manager.delete(PARTITION, now_ms=NOW_MS)
    assert manager.log(PARTITION) is None
    with pytest.raises(KafkaError):
        append(log, numbered(1))
    (name,) = [name for name in files.list(root) if files.is_directory(f"{root}/{name}")]
    assert name.startswith("topic-0.")
    assert name.endswith("-delete")
    assert created(manager).log_end_offset == 0  # The name is free at once.
    assert manager.next_deadline_ms() == NOW_MS + 60_000
    manager.run_due(now_ms=NOW_MS + 59_999)
    assert files.is_directory(f"{root}/{name}")
    manager.run_due(now_ms=NOW_MS + 60_000)
    assert not files.is_directory(f"{root}/{name}")
    assert len(reading.read_at(0, 10**6)) > 60
    reading.release()
    assert manager.next_deadline_ms() is None
    manager.close(now_ms=NOW_MS)


def test_names_of_deleted_directories_fit_the_file_system(tmp_path: Path) -> None:
    manager = started(DiskFiles(), str(tmp_path))
    topic = "t" * 249
    manager.get_or_create(TopicPartition(topic, 99999), TOPIC_ID, LogConfig(), now_ms=NOW_MS)
    manager.delete(TopicPartition(topic, 99999), now_ms=NOW_MS)
    (name,) = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert len(name) == 255
    manager.close(now_ms=NOW_MS)


def test_directories_marked_for_deletion_go_after_a_start_and_strays_stay() -> None:
    files = MemoryFiles()
    manager = started(files)
    for number in range(2):
        append(created(manager, partition=number), numbered(1))
    manager.delete(PARTITION, now_ms=NOW_MS)
    manager.mark_stray(TopicPartition("topic", 1))
    manager.close(now_ms=NOW_MS)
    again = started(files)
    assert dict(again.logs) == {}
    again.run_due(now_ms=NOW_MS)
    (name,) = [name for name in files.list("/data") if files.is_directory(f"/data/{name}")]
    assert name.endswith("-stray")


def test_meta_properties_of_version_0_is_taken_up() -> None:
    files = MemoryFiles()
    files.make_directory("/data")
    file = files.open("/data/meta.properties")
    file.append([b"#comment\nversion = 0\nbroker.id: 1\n"])
    file.release()
    manager = started(files, cluster_id=None)
    assert len(manager.cluster_id) == 22
    assert b"node.id=1\n" in files.read("/data/meta.properties")
    assert f"cluster.id={manager.cluster_id}\n".encode() in files.read("/data/meta.properties")


def test_many_partitions_share_few_descriptors(tmp_path: Path) -> None:
    files = DiskFiles(max_open=50)
    manager = started(files, str(tmp_path / "data"))
    logs = [created(manager, partition=number) for number in range(300)]
    for log in logs:
        append(log, numbered(1))
    assert sum(len(all_batches(log)) for log in logs) == 300
    manager.close(now_ms=NOW_MS)
    again = started(DiskFiles(max_open=50), str(tmp_path / "data"))
    assert sum(log.log_end_offset for log in again.logs.values()) == 300
    again.close(now_ms=NOW_MS)


def test_the_recovery_point_is_lowered_before_anything_is_cut() -> None:
    files = FaultyFiles()
    manager = started(files)
    log = created(manager)
    for _ in range(20):
        append(log, numbered(1))
    log.flush(now_ms=NOW_MS)
    manager.checkpoint_recovery_points()
    assert b"topic 0 20\n" in files.content.read("/data/recovery-point-offset-checkpoint")
    files.fail("truncate", ".log", Fault("crash"))
    with pytest.raises(Crash):
        log.truncate_to(7, now_ms=NOW_MS)
    assert b"topic 0 7\n" in files.survivor().read("/data/recovery-point-offset-checkpoint")


def test_a_log_that_comes_back_short_lowers_its_recovery_point_before_anything_is_appended() -> None:
    files = MemoryFiles()
    manager = started(files)
    log = created(manager)
    for _ in range(20):
        append(log, numbered(1))
    log.flush(now_ms=NOW_MS)
    manager.checkpoint_recovery_points()
    torn = files.open(f"{log.directory}/{0:020d}.log")
    torn.truncate(torn.size // 2 + 5)
    torn.release()
    files.forget_locks()
    assert started(files).logs[PARTITION].log_end_offset == 10
    assert b"topic 0 10\n" in files.read("/data/recovery-point-offset-checkpoint")


@pytest.mark.parametrize("count", [3, 60], ids=["each by itself", "in one go"])
def test_a_clean_stop_has_everything_on_the_device(count: int) -> None:
    """A loss of power right after it takes nothing, and the next start scans nothing."""
    files = FaultyFiles()
    manager = started(files)
    for partition in range(count):
        log = created(manager, partition=partition)
        log.assign_epoch_start_offset(partition, 0)
        append(log, idempotent(0, 5), leader_epoch=partition)
    manager.close(now_ms=NOW_MS)
    assert ("sync_volume" in {name for name, _ in files.calls}) == (count > SYNCED_SINGLY_MAX)
    manager = started(files.survivor(power_loss=Random(count)))
    for partition in range(count):
        log = created(manager, partition=partition)
        assert log.log_end_offset == log.recovery_point == 5
        assert log.leader_epochs.entries == [(partition, 0)]
        assert [entry.last_sequence for entry in log.producer_state.entries.values()] == [4]


def test_a_volume_that_cannot_be_synced_leaves_no_mark_of_a_clean_stop() -> None:
    files = FaultyFiles()
    manager = started(files)
    for partition in range(SYNCED_SINGLY_MAX + 1):
        append(created(manager, partition=partition), numbered(1))
    files.fail("sync_volume")
    manager.close(now_ms=NOW_MS)
    assert not files.content.exists("/data/.kafka_cleanshutdown")
    files.heal()
    manager = started(files.survivor(power_loss=Random(1)))
    assert all(log.log_end_offset in (0, 1) for log in manager.logs.values())


def test_many_logs_on_a_disk_are_closed_and_come_back(tmp_path: Path) -> None:
    manager = started(DiskFiles(max_open=16), str(tmp_path))
    for partition in range(SYNCED_SINGLY_MAX + 8):
        append(created(manager, partition=partition), numbered(2))
    manager.close(now_ms=NOW_MS)
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    manager = started(DiskFiles(max_open=16), str(tmp_path))
    assert {log.log_end_offset for log in manager.logs.values()} == {2}
    manager.close(now_ms=NOW_MS)


def test_a_leader_epoch_is_written_with_its_data_and_found_in_the_batches_until_then() -> None:
    files = FaultyFiles()
    log = created(started(files))
    for epoch in range(3):
        log.assign_epoch_start_offset(epoch, log.log_end_offset)
        append(log, numbered(2), leader_epoch=epoch)
        if epoch == 1:
            log.flush(now_ms=NOW_MS)
    assert files.content.read(f"{log.directory}/leader-epoch-checkpoint") == b"0\n2\n0 0\n1 2\n"
    log.assign_epoch_start_offset(7, log.log_end_offset)  # and nothing is written in it
    recovered = created(started(files.survivor()))
    assert recovered.leader_epochs.entries == [(0, 0), (1, 2), (2, 4)]
    recovered.flush(now_ms=NOW_MS)
    assert files.content.read(f"{log.directory}/leader-epoch-checkpoint") == b"0\n3\n0 0\n1 2\n2 4\n"


# --- many logs ------------------------------------------------------------------------------------


class Watched(dict):
    """The logs of a manager; how often somebody went through all of them."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        return super().__iter__()

    def values(self):
        self.walks += 1
        return super().values()

    def items(self):
        self.walks += 1
        return super().items()


def test_making_and_deleting_logs_looks_at_no_others() -> None:
    """Making or deleting a thousand logs would otherwise cost a million looks."""
    manager = started(MemoryFiles(), "/one", "/two")
    manager.logs = logs = Watched(manager.logs)
    manager._directory_of = held = Watched(manager._directory_of)
    for number in range(100):
        created(manager, partition=number)
    assert sorted(map(manager.directory_of, dict.keys(logs))) == ["/one"] * 50 + ["/two"] * 50
    assert (logs.walks, held.walks) == (0, 0)
    for number in range(80):
        manager.delete(TopicPartition("topic", number), now_ms=NOW_MS)
    assert (logs.walks, held.walks) == (0, 0)
    turns = 0
    while (due_ms := manager.next_deadline_ms()) is not None:
        manager.run_due(now_ms=due_ms)
        turns += 1
    assert turns == 80 // DELETIONS_PER_TURN
    assert logs.walks <= 3, "once for the segments, and once for each deadline that was not there already"
    created(manager, partition=0)
    counts = sorted(len(manager._files.list(path)) for path in ("/one", "/two"))
    assert counts[1] - counts[0] <= 1


def test_segments_on_their_way_out_go_when_the_directories_are_gone() -> None:
    files = MemoryFiles()
    manager = started(files)
    log = created(manager, "kept", file_delete_delay_ms=0)
    append(log, numbered(3))
    log.set_high_watermark(3)
    log.roll(now_ms=NOW_MS)
    log.retire_segments(1, now_ms=NOW_MS)
    for number in range(DELETIONS_PER_TURN):
        created(manager, partition=number, file_delete_delay_ms=0)
        manager.delete(TopicPartition("topic", number), now_ms=NOW_MS)
    manager.run_due(now_ms=NOW_MS)
    assert any(name.endswith(".deleted") for name in files.list("/data/kept-0"))
    assert manager.next_deadline_ms() == NOW_MS
    manager.run_due(now_ms=NOW_MS)
    assert not any(name.endswith(".deleted") for name in files.list("/data/kept-0"))
    assert manager.next_deadline_ms() is None
