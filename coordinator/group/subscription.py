"""The consumer's embedded protocol, as far as a coordinator has to understand it.

Members of a classic group exchange their subscriptions as bytes. The coordinator reads only the
topics, to know which offsets are in use (OffsetDelete, expiry of offsets). Source: Kafka's
ConsumerProtocol; the layout of version 0 begins that of every later version.
"""

from __future__ import annotations

from collections.abc import Iterable

from wire.errors import MalformedMessage
from wire.messages.embedded import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
VERSION_BYTES = 2


def subscribed_topics(metadata: bytes) -> list[str]:
    """Topics of one member's subscription: an int16 version, then the subscription.

    Raises MalformedMessage if the bytes are something else (any client may put anything there).
    """
    if len(metadata) < VERSION_BYTES or metadata[0] >= 0x80:
        raise MalformedMessage("a subscription begins with a version that is not negative")
    # Read as version 0 whatever is declared, so that future versions are understood too.
    return ConsumerProtocolSubscription.decode(metadata, 0, position=VERSION_BYTES).topics


def topics_of_all(metadatas: Iterable[bytes]) -> frozenset[str] | None:
    """Union of the members' topics; None as soon as one subscription cannot be read."""
    topics: set[str] = set()
    for metadata in metadatas:
        try:
            topics.update(subscribed_topics(metadata))
        except MalformedMessage:
            return None
    return frozenset(topics)
