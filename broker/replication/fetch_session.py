"""Incremental fetch sessions: which partitions a client fetches, and what it was told last (KIP-227, KIP-516).

Pure: time and chance are arguments, nothing waits. A request becomes a fetch context by `FetchSessionCache.begin`;
the context says which partitions to read, and, given what was read, which of them the answer names.
Source: Kafka's `FetchManager`, `FetchContext`, `FetchSession`, `FetchSessionCacheShard`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from broker.replication.reading import ReadResult
from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
INT32_MAX = 2**31 - 1

TOPIC_IDS_FROM_VERSION = 13
EVICTION_MS = 120_000
"""Kafka's `max.incremental.fetch.session.cache` eviction time: a session idle for longer may be replaced by any."""


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`: 1 follows the largest int32, and the final epoch stays final."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == INT32_MAX else epoch + 1


class FetchKey(NamedTuple):
    """A partition as a request names it: by id from Fetch v13 (name empty), else by name (id zero)."""

    topic: str
    topic_id: bytes
    partition: int


class FetchParameters(NamedTuple):
    """What a request asks of one partition."""

    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


class FetchEntry(NamedTuple):
    """One partition to read. `topic` is None for a topic id that no topic has."""

    key: FetchKey
    topic: str | None
    parameters: FetchParameters


class Outcome(NamedTuple):
    """What became of one partition of a request."""

    key: FetchKey
    topic: str | None
    result: ReadResult


class Answer(NamedTuple):
    """The session part of a response: its error, the session's id, the partitions it names."""

    error: ErrorCode
    session_id: int
    outcomes: Sequence[Outcome]


NameOfTopicId = Callable[[bytes], str | None]


class _CachedPartition:
    """A partition of a session: what is asked, and what the client was told last."""

    __slots__ = ("high_watermark", "log_start_offset", "parameters", "topic")

    def __init__(self, topic: str | None, parameters: FetchParameters) -> None:
        self.topic = topic
        self.parameters = parameters
        self.high_watermark = -1
        self.log_start_offset = -1

    def must_answer(self, outcome: Outcome) -> bool:
        """Whether an incremental response names this partition (E2); remembers what it says."""
        result = outcome.result
        changed = bool(result.records) or result.preferred_read_replica >= 0 or result.diverging is not None
        if self.high_watermark != result.high_watermark:
            changed = True
            self.high_watermark = result.high_watermark
        if self.log_start_offset != result.log_start_offset:
            changed = True
            self.log_start_offset = result.log_start_offset
        if result.error_code:
            changed = True
            # So that the partition is named again when the error goes away.
            self.high_watermark = -1
        return changed


class FetchSession:
    """One client's session; partitions in the order in which they are read (E3)."""

    __slots__ = ("created_ms", "epoch", "last_used_ms", "partitions", "privileged", "session_id", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        partitions: dict[FetchKey, _CachedPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.session_id = session_id
        self.partitions = partitions
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)

    @property
    def value(self) -> tuple[bool, int, int]:
        """How much a session is worth keeping: followers before consumers, then the larger."""
        return (self.privileged, len(self.partitions), self.session_id)

    def update(
        self,
        partitions: Mapping[FetchKey, FetchParameters],
        forgotten: Iterable[FetchKey],
        name_of: NameOfTopicId,
    ) -> None:
        """Add or change what the request names, then drop what it forgets."""
        for key, parameters in partitions.items():
            cached = self.partitions.get(key)
            if cached is None:
                self.partitions[key] = _CachedPartition(_resolve(key, name_of), parameters)
            else:
                cached.parameters = parameters
        for key in forgotten:
            self.partitions.pop(key, None)


def _resolve(key: FetchKey, name_of: NameOfTopicId) -> str | None:
    return key.topic if key.topic_id == ZERO_UUID else name_of(key.topic_id)


class FetchContext(Protocol):
    """One Fetch request in its session."""

    def entries(self) -> Iterator[FetchEntry]:
        """The partitions to read, in order."""

    def answer(self, outcomes: Sequence[Outcome], now_ms: int) -> Answer:
        """What the response says after reading; creates or updates the session."""

    def throttled_answer(self) -> Answer:
        """What a throttled response says: no partitions, and what the client was told stays as it is (E5)."""


class SessionError:
    """A request whose session does not exist or is at another epoch: answered without reading."""

    def __init__(self, error: ErrorCode) -> None:
        self.error = error

    def entries(self) -> Iterator[FetchEntry]:
        """Nothing is read."""
        return iter(())

    def answer(self, outcomes: Sequence[Outcome], now_ms: int) -> Answer:
        """The error, at the top level, with session id 0 (E7)."""
        return Answer(self.error, INVALID_SESSION_ID, ())

    def throttled_answer(self) -> Answer:
        """The error all the same."""
        return Answer(self.error, INVALID_SESSION_ID, ())


class FullFetch:
    """A request that names all its partitions; makes a session when answered, unless `cache` is None (E1)."""

    def __init__(
        self,
        cache: FetchSessionCache | None,
        partitions: Mapping[FetchKey, FetchParameters],
        name_of: NameOfTopicId,
        *,
        privileged: bool = False,
        uses_topic_ids: bool = False,
    ) -> None:
        self._cache = cache
        self._partitions = partitions
        self._name_of = name_of
        self._privileged = privileged
        self._uses_topic_ids = uses_topic_ids

    def entries(self) -> Iterator[FetchEntry]:
        """The partitions of the request, in its order."""
        for key, parameters in self._partitions.items():
            yield FetchEntry(key, _resolve(key, self._name_of), parameters)

    def answer(self, outcomes: Sequence[Outcome], now_ms: int) -> Answer:
        """All partitions; session id 0 if there is no session to be had."""
        if self._cache is None:
            return Answer(ErrorCode.NONE, INVALID_SESSION_ID, outcomes)
        session_id = self._cache._create(
            lambda: self._cached(outcomes),
            len(outcomes),
            privileged=self._privileged,
            uses_topic_ids=self._uses_topic_ids,
            now_ms=now_ms,
        )
        return Answer(ErrorCode.NONE, session_id, outcomes)

    def throttled_answer(self) -> Answer:
        """No session yet."""
        return Answer(ErrorCode.NONE, INVALID_SESSION_ID, ())

    def _cached(self, outcomes: Sequence[Outcome]) -> dict[FetchKey, _CachedPartition]:
        partitions: dict[FetchKey, _CachedPartition] = {}
        for outcome in outcomes:
            cached = _CachedPartition(outcome.topic, self._partitions[outcome.key])
            cached.high_watermark = outcome.result.high_watermark
            cached.log_start_offset = outcome.result.log_start_offset
            partitions[outcome.key] = cached
        return partitions


class IncrementalFetch:
    """A request that continues a session: it names only what changes, all its partitions are read."""

    def __init__(self, session: FetchSession, name_of: NameOfTopicId) -> None:
        self._session = session
        self._name_of = name_of
        self._expected_epoch = session.epoch

    def entries(self) -> Iterator[FetchEntry]:
        """The session's partitions. A topic id resolves once and keeps its name from then on (E8)."""
        for key, cached in self._session.partitions.items():
            if cached.topic is None:
                cached.topic = self._name_of(key.topic_id)
            yield FetchEntry(key, cached.topic, cached.parameters)

    def answer(self, outcomes: Sequence[Outcome], now_ms: int) -> Answer:
        """Only the partitions with news (E2); those with data go to the end of the session's order (E3)."""
        session = self._session
        if session.epoch != self._expected_epoch:
            return Answer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id, ())
        chosen: list[Outcome] = []
        for outcome in outcomes:
            cached = session.partitions.get(outcome.key)
            if cached is None or not cached.must_answer(outcome):
                continue
            chosen.append(outcome)
            if outcome.result.records:
                session.partitions[outcome.key] = session.partitions.pop(outcome.key)
        return Answer(ErrorCode.NONE, session.session_id, chosen)

    def throttled_answer(self) -> Answer:
        """The session's id and nothing else."""
        session = self._session
        if session.epoch != self._expected_epoch:
            return Answer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id, ())
        return Answer(ErrorCode.NONE, session.session_id, ())


class FetchSessionCache:
    """The sessions of one node, at most `slots` of them (`max.incremental.fetch.session.cache.slots`, E6).

    Kafka splits its cache in eight for the sake of its locks; one owner needs no split, the bound is the same.
    """

    def __init__(self, slots: int, draw_below: Callable[[int], int], *, eviction_ms: int = EVICTION_MS) -> None:
        """`draw_below(limit)` draws a random int in 0 .. limit-1: session ids are not to be guessed (E7)."""
        self._slots = slots
        self._draw_below = draw_below
        self._eviction_ms = eviction_ms
        # Least recently used first: a use moves a session to the end.
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions over all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(
        self,
        *,
        session_id: int,
        session_epoch: int,
        version: int,
        is_follower: bool,
        partitions: Mapping[FetchKey, FetchParameters],
        forgotten: Sequence[FetchKey],
        name_of: NameOfTopicId,
        now_ms: int,
    ) -> FetchContext:
        """The context of a request (E.1); `name_of` resolves topic ids. An incremental request advances the epoch."""
        uses_topic_ids = version >= TOPIC_IDS_FROM_VERSION
        if session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            cache = self if session_epoch == INITIAL_EPOCH else None
            return FullFetch(cache, partitions, name_of, privileged=is_follower, uses_topic_ids=uses_topic_ids)
        session = self._sessions.get(session_id)
        if session is None:
            return SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != session_epoch:
            return SessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return SessionError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(partitions, forgotten, name_of)
        del self._sessions[session_id]
        if not session.partitions:
            return FullFetch(None, partitions, name_of)
        session.last_used_ms = now_ms
        self._sessions[session_id] = session
        session.epoch = next_epoch(session.epoch)
        return IncrementalFetch(session, name_of)

    def _create(
        self,
        make_partitions: Callable[[], dict[FetchKey, _CachedPartition]],
        size: int,
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> int:
        if len(self._sessions) >= self._slots and not self._evict_for(privileged, size, now_ms):
            return INVALID_SESSION_ID
        session = FetchSession(
            self._new_id(),
            make_partitions(),
            privileged=privileged,
            uses_topic_ids=uses_topic_ids,
            now_ms=now_ms,
        )
        self._sessions[session.session_id] = session
        return session.session_id

    def _evict_for(self, privileged: bool, size: int, now_ms: int) -> bool:
        """Make room for a newcomer of so many partitions; False if everyone here is worth as much (E6)."""
        if not self._sessions:
            return False
        stalest = next(iter(self._sessions.values()))
        if now_ms - stalest.last_used_ms > self._eviction_ms:
            del self._sessions[stalest.session_id]
            return True
        candidates = [session for session in self._sessions.values() if self._is_evictable(session, privileged)]
        if not candidates:
            return False
        cheapest = min(candidates, key=lambda session: session.value)
        if (privileged, size, 0) < cheapest.value:
            return False
        del self._sessions[cheapest.session_id]
        return True

    def _is_evictable(self, session: FetchSession, by_privileged: bool) -> bool:
        # As of its last use: a young session is safe from consumers, a consumer's never from followers.
        is_old = session.last_used_ms - session.created_ms > self._eviction_ms
        return is_old or (by_privileged and not session.privileged)

    def _new_id(self) -> int:
        while True:
            session_id = 1 + self._draw_below(INT32_MAX)
            if session_id not in self._sessions:
                return session_id
