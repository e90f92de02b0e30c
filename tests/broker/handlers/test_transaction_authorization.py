"""Who may make transaction requests, asked in Kafka's order, against a whole node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from broker.security.authorizer import Operation, ResourceType
from tests.broker.node_fixture import running_node
from tests.broker.transaction_client import TransactionClient
from wire.errors import ErrorCode as E
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.messages.list_transactions import ListTransactionsRequest
from wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

WRITE_ID = (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
WRITE_TOPIC = (Operation.WRITE, ResourceType.TOPIC, "t")
READ_TOPIC = (Operation.READ, ResourceType.TOPIC, "t")
READ_GROUP = (Operation.READ, ResourceType.GROUP, "g")
DESCRIBE_ID = (Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "x")
DESCRIBE_TOPIC = (Operation.DESCRIBE, ResourceType.TOPIC, "t")
CLUSTER = (ResourceType.CLUSTER, "kafka-cluster")


class Denying:
    """Allows all but what is denied."""

    def __init__(self) -> None:
        self.denied: set[tuple[Operation, ResourceType, str]] = set()

    def authorize(self, _principal: Any, _host: str, operation: Any, resource_type: Any, name: str) -> bool:
        return (operation, resource_type, name) not in self.denied


@asynccontextmanager
async def producer_and_rules(*denied: Any) -> AsyncIterator[tuple[TransactionClient, Denying]]:
    async with running_node() as node:
        producer = TransactionClient(node)
        await producer.create_topic()
        await producer.create_topic("u")
        await producer.init()
        rules = Denying()
        rules.denied.update(denied)
        node.server.node.authorizer = rules
        yield producer, rules


async def add(producer: TransactionClient, *names: str) -> dict[str, E]:
    request = AddPartitionsToTxnRequest(
        **{f"v3_and_below_{name}": value for name, value in producer.identity.items()},
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in names],
    )
    answer = await producer.call(request, 3)
    return {
        topic.name: E(topic.results_by_partition[0].partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
    }


async def test_init_producer_id() -> None:
    async with producer_and_rules(WRITE_ID) as (producer, _):
        answer = await producer.init(producer_id=5)
        assert answer.error_code == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "before half an identity is seen"


async def test_add_partitions_asks_for_the_id_then_for_every_topic() -> None:
    async with producer_and_rules(WRITE_ID, WRITE_TOPIC) as (producer, rules):
        failed = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await add(producer, "t", "u") == {"t": failed, "u": failed}
        rules.denied.discard(WRITE_ID)
        assert await add(producer, "t", "u", "nosuch", "__consumer_offsets") == {
            "t": E.TOPIC_AUTHORIZATION_FAILED,
            "u": E.OPERATION_NOT_ATTEMPTED,
            "nosuch": E.UNKNOWN_TOPIC_OR_PARTITION,
            "__consumer_offsets": E.TOPIC_AUTHORIZATION_FAILED,
        }
        assert (await producer.describe()).transaction_state == "Empty"
        assert await add(producer, "u") == {"u": E.NONE}


async def test_batched_adding_is_for_brokers() -> None:
    async with producer_and_rules((Operation.CLUSTER_ACTION, *CLUSTER), WRITE_ID, WRITE_TOPIC) as (producer, rules):
        entry = AddPartitionsToTxnTransaction(
            **producer.identity, topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])]
        )
        request = AddPartitionsToTxnRequest(transactions=[entry])
        answer = await producer.call(request, 5)
        assert (answer.error_code, answer.results_by_transaction) == (E.CLUSTER_AUTHORIZATION_FAILED, [])
        rules.denied.discard((Operation.CLUSTER_ACTION, *CLUSTER))
        answer = await producer.call(request, 5)
        (result,) = answer.results_by_transaction
        assert result.topic_results[0].results_by_partition[0].partition_error_code == 0, "brokers asked before"


async def test_offsets_ask_for_the_id_the_group_and_the_topic() -> None:
    async with producer_and_rules(WRITE_ID, READ_GROUP, READ_TOPIC) as (producer, rules):
        assert await producer.add_offsets() is E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await producer.commit_offset(1) is E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        rules.denied.discard(WRITE_ID)
        assert await producer.add_offsets() is E.GROUP_AUTHORIZATION_FAILED
        assert await producer.commit_offset(1) is E.GROUP_AUTHORIZATION_FAILED
        rules.denied.discard(READ_GROUP)
        assert await producer.add_offsets() is E.NONE
        assert await producer.commit_offset(1) is E.TOPIC_AUTHORIZATION_FAILED
        rules.denied.discard(READ_TOPIC)
        assert await producer.commit_offset(1) is E.NONE


async def test_end_txn_and_produce_ask_for_the_id() -> None:
    async with producer_and_rules() as (producer, rules):
        await producer.add()
        rules.denied.add(WRITE_ID)
        assert (await producer.end()).error_code == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await producer.send(b"v") is E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        rules.denied.clear()
        assert (await producer.describe()).transaction_state == "Ongoing"


async def test_markers_are_for_operators_and_brokers() -> None:
    alter, action = (Operation.ALTER, *CLUSTER), (Operation.CLUSTER_ACTION, *CLUSTER)
    marker = WritableTxnMarker(
        producer_id=1,
        producer_epoch=0,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
    )
    async with producer_and_rules(alter, action) as (producer, rules):
        codes = []
        for allowed in ((), (alter,), (action,)):
            rules.denied.update((alter, action))
            rules.denied.difference_update(allowed)
            answer = await producer.call(WriteTxnMarkersRequest(markers=[marker]))
            codes.append(E(answer.markers[0].topics[0].partitions[0].error_code))
        assert codes == [E.CLUSTER_AUTHORIZATION_FAILED, E.NONE, E.NONE]
        assert await producer.end_offset() == 2


async def test_what_may_not_be_described_is_left_out() -> None:
    async with producer_and_rules() as (producer, rules):
        await producer.add()
        rules.denied.add(DESCRIBE_TOPIC)
        described = await producer.describe()
        assert (described.transaction_state, described.topics) == ("Ongoing", [])
        rules.denied.add(DESCRIBE_ID)
        assert (await producer.describe()).error_code == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await producer.call(ListTransactionsRequest())).transaction_states == []
        rules.denied.clear()
        (listed,) = (await producer.call(ListTransactionsRequest())).transaction_states
        assert listed.transactional_id == "x"
