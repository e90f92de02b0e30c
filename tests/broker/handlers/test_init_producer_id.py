"""InitProducerId: fresh ids, what is refused, and what happens while the controller gives none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from records_node import Blocks, RecordsNode

from broker.clock import Clock
from broker.replication.producer_ids import BLOCK_WAIT_MS, ProducerIdBlock, ProducerIds
from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode as E
from wire.errors import KafkaError
from wire.messages.init_producer_id import InitProducerIdRequest


async def init(node: RecordsNode, version: int = 4, **options: Any) -> tuple[int, int, int]:
    options.setdefault("transactional_id", None)
    options.setdefault("transaction_timeout_ms", 60_000)
    answer = await node.call(InitProducerIdRequest(**options), version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


async def test_every_version_gets_a_fresh_id(node: RecordsNode) -> None:
    answers = [await init(node, version) for version in range(6)]
    assert answers == [(0, producer_id, 0) for producer_id in range(6)]


async def test_a_known_id_is_ignored_and_half_of_it_refused(node: RecordsNode) -> None:
    assert await init(node, producer_id=77, producer_epoch=3) == (0, 0, 0)
    assert await init(node, producer_id=77) == (E.INVALID_REQUEST, -1, -1)
    assert await init(node, producer_epoch=3) == (E.INVALID_REQUEST, -1, -1)


async def test_what_is_asked_before_the_coordinator_of_a_transactional_id(node: RecordsNode) -> None:
    assert await init(node, transactional_id="x", producer_id=5) == (E.INVALID_REQUEST, -1, -1)
    node.authorizer.denied.add((Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "x"))
    assert await init(node, transactional_id="x") == (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, -1)


async def test_one_of_two_permissions_is_enough(node: RecordsNode) -> None:
    node.create_topic("t")
    node.authorizer.denied.add((Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster"))
    assert (await init(node))[0] == 0
    node.authorizer.denied.add((Operation.WRITE, ResourceType.TOPIC, "t"))
    assert await init(node) == (E.CLUSTER_AUTHORIZATION_FAILED, -1, -1)


class Slow(Blocks):
    """Gives a block when told to; refuses while `broken`."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.broken = False
        self.asked = 0

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        self.asked += 1
        await self.open.wait()
        if self.broken:
            raise KafkaError(E.NOT_CONTROLLER)
        return await super().allocate_producer_ids()


async def test_ids_are_never_given_twice_and_the_next_block_is_fetched_early() -> None:
    clock, source = Clock(), Slow()
    source.open.set()
    ids = ProducerIds(source, clock)
    given = []
    for _ in range(900):
        given.append(await ids.next_id())
        await asyncio.sleep(0)
    assert source.asked == 2, "at 90 % of a block the next one is asked for"
    given += [await ids.next_id() for _ in range(1_200)]
    assert given == list(range(2_100))
    await ids.close()
    clock.close()


async def test_callers_wait_for_a_block_that_is_on_its_way() -> None:
    clock, source = Clock(), Slow()
    ids = ProducerIds(source, clock)
    callers = [asyncio.create_task(ids.next_id()) for _ in range(3)]
    await asyncio.sleep(0)
    source.open.set()
    assert sorted(await asyncio.gather(*callers)) == [0, 1, 2]
    assert source.asked == 1
    clock.close()


async def test_no_block_in_time_is_an_error_to_retry_and_the_next_call_succeeds() -> None:
    clock, source = Clock(), Slow()
    ids = ProducerIds(source, clock)
    caller = asyncio.create_task(ids.next_id())
    await asyncio.sleep(0)
    clock.move(BLOCK_WAIT_MS)
    with pytest.raises(KafkaError) as refused:
        await caller
    assert refused.value.code == E.COORDINATOR_LOAD_IN_PROGRESS
    source.open.set()
    assert await ids.next_id() == 0
    clock.close()


async def test_a_refused_allocation_is_repeated_after_a_pause_only() -> None:
    clock, source = Clock(), Slow()
    source.open.set()
    source.broken = True
    ids = ProducerIds(source, clock)
    for _ in range(3):
        with pytest.raises(KafkaError) as refused:
            await ids.next_id()
        assert refused.value.code == E.COORDINATOR_LOAD_IN_PROGRESS
    assert source.asked == 1
    source.broken = False
    clock.move(50)
    assert await ids.next_id() == 0
    clock.close()


@pytest.mark.parametrize("first", [0, 5_000])
async def test_a_block_is_used_from_its_first_id(first: int) -> None:
    class One(Blocks):
        async def allocate_producer_ids(self) -> ProducerIdBlock:
            return ProducerIdBlock(first, 10)

    clock = Clock()
    ids = ProducerIds(One(), clock)
    assert [await ids.next_id() for _ in range(3)] == [first, first + 1, first + 2]
    await ids.close()
    clock.close()
