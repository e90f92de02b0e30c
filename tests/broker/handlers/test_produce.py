"""Produce: what is accepted, what each refusal looks like, in which order they are found."""

from __future__ import annotations

import asyncio
import random
import struct

import crc32c
import pytest
from records_node import NOW_MS, RecordsNode, batch_of, fetched, produce_request

from broker.network.peer import CloseConnection
from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode as E
from wire.primitives import TopicPartition
from wire.records import Compression, NewRecord, build_batch

ALL_VERSIONS = range(3, 14)


def recrc(batch: bytes) -> bytes:
    """The batch with its CRC made right again."""
    return batch[:17] + struct.pack(">I", crc32c.crc32c(batch[21:])) + batch[21:]


def patched(batch: bytes, position: int, content: bytes) -> bytes:
    return recrc(batch[:position] + content + batch[position + len(content) :])


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_every_version_appends_and_answers(node: RecordsNode, version: int) -> None:
    topic_id = node.create_topic("t")
    request = produce_request({("t", 0): batch_of(3)}, topic_ids={"t": topic_id})
    for base_offset in (0, 3):
        (topic,) = (await node.call(request, version)).responses
        (answer,) = topic.partition_responses
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, base_offset, -1)
        assert (topic.topic_id == topic_id) if version >= 13 else (topic.name == "t")
        assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert node.end() == 6


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_w06_acks_zero_has_no_answer_and_the_others_have_one(node: RecordsNode, acks: int) -> None:
    node.create_topic("t")
    for _ in range(3):
        frame = await node.frame(produce_request({("t", 0): batch_of()}, acks=acks), 9)
        assert (frame is None) == (acks == 0)
    assert node.end() == 3


async def test_w06_acks_zero_closes_the_connection_when_a_partition_failed(node: RecordsNode) -> None:
    node.create_topic("t")
    with pytest.raises(CloseConnection):
        await node.frame(produce_request({("t", 0): batch_of(), ("t", 5): batch_of()}, acks=0), 9)
    assert node.end() == 1, "the other partition was written"


async def test_p01_resent_batches_are_recognised_and_gaps_refused(node: RecordsNode) -> None:
    node.create_topic("t")
    sent = [batch_of(producer_id=7, producer_epoch=0, base_sequence=sequence) for sequence in range(5)]
    first = [await node.produce(batch) for batch in sent]
    again = [await node.produce(batch) for batch in sent]
    assert [(answer.error_code, answer.base_offset) for answer in first] == [(0, offset) for offset in range(5)]
    assert [(answer.error_code, answer.base_offset) for answer in again] == [(0, offset) for offset in range(5)]
    assert node.end() == 5
    gap = await node.produce(batch_of(producer_id=7, producer_epoch=0, base_sequence=9))
    assert (gap.error_code, gap.base_offset, gap.log_start_offset) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 0)
    await node.produce(batch_of(producer_id=7, producer_epoch=0, base_sequence=5))
    old = await node.produce(sent[0])
    assert old.error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER, "outside the last five"
    assert node.end() == 6


async def test_p02_many_producers_in_flight_over_partitions_keep_their_order(node: RecordsNode) -> None:
    node.create_topic("t", partitions=8)
    chance = random.Random(2)

    async def producer(producer_id: int) -> None:
        for sequence in range(40):
            parts = {
                ("t", partition): batch_of(
                    value=b"%d/%d" % (producer_id, sequence),
                    producer_id=producer_id,
                    producer_epoch=0,
                    base_sequence=sequence,
                )
                for partition in range(8)
            }
            for _ in range(1 + (chance.random() < 0.3)):  # an answer is lost now and then, and all is resent
                response = await node.call(produce_request(parts), 9)
                errors = {answer.error_code for answer in response.responses[0].partition_responses}
                assert errors == {0}
            await asyncio.sleep(0)

    await asyncio.gather(*(producer(producer_id) for producer_id in range(5)))
    for partition in range(8):
        assert node.end("t", partition) == 5 * 40
        records = fetched((await node.fetch(0, "t", partition)).records)
        values = [record.value for batch in records for record in batch.records()]
        for producer_id in range(5):
            mine = [value for value in values if value.startswith(b"%d/" % producer_id)]
            assert mine == [b"%d/%d" % (producer_id, sequence) for sequence in range(40)]


