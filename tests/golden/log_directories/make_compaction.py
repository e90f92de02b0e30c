"""Let a running Apache Kafka compact the topic `compaction`, and copy it before and after, three times.

`make_compaction.py HOST:PORT LOG_DIR`; the broker runs with log.cleaner.backoff.ms=200 (see README.md).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

HERE = Path(__file__).resolve().parent

START_MS = 1_790_000_000_000
SETTINGS = {
    "index.interval.bytes": "100",
    "segment.index.bytes": "2400",
    "internal.segment.bytes": "4000",
    "delete.retention.ms": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
}


def produce(producer: Producer, segment: int, names: list[str], *, tombstone: bool = False) -> None:
    """One flushed batch or more: each name set anew (or deleted) in a segment."""
    for index, name in enumerate(names):
        producer.produce(
            "compaction",
            partition=0,
            key=name,
            value=None if tombstone else f"{name} in segment {segment}" * 3,
            headers=[("segment", str(segment).encode())] if index % 2 else None,
            timestamp=START_MS + segment * 100_000 + index,
        )
    producer.flush()


def fill(servers: str, rounds: range) -> None:
    """Sets, deletes, idempotent and transactional batches; each round is about a segment."""
    plain = {
        codec: Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 50})
        for codec in ("none", "gzip")
    }
    names = [f"key-{number}" for number in range(12)]
    for number in rounds:
        produce(plain["none"], number, names[:6])
        produce(plain["gzip"], number, names[3:9])
        idempotent = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 50})
        produce(idempotent, number, names[8:12])
        gone = [f"gone-{number}", f"gone-too-{number}"]
        produce(plain["none"], number, gone)
        produce(plain["none"], number, [*gone, f"stays-{number}"][: 2 + number % 2], tombstone=True)
        for ending in ("commit", "abort"):
            producer = Producer({"bootstrap.servers": servers, "transactional.id": f"compaction-{number}-{ending}"})
            producer.init_transactions()
            producer.begin_transaction()
            produce(producer, number, [f"{ending}-key", names[5]])
            if ending == "commit":
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    produce(plain["none"], 9, ["the-active-segment"])


def main(servers: str, directory: Path) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("compaction", 1, 1, config=SETTINGS)])["compaction"].result()
    for turn in ("first", "second", "third"):
        set_policy(admin, "delete")  # Nothing is cleaned while it is filled and copied.
        fill(servers, range(4) if turn == "first" else range(4, 6))
        before, after = HERE / "compaction" / f"{turn}-before", HERE / "compaction" / f"{turn}-after"
        copy(directory / "compaction-0", before)
        set_policy(admin, "compact")
        wait_until_cleaned(admin, directory)
        copy(directory / "compaction-0", after)


def wait_until_cleaned(admin: AdminClient, directory: Path) -> None:
    """Until the files have changed, and then stay as they are."""
    seen = [listing(directory)]
    while len(set(map(tuple, seen))) == 1 or seen[-1] != seen[-2]:
        admin.poll(2.0)
        seen.append(listing(directory))


def set_policy(admin: AdminClient, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "compaction", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def listing(directory: Path) -> list[tuple[str, int]]:
    return sorted((path.name, path.stat().st_size) for path in (directory / "compaction-0").iterdir())


def copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.deleted"))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
