"""Ending decided transactions: what is tried again, what is given up, what counts as done (D8, D13)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from broker.clock import Clock
from broker.runtime.marker_sender import RETRY_BACKOFF_MS, MarkerSender
from broker.runtime.marker_writer import TransactionMarker
from coordinator.transaction.metadata import TransactionMetadata
from coordinator.transaction.requests import CompleteTransaction
from coordinator.transaction.states import TransactionState
from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
OWN_ID, OTHER_ID = 1, 2


class Writer:
    """Answers with the codes it is given, one list for each call; NONE afterwards."""

    def __init__(self) -> None:
        self.calls: list[tuple[TransactionMarker, list[TopicPartition]]] = []
        self.codes: list[dict[TopicPartition, ErrorCode]] = []

    async def write(
        self, marker: TransactionMarker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        self.calls.append((marker, list(partitions)))
        codes = self.codes.pop(0) if self.codes else {}
        return {each: codes.get(each, ErrorCode.NONE) for each in partitions}


class World:
    """A sender, the broker it writes to, and a cluster as `leaders` has it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.writer = Writer()
        self.leaders = {A0: OWN_ID, A1: OWN_ID, B0: OWN_ID}
        self.completed: list[tuple[int, CompleteTransaction]] = []
        self.refusals: list[ErrorCode] = []
        self.coordinator_epoch = 5
        topics = SimpleNamespace(partition=self._partition)
        self.sender = MarkerSender(
            clock=self.clock,
            image=lambda: SimpleNamespace(topics=topics),  # type: ignore[arg-type, return-value]
            writers={OWN_ID: self.writer},
            coordinator_epoch=lambda _: self.coordinator_epoch,
            complete=self._complete,
        )

    def _partition(self, topic: str, index: int) -> Any:
        leader = self.leaders.get(TopicPartition(topic, index))
        return None if leader is None else SimpleNamespace(leader=leader)

    async def _complete(self, partition: int, request: CompleteTransaction) -> None:
        if self.refusals:
            raise KafkaError(self.refusals.pop(0))
        self.completed.append((partition, request))

    def send(self, *partitions: TopicPartition, commit: bool = True) -> None:
        state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
        metadata = TransactionMetadata(
            "x", 7, 60_000, 0, producer_epoch=3, state=state, partitions=frozenset(partitions), client_version=2
        )
        self.sender.send(4, metadata)

    async def settle(self) -> None:
        """Let the loop do what it can without time passing."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def close(self) -> None:
        await self.sender.close()
        self.clock.close()


@pytest.mark.parametrize("commit", [True, False])
async def test_every_partition_is_told_and_then_the_coordinator(commit: bool) -> None:
    world = World()
    world.send(B0, A1, A0, commit=commit)
    await world.settle()
    assert world.writer.calls == [(TransactionMarker(7, 3, commit, 5, 2), [A0, A1, B0])]
    assert world.completed == [(4, CompleteTransaction("x", 7, 3))]
    await world.close()


async def test_a_transaction_without_partitions_is_complete_at_once() -> None:
    world = World()
    world.send()
    await world.settle()
    assert world.writer.calls == []
    assert len(world.completed) == 1
    await world.close()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
async def test_what_passes_is_tried_again_where_it_failed_with_the_epoch_of_then(code: ErrorCode) -> None:
    world = World()
    world.writer.codes = [{A1: code}, {A1: code}]
    world.send(A0, A1)
    await world.settle()
    assert world.completed == []
    world.coordinator_epoch = 6
    for _ in range(2):
        world.clock.move(RETRY_BACKOFF_MS)
        await world.settle()
    assert [partitions for _, partitions in world.writer.calls] == [[A0, A1], [A1], [A1]]
    assert [marker.coordinator_epoch for marker, _ in world.writer.calls] == [5, 6, 6]
    assert len(world.completed) == 1
    await world.close()


@pytest.mark.parametrize(
    "code",
    [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.CORRUPT_MESSAGE],
)
async def test_what_does_not_pass_leaves_the_transaction_to_somebody_else(code: ErrorCode) -> None:
    world = World()
    world.writer.codes = [{A0: code}]
    world.send(A0, A1)
    await world.settle()
    assert world.completed == []
    assert world.clock.pending_timers == 0
    await world.close()


async def test_partitions_that_cannot_have_records_count_as_done() -> None:
    world = World()
    world.writer.codes = [{A0: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT}]
    world.send(A0)
    await world.settle()
    assert len(world.completed) == 1
    await world.close()


async def test_deleted_partitions_count_as_done_also_while_they_fail() -> None:
    world = World()
    world.writer.codes = [{B0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}]
    del world.leaders[A0]
    world.send(A0, B0)
    await world.settle()
    assert [partitions for _, partitions in world.writer.calls] == [[B0]]
    del world.leaders[B0]
    world.clock.move(RETRY_BACKOFF_MS)
    await world.settle()
    assert len(world.completed) == 1
    await world.close()


@pytest.mark.parametrize("leader", [-1, OTHER_ID])
async def test_a_partition_that_no_reachable_broker_leads_is_waited_for(leader: int) -> None:
    world = World()
    world.leaders[A0] = leader
    world.send(A0, A1)
    await world.settle()
    assert [partitions for _, partitions in world.writer.calls] == [[A1]]
    world.leaders[A0] = OWN_ID
    world.clock.move(RETRY_BACKOFF_MS)
    await world.settle()
    assert [partitions for _, partitions in world.writer.calls] == [[A1], [A0]]
    assert len(world.completed) == 1
    await world.close()


async def test_a_completion_is_repeated_until_it_is_stored() -> None:
    world = World()
    world.refusals = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    world.send(A0)
    for _ in range(3):
        await world.settle()
        world.clock.move(RETRY_BACKOFF_MS)
    await world.settle()
    assert len(world.completed) == 1
    assert len(world.writer.calls) == 1
    await world.close()


async def test_a_completion_is_left_to_the_next_coordinator() -> None:
    world = World()
    world.refusals = [ErrorCode.NOT_COORDINATOR]
    world.send(A0)
    await world.settle()
    assert world.clock.pending_timers == 0
    assert world.completed == []
    await world.close()


async def test_a_partition_that_is_coordinated_elsewhere_is_forgotten() -> None:
    world = World()
    world.leaders[A0] = -1
    world.send(A0)
    await world.settle()
    world.sender.forget(3)
    assert world.clock.pending_timers == 1
    world.sender.forget(4)
    await world.settle()
    assert world.clock.pending_timers == 0
    await world.close()
