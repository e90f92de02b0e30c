"""In-sync sets on their way to the controller: joining, falling out, and every kind of answer."""

from __future__ import annotations

import asyncio

from records_node import RecordsNode, batch_of

from broker.replication.isr_changes import IsrChanges
from broker.replication.partition import Partition
from wire.errors import ErrorCode as E
from wire.errors import KafkaError
from wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from wire.primitives import TopicPartition

T0 = TopicPartition("t", 0)


class Controller:
    """Answers with the errors it is told, in turn; then takes what it is asked for."""

    def __init__(self) -> None:
        self.requests: list[AlterPartitionRequest] = []
        self.errors: list[E | KafkaError] = []
        self.open = asyncio.Event()
        self.open.set()

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.requests.append(request)
        await self.open.wait()
        error = self.errors.pop(0) if self.errors else E.NONE
        if isinstance(error, KafkaError):
            raise error
        return AlterPartitionResponse(
            topics=[
                AlterPartitionResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        AlterPartitionResponsePartitionData(
                            partition_index=asked.partition_index,
                            error_code=int(error),
                            isr=[member.broker_id for member in asked.new_isr_with_epochs],
                            leader_epoch=asked.leader_epoch,
                            partition_epoch=asked.partition_epoch + 1,
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def asked(self) -> list[list[int]]:
        """The in-sync sets of the first partition of each request."""
        return [
            [member.broker_id for member in request.topics[0].partitions[0].new_isr_with_epochs]
            for request in self.requests
        ]


class Case:
    """A topic on brokers 1, 2 and 3 led here, and a controller."""

    def __init__(self, node: RecordsNode, *, isr: tuple[int, ...] = (1, 2)) -> None:
        self.node = node
        self.controller = Controller()
        self.changes = IsrChanges(self.controller, node.clock, node.replicas.surroundings, lambda: 10)
        node.replicas.surroundings.propose_isr = self.changes.propose
        self.topic_id = node.create_topic("t", replicas=(1, 2, 3), isr=isr)

    @property
    def partition(self) -> Partition:
        return self.node.replicas.partition(T0)

    async def fetch(self, broker: int, offset: int) -> None:
        """A follower's fetch; then the loop runs until what it set off is done."""
        await self.node.fetch(offset, replica=(broker, -1), current_leader_epoch=self.partition.leader_epoch)
        await settled()


async def settled() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def test_a_follower_that_caught_up_joins(node: RecordsNode) -> None:
    case = Case(node)
    await node.produce(batch_of(5), acks=1)
    await case.fetch(2, 5)
    assert case.partition.log.high_watermark == 5
    await case.fetch(3, 2)
    assert case.controller.requests == []
    await case.fetch(3, 5)
    assert case.controller.asked() == [[1, 2, 3]]
    (request,) = case.controller.requests
    assert (request.broker_id, request.broker_epoch) == (1, 10)
    assert [member.broker_epoch for member in request.topics[0].partitions[0].new_isr_with_epochs] == [10, 10, 10]
    assert case.partition.isr_state.isr == {1, 2, 3}
    assert case.partition.partition_epoch == 1


async def test_who_is_joining_holds_the_high_watermark_at_once_and_is_asked_for_once(node: RecordsNode) -> None:
    case = Case(node)
    case.controller.open.clear()
    await case.fetch(3, 0)
    await case.fetch(3, 0)
    assert len(case.controller.requests) == 1
    assert case.partition.isr_state.maximal_isr == {1, 2, 3}
    await node.produce(batch_of(5), acks=1)
    await case.fetch(2, 5)
    assert case.partition.log.high_watermark == 0, "broker 3 may be in the ISR already"
    case.controller.open.set()
    await settled()
    await case.fetch(3, 5)
    assert case.partition.log.high_watermark == 5


async def test_a_fenced_follower_does_not_join(node: RecordsNode) -> None:
    case = Case(node)
    node.fence_broker(3)
    await case.fetch(3, 0)
    assert case.controller.requests == []


async def test_a_silent_follower_falls_out_and_the_high_watermark_goes_on(node: RecordsNode) -> None:
    case = Case(node)
    await case.fetch(2, 0)
    await node.produce(batch_of(5), acks=1)
    node.clock.move(30_000)
    assert not case.partition.isr_state.in_flight
    node.clock.move(15_000)
    assert case.partition.isr_state.maximal_isr == {1, 2}, "a shrink counts when it is confirmed"
    await settled()
    assert case.controller.asked() == [[1]]
    assert case.partition.isr_state.isr == {1}
    assert case.partition.log.high_watermark == 5


async def test_lagging_followers_are_looked_for_only_while_there_are_some(node: RecordsNode) -> None:
    node.create_topic("alone")
    assert not node.clock._heap, "one replica needs no timer"
    case = Case(node)
    assert len(node.clock._heap) == 1
    node.change_partition(case.topic_id, isr=[1])
    node.clock.move(15_000)
    assert not node.clock._heap


async def test_a_refusal_goes_back_to_what_was_confirmed(node: RecordsNode) -> None:
    case = Case(node)
    case.controller.errors = [E.INELIGIBLE_REPLICA]
    await case.fetch(3, 0)
    assert case.partition.isr_state.isr == {1, 2}
    assert not case.partition.isr_state.in_flight
    await case.fetch(3, 0)
    assert len(case.controller.requests) == 2, "the next fetch wishes anew"


async def test_an_outdated_wish_waits_for_metadata(node: RecordsNode) -> None:
    case = Case(node)
    case.controller.errors = [E.INVALID_UPDATE_VERSION]
    await case.fetch(3, 0)
    assert case.partition.isr_state.in_flight
    node.change_partition(case.topic_id, isr=[1, 2])
    assert not case.partition.isr_state.in_flight


async def test_what_may_pass_is_sent_again_after_a_pause(node: RecordsNode) -> None:
    case = Case(node)
    case.controller.errors = [KafkaError(E.NOT_CONTROLLER), E.UNKNOWN_SERVER_ERROR]
    await case.fetch(3, 0)
    for sent in (1, 2):
        assert len(case.controller.requests) == sent
        node.clock.move(50)
        await settled()
    assert case.partition.isr_state.isr == {1, 2, 3}
    assert len(case.controller.requests) == 3


async def test_metadata_overtakes_an_answer(node: RecordsNode) -> None:
    case = Case(node)
    case.controller.open.clear()
    await case.fetch(3, 0)
    node.change_partition(case.topic_id, leader=1, isr=[1])
    case.controller.open.set()
    await settled()
    assert case.partition.isr_state.isr == {1}


async def test_closing_drops_what_is_under_way(node: RecordsNode) -> None:
    case = Case(node)
    case.controller.open.clear()
    await case.fetch(3, 0)
    await case.changes.close()
    assert len(case.controller.requests) == 1
