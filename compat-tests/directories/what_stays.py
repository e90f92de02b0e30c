"""What compaction, retention and deletion leave of a log: written by a client in one way, then looked at.

`played` writes to a broker over an empty directory, waits until everything that is to go has gone, and tells all that a
client can see, and where the segments begin. Every batch is a segment of its own: its timestamps are more than
segment.ms after those before. So what goes does not depend on when the broker looks: two brokers must tell the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
)
from content import CODECS, flush, listed, plain, records_of
from scenario import until

SETTINGS = ["log.cleaner.backoff.ms=100", "log.retention.check.interval.ms=200"]
"""What a broker needs, so that it looks soon."""
LATER_MS = 10**14
AHEAD_S = 1200
"""After the beginning, which is in the past, this is in the future."""
OLD_S, RETENTION_S = -7200, 3600
"""Before the beginning, and how far back a log may reach: the one is further than the other."""
COMPACT = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.0",
    "min.compaction.lag.ms": str(LATER_MS),  # until all is written
}
DELETE = {"cleanup.policy": "delete", "segment.ms": "1000", "retention.ms": "-1"}
TOPICS = {
    "compacted": COMPACT | {"delete.retention.ms": "86400000"},
    "tombstones": COMPACT | {"delete.retention.ms": "0"},
    "transactions": COMPACT | {"delete.retention.ms": "86400000"},
    "both": COMPACT | {"cleanup.policy": "compact,delete", "retention.ms": str(RETENTION_S * 1000)},
    "by-size": DELETE | {"retention.bytes": "20000"},
    "by-time": DELETE | {"retention.ms": str(RETENTION_S * 1000)},
    "trimmed": DELETE,
}

Content = tuple[str | None, bytes | None, list[tuple[str, bytes | None]]]
"""Key, value, headers."""


class World:
    """A broker and what is written to it. `began_ms` is where the timestamps count from: ten minutes ago, so that none
    of them is strange."""

    def __init__(self, address: str, data: Path) -> None:
        self.address, self.data = address, data
        self.began_ms = int(time.time() * 1000) - 600_000
        self.admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
        topics = [NewTopic(name, 1, 1, config=settings) for name, settings in TOPICS.items()]
        for future in self.admin.create_topics(topics).values():
            future.result(30)

    def producer(self, **settings: Any) -> Producer:
        """One that sends what is flushed as one batch."""
        own = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer({"bootstrap.servers": self.address, "linger.ms": 10_000} | own)

    def send(self, producer: Producer, topic: str, at_s: int, content: list[Content]) -> None:
        """A batch, its first record so many seconds after the beginning."""
        for place, (key, value, headers) in enumerate(content):
            stamp = self.began_ms + at_s * 1000 + place
            producer.produce(topic, value, key, 0, timestamp=stamp, headers=headers or None)
        flush(producer)

    def segments(self, topic: str) -> list[int]:
        """Where the segments of a topic begin."""
        return sorted(int(path.stem) for path in (self.data / f"{topic}-0").glob("*.log"))

    def compact(self, topic: str) -> None:
        """Let the cleaner begin, and wait until it has been over all but the active segment."""
        checkpoint, line = self.data / "cleaner-offset-checkpoint", f"{topic} 0 "
        active = self.segments(topic)[-1]

        def is_clean() -> bool:
            time.sleep(0.02)
            noted = checkpoint.read_text(encoding="ascii").splitlines() if checkpoint.exists() else []
            return any(each.startswith(line) and int(each.removeprefix(line)) >= active for each in noted)

        self.alter(topic, "min.compaction.lag.ms", "0")
        until(is_clean, f"{topic} is clean up to {active}")
        self.alter(topic, "min.compaction.lag.ms", str(LATER_MS))

    def alter(self, topic: str, name: str, value: str) -> None:
        change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result(30)

    def wait_for_first_segment(self, topic: str, base_offset: int) -> None:
        """Wait until all segments before that one have gone."""

        def has_gone() -> bool:
            time.sleep(0.02)
            return self.segments(topic)[0] >= base_offset

        until(has_gone, f"the first segment of {topic} begins at {base_offset}")

    def wait_for_stable_end(self, topic: str, offset: int) -> None:
        """Wait until the marker of a transaction, which a client is told of before it is written, ends at an offset."""
        committed = IsolationLevel.READ_COMMITTED

        def has_ended() -> bool:
            return bool(
                listed(self.admin, TopicPartition(topic, 0), OffsetSpec.latest(), isolation_level=committed).offset
                >= offset
            )

        until(has_ended, f"the transactions of {topic} end at {offset}")

    def seen(self, topic: str) -> dict[str, Any]:
        """All of a topic, timestamps counted from the beginning."""
        partition = TopicPartition(topic, 0)
        found: dict[str, Any] = {
            "start": listed(self.admin, partition, OffsetSpec.earliest()).offset,
            "end": listed(self.admin, partition, OffsetSpec.latest()).offset,
            "segments": self.segments(topic),
        }
        for level in ("read_uncommitted", "read_committed"):
            found[level] = [
                [offset, key, value, stamp - self.began_ms, headers]
                for offset, key, value, (_, stamp), headers in records_of(self.address, topic, 0, level)
            ]
        return found


def keyed(mark: str, count: int, keys: int, first: int = 0) -> list[Content]:
    """Records with keys that come again, here and there a tombstone, here and there headers."""
    return list(_keyed(mark, count, keys, first))


def _keyed(mark: str, count: int, keys: int, first: int) -> Iterator[Content]:
    for number in range(first, first + count):
        value = None if number % 9 == 8 else f"{mark} {number}".encode()
        headers: list[tuple[str, bytes | None]] = [("mark", mark.encode()), ("empty", None)] if number % 4 == 0 else []
        yield f"key-{number * 7 % keys}", value, headers


def write_compacted(world: World) -> None:
    """Every codec, keys that come again across and within batches, a batch without any record that stays."""
    producers = {codec: world.producer(compression_type=codec) for codec in CODECS}
    idempotent = world.producer(enable_idempotence=True)
    for turn in range(4):
        for place, (codec, producer) in enumerate(producers.items()):
            world.send(producer, "compacted", turn * 100 + place * 10, keyed(codec, 20, 33, turn * 20))
        world.send(idempotent, "compacted", turn * 100 + 60, keyed("idempotent", 5, 3))
    world.send(idempotent, "compacted", 500, keyed("last", 1, 1))
    world.compact("compacted")


def write_tombstones(world: World) -> None:
    """Two passes: the first notes on tombstones when they may go, the second lets them."""
    producer = world.producer()
    world.send(producer, "tombstones", 0, [(f"key-{number}", b"value", []) for number in range(6)])
    world.send(producer, "tombstones", 10, [(f"key-{number}", None, []) for number in range(3)])
    world.send(producer, "tombstones", 20, [("key-9", b"value", [])])
    world.compact("tombstones")
    world.send(producer, "tombstones", 30, [("key-4", None, []), ("key-5", b"again", [])])
    world.send(producer, "tombstones", 40, [("key-9", b"again", [])])
    world.compact("tombstones")


def write_transactions(world: World) -> None:
    """Committed and aborted, of two ids that take turns, over keys that come again. The timestamps are after those of
    the markers, which are the broker's, so that these do not keep segments from rolling."""
    producers = [world.producer(transactional_id=f"writer-{number}") for number in range(2)]
    for producer in producers:
        producer.init_transactions(30)
    for turn in range(8):
        producer = producers[turn % 2]
        ends_well = turn % 3 != 1
        producer.begin_transaction()
        mark = "committed" if ends_well else "aborted"
        world.send(producer, "transactions", AHEAD_S + turn * 20, keyed(mark, 6, 11, turn))
        world.send(producer, "transactions", AHEAD_S + turn * 20 + 10, keyed(mark, 3, 5, turn))
        (producer.commit_transaction if ends_well else producer.abort_transaction)(30)
        world.wait_for_stable_end("transactions", (turn + 1) * 10)
    world.send(world.producer(), "transactions", AHEAD_S + 200, keyed("plain", 4, 5))
    world.send(world.producer(), "transactions", AHEAD_S + 210, keyed("last", 1, 1))
    world.compact("transactions")


