"""Offsets of a topic's partitions by time, asked of their leaders."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.client import Client, check

LATEST = -1
EARLIEST = -2


def offsets_of(client: Client, topic: str, leaders: Mapping[int, int], timestamp_ms: int) -> dict[int, int]:
    """The first offset at or after a time by partition; EARLIEST and LATEST name the ends.

    -1 where no record is that young.
    """
    from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

    found: dict[int, int] = {}
    for node_id in sorted(set(leaders.values())):
        asked = [
            ListOffsetsPartition(partition_index=partition, timestamp=timestamp_ms)
            for partition, leader in sorted(leaders.items())
            if leader == node_id
        ]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
        for answered in client.node(node_id).request(request).topics[0].partitions:
            check(answered.error_code, f"Offsets of partition {answered.partition_index} of topic {topic!r}")
            found[answered.partition_index] = answered.offset
    return found
