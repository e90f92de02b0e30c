"""Cases from the field about transactions, request by request against a whole node."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.broker.node_fixture import RunningNode, running_node
from tests.broker.transaction_client import TransactionClient, until
from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from wire.records import batches

PROTOCOLS = pytest.mark.parametrize("version", [4, 5], ids=["explicit", "implicit"])
"""By the version of EndTxn: partitions added by the producer, or by the leader (KIP-890)."""


@asynccontextmanager
async def node_with_producer(
    settings: dict[str, str] | None = None, **init: Any
) -> AsyncIterator[tuple[RunningNode, TransactionClient]]:
    async with running_node(settings) as node:
        producer = TransactionClient(node)
        await producer.create_topic()
        await producer.init(**init)
        yield node, producer


def plain(node: RunningNode) -> TransactionClient:
    return TransactionClient(node, None)


@PROTOCOLS
async def test_t01_nothing_at_or_past_an_open_transaction_is_stable(version: int) -> None:
    async with node_with_producer() as (node, producer):
        other = plain(node)
        await other.send(b"1", b"2", b"3")
        if version < 5:
            await producer.add()
        await producer.send(*[b"open"] * 5, version=12 if version >= 5 else 11)
        await other.send(b"4", b"5")
        found = await producer.fetch()
        assert (found.last_stable_offset, found.high_watermark) == (3, 10)
        assert await producer.values() == [b"1", b"2", b"3"]
        assert (await producer.fetch(offset=3)).last_stable_offset == 3
        assert len(await producer.values(isolation=0)) == 10
        await producer.end(version=version)
        await producer.stable(11)
        assert await producer.values() == [b"1", b"2", b"3", *[b"open"] * 5, b"4", b"5"]


@PROTOCOLS
async def test_t02_readers_of_committed_data_see_the_committed_records_only(version: int) -> None:
    """A hundred transactions of three producers over two partitions, interleaved."""
    chance = random.Random(2)
    async with running_node() as node:
        producers = [TransactionClient(node, f"x{number}") for number in range(3)]
        await producers[0].create_topic(partitions=2)
        for producer in producers:
            await producer.init()
        committed: list[list[bytes]] = [[], []]

        async def work(producer: TransactionClient, name: str) -> None:
            for number in range(34):
                commit, sent = chance.random() < 0.6, []
                for partition in chance.sample([0, 1], chance.randint(1, 2)):
                    if version < 5:
                        await producer.add("t", partition)
                    values = [f"{name}-{number}-{index}".encode() for index in range(chance.randint(1, 3))]
                    code = await producer.send(*values, partition=partition, version=12 if version >= 5 else 11)
                    assert code is ErrorCode.NONE
                    sent += [(partition, value) for value in values]
                    await asyncio.sleep(0)
                assert (await producer.end(commit=commit, version=version)).error_code == 0
                for partition, value in sent if commit else ():
                    committed[partition].append(value)

        await asyncio.gather(*(work(producer, f"p{place}") for place, producer in enumerate(producers)))
        for partition in (0, 1):
            end = await producers[0].end_offset(partition=partition, isolation=0)
            await producers[0].stable(end, partition=partition)
            read = await producers[0].values(partition=partition)
            assert sorted(read) == sorted(committed[partition])
            assert len(await producers[0].values(partition=partition, isolation=0)) > len(read)


@PROTOCOLS
async def test_t04_a_timed_out_transaction_is_aborted_and_its_producer_can_go_on(version: int) -> None:
    async with node_with_producer(transaction_timeout_ms=2_000) as (node, producer):
        if version < 5:
            await producer.add()
        await producer.send(b"lost", version=12 if version >= 5 else 11)
        await plain(node).send(b"later")
        node.clock.move(11_000)
        await producer.stable(3)
        assert await producer.values() == [b"later"]
        described = await producer.describe()
        assert (described.transaction_state, described.producer_epoch) == ("CompleteAbort", 1)
        # With the bumps of version 5 the coordinator's abort looks like this very request carried out.
        refusal = ErrorCode.INVALID_TXN_STATE if version >= 5 else ErrorCode.PRODUCER_FENCED
        assert (await producer.end(version=version)).error_code == refusal
        assert (await producer.end(version=1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await producer.send(b"late") is ErrorCode.INVALID_PRODUCER_EPOCH
        held = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        assert (await producer.init(4, **held)).error_code == 0
        await producer.transact(b"again", version=version)
        await producer.stable(5)
        assert await producer.values() == [b"later", b"again"]


async def test_t05_the_first_transaction_needs_no_settings_and_no_patience() -> None:
    began = time.monotonic()
    async with node_with_producer() as (_, producer):
        await producer.transact(b"one")
        assert time.monotonic() - began < 2


@PROTOCOLS
async def test_t06_the_next_transaction_follows_at_once(version: int) -> None:
    """Over 50 partitions, so that markers take their time; being busy passes by itself."""
    async with running_node() as node:
        producer = TransactionClient(node)
        await producer.create_topic(partitions=50)
        await producer.init()
        for _ in range(20):
            if version < 5:
                assert await producer.add("t", *range(50)) is ErrorCode.NONE
            for partition in range(50):
                code = await producer.send(b"v", partition=partition, version=12 if version >= 5 else 11)
                assert code is ErrorCode.NONE
            assert (await producer.end(version=version)).error_code == 0
        for partition in range(50):
            await producer.stable(40, partition=partition)


async def test_t07_absurd_timeouts_are_refused() -> None:
    async with running_node() as node:
        producer = TransactionClient(node)
        codes = [
            (await producer.init(transaction_timeout_ms=timeout_ms)).error_code
            for timeout_ms in (2**31 - 1, 0, 900_001, 900_000)
        ]
        refused = ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert codes == [refused, refused, refused, ErrorCode.NONE]


async def test_t08_a_wrong_epoch_does_not_end_a_transaction() -> None:
    async with node_with_producer() as (_, producer):
        await producer.init()
        await producer.add()
        await producer.send(b"v")
        epoch = producer.producer_epoch
        for version, fenced in ((1, ErrorCode.INVALID_PRODUCER_EPOCH), (3, ErrorCode.PRODUCER_FENCED)):
            for wrong in (epoch + 1, epoch - 1):
                assert (await producer.end(version=version, producer_epoch=wrong)).error_code == fenced
            for wrongs in ({"producer_id": 99}, {"transactional_id": "nobody"}):
                answer = await producer.end(version=version, **wrongs)
                assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert (await producer.describe()).transaction_state == "Ongoing"
        assert (await producer.end(version=3)).error_code == 0


@PROTOCOLS
async def test_t09_a_zombie_is_told_so_and_only_the_second_producers_records_are_committed(version: int) -> None:
    async with node_with_producer() as (node, zombie):
        produce = 12 if version >= 5 else 11
        if version < 5:
            await zombie.add()
        await zombie.send(b"zombie", version=produce)
        second = TransactionClient(node)
        answer = await second.init(raw=True)
        assert answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        await second.init()
        assert second.producer_epoch > zombie.producer_epoch
        assert await zombie.send(b"zombie", version=produce) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await zombie.end(version=version)).error_code == ErrorCode.PRODUCER_FENCED
        await second.transact(b"second", version=version)
        await second.stable(4)
        assert await second.values() == [b"second"]


async def test_t10_ending_what_was_not_begun() -> None:
    async with node_with_producer() as (_, producer):
        for commit in (True, False):
            assert (await producer.end(commit=commit, version=4)).error_code == ErrorCode.INVALID_TXN_STATE
        await producer.transact(b"v", version=4)
        await producer.stable(2)
        assert (await producer.end(version=4)).error_code == 0, "the same once more"
        assert (await producer.end(commit=False, version=4)).error_code == ErrorCode.INVALID_TXN_STATE


async def test_t10_an_abort_of_nothing_with_bumps_moves_the_epoch() -> None:
    async with node_with_producer() as (_, producer):
        assert (await producer.end(commit=True, version=5)).error_code == ErrorCode.INVALID_TXN_STATE
        for epoch in (1, 2):
            answer = await producer.end(commit=False, version=5)
            assert (answer.error_code, answer.producer_epoch) == (0, epoch)


@PROTOCOLS
@pytest.mark.parametrize("ending", ["commit", "abort", "timeout"])
async def test_t12_offsets_of_a_transaction_wait_for_its_end(version: int, ending: str) -> None:
    async with node_with_producer(transaction_timeout_ms=2_000) as (node, producer):
        if version < 5:
            assert await producer.add_offsets() is ErrorCode.NONE
        assert await producer.commit_offset(7, version=5 if version >= 5 else 3) is ErrorCode.NONE
        assert await producer.committed(stable=False) == (-1, ErrorCode.NONE)
        assert await producer.committed(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if ending == "timeout":
            node.clock.move(11_000)
        else:
            assert (await producer.end(commit=ending == "commit", version=version)).error_code == 0
        now = await until(lambda: producer.committed(stable=True), lambda found: not found[1])
        expected = 7 if ending == "commit" else -1
        assert now == (expected, ErrorCode.NONE)
        assert await producer.committed(stable=False) == (expected, ErrorCode.NONE)


async def test_t12_an_offset_needs_a_transaction() -> None:
    async with node_with_producer() as (_, producer):
        await producer.add_offsets("other")
        await producer.end()
        assert await producer.commit_offset(7, version=4) is ErrorCode.TRANSACTION_ABORTABLE
        assert await producer.commit_offset(7, version=3) is ErrorCode.INVALID_TXN_STATE
        assert await producer.committed(stable=True) == (-1, ErrorCode.NONE)


@PROTOCOLS
async def test_t17_each_marker_takes_an_offset(version: int) -> None:
    async with node_with_producer() as (_, producer):
        await producer.transact(b"v", version=version)
        await producer.stable(2)
        assert await producer.end_offset(isolation=0) == 2
        found = await producer.fetch(offset=1)
        (marker,) = batches(found.records)
        assert (marker.base_offset, marker.is_control, marker.record_count) == (1, True, 1)


# --- where the texts are silent, the code was right in Kafka -----------------------------------------


async def test_a_late_batch_does_not_open_a_transaction_of_its_own() -> None:
    """KIP-890: it arrives when its transaction is over; the last stable offset must not hang."""
    async with node_with_producer() as (_, producer):
        await producer.transact(b"v", commit=False, version=4)
        await producer.stable(2)
        late = producer.sequences["t", 0]
        assert await producer.send(b"late", version=11, base_sequence=late) is ErrorCode.TRANSACTION_ABORTABLE
        assert await producer.send(b"late", version=9, base_sequence=late) is ErrorCode.INVALID_TXN_STATE
        await producer.transact(b"v", commit=False, version=5)
        await producer.stable(4)
        old = {"producer_epoch": producer.producer_epoch - 1, "base_sequence": 1}
        assert await producer.send(b"late", version=12, **old) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await producer.end_offset() == await producer.end_offset(isolation=0)


async def test_without_verification_older_producers_write_as_they_like() -> None:
    async with node_with_producer({"transaction.partition.verification.enable": "false"}) as (_, producer):
        assert await producer.send(b"v", version=11) is ErrorCode.NONE
        assert (await producer.describe()).transaction_state == "Empty"


async def test_verification_is_switched_off_and_on_while_the_node_runs() -> None:
    async with node_with_producer() as (_, producer):
        await producer.create_topic("other")

        async def verify(value: str) -> None:
            config = AlterableConfig(name="transaction.partition.verification.enable", value=value)
            broker = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
            answer = await producer.call(IncrementalAlterConfigsRequest(resources=[broker]))
            assert answer.responses[0].error_code == 0, answer

        assert await producer.send(b"v", version=11) is ErrorCode.TRANSACTION_ABORTABLE
        await verify("false")
        assert await producer.send(b"v", version=11) is ErrorCode.NONE
        await verify("true")
        assert await producer.send(b"v", topic="other", version=11) is ErrorCode.TRANSACTION_ABORTABLE


@pytest.mark.parametrize(("release", "level"), [("3.9", None), ("4.0", 2), ("4.4", 2)])
async def test_a_release_without_epoch_bumps_does_not_tell_of_them(release: str, level: int | None) -> None:
    async with node_with_producer({"odradek.kafka.release": release}, version=4) as (_, producer):
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = await producer.call(request, 4)
        finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        supported = {each.name for each in answer.supported_features}
        assert finalized.get("transaction.version") == level
        assert ("transaction.version" in supported) is (level is not None)
        await producer.transact(b"v", version=5 if level else 4)


async def test_an_operator_sees_a_hanging_transaction() -> None:
    async with node_with_producer({"transaction.partition.verification.enable": "false"}) as (_, producer):
        await producer.send(b"hanging", version=11)
        request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
        (state,) = (await producer.call(request)).topics[0].partitions[0].active_producers
        assert (state.producer_id, state.current_txn_start_offset, state.coordinator_epoch) == (
            producer.producer_id,
            0,
            -1,
        )


async def test_transactions_outlive_a_restart(tmp_path: Any) -> None:
    """What was decided is ended, what was open stays open and times out by the old clock."""
    settings = {"odradek.memory": "false", "log.dirs": str(tmp_path)}
    async with node_with_producer(settings) as (node, producer):
        await producer.add()
        await producer.send(b"decided")
        # No marker is written before the node stops.
        node.server.node.transactions._markers._writers = {}
        assert (await producer.end()).error_code == 0
        second = TransactionClient(node, "y")
        await second.init(transaction_timeout_ms=5_000)
        await second.send(b"open", version=12)
    async with running_node(settings) as node:
        reader = TransactionClient(node, "y")
        await reader.stable(1)
        assert (await reader.fetch()).last_stable_offset == 1
        assert await reader.values() == [b"decided"]
        node.clock.move(20_000)
        await reader.stable(4)
        assert await reader.values() == [b"decided"]
        producer = TransactionClient(node)
        assert (await producer.init()).producer_epoch == 1


@pytest.mark.parametrize("level", [0, 1])
async def test_a_cluster_at_an_older_transaction_version_serves_the_older_protocol(level: int) -> None:
    async with node_with_producer() as (node, producer):
        await producer.transact(b"bumped", version=5)
        await producer.stable(2)
        update = FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=2)
        answer = await producer.call(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=10_000))
        assert answer.error_code == 0
        await producer.init()
        await producer.transact(b"plain", version=4)
        await producer.stable(4)
        assert await producer.values() == [b"bumped", b"plain"]
        epoch = producer.producer_epoch
        await producer.add()
        fenced = TransactionClient(node)
        await fenced.init()
        assert fenced.producer_epoch == epoch + 2
        code = await fenced.send(b"implicit", version=12)
        assert code is (ErrorCode.UNSUPPORTED_VERSION if level == 0 else ErrorCode.NONE)
