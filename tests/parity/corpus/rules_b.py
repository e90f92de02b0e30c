"""Produce beyond the ordinary: order of refusals, what is answered in each version, batches that hardly are."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.produce_and_fetch import BASE_TIME_MS, batch, create, fetch, offsets, produce, with_crc
from tests.parity.player import Player
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.records import Compression, NewRecord, build_batch


def patched(data: bytes, at: int, value: int, size: int) -> bytes:
    """The batch with an integer overwritten and its checksum made right."""
    changed = bytearray(data)
    changed[at : at + size] = value.to_bytes(size, "big", signed=True)
    return with_crc(changed)


def raw_records(*records: bytes, **header: int) -> bytes:
    """A batch whose records are these bytes, whatever they are; header fields by position's name."""
    data = batch(*[b"v"] * max(len(records), 1))[:61] + b"".join(records)
    places = {"attributes": (21, 2), "last_offset_delta": (23, 4), "count": (57, 4), "base_timestamp": (27, 8)}
    data = data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:]
    for name, value in header.items():
        at, size = places[name]
        data = data[:at] + value.to_bytes(size, "big", signed=True) + data[at + size :]
    return with_crc(bytearray(data))


def scenario_produce_to_several(player: Player) -> None:
    """Topics and partitions twice, nothing at all, ids unknown, authorisation of transactions."""
    connection, topic = player.connect(), player.name("t")
    topic_id = create(connection, topic, 2)
    good = batch(b"good")

    def several(*parts: tuple[str | bytes, int, bytes | None], **fields: Any) -> ProduceRequest:
        data = [
            TopicProduceData(
                name=name if isinstance(name, str) else "",
                topic_id=name if isinstance(name, bytes) else bytes(16),
                partition_data=[PartitionProduceData(index=index, records=records)],
            )
            for name, index, records in parts
        ]
        return ProduceRequest(topic_data=data, **{"acks": -1, "timeout_ms": 10_000, **fields})

    connection.call(several(), 9, "nothing")
    connection.call(ProduceRequest(topic_data=[TopicProduceData(name=topic)], acks=-1), 9, "no partitions")
    connection.call(several((topic, 0, good), (topic, 1, good)), 9, "topic twice")
    connection.call(several((topic, 0, good), (topic, 0, batch(b"second"))), 9, "partition twice")
    connection.call(several((topic, 0, b""), (topic, 0, good)), 9, "partition twice, the first is bad")
    connection.call(several((topic, 0, good), (topic, 0, b"")), 9, "partition twice, the second is bad")
    connection.call(several((topic, 5, good), (topic, 0, good), (player.name("no"), 0, good)), 9, "bad, good, bad")
    connection.call(several((topic, -1, good)), 9, "partition -1")
    connection.call(several(("", 0, good)), 9, "no name")
    connection.call(several((topic_id, 0, good), (b"\x01" * 16, 0, good), (bytes(16), 0, good)), 13, "by id")
    connection.call(several((topic_id, 0, good), (topic_id, 7, good)), 13, "by id, unknown partition")
    open_batch = batch(b"x", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    for version in (3, 8, 11, 12, 13):
        # One topic only by id: Kafka answers in no order that could be told.
        names = (topic_id, topic_id) if version == 13 else (topic, player.name("no"))
        mixed = several((names[0], 0, good), (names[0], 1, open_batch), (names[1], 0, good))
        connection.call(mixed, version, f"transactional without an id v{version}")
    connection.call(several((topic, 0, good), transactional_id="x"), 9, "an id, nothing transactional")
    connection.call(several((topic, 0, open_batch[:30]), transactional_id="x"), 9, "half a transactional batch")
    connection.call(offsets(topic, (0, -1), (1, -1)), 7, "ends")
    connection.call(fetch(topic, (0, 0)), 12, "what is stored")


def scenario_produce_without_answer(player: Player) -> None:
    """acks=0 is not answered, and closes the connection where it fails; other acks there are not."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic, 2)
    good = batch(b"good")
    connection.expect_no_answer(produce(topic, (0, good), acks=0), 9)
    connection.call(offsets(topic, (0, -1)), 7, "after acks=0")
    for request, what in (
        (produce(topic, (9, good), acks=0), "unknown partition"),
        (produce(topic, (0, b""), acks=0), "no batch"),
        (produce(topic, (0, good[:-1] + b"\x01"), acks=0), "corrupt"),
        (produce(topic, (9, good), (1, good), acks=0), "one of two"),
        (produce("__consumer_offsets", (0, good), acks=0), "internal"),
    ):
        player.connect().call(request, 9, f"acks=0: {what}")
    stranger = player.connect()
    nothing = ProduceRequest(acks=0, timeout_ms=1000)
    stranger.expect_no_answer(nothing, 9)
    stranger.call(offsets(topic, (0, -1), (1, -1)), 7, "after nothing with acks=0")
    for acks in (2, -2, 127, -32768):
        connection.call(produce(topic, (0, good), acks=acks), 9, f"acks={acks}")
        connection.call(produce(topic, (0, b""), (1, good), acks=acks), 9, f"acks={acks}, one without a batch")
        corrupt = produce(topic, (0, good[:-1] + b"\x01"), acks=acks)
        connection.call(corrupt, 9, f"acks={acks}, corrupt")
    for timeout in (0, -1, 2**31 - 1):
        connection.call(produce(topic, (0, good), timeout_ms=timeout), 9, f"timeout {timeout}")
    connection.call(produce(topic, (0, good), acks=1), 9, "acks=1")
    connection.call(offsets(topic, (0, -1), (1, -1)), 7, "ends")


def scenario_batch_headers(player: Player) -> None:
    """Header fields one by one: what is refused, what is put right, what is stored."""
    connection, topic, stamped = player.connect(), player.name("t"), player.name("stamped")
    create(connection, topic)
    create(connection, stamped, message_timestamp_type="LogAppendTime")
    good = batch(b"a", b"b", timestamps=[BASE_TIME_MS, BASE_TIME_MS + 5])
    producer = connection.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4, "init")
    identity = {"producer_id": producer.producer_id, "producer_epoch": 0}
    for data, what in (
        (good[:8] + (13).to_bytes(4, "big") + good[12:], "batch of 13 bytes"),
        (good[:8] + (0).to_bytes(4, "big") + good[12:], "batch of 0 bytes"),
        (good[:8] + (-5).to_bytes(4, "big", signed=True) + good[12:], "batch of -5 bytes"),
        (good[:8] + (20).to_bytes(4, "big") + good[12:], "batch of 20 bytes"),
        (good[:8] + (48).to_bytes(4, "big") + good[12:60], "header one byte short"),
        (good[:16] + b"\x00" + good[17:], "magic 0"),
        (good[:16] + b"\xff" + good[17:], "magic -1"),
        (good[:12], "12 bytes"),
        (good[:17], "17 bytes"),
        (good[:61], "header alone"),
        (good + good[:10], "a batch and 10 bytes"),
        (good + good[:17], "a batch and 17 bytes"),
        (good + good[:-1], "a batch and half"),
        (good + bytes(12), "a batch and zeros"),
        (good + bytes(30), "a batch and more zeros"),
        (patched(good, 0, -1, 8), "base offset -1"),
        (patched(good, 21, 5, 2), "codec 5"),
        (patched(good, 21, 7, 2), "codec 7"),
        (patched(good, 21, 0x80, 2), "unused attribute bit 7"),
        (patched(good, 21, -32768, 2), "unused attribute bit 15"),
        (patched(good, 21, 0x40, 2), "delete horizon bit"),
        (patched(good, 21, 0x08, 2), "log append time bit"),
        (patched(good, 21, 0x10, 2), "transactional bit, no id"),
        (patched(good, 21, 0x20, 2), "control bit"),
        (patched(good, 21, 0x30, 2), "control and transactional bits"),
        (patched(good, 35, BASE_TIME_MS + 99, 8), "largest timestamp too large"),
        (patched(good, 35, -1, 8), "largest timestamp -1"),
        (patched(good, 27, -1, 8), "base timestamp -1"),
        (patched(good, 43, -2, 8), "producer id -2"),
        (patched(good, 51, 3, 2), "an epoch without a producer"),
        (patched(good, 53, 3, 4), "a sequence without a producer"),
        (patched(batch(b"x", **identity, base_sequence=0), 51, -1, 2), "a producer with epoch -1"),
        (patched(batch(b"x", **identity, base_sequence=0), 53, -2, 4), "a producer with sequence -2"),
        (batch(b"x", **identity, base_sequence=0), "a producer"),
        (patched(batch(b"x", **identity, base_sequence=1), 51, 32767, 2), "the last epoch, sequence 1"),
        (patched(batch(b"x", **identity, base_sequence=0), 51, 32767, 2), "the last epoch"),
    ):
        for name in (topic, stamped):
            connection.call(produce(name, (0, data)), 9, f"{what}{', stamped' if name == stamped else ''}")
    for name in (topic, stamped):
        connection.call(fetch(name, (0, 0)), 12, "what is stored")
        connection.call(offsets(name, (0, -1)), 7, "end")


def scenario_record_bytes(player: Player) -> None:
    """Records that are not quite: lengths, deltas, headers, counts; plain and compressed."""
    connection, topic = player.connect(), player.name("t")
    create(connection, topic)
    # length, attributes, timestamp delta, offset delta, key length and key, value length and value, header count.
    good = bytes.fromhex("10 00 00 00 02 6b 02 76 00")
    second = bytes.fromhex("10 00 00 02 02 6b 02 76 00")
    for records, header, what in (
        ((good,), {}, "good"),
        ((good, second), {}, "two good ones"),
        ((good, good), {}, "offset delta 0 twice"),
        ((second, good), {}, "offset deltas backwards"),
        ((second,), {}, "offset delta 1 of one"),
        ((bytes.fromhex("10 00 00 01 02 6b 02 76 00"),), {}, "offset delta -1"),
        ((bytes.fromhex("10 7f 00 00 02 6b 02 76 00"),), {}, "record attributes"),
        ((bytes.fromhex("10 00 01 00 02 6b 02 76 00"),), {}, "timestamp delta -1"),
        ((bytes.fromhex("0c 00 00 00 01 02 76 00"),), {}, "key length -1"),
        ((bytes.fromhex("0e 00 00 00 03 6b 02 76 00"),), {}, "key length -2"),
        ((bytes.fromhex("0c 00 00 00 00 02 76 00"),), {}, "empty key"),
        ((bytes.fromhex("0c 00 00 00 02 6b 01 00"),), {}, "value length -1"),
        ((bytes.fromhex("10 00 00 00 02 6b 02 76 01"),), {}, "header count -1"),
        ((bytes.fromhex("10 00 00 00 02 6b 02 76 02"),), {}, "header missing"),
        ((bytes.fromhex("18 00 00 00 02 6b 02 76 02 02 68 01"),), {}, "length too long"),
        ((bytes.fromhex("16 00 00 00 02 6b 02 76 02 02 68 01"),), {}, "header with a null value"),
        ((bytes.fromhex("14 00 00 00 02 6b 02 76 02 01 01"),), {}, "header with a null key"),
        ((bytes.fromhex("16 00 00 00 02 6b 02 76 02 00 02 78"),), {}, "header with an empty key"),
        ((bytes.fromhex("18 00 00 00 02 6b 02 76 02 02 ff 02 78"),), {}, "header key that is not UTF-8"),
        ((bytes.fromhex("12 00 00 00 02 6b 02 76 00 ff"),), {}, "a byte left over in the record"),
        ((bytes.fromhex("0e 00 00 00 02 6b 02 76 00"),), {}, "record a byte short"),
        ((good, b"\x00"), {"count": 1, "last_offset_delta": 0}, "a byte after the records"),
        ((good, second), {"count": 1, "last_offset_delta": 0}, "more records than the count"),
        ((good,), {"count": 2, "last_offset_delta": 1}, "fewer records than the count"),
        ((b"\x00",), {}, "record of length 0"),
        ((b"\x01",), {}, "record of length -1"),
        ((good,), {"last_offset_delta": 2147483647, "count": -2147483648}, "offset delta at its end"),
    ):
        connection.call(produce(topic, (0, raw_records(*records, **header))), 9, what)
    plain = batch(b"a", b"b", b"c")
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        packed = batch(b"a", b"b", b"c", compression=codec)
        connection.call(produce(topic, (0, packed)), 9, f"{codec.name}")
        connection.call(produce(topic, (0, with_crc(bytearray(plain[:22] + bytes([codec]) + plain[23:])))), 9,
                        f"{codec.name} that is none")  # fmt: skip
        cut = packed[:-4]
        cut = cut[:8] + (len(cut) - 12).to_bytes(4, "big") + cut[12:]
        connection.call(produce(topic, (0, with_crc(bytearray(cut)))), 9, f"{codec.name} cut off")
        records = [NewRecord(key=b"k", value=b"v", timestamp=BASE_TIME_MS)] * 2
        gaps = build_batch(records, compression=codec, offset_deltas=[0, 5], last_offset_delta=1)
        connection.call(produce(topic, (0, gaps)), 9, f"{codec.name} with a gap")
    connection.call(fetch(topic, (0, 0)), 12, "what is stored")


def scenario_timestamps(player: Player) -> None:
    """No timestamp, old and new ones, on topics with bounds, with their own time, compacted."""
    connection = player.connect()
    topics = {
        "plain": {},
        "stamped": {"message_timestamp_type": "LogAppendTime"},
        "bounded": {"message_timestamp_before_max_ms": "1000", "message_timestamp_after_max_ms": "1000"},
        "compacted": {"cleanup_policy": "compact", "message_timestamp_before_max_ms": "1000"},
        "packed": {"compression_type": "gzip"},
    }
    for kind, configs in topics.items():
        topic = player.name(kind)
        create(connection, topic, **configs)
        for codec in (Compression.NONE, Compression.LZ4):
            for times, what in (
                ([-1], "none"),
                ([0], "zero"),
                ([-2], "-2"),
                ([BASE_TIME_MS, -1], "one without"),
                ([2**62], "in the far future"),
                ([1, 2**62], "long ago and far away"),
            ):
                records = [NewRecord(key=b"k", value=b"v", timestamp=time) for time in times]
                connection.call(produce(topic, (0, build_batch(records, compression=codec))), 9, f"{kind} {what}")
        if kind == "compacted":
            records = [NewRecord(key=key, value=b"v", timestamp=1) for key in (None, b"k", b"")]
            connection.call(produce(topic, (0, build_batch(records))), 9, "null key and too old")
            nulls = [NewRecord(key=None, value=b"v", timestamp=-1)] * 3
            connection.call(produce(topic, (0, build_batch(nulls))), 9, "null keys")
        connection.call(fetch(topic, (0, 0)), 12, f"stored in {kind}")
        connection.call(offsets(topic, (0, -1), (0, -3)), 7, "twice")
        if kind != "stamped":
            connection.call(offsets(topic, (0, -3)), 7, "largest")


def scenario_sizes(player: Player) -> None:
    """Limits on batches: as sent, as rebuilt, of a segment."""
    connection, small, packed, unpacked = player.connect(), player.name("s"), player.name("p"), player.name("u")
    create(connection, small, max_message_bytes="200")
    create(connection, packed, max_message_bytes="200", compression_type="gzip")
    create(connection, unpacked, max_message_bytes="200", compression_type="uncompressed")
    for topic in (small, packed, unpacked):
        for size in (50, 120, 132, 133, 400):
            connection.call(produce(topic, (0, batch(bytes(size)))), 9, f"{topic[-1]}: {size} bytes")
            sent = batch(bytes(size), compression=Compression.GZIP)
            connection.call(produce(topic, (0, sent)), 9, f"{topic[-1]}: {size} bytes packed")
        large = batch(bytes(400))
        connection.call(produce(topic, (0, large[:-1] + b"\x07")), 9, "too large and corrupt")
        connection.call(produce(topic, (0, patched(large, 0, 5, 8))), 9, "too large, base offset 5")
        connection.call(produce(topic, (0, patched(large, 57, 9, 4))), 9, "too large, count wrong")
        connection.call(produce(topic, (0, large + large)), 9, "two that are too large")
        connection.call(offsets(topic, (0, -1)), 7, "end")


def scenario_internal_topics(player: Player) -> None:
    """Nobody writes to them but the administrator's client."""
    connection = player.connect()
    for client in ("parity", "__admin_client", "__admin_client2"):
        writer = player.connect(client)
        for topic in ("__consumer_offsets", "__transaction_state"):
            writer.call(produce(topic, (99, batch(b"x"))), 9, f"{client} to {topic}-99")
            writer.call(produce(topic, (0, batch(b"x") * 2)), 9, f"{client} to {topic}, two batches")
            records = [NewRecord(key=None, value=b"x", timestamp=BASE_TIME_MS)]
            writer.call(produce(topic, (0, build_batch(records))), 9, f"{client} to {topic} without a key")
    connection.call(produce("__cluster_metadata", (0, batch(b"x"))), 9, "the metadata topic")
