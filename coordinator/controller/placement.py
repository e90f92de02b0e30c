"""Where the replicas of new partitions go: striped over racks and brokers (I17).

Source: KIP-36 (rack awareness) and Kafka's StripedReplicaPlacer. The start is random, so that
many small topics spread too. From partition to partition the first replica moves on by one rack,
and inside a rack by one broker, so that leaders are even; the further replicas of a partition go to
the following racks, so that no rack holds two while another holds none. Fenced brokers are used
only when the others do not suffice, and never first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from coordinator.machine import Ids
from coordinator.metadata.image import BrokerImage
from wire.errors import ErrorCode, KafkaError


class _Stripe:
    """The brokers of one kind in one rack, taken in turn; each partition starts one further."""

    __slots__ = ("brokers", "offset", "partition", "taken")

    def __init__(self, brokers: list[int], ids: Ids) -> None:
        self.brokers = sorted(brokers)
        self.offset = ids.below(len(brokers)) if brokers else 0
        self.partition = -1
        self.taken = 0

    def take(self, partition: int) -> int | None:
        """The next broker for this partition; None when it has them all."""
        count = len(self.brokers)
        if not count:
            return None
        if self.partition != partition:
            self.partition = partition
            self.taken = 0
            self.offset = (self.offset + 1) % count
        if self.taken == count:
            return None
        broker_id = self.brokers[(self.offset + self.taken) % count]
        self.taken += 1
        return broker_id


class _Rack:
    __slots__ = ("fenced", "usable")

    def __init__(self, brokers: list[BrokerImage], ids: Ids) -> None:
        self.usable = _Stripe([b.broker_id for b in brokers if not b.fenced], ids)
        self.fenced = _Stripe([b.broker_id for b in brokers if b.fenced], ids)


def place_replicas(
    brokers: Iterable[BrokerImage], partition_count: int, replication_factor: int, ids: Ids
) -> list[tuple[int, ...]]:
    """The replicas of each of `partition_count` new partitions, the preferred leader first.

    Raises KafkaError INVALID_REPLICATION_FACTOR when there are too few brokers or none is alive.
    """
    by_rack: dict[str | None, list[BrokerImage]] = {}
    broker_count = usable_count = 0
    for broker in brokers:
        by_rack.setdefault(broker.rack, []).append(broker)
        broker_count += 1
        usable_count += not broker.fenced
    if not broker_count:
        _refuse(replication_factor, "no broker is registered")
    if not usable_count:
        _refuse(replication_factor, "all brokers are currently fenced")
    if replication_factor > broker_count:
        _refuse(
            replication_factor,
            f"the target replication factor of {replication_factor} cannot be reached "
            f"because only {broker_count} broker(s) are registered",
        )
    # A missing rack sorts first, as Optional.empty does in Kafka.
    names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
    racks = [_Rack(by_rack[name], ids) for name in names]
    start = ids.below(len(racks))
    return [
        _place_partition(racks, (start + partition) % len(racks), partition, replication_factor)
        for partition in range(partition_count)
    ]


def _refuse(replication_factor: int, reason: str) -> NoReturn:
    raise KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}.",
    )


def _place_partition(racks: list[_Rack], first_rack: int, partition: int, replication_factor: int) -> tuple[int, ...]:
    """Go round the racks, one replica each, until there are enough; usable brokers first."""
    replicas: list[int] = []
    for fenced in (False, True):
        exhausted = 0
        rack = first_rack
        while len(replicas) < replication_factor and exhausted < len(racks):
            stripe = racks[rack].fenced if fenced else racks[rack].usable
            broker_id = stripe.take(partition)
            if broker_id is None:
                exhausted += 1
            else:
                exhausted = 0
                replicas.append(broker_id)
            rack = (rack + 1) % len(racks)
    return tuple(replicas)
