"""Fetch beyond the ordinary: limits, sessions by name and id, deleted topics, followers' questions, transactions."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.produce_and_fetch import batch, create, fetch, produce
from tests.parity.player import Connection, Player
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.delete_topics import DeleteTopicsRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def by_id(topic_id: bytes, *partitions: tuple[int, int], **fields: Any) -> FetchRequest:
    """A Fetch of v13 and above."""
    request = fetch("", *partitions, **fields)
    request.topics[0].topic_id = topic_id
    return request


def filled(connection: Connection, topic: str, partitions: int = 1, batches: int = 3) -> bytes:
    """A topic with batches of two records in each partition; returns its id."""
    topic_id = create(connection, topic, partitions)
    for index in range(batches):
        for partition in range(partitions):
            values = [b"%d" % index] * 2
            request = produce(topic, (partition, batch(*values)))
            connection.player.unwritten(lambda request=request: connection.call(request, 9))
    return topic_id


def scenario_fetch_limits(player: Player) -> None:
    """Sizes of nothing, of less than a batch, of one and a half; minima and waits; isolation levels."""
    connection, topic = player.connect(), player.name("t")
    filled(connection, topic, 3)
    both = ((0, 0), (1, 0), (2, 0))
    for size in (0, 1, 60, 76, 77, 100, 154, 10_000, -1, 2**31 - 1):
        connection.call(fetch(topic, *both, max_bytes=size), 11, f"at most {size}")
        request = fetch(topic, *both)
        for partition in request.topics[0].partitions:
            partition.partition_max_bytes = size
        connection.call(request, 11, f"at most {size} of each")
        if size != -1:
            request.max_bytes = size
            connection.call(request, 11, f"at most {size} both ways")
    for wait, least in ((50, 1_000_000), (0, 1_000_000), (50, 1), (-1, 1_000_000), (50, -1), (50, 0)):
        connection.call(fetch(topic, (0, 6), max_wait_ms=wait, min_bytes=least), 11, f"wait {wait} for {least}")
        connection.call(fetch(topic, (0, 0), max_wait_ms=wait, min_bytes=least), 11, f"data, wait {wait} for {least}")
    connection.call(fetch(topic, (0, 6), (9, 0), max_wait_ms=20_000, min_bytes=9999), 11, "an error ends the wait")
    connection.call(fetch(topic, (0, 7), max_wait_ms=20_000, min_bytes=9999), 11, "out of range ends the wait")
    nothing = fetch(topic, max_wait_ms=20_000, min_bytes=9999)
    connection.call(nothing, 11, "no partitions")
    nothing.topics = []
    for version in (4, 11, 12, 16):
        connection.call(nothing, version, f"no topics v{version}")
    for level in (0, 1, 2, -1):
        connection.call(fetch(topic, (0, 4), isolation_level=level), 11, f"isolation level {level}")
    connection.call(fetch(topic, (0, 4), rack_id="somewhere"), 11, "a rack")


def scenario_fetch_repeated(player: Player) -> None:
    """Topics and partitions twice, -1, odd offsets; in and without a session."""
    connection, topic = player.connect(), player.name("t")
    topic_id = filled(connection, topic, 2)
    connection.call(fetch(topic, (0, 0), (0, 4)), 11, "partition twice")
    twice = fetch(topic, (0, 0), (1, 4))
    twice.topics.append(fetch(topic, (0, 4)).topics[0])
    connection.call(twice, 11, "topic twice")
    connection.call(fetch(topic, (-1, 0)), 11, "partition -1")
    for offset in (-2, -1, 2**63 - 1, -(2**63)):
        connection.call(fetch(topic, (0, offset)), 11, f"offset {offset}")
    connection.call(fetch("", (0, 0)), 11, "no name")
    connection.call(by_id(bytes(16), (0, 0)), 13, "id of zeros")
    connection.call(by_id(topic_id, (0, 0), (9, 0)), 13, "by id, unknown partition")
    mixed = by_id(topic_id, (0, 4))
    mixed.topics += [by_id(b"\x01" * 16, (0, 0), (1, 0)).topics[0], by_id(topic_id, (1, 4)).topics[0]]
    connection.call(mixed, 16, "ids known and unknown")
    mixed.session_epoch = 0
    session = connection.call(mixed, 16, "a session of them").session_id
    again = FetchRequest(max_wait_ms=0, session_id=session, session_epoch=1, max_bytes=1_000_000)
    connection.call(again, 16, "the session again")
    again.session_epoch = 2
    connection.call(again, 16, "and again")
    twice.session_epoch = 0
    session = connection.call(twice, 12, "a session of a topic twice").session_id
    again = FetchRequest(max_wait_ms=0, session_id=session, session_epoch=1, max_bytes=1_000_000)
    connection.call(again, 12, "again")


def scenario_sessions_by_id(player: Player) -> None:
    """Names become ids, ids become names; partitions come and go; a session empties; versions change."""
    connection, topic, other = player.connect(), player.name("t"), player.name("u")
    topic_id, other_id = filled(connection, topic, 2, 1), filled(connection, other, 1, 1)
    full = by_id(topic_id, (0, 2), (1, 0), session_epoch=0)
    session = connection.call(full, 16, "session by id").session_id

    def more(epoch: int, version: int = 16, what: str = "", **fields: Any) -> None:
        values = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1_000_000, **fields}
        request = FetchRequest(session_id=session, session_epoch=epoch, **values)
        connection.call(request, version, what or f"epoch {epoch}")

    def wanted(identity: bytes | str, *partitions: tuple[int, int]) -> list[FetchTopic]:
        return (by_id(identity, *partitions) if isinstance(identity, bytes) else fetch(identity, *partitions)).topics

    more(1)
    more(2, what="with another topic", topics=wanted(other_id, (0, 0)))
    more(3, what="moved on", topics=wanted(other_id, (0, 2)) + wanted(topic_id, (1, 2)))
    more(4)
    forgotten = [ForgottenTopic(topic_id=topic_id, partitions=[0, 7])]
    more(5, what="one forgotten, one never known", forgotten_topics_data=forgotten)
    more(6, what="added and forgotten at once", topics=wanted(topic_id, (0, 0)),
         forgotten_topics_data=[ForgottenTopic(topic_id=topic_id, partitions=[0])])  # fmt: skip
    more(7, what="an offset out of range", topics=wanted(topic_id, (1, 99)))
    more(8, what="still out of range")
    more(9, what="in range again", topics=wanted(topic_id, (1, 2)))
    more(10, what="an unknown id", topics=wanted(b"\x01" * 16, (0, 0)))
    more(11, what="still unknown")
    more(12, version=12, what="below v13")
    more(12, what="at v16 once more")
    gone = [ForgottenTopic(topic_id=identity, partitions=[0, 1]) for identity in (topic_id, other_id, b"\x01" * 16)]
    more(13, what="all forgotten", forgotten_topics_data=gone)
    more(14, what="the session is over")
    full = fetch(topic, (0, 2), session_epoch=0)
    session = connection.call(full, 12, "session by name").session_id
    more(1, version=16, what="at v16")
    more(1, version=12, what="back at v12")
    for epoch in (-2, -100):
        more(epoch, version=12, what=f"epoch {epoch}")
    more(2**31 - 1, version=12, what="the last epoch")
    connection.call(fetch(topic, (0, 2), session_id=7, session_epoch=0), 12, "session 7, epoch 0")
    connection.call(fetch(topic, (0, 2), session_id=7, session_epoch=-1), 12, "session 7, epoch -1")
    connection.call(fetch(topic, (0, 2), session_id=-1, session_epoch=5), 12, "session -1")
    connection.call(fetch(topic, (0, 2), session_id=0, session_epoch=5), 12, "session 0, epoch 5")
    connection.call(fetch(topic, (0, 2), session_id=9, session_epoch=5), 6, "below v7 there are none")


def scenario_fetch_of_deleted_topics(player: Player) -> None:
    """A topic is deleted and made anew under a session and without one."""
    connection, topic = player.connect(), player.name("t")
    old_id = filled(connection, topic)
    session = connection.call(by_id(old_id, (0, 6), session_epoch=0), 16, "session").session_id
    named = connection.call(fetch(topic, (0, 6), session_epoch=0), 12, "session by name").session_id

    def again(number: int, epoch: int, version: int, what: str) -> None:
        request = FetchRequest(session_id=number, session_epoch=epoch, max_wait_ms=0, max_bytes=1_000_000)
        connection.call(request, version, what)

    def metadata_code(code: int) -> None:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        player.unwritten(
            lambda: player.until(lambda: connection.call(asked, 12), lambda found: found.topics[0].error_code == code)
        )

    again(session, 1, 16, "nothing new")
    connection.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), 5, "delete")
    metadata_code(3)
    again(session, 2, 16, "deleted, by id")
    again(named, 1, 12, "deleted, by name")
    connection.call(by_id(old_id, (0, 6)), 16, "deleted, without a session")
    made = CreateTopicsRequest(
        topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)], timeout_ms=30_000
    )
    new_id = connection.call(made, 7, "make anew").topics[0].topic_id
    metadata_code(0)
    read = by_id(new_id, (0, 0))
    player.unwritten(
        lambda: player.until(
            lambda: connection.call(read, 16), lambda found: found.responses[0].partitions[0].error_code == 0
        )
    )
    again(session, 3, 16, "made anew, by id")
    again(named, 2, 12, "made anew, by name")
    connection.call(by_id(old_id, (0, 6)), 16, "old id without a session")
    connection.call(by_id(new_id, (0, 0)), 16, "new id")


def scenario_fetch_as_follower(player: Player) -> None:
    """Who says to be a replica and is none, in the field of each version; epochs and last epochs."""
    connection, topic = player.connect(), player.name("t")
    topic_id = filled(connection, topic)
    for replica in (-2, -3, 0, 99):
        connection.call(fetch(topic, (0, 0), replica_id=replica), 12, f"replica {replica}")
        epoch = fetch(topic, (0, 0), replica_id=replica)
        epoch.topics[0].partitions[0].current_leader_epoch = 0
        connection.call(epoch, 12, f"replica {replica} with an epoch")
        state = by_id(topic_id, (0, 0))
        state.replica_state = ReplicaState(replica_id=replica, replica_epoch=1)
        connection.call(state, 16, f"replica {replica} v16")
    for current, last, offset in (
        (0, 0, 6), (0, 0, 7), (0, 0, 3), (0, 1, 3), (0, 5, 99), (1, 0, 3), (-1, 0, 0),
        (5, -1, 99), (-2, -1, 3), (0, -2, 3), (0, 0, -5),
    ):  # fmt: skip
        partition = FetchPartition(
            partition=0, current_leader_epoch=current, last_fetched_epoch=last, fetch_offset=offset,
            partition_max_bytes=1_000_000,
        )  # fmt: skip
        for version in (12, 16):
            wanted = [FetchTopic(topic=topic if version < 13 else "", topic_id=topic_id, partitions=[partition])]
            request = FetchRequest(topics=wanted, max_wait_ms=0, session_epoch=-1, max_bytes=1_000_000)
            connection.call(request, version, f"leader epoch {current}, last epoch {last}, offset {offset} v{version}")
