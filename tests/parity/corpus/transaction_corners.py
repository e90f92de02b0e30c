"""Transactions where both protocols meet, where producers are fenced, and what brokers ask each other."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.produce_and_fetch import create, fetch, offsets
from tests.parity.corpus.transactions import Producer, await_stable, ready
from tests.parity.player import Player
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from wire.messages.describe_transactions import DescribeTransactionsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_transactions import ListTransactionsRequest
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest


def once(producer: Producer, label: str, version: int = 5, **fields: Any) -> Any:
    """InitProducerId, asked once: the answer may be that it has to be asked again."""
    values = {"transactional_id": producer.transactional_id, "transaction_timeout_ms": 60_000}
    return producer.connection.call(InitProducerIdRequest(**{**values, **fields}), version, label)


def settled_state(producer: Producer, label: str) -> None:
    """DescribeTransactions once the id is between transactions."""
    request = DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])
    player = producer.connection.player
    player.until(
        lambda: producer.connection.call(request, 0, label),
        lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare"),
    )


def held(producer: Producer) -> dict[str, int]:
    """What the producer says it has."""
    return {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}


def scenario_fencing_with_epoch_bumps(player: Player) -> None:
    """An open transaction is aborted by InitProducerId, with and without saying who asks (KIP-890)."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    producer.init(version=5)
    producer.send(topic, b"one", version=12)
    old = held(producer)
    once(producer, "init over it")
    settled_state(producer, "fenced")
    once(producer, "the fenced producer says who it was", **old)
    once(producer, "and again", **old)
    zombie = Producer(producer.connection, producer.transactional_id)
    zombie.producer_id, zombie.producer_epoch, zombie.sequence = old["producer_id"], old["producer_epoch"], 1
    zombie.send(topic, b"zombie", version=12, label="zombie produces v12")
    zombie.sequence = 1
    zombie.send(topic, b"zombie", version=11, label="zombie produces v11")
    zombie.end(True, version=5, label="zombie commits v5")
    zombie.end(False, version=5, label="zombie aborts v5")
    producer.init(version=5, label="somebody new")
    once(producer, "the fenced producer once more", **old)
    zombie.end(True, version=5, label="zombie commits v5, later")
    zombie.end(True, version=4, label="zombie commits v4, later")
    producer.send(topic, b"two", version=12)
    current = held(producer)
    once(producer, "the holder itself inits over its transaction", **current)
    settled_state(producer, "fenced by itself")
    once(producer, "it goes on", **current)
    producer.connection.call(fetch(topic, (0, 0), isolation_level=1), 12, "nothing was committed")


def scenario_protocols_mixed(player: Player) -> None:
    """Begun in one protocol, ended in the other."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic, 2)
    producer.init(version=5)
    producer.send(topic, b"implicit", version=12)
    producer.end(True, version=4, label="ended without a bump")
    await_stable(producer, topic, 2)
    settled_state(producer, "after an end without a bump")
    producer.end(True, version=4, label="the same again")
    producer.end(True, version=5, label="commit v5 of what is over")
    producer.add(topic, 0)
    producer.send(topic, b"explicit", version=11)
    old = held(producer)
    producer.end(True, version=5, label="ended with a bump")
    await_stable(producer, topic, 4)
    settled_state(producer, "after an end with a bump")
    producer.end(True, version=5, label="the old identity commits again", **old)
    producer.end(True, version=4, label="the old identity commits again v4", **old)
    producer.end(False, version=5, label="abort of nothing")
    settled_state(producer, "after an abort of nothing")
    producer.end(False, version=4, label="abort v4 of nothing")
    producer.add(topic, 1, label="epoch of the abort")
    producer.sequence = 0
    producer.send(topic, b"first", version=11, base_sequence=0)
    producer.end(False, version=5)
    producer.connection.call(fetch(topic, (0, 0), isolation_level=1), 12, "what is there")


def scenario_what_leaders_ask(player: Player) -> None:
    """AddPartitionsToTxn v4 and v5: several transactions at once, verify_only (KIP-890)."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic, 3)
    producer.init()

    def entry(*partitions: int, verify_only: bool = True, name: str = "", **fields: Any) -> Any:
        values = {"transactional_id": producer.transactional_id, **held(producer)}
        topics = [AddPartitionsToTxnTopic(name=name or topic, partitions=list(partitions))]
        return AddPartitionsToTxnTransaction(**{**values, **fields}, verify_only=verify_only, topics=topics)

    def ask(label: str, *entries: Any, version: int = 5) -> None:
        request = AddPartitionsToTxnRequest(transactions=list(entries))
        producer.connection.call(request, version, label)

    ask("verify before anything is added", entry(0))
    producer.add(topic, 0)
    for version in (4, 5):
        ask(f"verify one that is in and one that is not v{version}", entry(0, 1), version=version)
    ask("verify for another producer id", entry(0, producer_id=999_999))
    ask("verify for another epoch", entry(0, producer_epoch=55))
    ask("verify for an unknown id", entry(0, transactional_id=player.name("nobody")))
    ask("verify for an empty id", entry(0, transactional_id=""))
    ask("verify a partition that does not exist", entry(0, 9))
    ask("verify an internal topic", entry(0, name="__consumer_offsets"))
    ask("add", entry(1, verify_only=False))
    ask("two transactions", entry(0, 1), entry(0, transactional_id=player.name("nobody")))
    settled_state(producer, "two partitions")
    producer.end(True)


