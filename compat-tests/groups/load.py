"""Records that are written all the time while a group reads, and what the broker says of the topic and the group."""

from __future__ import annotations

import socket
import struct
import threading

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from scenario import expect, unique, until

WAIT_S = 30
ROUND_S = 0.25
CONSUMER_GROUP_DESCRIBE = 69


class Load:
    """A topic of its own into whose partitions a thread writes, a record to each a few times a second."""

    def __init__(self, address: str, partitions: int) -> None:
        self.address = address
        self.topic = unique("load")
        self.partitions = partitions
        self.admin = AdminClient({"bootstrap.servers": address})
        self.admin.create_topics([NewTopic(self.topic, partitions, 1)])[self.topic].result(WAIT_S)
        self._written: dict[int, int] = {}
        self._producer = Producer({"bootstrap.servers": address, "topic.metadata.refresh.interval.ms": 1000})
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def grow(self, partitions: int) -> None:
        """More partitions; waits until there are records in all."""
        self.admin.create_partitions([NewPartitions(self.topic, partitions)])[self.topic].result(WAIT_S)
        self.partitions = partitions
        until(
            lambda: self._ending.wait(ROUND_S) or min(self.ends().values()) > 0, "records are in all partitions", WAIT_S
        )

    def stop(self) -> None:
        """Write no more; all that was written is acknowledged then."""
        self.end()
        self._thread.join(WAIT_S)
        expect(self._producer.flush(WAIT_S), 0, "records not acknowledged")

    def end(self) -> None:
        """Write no more, whatever becomes of what was written."""
        self._ending.set()

    def ends(self) -> dict[int, int]:
        """The end offset of each partition, as far as the broker has acknowledged."""
        with self._lock:
            return {partition: self._written.get(partition, 0) for partition in range(self.partitions)}

    def committed(self, group: str) -> dict[int, int]:
        """What a group has committed, by partition."""
        partitions = [TopicPartition(self.topic, partition) for partition in range(self.partitions)]
        asked = ConsumerGroupTopicPartitions(group, partitions)
        answer = self.admin.list_consumer_group_offsets([asked], require_stable=True)[group].result(WAIT_S)
        return {each.partition: max(each.offset, 0) for each in answer.topic_partitions}

    def group_kind(self, group: str) -> str:
        """CLASSIC or CONSUMER, as groups are listed."""
        listed = self.admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S).valid
        return next(each.type.name for each in listed if each.group_id == group)

    def group_state(self, group: str) -> str:
        return str(self.admin.describe_consumer_groups([group])[group].result(WAIT_S).state.name)

    def group_epoch(self, group: str) -> int:
        """The epoch of a consumer group, which no client of Python tells: by the request itself."""
        name = group.encode()
        header = struct.pack(">hhih", CONSUMER_GROUP_DESCRIBE, 0, 1, -1) + b"\0"
        body = header + bytes([2, len(name) + 1]) + name + b"\0\0"
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), WAIT_S) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                return self._epoch_in(answer.read(size))

    def _epoch_in(self, answer: bytes) -> int:
        # Correlation id, no tags, throttle time, one group; then its error code, and message, id and state as strings.
        place = 4 + 1 + 4 + 1
        (code,) = struct.unpack_from(">h", answer, place)
        expect(code, 0, "the error code of ConsumerGroupDescribe")
        place += 2
        for _ in ("message", "id", "state"):
            place += 1 + max(answer[place] - 1, 0)
        (epoch,) = struct.unpack_from(">i", answer, place)
        return int(epoch)

    def _write(self) -> None:
        number = 0
        while not self._ending.wait(ROUND_S):
            for partition in range(self.partitions):
                try:
                    self._producer.produce(self.topic, str(number), partition=partition, on_delivery=self._note)
                except KafkaException:
                    continue  # a new partition that the producer has not heard of
                number += 1
            self._producer.poll(0)

    def _note(self, error: object, message: object) -> None:
        if error is None:
            with self._lock:
                partition, offset = message.partition(), message.offset()
                self._written[partition] = max(self._written.get(partition, 0), offset + 1)
