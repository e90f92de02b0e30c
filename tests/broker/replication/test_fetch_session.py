"""Incremental fetch sessions: the table of E.1, what responses name, and the bound of the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.replication.fetch_session import (
    FetchContext,
    FetchKey,
    FetchParameters,
    FetchSessionCache,
    FullFetch,
    IncrementalFetch,
    Outcome,
    SessionError,
    next_epoch,
)
from broker.replication.reading import ReadResult
from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

ID_A, ID_B = b"a" * 16, b"b" * 16


def read(error_code: int = 0, high_watermark: int = 0, log_start_offset: int = 0, **options: Any) -> ReadResult:
    """A partition's answer; empty and without news unless told otherwise."""
    return ReadResult(error_code, high_watermark=high_watermark, log_start_offset=log_start_offset, **options)


class Client:
    """Sends fetches to a cache and keeps what a client keeps."""

    def __init__(self, slots: int = 10) -> None:
        self.numbers = count()
        self.cache = FetchSessionCache(slots, lambda limit: next(self.numbers) % limit)
        self.names: dict[bytes, str] = {ID_A: "a"}
        self.now_ms = 0

    def begin(
        self,
        session_id: int,
        epoch: int,
        partitions: Mapping[FetchKey, int] | None = None,
        *,
        forgotten: tuple[FetchKey, ...] = (),
        version: int = 12,
        is_follower: bool = False,
    ) -> FetchContext:
        return self.cache.begin(
            session_id=session_id,
            session_epoch=epoch,
            version=version,
            is_follower=is_follower,
            partitions={key: FetchParameters(offset, 1000) for key, offset in (partitions or {}).items()},
            forgotten=forgotten,
            name_of=self.names.get,
            now_ms=self.now_ms,
        )

    def read(self, context: FetchContext, reads: Mapping[FetchKey, ReadResult] | None = None) -> tuple[Any, ...]:
        """Answer a context; `reads` are the answers of partitions that are not plainly empty."""
        outcomes = [
            Outcome(entry.key, entry.topic, (reads or {}).get(entry.key, read())) for entry in context.entries()
        ]
        error, session_id, chosen = context.answer(outcomes, self.now_ms)
        return error, session_id, [outcome.key for outcome in chosen]

    def open(self, *keys: FetchKey, is_follower: bool = False, version: int = 12) -> int:
        context = self.begin(0, 0, dict.fromkeys(keys, 0), is_follower=is_follower, version=version)
        error, session_id, _ = self.read(context)
        assert error == ErrorCode.NONE
        return session_id


def named(topic: str, partition: int = 0) -> FetchKey:
    return FetchKey(topic, ZERO_UUID, partition)


def by_id(topic_id: bytes, partition: int = 0) -> FetchKey:
    return FetchKey("", topic_id, partition)


def test_f06_the_table_of_sessions() -> None:
    client = Client()
    a, b = named("a"), named("b")
    session = client.open(a, b)
    assert session > 0
    assert client.read(client.begin(0, -1, {a: 0})) == (ErrorCode.NONE, 0, [a]), "not asked for: none is made"
    assert len(client.cache) == 1
    assert client.read(client.begin(session, 1)) == (ErrorCode.NONE, session, []), "nothing new"
    assert client.read(client.begin(session, 1)) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, []), "the epoch moved on"
    assert client.read(client.begin(999, 3)) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])
    error, renewed, keys = client.read(client.begin(session, 0, {b: 0}))
    assert (error, keys) == (ErrorCode.NONE, [b])
    assert renewed not in (0, session)
    assert len(client.cache) == 1
    assert client.read(client.begin(renewed, -1, {b: 0})) == (ErrorCode.NONE, 0, [b])
    assert len(client.cache) == 0


def test_epochs_wrap_to_one() -> None:
    assert [next_epoch(epoch) for epoch in (0, 1, 2**31 - 1, -1)] == [1, 2, 1, -1]


def test_an_incremental_answer_names_what_is_new_and_nothing_else() -> None:
    client = Client()
    a, b, c = named("a"), named("b"), named("c")
    session = client.open(a, b, c)
    news = {a: read(high_watermark=5), b: read(records=b"data"), c: read(error_code=1)}
    assert client.read(client.begin(session, 1), news)[2] == [a, b, c]
    assert client.read(client.begin(session, 2), {a: read(high_watermark=5)})[2] == [c], "c's error went away"
    assert client.read(client.begin(session, 3), {a: read(high_watermark=5)})[2] == []
    started = {a: read(high_watermark=5, log_start_offset=2), b: read(preferred_read_replica=3)}
    assert client.read(client.begin(session, 4), started)[2] == [a, b]


def test_partitions_with_data_go_to_the_end() -> None:
    client = Client()
    a, b, c = named("a"), named("b"), named("c")
    session = client.open(a, b, c)
    client.read(client.begin(session, 1), {a: read(records=b"data")})
    assert [entry.key for entry in client.begin(session, 2).entries()] == [b, c, a]


