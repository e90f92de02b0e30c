"""Requests that wait on partitions: a future per request, woken by what happens to a partition.

Nothing polls. A partition that changes looks only at the requests that wait on it, and a request has one
future and at most one timer however many partitions it names (Kafka's purgatories: `DelayedFetch`,
`DelayedProduce`, `DelayedDeleteRecords`).
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wire.errors import ErrorCode

if TYPE_CHECKING:
    import asyncio

    from broker.clock import Clock

KeyT = TypeVar("KeyT", bound=Hashable)


class FetchIsolation(IntEnum):
    """How far a reader may see (`org.apache.kafka.server.storage.log.FetchIsolation`)."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TXN_COMMITTED = 2


class Watched(Protocol):
    """What a waiting fetch asks of a partition that changed."""

    def fetch_limit(self, isolation: FetchIsolation) -> int:
        """The offset below which this isolation may read."""

    def readable_bytes(self, from_offset: int, to_offset: int) -> int | None:
        """Bytes between two offsets; None where the second is in a newer segment than the first."""


class _Watch:
    """One partition of a waiting fetch."""

    __slots__ = ("counted_bytes", "fetch_offset", "isolation", "max_bytes", "wait", "waits")

    def __init__(
        self,
        wait: FetchWait,
        waits: FetchWaits,
        isolation: FetchIsolation,
        fetch_offset: int,
        max_bytes: int,
        counted_bytes: int,
    ) -> None:
        self.wait = wait
        self.waits = waits
        self.isolation = isolation
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.counted_bytes = counted_bytes


class FetchWaits:
    """The fetches that wait on one partition."""

    __slots__ = ("_watches",)

    def __init__(self) -> None:
        self._watches: dict[_Watch, None] = {}

    def __len__(self) -> int:
        return len(self._watches)

    def changed(self, partition: Watched) -> None:
        """The partition grew, or its high watermark or last stable offset moved: wake who has enough (E17)."""
        for watch in tuple(self._watches):
            watch.wait._changed(watch, partition)

    def wake_all(self) -> None:
        """Leadership, epoch, storage or existence changed: everyone reads again."""
        for watch in tuple(self._watches):
            watch.wait.wake()


class FetchWait:
    """One Fetch request under its `min_bytes`."""

    __slots__ = ("_clock", "_future", "_missing_bytes", "_watches", "saw_change")

    def __init__(self, clock: Clock, *, missing_bytes: int) -> None:
        """`missing_bytes`: min_bytes less what the first read found."""
        self._clock = clock
        self._future: asyncio.Future[None] = clock.loop.create_future()
        self._missing_bytes = missing_bytes
        self._watches: list[_Watch] = []
        self.saw_change = False
        """Whether anything happened that a second read could tell, also if it was too little to be woken by."""

    def watch(
        self, waits: FetchWaits, isolation: FetchIsolation, *, fetch_offset: int, max_bytes: int, counted_bytes: int
    ) -> None:
        """Also wait on this partition, read at `fetch_offset` with up to `max_bytes`.

        `counted_bytes` is what the first read found there, already taken off the missing bytes.
        """
        watch = _Watch(self, waits, isolation, fetch_offset, max_bytes, counted_bytes)
        waits._watches[watch] = None
        self._watches.append(watch)

    def wake(self) -> None:
        """The request shall read again now."""
        self.saw_change = True
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, max_wait_ms: int) -> bool:
        """Wait until woken (True) or until `max_wait_ms` have passed (False); then the partitions forget it."""
        try:
            return await self._clock.wait_for(self._future, max_wait_ms)
        finally:
            for watch in self._watches:
                watch.waits._watches.pop(watch, None)
            self._watches.clear()

    def _changed(self, watch: _Watch, partition: Watched) -> None:
        self.saw_change = True
        limit = partition.fetch_limit(watch.isolation)
        if limit == watch.fetch_offset:
            return
        if limit < watch.fetch_offset:
            # Truncated below the reader.
            self.wake()
            return
        available = partition.readable_bytes(watch.fetch_offset, limit)
        if available is None:
            # The limit moved on to a newer segment: the older one will not grow any more.
            self.wake()
            return
        counted = min(available, watch.max_bytes)
        self._missing_bytes -= counted - watch.counted_bytes
        watch.counted_bytes = counted
        if self._missing_bytes <= 0:
            self.wake()


class _Expectation(Generic[KeyT]):
    """One partition of a request that waits for an offset."""

    __slots__ = ("key", "offset", "request", "waits")

    def __init__(self, request: OffsetWait[KeyT], waits: OffsetWaits, offset: int, key: KeyT) -> None:
        self.request = request
        self.waits = waits
        self.offset = offset
        self.key = key


class OffsetWaits:
    """Who waits for one growing offset of one partition: its high watermark, or its low watermark."""

    __slots__ = ("_expectations",)

    def __init__(self) -> None:
        self._expectations: dict[_Expectation[Any], None] = {}

    def __len__(self) -> int:
        return len(self._expectations)

    def reached(self, offset: int, outcome: ErrorCode = ErrorCode.NONE) -> None:
        """The offset moved here: those who wait for it, or for less, are answered with `outcome`."""
        for expectation in [e for e in self._expectations if e.offset <= offset]:
            self._settle(expectation, outcome)

    def fail(self, outcome: ErrorCode) -> None:
        """Nobody's offset will be reached here any more."""
        for expectation in tuple(self._expectations):
            self._settle(expectation, outcome)

    def _add(self, expectation: _Expectation[Any]) -> None:
        self._expectations[expectation] = None

    def _forget(self, expectation: _Expectation[Any]) -> None:
        self._expectations.pop(expectation, None)

    def _settle(self, expectation: _Expectation[Any], outcome: ErrorCode) -> None:
        del self._expectations[expectation]
        expectation.request._settled(expectation.key, outcome)


class OffsetWait(Generic[KeyT]):
    """One request that waits until an offset is reached in each of its partitions.

    `outcomes` fills up by key as the partitions get there (or never will); after `wait` a missing key means
    that its time ran out.
    """

    __slots__ = ("_clock", "_expectations", "_future", "_pending", "outcomes")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._future: asyncio.Future[None] = clock.loop.create_future()
        self._expectations: list[_Expectation[KeyT]] = []
        self._pending = 0
        self.outcomes: dict[KeyT, ErrorCode] = {}

    def expect(self, waits: OffsetWaits, offset: int, key: KeyT) -> None:
        """Also wait until `waits` reports `offset`."""
        expectation: _Expectation[KeyT] = _Expectation(self, waits, offset, key)
        waits._add(expectation)
        self._expectations.append(expectation)
        self._pending += 1

    def keys(self) -> list[KeyT]:
        """The keys that are waited for."""
        return [expectation.key for expectation in self._expectations]

    async def wait(self, timeout_ms: int | None) -> None:
        """Wait until every partition is settled or `timeout_ms` have passed (None: as long as it takes)."""
        try:
            if not self._pending:
                return
            if timeout_ms is None:
                await self._future
            else:
                await self._clock.wait_for(self._future, timeout_ms)
        finally:
            for expectation in self._expectations:
                expectation.waits._forget(expectation)
            self._expectations.clear()

    def _settled(self, key: KeyT, outcome: ErrorCode) -> None:
        self.outcomes[key] = outcome
        self._pending -= 1
        if not self._pending and not self._future.done():
            self._future.set_result(None)
