"""A number that changes when the topics of a group change: in id, name, partitions or racks.

Stored with the group's epoch, so that a change is noticed whoever coordinates the group next, Apache
Kafka included: XXH3 with 64 bits over the same bytes. Source: Kafka's Utils.computeTopicHash and
computeGroupHash (KIP-1101).
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

from coordinator.metadata.image import MetadataImage, TopicImage

MAGIC = b"\x00"
SPARE_HASHES = 64
"""Hashes of topics that are no more may be kept up to this many, beside as many as there are topics."""


class TopicHashes:
    """Hashes of topics, each computed once for as long as the topic stays as it is."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, int]] = {}

    def of_group(self, topics: Iterable[str], image: MetadataImage) -> int:
        """The hash of a group that is subscribed to these names; 0 if none of them exists."""
        hashes = [self._of_topic(topic, image) for name in sorted(topics) if (topic := image.topics.by_name(name))]
        return _xxh3(b"".join(pack("<q", each) for each in hashes)) if hashes else 0

    def _of_topic(self, topic: TopicImage, image: MetadataImage) -> int:
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        if len(self._known) > 2 * len(image.topics) + SPARE_HASHES:
            self._known = {name: each for name, each in self._known.items() if image.topics.by_name(name) is each[0]}
        found = topic_hash(topic, image)
        self._known[topic.name] = topic, found
        return found


def topic_hash(topic: TopicImage, image: MetadataImage) -> int:
    """The hash of one topic, as a signed number of 64 bits."""
    parts = [
        MAGIC,
        topic.topic_id[7::-1],
        topic.topic_id[:7:-1],
        _text(topic.name),
        pack("<i", len(topic.partitions)),
    ]
    for index, partition in topic.in_order():
        parts.append(pack("<i", index))
        brokers = (image.brokers.get(broker_id) for broker_id in partition.replicas)
        for rack in sorted(broker.rack for broker in brokers if broker is not None and broker.rack is not None):
            parts.append(pack("<i", len(rack.encode("utf-16-le")) // 2))
            parts.append(_text(rack))
    return _xxh3(b"".join(parts))


def _text(text: str) -> bytes:
    """As Java hashes a string: its UTF-16 units, then how many."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + pack("<i", len(units) // 2)


def _xxh3(data: bytes) -> int:
    # Imported when the first group of this kind comes: a node without one does without it.
    from xxhash import xxh3_64_intdigest

    digest: int = xxh3_64_intdigest(data)
    return digest - (1 << 64) if digest >> 63 else digest