def test_merge_adds_updates_then_forgets() -> None:
    client = Client()
    a, b, c = named("a"), named("b"), named("c")
    session = client.open(a, b)
    context = client.begin(session, 1, {a: 7, c: 3}, forgotten=(b, c))
    assert [(entry.key, entry.parameters.fetch_offset) for entry in context.entries()] == [(a, 7)]


def test_a_session_that_became_empty_is_closed() -> None:
    client = Client()
    a = named("a")
    session = client.open(a)
    assert client.read(client.begin(session, 1, forgotten=(a,))) == (ErrorCode.NONE, 0, [])
    assert len(client.cache) == 0


def test_names_and_ids_do_not_mix() -> None:
    client = Client()
    with_names, with_ids = client.open(named("a")), client.open(by_id(ID_A), version=13)
    for session, version in ((with_names, 13), (with_ids, 12)):
        answer = client.read(client.begin(session, 1, version=version))
        assert answer == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0, [])
    assert client.read(client.begin(with_ids, 1, version=14))[0] == ErrorCode.NONE, "the wrong request changed nothing"


def test_an_unknown_topic_id_stays_and_resolves_later_then_keeps_its_name() -> None:
    client = Client()
    session = client.open(by_id(ID_B), version=13)
    assert [entry.topic for entry in client.begin(session, 1, version=13).entries()] == [None]
    client.names[ID_B] = "b"
    assert [entry.topic for entry in client.begin(session, 2, version=13).entries()] == ["b"]
    del client.names[ID_B]
    assert [entry.topic for entry in client.begin(session, 3, version=13).entries()] == ["b"]


def test_a_duplicate_request_overtaking_a_waiting_one_ends_it_with_the_session_id() -> None:
    client = Client()
    session = client.open(named("a"))
    waiting = client.begin(session, 1)
    client.begin(session, 2)
    assert client.read(waiting) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session, [])


def test_throttled_answers_keep_the_id_and_tell_nothing() -> None:
    client = Client()
    a = named("a")
    session = client.open(a)
    assert client.begin(session, 1).throttled_answer() == (ErrorCode.NONE, session, ())
    assert client.read(client.begin(session, 2), {a: read(high_watermark=4)})[2] == [a], "it is still news"
    assert client.begin(0, 0, {a: 0}).throttled_answer() == (ErrorCode.NONE, 0, ())
    assert client.begin(77, 5).throttled_answer()[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_contexts_are_what_the_request_says() -> None:
    client = Client()
    session = client.open(named("a"))
    assert isinstance(client.begin(session, 1), IncrementalFetch)
    assert isinstance(client.begin(session, 0, {named("a"): 0}), FullFetch)
    assert isinstance(client.begin(session, 9), SessionError)


def test_a_full_cache_refuses_with_id_zero_and_the_data_all_the_same() -> None:
    client = Client(slots=1)
    client.open(named("a"))
    b = named("b")
    assert client.read(client.begin(0, 0, {b: 0})) == (ErrorCode.NONE, 0, [b])


@dataclass
class TwinSession:
    created_ms: int
    used_ms: int
    size: int
    privileged: bool


@given(
    st.lists(
        st.tuples(st.sampled_from(["open", "use"]), st.integers(0, 50_000), st.integers(1, 3), st.booleans()),
        max_size=60,
    )
)
def test_evictions_equal_a_plain_reading_of_the_rule(steps: list[tuple[str, int, int, bool]]) -> None:
    """Twin: lists of sessions, searched from scratch for every newcomer (E6)."""
    client = Client(slots=4)
    twin: dict[int, TwinSession] = {}
    epochs: dict[int, int] = {}
    for what, passed_ms, size, privileged in steps:
        client.now_ms += passed_ms
        now_ms = client.now_ms
        if what == "use" and twin:
            session = sorted(twin)[size % len(twin)]
            assert client.read(client.begin(session, epochs[session]))[0] == ErrorCode.NONE
            epochs[session] += 1
            # Re-inserted: of sessions used in the same millisecond the one used last is the youngest.
            used = twin.pop(session)
            used.used_ms = now_ms
            twin[session] = used
            continue
        victim = None if len(twin) < 4 else victim_of(twin, now_ms, size, privileged)
        opened = client.open(*(named("a", index) for index in range(size)), is_follower=privileged)
        assert bool(opened) == (len(twin) < 4 or victim is not None)
        if victim is not None:
            del twin[victim]
        if opened:
            twin[opened], epochs[opened] = TwinSession(now_ms, now_ms, size, privileged), 1
        assert len(client.cache) == len(twin)
        assert client.cache.partition_count == sum(session.size for session in twin.values())


def victim_of(sessions: dict[int, TwinSession], now_ms: int, size: int, privileged: bool) -> int | None:
    idle = [(session.used_ms, place, id_) for place, (id_, session) in enumerate(sessions.items())]
    if now_ms - min(idle)[0] > 120_000:
        return min(idle)[2]
    cheaper = [
        (session.privileged, session.size, id_)
        for id_, session in sessions.items()
        if session.used_ms - session.created_ms > 120_000 or (privileged and not session.privileged)
    ]
    if not cheaper or (privileged, size, 0) < min(cheaper):
        return None
    return min(cheaper)[2]
