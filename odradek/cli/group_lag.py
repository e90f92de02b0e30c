"""What a group has committed, and how far that is behind the end, in records and in time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from odradek.cli.offsets import LATEST, offsets_of
from odradek.client import Client, check
from odradek.failure import Failure
from wire.records import batches

FETCH_MAX_WAIT_MS = 500
PROBE_BYTES = 1
"""A broker answers with one whole batch whatever the limit is: that is enough to see its time."""


@dataclass(slots=True)
class GroupOffset:
    """One partition. None are `committed` if nothing is, `end` if the topic is gone, `behind_ms` if unknown."""

    topic: str
    partition: int
    committed: int | None
    end: int | None = None
    behind_ms: int | None = None
    metadata: str = ""

    @property
    def lag(self) -> int | None:
        """Records that are still to be read; None where a member decides by its own setting where it begins."""
        return None if self.end is None or self.committed is None else max(0, self.end - self.committed)

    def as_row(self) -> list[Any]:
        """Topic, partition, committed, end, lag, time behind."""
        from odradek.cli.group_description import ago

        committed, end, lag = ("-" if value is None else value for value in (self.committed, self.end, self.lag))
        behind = "-" if self.behind_ms is None else ago(self.behind_ms)
        return [self.topic, self.partition, committed, end, lag, behind]

    def as_json(self) -> dict[str, Any]:
        """The same by name."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "committed": self.committed,
            "end": self.end,
            "lag": self.lag,
            "behind_ms": self.behind_ms,
        }


def committed_offsets(client: Client, group_id: str) -> list[GroupOffset]:
    """What the group has committed, by topic and partition."""
    from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

    connection = client.coordinator(group_id)
    if connection.highest_version(9, 9) >= 8:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)], topics=[])
        (answer,) = connection.request(request, most=9).groups
    else:
        answer = connection.request(OffsetFetchRequest(group_id=group_id, topics=None), most=7)
    check(answer.error_code, f"Committed offsets of group {group_id!r}")
    return [
        GroupOffset(topic.name, each.partition_index, each.committed_offset, metadata=each.metadata or "")
        for topic in sorted(answer.topics, key=lambda topic: topic.name)
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    ]


def group_offsets(client: Client, group_id: str, owned: Iterable[tuple[str, int]] = ()) -> list[GroupOffset]:
    """What the group has committed, with the ends of the partitions and the times behind them.

    Partitions that its members own are among them if nothing is committed there, too.
    """
    offsets = committed_offsets(client, group_id)
    known = {(each.topic, each.partition) for each in offsets}
    offsets += [GroupOffset(*each, None) for each in dict.fromkeys(owned) if each not in known]
    offsets.sort(key=lambda each: (each.topic, each.partition))
    for topic in sorted({offset.topic for offset in offsets}):
        of_topic = [offset for offset in offsets if offset.topic == topic]
        try:
            leaders = client.leaders(topic)
            ends = offsets_of(client, topic, leaders, LATEST)
        except Failure:
            continue  # the topic is gone, what was committed in it is not
        for offset in of_topic:
            offset.end = ends.get(offset.partition)
            if offset.lag == 0:
                offset.behind_ms = 0
        unread = {each.partition: each for each in of_topic if each.lag and each.partition in leaders}
        for node_id in sorted({leaders[partition] for partition in unread}):
            _tell_times(client, node_id, topic, {p: each for p, each in unread.items() if leaders[p] == node_id})
    return offsets


def _tell_times(client: Client, node_id: int, topic: str, unread: dict[int, GroupOffset]) -> None:
    """Read the first record that each partition still has to read: the group is as far behind as it is old."""
    from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    for partition, offset in unread.items():
        assert offset.committed is not None
        # One at a time: of several, a broker may leave all but the first out when the answer is full.
        asked = FetchPartition(
            partition=partition, fetch_offset=offset.committed, partition_max_bytes=PROBE_BYTES, log_start_offset=-1
        )
        request = FetchRequest(
            max_wait_ms=FETCH_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=PROBE_BYTES,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        response = client.node(node_id).request(request, most=12, wait_ms=FETCH_MAX_WAIT_MS)
        for data in (data for each in response.responses for data in each.partitions):
            timestamp = first_timestamp(bytes(data.records or b""), offset.committed)
            if not data.error_code and timestamp is not None:
                offset.behind_ms = max(int(time.time() * 1000) - timestamp, 0)


def first_timestamp(records: bytes, offset: int) -> int | None:
    """The timestamp of the first record from an offset on in these batches; None without one."""
    for batch in batches(records):
        if batch.is_control or batch.last_offset < offset:
            continue
        for record in batch.records():
            if record.offset >= offset:
                return None if record.timestamp < 0 else record.timestamp
    return None
