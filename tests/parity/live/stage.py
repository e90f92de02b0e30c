"""Where sequences are played: two brokers with the same topics, and names that are the run's own."""

from __future__ import annotations

import itertools
import secrets

from tests.parity.live.twins import Twins
from tests.parity.player import Player
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

Address = tuple[str, int]

SETTINGS = {
    # A heartbeat's answer does not depend on when it comes.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
    # Members whose heartbeats lapse can be gone within a second.
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.initial.rebalance.delay.ms": "0",
}
"""What both brokers are started with."""

TOPICS = {"t1": 1, "t2": 3, "t3": 2}


class Stage:
    """Both brokers, warmed up; gives out a pair of connections for each sequence."""

    def __init__(self, reference: Address, node: Address, names: tuple[str, str] = ("Kafka", "here")) -> None:
        self.addresses = (reference, node)
        self.names = names
        self.prefix = f"live-{secrets.token_hex(3)}-"
        self.topic_ids: list[dict[str, bytes]] = []
        self._examples = itertools.count(1)
        for address in self.addresses:
            player = Player(address, "live", "warm")
            try:
                player.warm_up()
                # The one group whose name is no run's own.
                player.connect().call(DeleteGroupsRequest(groups_names=[""]), 2)
                ids = self._topics_in_one_order(player)
                self.topic_ids.append({name.upper(): topic_id for name, topic_id in ids.items()})
            finally:
                player.close()

    def twins(self) -> tuple[Twins, str]:
        """A pair that knows the topics, and the prefix of this sequence's own names."""
        own = f"{self.prefix}{next(self._examples)}-"
        twins = Twins(self.addresses, self.names, self.prefix, own)
        for side, ids in zip(twins.sides, self.topic_ids, strict=True):
            for name, topic_id in ids.items():
                side.keep(name, topic_id)
        return twins, own

    def _topics_in_one_order(self, player: Player) -> dict[str, bytes]:
        """Make the topics again until a Java hash map of their ids has them in the order of their names.

        Assignors go through topics in that order, and ids are drawn by each broker.
        """
        connection = player.connect()
        while True:
            made = {name: self._made(player, name, count) for name, count in TOPICS.items()}
            buckets = [java_bucket(topic_id) for topic_id in made.values()]
            if sorted(set(buckets)) == buckets:
                return made
            gone = [DeleteTopicState(name=self.prefix + name) for name in TOPICS]
            connection.call(DeleteTopicsRequest(topics=gone, timeout_ms=30_000), 6)

    def _made(self, player: Player, name: str, count: int) -> bytes:
        connection = player.connect()
        topic = CreatableTopic(name=self.prefix + name, num_partitions=count, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        answer = player.until(lambda: connection.call(request, 7), lambda found: not found.topics[0].error_code)
        asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)]
        ends = ListOffsetsRequest(topics=[ListOffsetsTopic(name=self.prefix + name, partitions=asked)])
        player.until(
            lambda: connection.call(ends, 7),
            lambda found: not any(part.error_code for part in found.topics[0].partitions),
        )
        topic_id: bytes = answer.topics[0].topic_id
        return topic_id


def java_bucket(topic_id: bytes, capacity: int = 16) -> int:
    """Where java.util.HashMap puts an id (Uuid.hashCode, spread)."""
    both = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    code = (both >> 32 ^ both) & 0xFFFFFFFF
    return (code ^ code >> 16) & (capacity - 1)
