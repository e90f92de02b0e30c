"""Fetch: what is returned at which offset, under which limits, after which wait; sessions; followers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from records_node import NOW_MS, RecordsNode, batch_of, fetch_request, fetched, produce_request

from broker.security.authorizer import Operation, ResourceType
from wire.errors import ErrorCode as E
from wire.primitives import TopicPartition
from wire.records import end_transaction_marker

ALL_VERSIONS = range(4, 19)


async def fill(node: RecordsNode, *counts: int, topic: str = "t", partition: int = 0, **options: Any) -> None:
    """Batches of so many records."""
    for count in counts:
        assert (await node.produce(batch_of(count, **options), topic, partition)).error_code == 0


async def begin(node: RecordsNode, request: Any, version: int = 11) -> asyncio.Task[Any]:
    """Send a fetch that has to wait."""
    task = asyncio.create_task(node.call(request, version))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_every_version_reads(node: RecordsNode, version: int) -> None:
    topic_id = node.create_topic("t")
    await fill(node, 2, 3)
    request = fetch_request({("t", 0): 2}, topic_ids={"t": topic_id}, version=version)
    response = await node.call(request, version)
    (topic,) = response.responses
    assert (topic.topic_id == topic_id) if version >= 13 else (topic.topic == "t")
    (answer,) = topic.partitions
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 5, 5)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert answer.aborted_transactions is None
    assert [(batch.base_offset, batch.record_count) for batch in fetched(answer.records)] == [(2, 3)]


@pytest.mark.parametrize("version", [4, 11, 12, 16])
async def test_w10_nothing_to_return_is_a_length_of_zero_and_not_null(node: RecordsNode, version: int) -> None:
    topic_id = node.create_topic("t")
    request = fetch_request({("t", 0): 0}, max_wait_ms=0, topic_ids={"t": topic_id}, version=version)
    frame = await node.frame(request, version)
    assert frame is not None
    # Before the records (and the empty tags of flexible versions): the preferred read replica from v11 on.
    if version >= 12:
        assert frame.endswith(b"\xff\xff\xff\xff" + b"\x01" + b"\x00\x00\x00")
    elif version == 11:
        assert frame.endswith(b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00")
    else:
        assert frame.endswith(b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00"), "null aborted transactions, empty records"


async def test_f01_the_batch_that_holds_the_offset_comes_whole(node: RecordsNode) -> None:
    node.create_topic("t")
    await fill(node, 2, 2)
    first_offsets = []
    for offset in range(5):
        answer = await node.fetch(offset)
        assert answer.error_code == 0
        first_offsets.append([batch.base_offset for batch in fetched(answer.records)][:1])
    assert first_offsets == [[0], [0], [2], [2], []]


async def test_f02_a_batch_beyond_every_limit_comes_whole_when_it_is_the_first(node: RecordsNode) -> None:
    node.create_topic("t", configs={"max.message.bytes": "6000000"})
    await fill(node, 1, value=b"a")
    await fill(node, 1, value=bytes(5_000_000))
    await fill(node, 1, value=b"c")
    offset, sizes = 0, []
    while offset < 3:
        answer = await node.fetch(offset, max_bytes=1000, partition_max_bytes=1000)
        (batch, *_) = fetched(answer.records)
        sizes.append(batch.size_bytes)
        assert len(answer.records) == max(batch.size_bytes, min(1000, len(answer.records)))
        offset = batch.last_offset + 1
    assert len(sizes) == 3
    assert sizes[1] > 5_000_000


async def test_f02_only_the_first_partition_with_data_may_exceed_the_limits(node: RecordsNode) -> None:
    node.create_topic("t", partitions=4)
    size = len(batch_of(value=bytes(1000)))
    for partition in (1, 2, 3):
        await fill(node, 1, 1, partition=partition, value=bytes(1000))
    parts = {("t", partition): 0 for partition in range(4)}
    response = await node.call(fetch_request(parts, max_bytes=size + 50), 11)
    lengths = [len(answer.records) for answer in response.responses[0].partitions]
    assert lengths == [0, size + 50, 0, 0]
    response = await node.call(fetch_request(parts, max_bytes=10), 11)
    lengths = [len(answer.records) for answer in response.responses[0].partitions]
    assert lengths == [0, size, 0, 0], "one whole batch, beyond the limit; then nothing"
    response = await node.call(fetch_request(parts, partition_max_bytes=size + 10, max_bytes=2 * size + 5), 11)
    lengths = [len(answer.records) for answer in response.responses[0].partitions]
    assert lengths == [0, size + 10, 0, 0], "what is left does not hold a batch, so it is not begun"
    response = await node.call(fetch_request(parts, partition_max_bytes=size + 10, max_bytes=2 * size + 15), 11)
    lengths = [len(answer.records) for answer in response.responses[0].partitions]
    assert lengths == [0, size + 10, size + 5, 0], "the second ends in the middle of its second batch"


async def test_the_broker_bounds_the_answer_whatever_is_asked(node: RecordsNode) -> None:
    node.create_topic("t", partitions=3)
    node.replicas.fetch_max_bytes = 3_000
    for partition in range(3):
        await fill(node, 1, 1, 1, 1, partition=partition, value=bytes(900))
    response = await node.call(fetch_request({("t", partition): 0 for partition in range(3)}), 11)
    assert sum(len(answer.records) for answer in response.responses[0].partitions) <= 3_000


@pytest.mark.parametrize("count", [1, 1_000])
async def test_f04_one_wait_for_the_whole_request(node: RecordsNode, count: int) -> None:
    node.create_topic("t", partitions=count)
    parts = {("t", partition): 0 for partition in range(count)}
    timed = await begin(node, fetch_request(parts, max_wait_ms=60_000))
    assert len(node.clock._heap) == 1, "one timer, however many partitions"
    node.clock.move(50_000)
    await asyncio.sleep(0)
    assert not timed.done()
    node.clock.move(10_000)
    response = await timed
    assert len(response.responses[0].partitions) == count
    woken = await begin(node, fetch_request(parts, max_wait_ms=60_000))
    await fill(node, 1, partition=count - 1)
    answers = (await woken).responses[0].partitions
    assert [answer.partition_index for answer in answers if answer.records] == [count - 1]
    assert all(len(partition.fetch_waits) == 0 for partition in node.replicas.partitions.values())


@pytest.mark.parametrize("min_bytes", [1, 100_000])
async def test_f05_an_incremental_fetch_without_news_waits(node: RecordsNode, min_bytes: int) -> None:
    node.create_topic("t")
    session = (await node.call(fetch_request({("t", 0): 0}, session=(0, 0), max_wait_ms=0), 11)).session_id
    waiting = await begin(node, fetch_request({}, session=(session, 1), min_bytes=min_bytes, max_wait_ms=1_000))
    assert not waiting.done()
    await fill(node, 1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert waiting.done() == (min_bytes == 1)
    node.clock.move(1_000)
    response = await waiting
    assert (response.error_code, response.session_id) == (0, session)
    assert len(fetched(response.responses[0].partitions[0].records)) == 1, "what there is at its deadline"
    idle = await begin(node, fetch_request({("t", 0): 1}, session=(session, 2), max_wait_ms=1_000))
    node.clock.move(1_000)
    assert (await idle).responses == [], "nothing changed, so nothing is named"


async def test_f05_min_bytes_add_up_over_partitions(node: RecordsNode) -> None:
    node.create_topic("t", partitions=3)
    size = len(batch_of())
    parts = {("t", index): 0 for index in range(3)}
    waiting = await begin(node, fetch_request(parts, min_bytes=2 * size, max_wait_ms=9_000))
    await fill(node, 1, partition=0)
    await asyncio.sleep(0)
    assert not waiting.done()
    await fill(node, 1, partition=2)
    answers = (await waiting).responses[0].partitions
    assert [len(answer.records) for answer in answers] == [size, 0, size]


async def test_f06_sessions_over_the_wire(node: RecordsNode) -> None:
    node.create_topic("t", partitions=2)
    parts = {("t", 0): 0, ("t", 1): 0}

    async def call(session: tuple[int, int], parts: dict[tuple[str, int], int], **options: Any) -> Any:
        return await node.call(fetch_request(parts, session=session, max_wait_ms=0, **options), 11)

    opened = await call((0, 0), parts)
    session = opened.session_id
    assert session > 0
    assert len(opened.responses[0].partitions) == 2
    assert (await call((0, -1), parts)).session_id == 0
    await fill(node, 1, partition=1)
    news = await call((session, 1), {})
    assert [answer.partition_index for answer in news.responses[0].partitions] == [1]
    wrong = await call((session, 1), {})
    assert (wrong.error_code, wrong.session_id, wrong.responses) == (E.INVALID_FETCH_SESSION_EPOCH, 0, [])
    unknown = await call((session + 1, 5), {})
    assert (unknown.error_code, unknown.session_id) == (E.FETCH_SESSION_ID_NOT_FOUND, 0)
    forgetting = await call((session, 2), {}, forgotten={"t": [1]})
    assert forgetting.responses == []
    assert node.node.fetch_sessions.partition_count == 1
    renewed = await call((session, 0), parts)
    assert renewed.session_id not in (0, session)
    closed = await call((renewed.session_id, -1), parts)
    assert (closed.session_id, len(closed.responses[0].partitions)) == (0, 2)
    assert len(node.node.fetch_sessions) == 0


async def test_f06_names_and_ids_do_not_mix_in_a_session(node: RecordsNode) -> None:
    topic_id = node.create_topic("t")
    opened = await node.call(
        fetch_request({("t", 0): 0}, session=(0, 0), max_wait_ms=0, topic_ids={"t": topic_id}, version=13), 13
    )
    response = await node.call(fetch_request({}, session=(opened.session_id, 1), max_wait_ms=0), 12)
    assert response.error_code == E.FETCH_SESSION_TOPIC_ID_ERROR


async def test_f13_the_edges_of_the_log(node: RecordsNode) -> None:
    node.create_topic("t")
    await fill(node, *[1] * 20)
    node.replicas.partitions[TopicPartition("t", 0)].delete_records_before(10)
    for offset, error in ((9, E.OFFSET_OUT_OF_RANGE), (10, 0), (20, 0), (21, E.OFFSET_OUT_OF_RANGE)):
        answer = await node.fetch(offset)
        assert answer.error_code == error, offset
        offsets = (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset)
        assert offsets == ((-1, -1, -1) if error else (20, 20, 10))
        assert answer.records is not None
        assert bool(answer.records) == (offset == 10)


async def test_f13_between_high_watermark_and_log_end_is_empty_without_an_error(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2))
    for _ in range(3):
        assert (await node.produce(batch_of(), acks=1)).error_code == 0
    assert node.log().high_watermark == 0
    for offset in range(4):
        answer = await node.fetch(offset)
        assert (answer.error_code, answer.high_watermark, answer.records) == (0, 0, b"")
    assert (await node.fetch(4)).error_code == E.OFFSET_OUT_OF_RANGE


async def test_an_error_ends_the_wait_but_what_is_not_read_does_not(node: RecordsNode) -> None:
    node.create_topic("t", partitions=2)
    at_once = await node.call(fetch_request({("t", 0): 0, ("t", 1): 99}, max_wait_ms=60_000), 11)
    assert [answer.error_code for answer in at_once.responses[0].partitions] == [0, E.OFFSET_OUT_OF_RANGE]
    waiting = await begin(node, fetch_request({("gone", 0): 0, ("t", 0): 0}, max_wait_ms=900))
    assert not waiting.done(), "an unknown topic is known before reading and does not hurry the rest"
    node.clock.move(900)
    response = await waiting
    codes = [(topic.topic, answer.error_code) for topic in response.responses for answer in topic.partitions]
    assert codes == [("t", 0), ("gone", E.UNKNOWN_TOPIC_OR_PARTITION)]


async def test_deleting_a_topic_ends_the_waits_on_it(node: RecordsNode) -> None:
    topic_id = node.create_topic("t")
    waiting = await begin(node, fetch_request({("t", 0): 0}, max_wait_ms=60_000))
    node.delete_topic(topic_id)
    response = await waiting
    assert response.responses[0].partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_new_leader_epoch_ends_the_waits(node: RecordsNode) -> None:
    topic_id = node.create_topic("t", leader_epoch=3)
    waiting = await begin(node, fetch_request({("t", 0): 0}, max_wait_ms=60_000, current_leader_epoch=3), version=11)
    node.change_partition(topic_id, leader=1)
    response = await waiting
    assert response.responses[0].partitions[0].error_code == E.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("version", [9, 12, 15, 16, 18])
async def test_fencing_comes_before_leadership_and_names_the_leader_from_16_on(node: RecordsNode, version: int) -> None:
    topic_id = node.create_topic("t", replicas=(2, 1), leader_epoch=5)
    for epoch, error in ((4, E.FENCED_LEADER_EPOCH), (6, E.UNKNOWN_LEADER_EPOCH)):
        request = fetch_request(
            {("t", 0): 0}, topic_ids={"t": topic_id}, version=version, max_wait_ms=0, current_leader_epoch=epoch
        )
        response = await node.call(request, version)
        answer = response.responses[0].partitions[0]
        assert answer.error_code == error
        hinted = version >= 16 and error == E.FENCED_LEADER_EPOCH
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == ((2, 5) if hinted else (-1, -1))
        assert [endpoint.node_id for endpoint in response.node_endpoints] == ([2] if hinted else [])


async def test_consumers_may_read_from_a_follower_from_version_11_on(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(2, 1))
    assert (await node.fetch(0, version=10)).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (await node.fetch(0, version=11)).error_code == 0


async def test_r04_a_partition_of_others_is_not_served(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(3,))
    assert (await node.fetch(0)).error_code == E.NOT_LEADER_OR_FOLLOWER


async def test_topic_ids_unknown_and_of_a_former_topic(node: RecordsNode) -> None:
    old_id = node.create_topic("t")

    async def by_id(topic_id: bytes, session: tuple[int, int] = (0, -1), named: bool = True) -> Any:
        parts = {("t", 0): 0} if named else {}
        request = fetch_request(parts, topic_ids={"t": topic_id}, session=session, max_wait_ms=0, version=13)
        return await node.call(request, 13)

    session = (await by_id(old_id, (0, 0))).session_id
    node.delete_topic(old_id)
    node.create_topic("t", topic_id=b"n" * 16)
    assert (await by_id(old_id)).responses[0].partitions[0].error_code == E.UNKNOWN_TOPIC_ID
    kept = await by_id(old_id, (session, 1), named=False)
    assert kept.responses[0].topic_id == old_id
    assert kept.responses[0].partitions[0].error_code == E.INCONSISTENT_TOPIC_ID
    assert (await by_id(b"n" * 16)).responses[0].partitions[0].error_code == 0


async def test_reading_needs_permission_whether_the_topic_is_there_or_not(node: RecordsNode) -> None:
    node.create_topic("t")
    for topic in ("t", "gone"):
        node.authorizer.denied.add((Operation.READ, ResourceType.TOPIC, topic))
        answer = await node.fetch(0, topic)
        assert (answer.error_code, answer.high_watermark, answer.aborted_transactions) == (
            E.TOPIC_AUTHORIZATION_FAILED,
            -1,
            [],
        )


async def test_an_isolation_level_that_does_not_exist_fails_the_request(node: RecordsNode) -> None:
    node.create_topic("t")
    response = await node.call(fetch_request({("t", 0): 0}, isolation_level=5), 11)
    assert response.error_code == E.UNKNOWN_SERVER_ERROR
    follower = await node.call(fetch_request({("t", 0): 0}, isolation_level=5, replica=(2, -1)), 11)
    assert follower.error_code == E.UNKNOWN_SERVER_ERROR


async def test_an_isolation_level_is_looked_at_where_there_is_something_to_read(node: RecordsNode) -> None:
    node.create_topic("t")
    absent = await node.call(fetch_request({("none", 0): 0}, isolation_level=5), 11)
    assert (absent.error_code, absent.responses[0].partitions[0].error_code) == (0, E.UNKNOWN_TOPIC_OR_PARTITION)
    lost = await node.call(fetch_request({("t", 0): 0}, isolation_level=5, session=(77, 3)), 11)
    assert lost.error_code == E.FETCH_SESSION_ID_NOT_FOUND


async def test_f11_read_committed_stops_at_an_open_transaction(node: RecordsNode) -> None:
    node.create_topic("t")
    await fill(node, 3)
    log = node.log()
    guard = log.start_verification(7, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    appended = node.replicas.append(
        TopicPartition("t", 0),
        batch_of(5, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True),
        acks=-1,
        now_ms=NOW_MS,
        verification_guard=guard,
    )
    assert (appended.error, appended.base_offset) == (0, 3)
    uncommitted, committed = await node.fetch(0), await node.fetch(0, isolation_level=1)
    assert [batch.base_offset for batch in fetched(uncommitted.records)] == [0, 3]
    assert uncommitted.aborted_transactions is None
    assert [batch.base_offset for batch in fetched(committed.records)] == [0]
    assert committed.aborted_transactions == []
    assert (committed.high_watermark, committed.last_stable_offset) == (8, 3)
    assert (uncommitted.high_watermark, uncommitted.last_stable_offset) == (8, 3)


async def test_f17_aborted_transactions_are_named_to_read_committed_and_their_data_is_sent(node: RecordsNode) -> None:
    node.create_topic("t")
    topic_partition, log = TopicPartition("t", 0), node.log()

    def transaction(producer_id: int, *, is_commit: bool) -> None:
        guard = log.start_verification(producer_id, 0, 0, supports_epoch_bump=False, now_ms=NOW_MS)
        batch = batch_of(2, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
        outcome = node.replicas.append(topic_partition, batch, acks=-1, now_ms=NOW_MS, verification_guard=guard)
        assert outcome.error == 0
        marker = end_transaction_marker(
            is_commit=is_commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
        )
        node.replicas.append_records(topic_partition, marker)

    transaction(7, is_commit=False)
    transaction(8, is_commit=True)
    uncommitted, committed = await node.fetch(0), await node.fetch(0, isolation_level=1)
    assert uncommitted.records == committed.records
    assert uncommitted.aborted_transactions is None
    assert [(a.producer_id, a.first_offset) for a in committed.aborted_transactions] == [(7, 0)]
    assert committed.last_stable_offset == 6
    later = await node.fetch(3, isolation_level=1)
    assert later.aborted_transactions == [], "it ended before"


# --- followers -------------------------------------------------------------------------------------


async def follower_fetch(node: RecordsNode, offset: int, broker: int = 2, epoch: int = 10, **options: Any) -> Any:
    options.setdefault("current_leader_epoch", 0)
    request = fetch_request(
        {("t", 0): offset},
        topic_ids={"t": node.image.topics.by_name("t").topic_id},  # type: ignore[union-attr]
        version=17,
        max_wait_ms=0,
        replica=(broker, epoch),
        **options,
    )
    return (await node.call(request, 17)).responses[0].partitions[0]


async def test_followers_see_the_log_end_and_move_the_high_watermark(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2, 3))
    assert (await node.produce(batch_of(4), acks=1)).error_code == 0
    answer = await follower_fetch(node, 0)
    assert [batch.base_offset for batch in fetched(answer.records)] == [0]
    assert answer.high_watermark == 0
    await follower_fetch(node, 4, broker=2)
    assert node.log().high_watermark == 0, "broker 3 is in sync as well"
    await follower_fetch(node, 4, broker=3)
    assert node.log().high_watermark == 4


async def test_a_follower_of_a_former_life_changes_nothing(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2))
    await node.produce(batch_of(4), acks=1)
    assert (await follower_fetch(node, 4, epoch=9)).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert node.log().high_watermark == 0


async def test_a_broker_without_a_replica_may_not_follow(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2))
    assert (await follower_fetch(node, 0, broker=3)).error_code == E.UNKNOWN_LEADER_EPOCH
    assert (await follower_fetch(node, 0, broker=3, current_leader_epoch=-1)).error_code == E.NOT_LEADER_OR_FOLLOWER


async def test_following_needs_permission_on_the_cluster(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2))
    node.authorizer.denied.add((Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"))
    assert (await follower_fetch(node, 0)).error_code == E.TOPIC_AUTHORIZATION_FAILED


async def test_a_diverged_follower_is_told_where(node: RecordsNode) -> None:
    topic_id = node.create_topic("t", replicas=(1, 2))
    for _ in range(3):
        await node.produce(batch_of(), acks=1)
    node.change_partition(topic_id, leader=1)  # epoch 1 begins at 3
    await node.produce(batch_of(), acks=1)
    answer = await follower_fetch(node, 5, current_leader_epoch=1, last_fetched_epoch=0)
    assert (answer.error_code, answer.records) == (0, b"")
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 3)
    assert node.replicas.partitions[TopicPartition("t", 0)].followers[2].log_end_offset == -1, "it is not there yet"
    same = await follower_fetch(node, 3, current_leader_epoch=1, last_fetched_epoch=0)
    assert same.diverging_epoch.epoch == -1
    assert [batch.base_offset for batch in fetched(same.records)] == [3]
    unknown = await follower_fetch(node, 3, current_leader_epoch=1, last_fetched_epoch=9)
    assert unknown.error_code == E.OFFSET_OUT_OF_RANGE


async def test_a_waiting_follower_wakes_at_the_append(node: RecordsNode) -> None:
    node.create_topic("t", replicas=(1, 2))
    consumer = await begin(node, fetch_request({("t", 0): 0}, max_wait_ms=5_000))
    follower = await begin(node, fetch_request({("t", 0): 0}, max_wait_ms=5_000, replica=(2, -1)))
    await node.call(produce_request({("t", 0): batch_of()}, acks=1), 9)
    answer = (await follower).responses[0].partitions[0]
    assert len(fetched(answer.records)) == 1
    assert not consumer.done()
    await node.fetch(1, replica=(2, -1))
    assert len(fetched((await consumer).responses[0].partitions[0].records)) == 1