def write_both(world: World) -> None:
    """What is too old goes whole, of the rest the newest of each key stays."""
    producer = world.producer(compression_type="lz4")
    for turn in range(3):
        world.send(producer, "both", OLD_S + turn * 10, keyed("old", 10, 20, turn * 10))
    for turn in range(3):
        world.send(producer, "both", turn * 10, keyed("new", 10, 12, turn * 10))
    world.wait_for_first_segment("both", 30)
    world.compact("both")


def write_deleted(world: World) -> None:
    """By size, by age, and up to an offset in the middle of a batch."""
    producer = world.producer()
    for turn in range(10):
        world.send(producer, "by-size", turn * 10, [(None, b"%d " % turn * 500, []) for _ in range(5)])
    for turn in range(5):
        at_s = OLD_S + turn * 10 if turn < 3 else turn * 10
        world.send(producer, "by-time", at_s, keyed("timed", 5, 5, turn * 5))
        world.send(producer, "trimmed", turn * 10, keyed("trimmed", 10, 5, turn * 10))
    for future in world.admin.delete_records([TopicPartition("trimmed", 0, 25)]).values():
        future.result(30)
    world.wait_for_first_segment("by-size", 30)
    world.wait_for_first_segment("by-time", 15)
    world.wait_for_first_segment("trimmed", 20)


def played(address: str, data: Path) -> dict[str, Any]:
    """Write everything, wait until it is as it will stay, and tell what is there, as JSON holds it."""
    world = World(address, data)
    for write in (write_compacted, write_tombstones, write_transactions, write_both, write_deleted):
        write(world)
    return {topic: plain(world.seen(topic)) for topic in TOPICS}