async def test_a_new_epoch_starts_at_zero_and_an_old_one_is_fenced(node: RecordsNode) -> None:
    node.create_topic("t")
    await node.produce(batch_of(producer_id=7, producer_epoch=1, base_sequence=0))
    wrong = await node.produce(batch_of(producer_id=7, producer_epoch=2, base_sequence=1))
    old = await node.produce(batch_of(producer_id=7, producer_epoch=0, base_sequence=1))
    new = await node.produce(batch_of(producer_id=7, producer_epoch=2, base_sequence=0))
    assert [answer.error_code for answer in (wrong, old, new)] == [
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        E.INVALID_PRODUCER_EPOCH,
        0,
    ]


async def test_p05_an_oversized_batch_fails_alone(node: RecordsNode) -> None:
    node.create_topic("t", partitions=3, configs={"max.message.bytes": "50000"})
    noise = random.Random(1).randbytes(60_000)
    squeezable = batch_of(value=bytes(500_000), compression=Compression.GZIP)
    request = produce_request({("t", 0): batch_of(value=noise), ("t", 1): batch_of(2), ("t", 2): squeezable})
    (topic,) = (await node.call(request, 9)).responses
    answers = topic.partition_responses
    assert [answer.error_code for answer in answers] == [E.MESSAGE_TOO_LARGE, 0, 0]
    assert (answers[0].base_offset, answers[0].log_start_offset) == (-1, -1)
    assert "50000" in answers[0].error_message
    assert "max.message.bytes" in answers[0].error_message
    assert [node.end("t", partition) for partition in range(3)] == [0, 2, 1]


async def test_p05_oversize_is_found_before_a_wrong_crc(node: RecordsNode) -> None:
    node.create_topic("t", configs={"max.message.bytes": "50"})
    answer = await node.produce(batch_of()[:-1] + b"?")
    assert answer.error_code == E.MESSAGE_TOO_LARGE


async def test_p06_a_record_without_a_key_on_a_compacted_topic_is_named(node: RecordsNode) -> None:
    node.create_topic("t", configs={"cleanup.policy": "compact"})
    batch = build_batch([NewRecord(key, b"v", (), NOW_MS) for key in (b"a", None, b"c")])
    answer = await node.produce(batch, version=8)
    assert answer.error_code == E.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1]
    assert "key" in answer.record_errors[0].batch_index_error_message
    assert "One or more records have been rejected" in answer.error_message
    assert answer.log_start_offset == 0
    assert node.end() == 0
    assert (await node.produce(batch, version=7)).error_code == E.INVALID_RECORD


async def test_p07_log_append_time_is_answered_and_stored(node: RecordsNode) -> None:
    node.create_topic("create")
    node.create_topic("append", configs={"message.timestamp.type": "LogAppendTime"})
    create = await node.produce(batch_of(timestamp=1), "create")
    append = await node.produce(batch_of(timestamp=1), "append")
    assert (create.log_append_time_ms, append.log_append_time_ms) == (-1, NOW_MS)
    for topic, stamp, is_append_time in (("create", 1, False), ("append", NOW_MS, True)):
        (batch,) = fetched((await node.fetch(0, topic)).records)
        assert (batch.max_timestamp, batch.is_log_append_time) == (stamp, is_append_time)
        assert batch.has_valid_crc()
        assert [record.timestamp for record in batch.records()] == [stamp]


@pytest.mark.parametrize("written", [0, 7, -1])
async def test_p09_the_leader_epoch_in_the_batch_is_not_looked_at_but_replaced(node: RecordsNode, written: int) -> None:
    node.create_topic("t", leader_epoch=4)
    answer = await node.produce(batch_of(partition_leader_epoch=written))
    assert answer.error_code == 0
    (batch,) = fetched((await node.fetch(0)).records)
    assert batch.partition_leader_epoch == 4
    assert batch.has_valid_crc()