def scenario_markers_of_operators(player: Player) -> None:
    """WriteTxnMarkers v2: the epoch rule of transaction.version 2 (KIP-1228)."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    producer.init()
    producer.add(topic, 0)
    producer.send(topic, b"hanging")

    def marker(epoch: int, version: int, label: str, transaction_version: int = 2, **fields: Any) -> None:
        topics = [WritableTxnMarkerTopic(name=topic, partition_indexes=[0])]
        item = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            coordinator_epoch=0,
            topics=topics,
            **({"transaction_version": transaction_version} if version >= 2 else {}),
            **fields,
        )
        call(WriteTxnMarkersRequest(markers=[item]), version, label)

    epoch = producer.producer_epoch
    marker(epoch, 2, "the epoch of the data is too low")
    marker(epoch, 2, "but not for transaction.version 1", 1)
    marker(epoch, 2, "nor once nothing is open")
    marker(epoch + 1, 2, "the epoch above")
    marker(epoch, 2, "the epoch of the data, now older")
    marker(epoch, 1, "the epoch of the data, now older v1")
    describe = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    call(describe, 0, "the producer afterwards")
    call(WriteTxnMarkersRequest(markers=[]), 2, "no markers")
    call(offsets(topic, (0, -1), isolation_level=1), 7, "the last stable offset")


def scenario_transactional_offsets_by_topic_id(player: Player) -> None:
    """TxnOffsetCommit v6, and what is not there."""
    producer, topic, group = ready(player), player.name("t"), player.name("g")
    topic_id = create(producer.connection, topic)
    call = producer.connection.call
    request = FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
    player.unwritten(
        lambda: player.until(lambda: call(request, 4), lambda answer: answer.coordinators[0].error_code == 0)
    )
    producer.init(version=5)

    def commit(label: str, version: int, *topics: TxnOffsetCommitRequestTopic, **fields: Any) -> None:
        values = {"transactional_id": producer.transactional_id, "group_id": group, **held(producer)}
        asked = TxnOffsetCommitRequest(**{**values, **fields}, topics=list(topics))
        player.until(
            lambda: call(asked, version, label),
            lambda answer: answer.topics[0].partitions[0].error_code not in (14, 15, 16, 51),
        )

    def named(name: str, *partitions: int, metadata: str = "m", **fields: Any) -> TxnOffsetCommitRequestTopic:
        return TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata=metadata)
                for index in partitions
            ],
            **fields,
        )

    commit("by id v6", 6, named("", 0, topic_id=topic_id))
    commit("one partition does not exist v6", 6, named("", 0, 7, topic_id=topic_id))
    commit("an unknown topic id", 6, named("", 0, topic_id=b"\x01" * 16))
    commit("one partition does not exist v5", 5, named(topic, 0, 7))
    commit("an unknown topic v5", 5, named(player.name("nosuch"), 0))
    commit("metadata too long v5", 5, named(topic, 0, metadata="m" * 5000))
    commit("an old epoch v5", 5, named(topic, 0), producer_epoch=77)
    commit("another producer v5", 5, named(topic, 0), producer_id=999_999)
    commit("an unknown transactional id v5", 5, named(topic, 0), transactional_id=player.name("nobody"))
    commit("a generation v5", 5, named(topic, 0), generation_id_or_member_epoch=3, member_id="m")
    producer.end(True, version=5)
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    )
    offset_fetch = OffsetFetchRequest(groups=[wanted], require_stable=True)
    player.until(
        lambda: call(offset_fetch, 9, "committed"),
        lambda answer: answer.groups[0].topics[0].partitions[0].error_code != 88,
    )
    for version in (0, 2, 4):
        add = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id, group_id=group, producer_id=producer.producer_id
        )
        add.producer_epoch = producer.producer_epoch + 9
        producer.settled(add, version, f"add offsets with another epoch v{version}")


def scenario_listed_transactions(player: Player) -> None:
    """Patterns and durations of ListTransactions."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    producer.init()

    def listed(label: str, **fields: Any) -> None:
        mine = {"producer_id_filters": [producer.producer_id]}
        call(ListTransactionsRequest(**{**mine, **fields}), 2, label)

    listed("empty state, any duration", duration_filter=0)
    producer.add(topic, 0)
    listed("longer than a day", duration_filter=86_400_000)
    listed("negative duration", duration_filter=-5)
    listed("empty pattern", transactional_id_pattern="")
    listed("a part of the id", transactional_id_pattern="tx")
    listed("the whole id by its end", transactional_id_pattern=".*-tx")
    listed("a look-ahead", transactional_id_pattern="(?=x)")
    listed("a backreference", transactional_id_pattern="(x)\\1")
    listed("unknown states only", state_filters=["Nonsense", "nonsense", "Nonsense"])
    listed("states by name", state_filters=["Dead", "PrepareEpochFence", "Ongoing"])
    producer.end(False)


