"""The broker's view of the cluster: the newest committed image, and who is told when it changes.

Subscribers are called in the order in which they subscribed, each change once and in order, before
the request that caused it is answered: a created topic is usable at once. Source: Kafka's
MetadataLoader, BrokerMetadataPublisher and KRaftMetadataCache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from coordinator.metadata.delta import MetadataDelta
from coordinator.metadata.image import EMPTY_IMAGE, MetadataImage

Subscriber = Callable[[MetadataDelta, MetadataImage], None]


class MetadataCache:
    """Holds `image`, the newest published one."""

    def __init__(self) -> None:
        self._image = EMPTY_IMAGE
        self._subscribers: list[Subscriber] = []
        self._waiting: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []

    @property
    def image(self) -> MetadataImage:
        """The newest published image. It never changes: keep it for the length of a request."""
        return self._image

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber(delta, image)` for every change from now on. One that comes when there is
        an image already gets it first, as one delta that holds everything."""
        self._subscribers.append(subscriber)
        if self._image.offset >= 0:
            subscriber(MetadataDelta.whole(self._image), self._image)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Make `image` the newest, tell the subscribers, then wake who waits for it."""
        self._image = image
        for subscriber in self._subscribers:
            subscriber(delta, image)
        if self._waiting:
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for predicate, future in waiting:
            if future.done():
                continue
            if predicate(self._image):
                future.set_result(None)
            else:
                self._waiting.append((predicate, future))

    async def wait_for(self, predicate: Callable[[MetadataImage], bool]) -> MetadataImage:
        """Wait until the published image satisfies `predicate`; returns that image or a newer one."""
        if not predicate(self._image):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((predicate, future))
            await future
        return self._image