async def test_p10_malformed_records_under_a_right_crc_are_refused_and_nothing_else_happens(node: RecordsNode) -> None:
    node.create_topic("t")
    good = batch_of(3)
    malformed = [
        patched(good, 61, b"\xfe\xff\x7f"),  # a record longer than the batch
        patched(patched(good, 57, struct.pack(">i", 9)), 23, struct.pack(">i", 8)),  # more records than there are
        patched(good, 57, struct.pack(">i", -1)),  # a count below zero
        patched(patched(good, 57, struct.pack(">i", 2)), 23, struct.pack(">i", 1)),  # bytes left over
        patched(good, 23, struct.pack(">i", 5)),  # the count does not fit the offsets
    ]
    for place, batch in enumerate(malformed):
        answer = await node.produce(batch)
        assert answer.error_code in (E.INVALID_RECORD, E.CORRUPT_MESSAGE), place
        assert node.end() == 0
    assert (await node.produce(good)).base_offset == 0


async def test_p11_any_flipped_byte_behind_the_attributes_is_refused(node: RecordsNode) -> None:
    node.create_topic("t")
    good = batch_of(5)
    for position in random.Random(3).sample(range(23, len(good)), 20):
        damaged = bytearray(good)
        damaged[position] ^= 0x55
        answer = await node.produce(bytes(damaged))
        assert answer.error_code == E.CORRUPT_MESSAGE
        assert node.end() == 0


@pytest.mark.parametrize(
    ("what", "records", "code"),
    [
        ("null", None, E.INVALID_RECORD),
        ("empty", b"", E.INVALID_RECORD),
        ("cut", batch_of()[:40], E.INVALID_RECORD),
        ("two batches", batch_of() + batch_of(), E.INVALID_RECORD),
        ("two batches, the second damaged", batch_of() + batch_of()[:-1] + b"?", E.INVALID_RECORD),
        ("magic 1", batch_of()[:16] + b"\x01" + batch_of()[17:], E.INVALID_RECORD),
        ("magic 3", batch_of()[:16] + b"\x03" + batch_of()[17:], E.CORRUPT_MESSAGE),
        ("a size of 13", batch_of()[:8] + struct.pack(">i", 13) + batch_of()[12:], E.CORRUPT_MESSAGE),
        ("a base offset", batch_of(base_offset=7), E.INVALID_RECORD),
        ("control", batch_of(is_control=True), E.INVALID_RECORD),
        ("no sequence", batch_of(producer_id=5, producer_epoch=0, base_sequence=-1), E.INVALID_RECORD),
        ("the far future", batch_of(timestamp=NOW_MS + 3_600_001), E.INVALID_TIMESTAMP),
    ],
)
async def test_refused_batches(node: RecordsNode, what: str, records: bytes | None, code: E) -> None:
    node.create_topic("t")
    answer = await node.produce(records)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (code, -1, -1), what
    assert node.end() == 0


async def test_bytes_after_the_batch_that_are_no_batch_are_ignored(node: RecordsNode) -> None:
    node.create_topic("t")
    assert (await node.produce(batch_of() + b"abc")).error_code == 0
    assert node.log().size_bytes == len(batch_of())


@pytest.mark.parametrize(("version", "code"), [(6, E.UNSUPPORTED_COMPRESSION_TYPE), (7, E.NONE)])
async def test_zstd_needs_version_7(node: RecordsNode, version: int, code: E) -> None:
    node.create_topic("t")
    answer = await node.produce(batch_of(compression=Compression.ZSTD), version=version)
    assert answer.error_code == code