def scenario_listed_transactions_by_hard_patterns(player: Player) -> None:
    """What is a regular expression of RE2/J, what is not, and what it matches."""
    producer = ready(player, "a.b]c[1")
    producer.init()
    prefix = player.name("")
    for pattern in (
        *(
            "a.b]c[[]1",
            r"\Qa.b]c[1\E",
            r"\Qa.b]c[1",
            r"a\.b\]c\[1",
            r"\x61.b\x{5D}c.1",
            "(?i)A.B.C.1",
            "a[.]b[]]c[[]\\d",
        ),
        *("[[:alpha:]].b.c.[[:digit:]]", "[^[:digit:]].b.c.1", "[[:^digit:]].b.c.1", r"\pL.b.c.1", r"\p{Greek}.b.c.1"),
        *("(?<name>a).b.c.1", "(?P<name>a).b.c.1", "(?P<n>a)(?P<n>.)b.c.1", "(?P<é>a).b.c.1", "(?s).+", "^a.b.c.1$"),
        *(r"\Aa.b.c.1\z", r"a.b.c.1\Z", "a.b.c.1|x", "x|a.b.c.1", "(?:a.b.){1}c.1", "a{1}.b.c.1", "a{1000}", "a{1001}"),
        *(
            "a++",
            "a{2}+",
            "a**",
            "[",
            "(",
            "a)",
            "*a",
            "(?!x)",
            "(?<=x)",
            "(?>x)",
            r"(a)\1",
            "(?P=name)",
            r"\u0041",
            r"\x4",
        ),
        *(
            r"\x{110000}",
            "a\\",
            "[[:foo:]]",
            "(?#comment)a",
            "(a)(?(1)b|c)",
            r"\C.b.c.1",
            "[z-a]",
            r"\07",
            r"\7",
            "[a-\\d]",
        ),
    ):
        # Its own prefix is quoted, so that the pattern says of the rest of the id whether it matches.
        request = ListTransactionsRequest(transactional_id_pattern=rf"\Q{prefix}\E(?:{pattern})")
        producer.connection.call(request, 2, pattern)
