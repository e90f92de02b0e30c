"""Duties of the logs run when the node was spoken to, and never otherwise."""

from __future__ import annotations

import os
from pathlib import Path

from tests.broker.disk_node import on_disk, topic_client
from tests.broker.network.network_fixture import eventually
from tests.broker.node_fixture import running_node
from tests.broker.raw_client import RawClient
from tests.broker.test_wire_cases import TOPIC, metadata, produce
from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

HIGH_WATERMARKS = "replication-offset-checkpoint"


async def test_a_node_that_nobody_speaks_to_comes_to_rest(tmp_path: Path) -> None:
    for settings in ({}, {"odradek.memory": "false", "log.dirs": str(tmp_path)}):
        async with running_node(settings) as node:
            # One: the first snapshot of the metadata that the start has written.
            assert node.clock.pending_timers == 1
            client = await RawClient.connect(node.port)
            await client.call(metadata(12))
            assert node.clock.pending_timers > 1
            await client.close()
            await eventually(lambda: len(node.server.connections) == 0, "the client is gone")
            # Every duty runs once after the last request, then there is rest again.
            node.clock.move(24 * 3_600_000)
            await eventually(lambda: node.clock.pending_timers == 0, "no duty is left")


async def test_a_duty_runs_an_interval_after_the_last_request_not_only_after_the_first() -> None:
    """What the last request changes may come after the run that the first has armed."""
    interval_ms = 600_000
    async with running_node({"producer.id.expiration.check.interval.ms": str(interval_ms)}) as node:
        runs: list[int] = []
        node.server.node.log_manager.remove_expired_producers = lambda now_ms: runs.append(now_ms)
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        node.clock.move(interval_ms - 1000)
        await client.call(metadata(12))
        node.clock.move(1000)
        assert len(runs) == 1
        node.clock.move(interval_ms)
        assert len(runs) == 2
        node.clock.move(interval_ms)
        assert len(runs) == 2, "nobody has asked for anything since"
        await client.close()


async def test_a_change_of_metadata_that_comes_late_finds_the_duties_armed() -> None:
    """A change waits for a slow disk; by then the run that its request has armed is over."""
    async with running_node({}) as node:
        state = node.server._state
        assert state is not None
        node.clock.move(24 * 3_600_000)
        assert not state.upkeep._timers
        old = [CreatableTopicConfig(name="retention.ms", value="1000")]
        topics = [CreatableTopic(name="late", num_partitions=1, replication_factor=1, configs=old)]
        await node.server.node.controller.request(CreateTopicsRequest(topics=topics))
        assert state.upkeep._timers


async def test_high_watermarks_and_recovery_points_are_noted_at_their_intervals(tmp_path: Path) -> None:
    async with running_node({"odradek.memory": "false", "log.dirs": str(tmp_path)}) as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        await client.call(produce([b"1", b"2", b"3"]))
        assert HIGH_WATERMARKS not in os.listdir(tmp_path)
        node.clock.move(5_000)
        assert f"{TOPIC} 0 3" in (tmp_path / HIGH_WATERMARKS).read_text().splitlines()
        await client.call(produce([b"4"]))
        node.clock.move(5_000)
        assert f"{TOPIC} 0 4" in (tmp_path / HIGH_WATERMARKS).read_text().splitlines()
        await client.close()


async def test_sealed_segments_are_synced_and_the_recovery_point_noted(tmp_path: Path) -> None:
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path), "log.segment.bytes": str(1024 * 1024)}
    async with running_node(settings) as node:
        client = await RawClient.connect(node.port)
        await client.call(metadata(12))
        for _ in range(4):
            await client.call(produce([bytes(400_000)]))
        node.clock.move(60_000)
        checkpoint = tmp_path / "recovery-point-offset-checkpoint"
        wanted = [f"{TOPIC} 0 {offset}" for offset in (2, 3)]

        def is_noted() -> bool:
            return checkpoint.exists() and any(line in wanted for line in checkpoint.read_text().splitlines())

        await eventually(is_noted, "the sealed segment's end is the recovery point")
        await client.close()


async def test_records_that_grow_too_old_go_though_nobody_asks(tmp_path: Path) -> None:
    """Also those that a stopped node has left; their files go when their delay is over, then there is rest."""
    settings = on_disk(tmp_path) | {"log.retention.ms": str(48 * 3_600_000)}
    partition = tmp_path / "kept-0"
    async with running_node(settings) as node:
        async with topic_client(node) as topic:
            await topic.create()
            await topic.write(b"old")
        await eventually(lambda: len(node.server.connections) == 0, "the client is gone")
        for _ in range(2):
            node.clock.move(2 * 3_600_000)  # every other duty has run, and again, as requests came while it was armed
        assert node.clock.pending_timers == 1, "one for the hour at which the record becomes too old"
        node.clock.move(24 * 3_600_000)
        assert (partition / f"{0:020d}.log").exists()
    async with running_node(settings) as node:
        await eventually(lambda: node.clock.pending_timers <= 2, "the first snapshot, the hour of the record")
        assert (partition / f"{0:020d}.log").exists()
        node.clock.move(48 * 3_600_000 + 1)
        assert (partition / f"{0:020d}.log.deleted").exists()
        assert (partition / f"{1:020d}.log").exists()
        node.clock.move(60_000)
        assert sorted(path.name for path in partition.glob("*.log*")) == [f"{1:020d}.log"]
        await eventually(lambda: node.clock.pending_timers == 0, "there is nothing left to wait for")


async def test_a_reset_leaves_no_deletion_of_what_was_there_before(tmp_path: Path) -> None:
    async with running_node(on_disk(tmp_path)) as node:
        before = node.server._state
        assert before is not None
        assert before.log_manager is not None
        async with topic_client(node) as topic:
            await topic.create()
            await topic.wire.call(
                DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.topic)], timeout_ms=10_000), 6
            )
        assert before.log_manager.next_deadline_ms() is not None
        deletions: list[int] = []
        before.log_manager.run_due = lambda *, now_ms: deletions.append(now_ms)  # type: ignore[method-assign]
        await node.server.reset()
        node.clock.move(24 * 3_600_000)
        assert deletions == []