async def test_unknown_acks_are_refused_last(node: RecordsNode) -> None:
    node.create_topic("t")
    request = produce_request({("t", 0): batch_of(), ("t", 9): batch_of(), ("gone", 0): batch_of()}, acks=5)
    response = await node.call(request, 9)
    codes = [answer.error_code for topic in response.responses for answer in topic.partition_responses]
    assert codes == [E.INVALID_REQUIRED_ACKS, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert node.end() == 0


async def test_a_partition_named_twice_is_written_once_with_the_last_batch(node: RecordsNode) -> None:
    node.create_topic("t")
    request = produce_request({("t", 0): batch_of(1)})
    request.topic_data[0].partition_data += produce_request({("t", 0): batch_of(2)}).topic_data[0].partition_data
    (topic,) = (await node.call(request, 9)).responses
    assert len(topic.partition_responses) == 1
    assert node.end() == 2


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
async def test_internal_topics_are_for_the_broker_and_the_admin_client(node: RecordsNode, topic: str) -> None:
    node.create_topic(topic)
    assert (await node.produce(batch_of(), topic)).error_code == E.INVALID_TOPIC_EXCEPTION
    response = await node.call(produce_request({(topic, 0): batch_of()}), 9, client_id="__admin_client")
    assert response.responses[0].partition_responses[0].error_code == 0


async def test_no_permission_looks_the_same_for_what_is_there_and_what_is_not(node: RecordsNode) -> None:
    node.create_topic("t")
    for topic in ("t", "gone"):
        node.authorizer.denied.add((Operation.WRITE, ResourceType.TOPIC, topic))
        assert (await node.produce(b"", topic)).error_code == E.TOPIC_AUTHORIZATION_FAILED


async def test_topic_ids_of_version_13(node: RecordsNode) -> None:
    topic_id = node.create_topic("t")
    unknown = b"?" * 16
    request = produce_request(
        {("t", 0): batch_of(), ("u", 0): batch_of(), ("t", 4): batch_of()}, topic_ids={"t": topic_id, "u": unknown}
    )
    response = await node.call(request, 13)
    codes = {
        (topic.topic_id, answer.index): answer.error_code
        for topic in response.responses
        for answer in topic.partition_responses
    }
    assert codes == {
        (topic_id, 0): 0,
        (topic_id, 4): E.UNKNOWN_TOPIC_OR_PARTITION,
        (unknown, 0): E.UNKNOWN_TOPIC_ID,
    }


async def test_a_topic_made_anew_is_another_topic_to_version_13_and_the_same_to_version_12(node: RecordsNode) -> None:
    old_id = node.create_topic("t")
    await node.produce(batch_of(5))
    node.delete_topic(old_id)
    node.create_topic("t", topic_id=b"n" * 16)
    by_id = await node.call(produce_request({("t", 0): batch_of()}, topic_ids={"t": old_id}), 13)
    assert by_id.responses[0].partition_responses[0].error_code == E.UNKNOWN_TOPIC_ID
    by_name = await node.produce(batch_of(), version=12)
    assert (by_name.error_code, by_name.base_offset) == (0, 0)


async def test_a_transactional_batch_needs_an_id_that_may_be_written(node: RecordsNode) -> None:
    node.create_topic("t")
    batch = batch_of(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    parts = {("t", 0): batch, ("gone", 0): b""}
    node.authorizer.denied.add((Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "forbidden"))
    for transactional_id in (None, "forbidden"):
        response = await node.call(produce_request(parts, transactional_id=transactional_id), 9)
        codes = {answer.error_code for topic in response.responses for answer in topic.partition_responses}
        assert codes == {E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


async def test_two_producers_in_one_transactional_request_fail_as_a_whole(node: RecordsNode) -> None:
    node.create_topic("t", partitions=2)
    parts = {
        ("t", index): batch_of(producer_id=index, producer_epoch=0, base_sequence=0, is_transactional=True)
        for index in (0, 1)
    }
    (topic,) = (await node.call(produce_request(parts, transactional_id="x"), 9)).responses
    assert [answer.error_code for answer in topic.partition_responses] == [E.INVALID_PRODUCER_ID_MAPPING] * 2


@pytest.mark.parametrize("version", [9, 12])
async def test_without_a_coordinator_a_transaction_cannot_begin_here(node: RecordsNode, version: int) -> None:
    node.create_topic("t")
    batch = batch_of(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    (topic,) = (await node.call(produce_request({("t", 0): batch}, transactional_id="x"), version)).responses
    assert topic.partition_responses[0].error_code == E.NOT_ENOUGH_REPLICAS
    assert node.end() == 0


# --- replicas --------------------------------------------------------------------------------------


async def test_r01_one_replica_satisfies_any_min_insync_replicas(node: RecordsNode) -> None:
    node.create_topic("t", configs={"min.insync.replicas": "2"})
    assert (await node.produce(batch_of())).error_code == 0


async def test_r01_too_few_in_sync_refuses_acks_all_and_takes_acks_one(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2, 3), isr=(1,), configs={"min.insync.replicas": "2"})
    answer = await node.produce(b"not even a batch" * 5)
    assert answer.error_code == E.CORRUPT_MESSAGE, "the structure is looked at first"
    answer = await node.produce(batch_of()[:-1] + b"?")
    assert answer.error_code == E.NOT_ENOUGH_REPLICAS, "and the content last"
    assert node.end() == 0
    assert (await node.produce(batch_of(), acks=1)).error_code == 0
    assert node.end() == 1
    assert node.log().high_watermark == 0, "what too few have is not committed (KIP-966)"


async def test_acks_all_times_out_with_its_real_offset_and_the_data_stays(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2))
    waiting = asyncio.create_task(node.produce(batch_of()))
    await asyncio.sleep(0)
    node.clock.move(1_000)
    answer = await waiting
    assert (answer.error_code, answer.base_offset) == (E.REQUEST_TIMED_OUT, 0)
    assert node.end() == 1
    assert len(node.replicas.partitions[TopicPartition("t", 0)].commit_waits) == 0


async def test_acks_all_is_answered_when_the_follower_has_it(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2))
    waiting = asyncio.create_task(node.produce(batch_of()))
    await asyncio.sleep(0)
    for offset in (0, 1):
        assert not waiting.done()
        answer = await node.fetch(offset, version=12, replica=(2, -1), current_leader_epoch=0)
        assert answer.error_code == 0
    assert (await waiting).error_code == 0
    assert node.log().high_watermark == 1


async def test_acks_all_that_lost_its_isr_meanwhile_says_so(node: RecordsNode) -> None:
    topic_id = node.create_topic("t", replicas=(1, 2), configs={"min.insync.replicas": "1"})
    waiting = asyncio.create_task(node.produce(batch_of()))
    await asyncio.sleep(0)
    node.change_partition(topic_id, leader=2, isr=[2])
    answer = await waiting
    assert answer.error_code == E.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_r04_a_follower_and_a_stranger_send_the_client_to_the_leader(node: RecordsNode, version: int) -> None:
    ids = {
        "followed": node.create_topic("followed", replicas=(2, 1), leader_epoch=5),
        "strange": node.create_topic("strange", replicas=(3,), leader_epoch=6),
    }
    request = produce_request({("followed", 0): batch_of(), ("strange", 0): batch_of()}, topic_ids=ids)
    response = await node.call(request, version)
    answers = [topic.partition_responses[0] for topic in response.responses]
    assert [answer.error_code for answer in answers] == [E.NOT_LEADER_OR_FOLLOWER] * 2
    leaders = [(answer.current_leader.leader_id, answer.current_leader.leader_epoch) for answer in answers]
    endpoints = [(node_.node_id, node_.host, node_.port, node_.rack) for node_ in response.node_endpoints]
    if version < 10:
        assert (leaders, endpoints) == ([(-1, -1)] * 2, [])
    else:
        assert leaders == [(2, 5), (3, 6)]
        assert endpoints == [(2, "host2", 9092, "rack2"), (3, "host3", 9093, "rack3")]


async def test_a_leader_that_is_fenced_has_no_endpoint(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(2,))
    node.fence_broker(2)
    response = await node.call(produce_request({("t", 0): batch_of()}), 10)
    assert response.responses[0].partition_responses[0].current_leader.leader_id == 2
    assert response.node_endpoints == []
