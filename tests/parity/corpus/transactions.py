"""Transactions of both protocol versions, step by step, with every refusal one node can give."""

from __future__ import annotations

from typing import Any

from tests.parity.corpus.classic_groups import stable_member
from tests.parity.corpus.committed_offsets import fetch as fetch_offsets
from tests.parity.corpus.produce_and_fetch import batch, create, fetch, offsets, produce
from tests.parity.player import Connection, Player
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from wire.messages.describe_transactions import DescribeTransactionsRequest
from wire.messages.end_txn import EndTxnRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_transactions import ListTransactionsRequest
from wire.messages.produce import ProduceRequest
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

TRANSIENT = (14, 15, 16, 51)


class Producer:
    """A transactional producer by hand: who it is, and the requests it makes."""

    def __init__(self, connection: Connection, transactional_id: str) -> None:
        self.connection = connection
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequence = 0

    def settled(self, request: Any, version: int, label: str) -> Any:
        """Call until the answer is not one of those that pass by themselves; keep the last."""

        def done(answer: Any) -> bool:
            results = getattr(answer, "results_by_topic_v3_and_below", None)
            if results:
                return results[0].results_by_partition[0].partition_error_code not in TRANSIENT
            return getattr(answer, "error_code", 0) not in TRANSIENT

        call = self.connection.call
        return self.connection.player.until(lambda: call(request, version, label), done)

    def init(self, version: int = 4, label: str = "init", **fields: Any) -> Any:
        """InitProducerId; takes over the identity of a good answer."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            **{"transaction_timeout_ms": 60_000, **fields},
        )
        answer = self.settled(request, version, label)
        if answer.error_code == 0:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequence = 0
        return answer

    def add(self, topic: str, *partitions: int, version: int = 3, **fields: Any) -> Any:
        """AddPartitionsToTxn below v4."""
        label = fields.pop("label", "add partitions")
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]
        values = {
            "v3_and_below_transactional_id": self.transactional_id,
            "v3_and_below_producer_id": self.producer_id,
            "v3_and_below_producer_epoch": self.producer_epoch,
            "v3_and_below_topics": topics,
        }
        request = AddPartitionsToTxnRequest(**{**values, **fields})
        return self.settled(request, version, label)

    def batch(self, *values: bytes, **fields: Any) -> bytes:
        """A transactional batch with the next sequence."""
        identity = {
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "base_sequence": self.sequence,
            "is_transactional": True,
        }
        self.sequence += len(values)
        return batch(*values, **{**identity, **fields})

    def send(self, topic: str, *values: bytes, version: int = 11, **fields: Any) -> Any:
        """Produce into partition 0."""
        label = fields.pop("label", f"produce v{version}")
        request: ProduceRequest = produce(
            topic,
            (0, self.batch(*values, **fields)),
            transactional_id=self.transactional_id,
        )
        return self.connection.call(request, version, label)

    def end(self, committed: bool, version: int = 4, **fields: Any) -> Any:
        """EndTxn; takes over the identity that v5 answers."""
        label = fields.pop("label", f"{'commit' if committed else 'abort'} v{version}")
        values = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "committed": committed,
        }
        answer = self.settled(EndTxnRequest(**{**values, **fields}), version, label)
        if version >= 5 and answer.error_code == 0:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self.sequence = 0
        return answer


def ready(player: Player, name: str = "tx") -> Producer:
    """A producer whose coordinator answers."""
    connection = player.connect()
    transactional_id = player.name(name)
    request = FindCoordinatorRequest(coordinator_keys=[transactional_id], key_type=1)
    player.until(lambda: connection.call(request, 4), lambda answer: answer.coordinators[0].error_code == 0)
    producer = Producer(connection, transactional_id)
    request = EndTxnRequest(transactional_id=player.name("nobody"), producer_id=2**40)
    producer.settled(request, 3, "ready?")
    player.transcript.entries.clear()
    return producer


def await_stable(producer: Producer, topic: str, end: int) -> None:
    """Wait until the last stable offset has reached ``end``; not written down."""
    player = producer.connection.player
    request = offsets(topic, (0, -1), isolation_level=1)
    player.unwritten(
        lambda: player.until(
            lambda: producer.connection.call(request, 7),
            lambda answer: answer.topics[0].partitions[0].offset >= end,
        )
    )


def scenario_transaction_version_1(player: Player) -> None:
    """Commit and abort with explicit partitions, seen under both isolation levels."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    call(produce(topic, (0, batch(b"plain"))), 9)
    producer.init()
    producer.add(topic, 0)
    producer.send(topic, b"one", b"two")
    call(produce(topic, (0, batch(b"plain too"))), 9)
    for isolation in (0, 1):
        call(offsets(topic, (0, -1), isolation_level=isolation), 7, f"end while open {isolation=}")
        call(fetch(topic, (0, 0), isolation_level=isolation), 12, f"fetch while open {isolation=}")
    call(DescribeTransactionsRequest(transactional_ids=[producer.transactional_id]), 0, "describe")
    describe = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    call(describe, 0, "producers while open")
    producer.end(True)
    await_stable(producer, topic, 5)
    producer.add(topic, 0)
    producer.send(topic, b"gone")
    producer.end(False)
    await_stable(producer, topic, 7)
    for isolation in (0, 1):
        call(offsets(topic, (0, -1), isolation_level=isolation), 7, f"end after {isolation=}")
        call(fetch(topic, (0, 0), isolation_level=isolation), 12, f"fetch after {isolation=}")
    call(describe, 0, "producers afterwards")
    producer.end(False, label="abort again")
    producer.end(True, label="commit after abort")


def scenario_transaction_version_2(player: Player) -> None:
    """Implicit partitions, an epoch bump at every end, retries of EndTxn (KIP-890)."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    producer.init(version=5)
    producer.send(topic, b"one", b"two", version=12)
    before = (producer.producer_id, producer.producer_epoch)
    producer.end(True, version=5)
    await_stable(producer, topic, 3)
    stale = {"producer_id": before[0], "producer_epoch": before[1]}
    after = (producer.producer_id, producer.producer_epoch)
    producer.end(True, version=5, label="commit repeated", **stale)
    producer.end(False, version=5, label="abort after commit repeated", **stale)
    producer.producer_id, producer.producer_epoch = after
    producer.end(True, version=5, label="commit of nothing")
    producer.end(False, version=5, label="abort of nothing")
    producer.send(topic, b"gone", version=12)
    producer.end(False, version=5)
    await_stable(producer, topic, 5)
    producer.send(topic, b"old epoch", version=12, producer_epoch=0)
    producer.send(topic, b"x", version=12, base_sequence=5, label="first sequence not 0")
    for isolation in (0, 1):
        call(fetch(topic, (0, 0), isolation_level=isolation), 12, f"fetch after {isolation=}")


def scenario_init_producer_id_errors(player: Player) -> None:
    """Timeouts, empty ids, half identities, fencing, retries of a lost answer."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    for timeout in (0, -1, 900_001, 2**31 - 1):
        producer.init(transaction_timeout_ms=timeout, label=f"timeout {timeout}")
    producer.init(transaction_timeout_ms=900_000, label="longest timeout")
    request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
    call(request, 4, "empty id")
    producer.init(producer_id=producer.producer_id, label="id without epoch")
    producer.init(producer_id=999_999, producer_epoch=0, label="somebody else's id v4")
    producer.init(version=3, producer_id=999_999, producer_epoch=0, label="somebody else's id v3")
    held = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    producer.init(label="bump by the holder", **held)
    producer.init(label="the same again: a retry", **held)
    producer.init(label="no identity")
    producer.init(label="stale identity", **held)
    for version in range(6):
        producer.init(version=version, label=f"init v{version}")
    producer.add(topic, 0)
    producer.send(topic, b"open")
    old = (producer.producer_id, producer.producer_epoch)
    producer.init(label="init over an open transaction")
    zombie = Producer(producer.connection, producer.transactional_id)
    zombie.producer_id, zombie.producer_epoch, zombie.sequence = (*old, 1)
    zombie.send(topic, b"zombie", label="zombie produces")
    zombie.add(topic, 0, label="zombie adds v3")
    zombie.add(topic, 0, version=1, label="zombie adds v1")
    zombie.end(True, label="zombie commits v4")
    zombie.end(True, version=1, label="zombie commits v1")
    await_stable(producer, topic, 2)
    call(fetch(topic, (0, 0), isolation_level=1), 12, "its transaction was aborted")


def scenario_transaction_errors(player: Player) -> None:
    """AddPartitionsToTxn, EndTxn, Produce and AddOffsetsToTxn refused."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    producer.add(topic, 0, label="add for an unknown id")
    producer.end(True, label="commit for an unknown id")
    producer.init()
    producer.add(topic, 0, 9, label="one unknown partition")
    producer.add("__consumer_offsets", 0, label="internal topic")
    producer.add(topic, 0, v3_and_below_producer_id=999_999, label="other id")
    producer.add(topic, 0, v3_and_below_producer_epoch=77, label="higher epoch v3")
    producer.add(topic, 0, version=0, v3_and_below_producer_epoch=77, label="higher epoch v0")
    producer.add(topic, 0, v3_and_below_transactional_id="", label="empty id")
    producer.end(True, label="commit while empty")
    producer.end(False, label="abort while empty")
    producer.send(topic, b"x", label="produce without adding v11")
    producer.send(topic, b"x", version=9, label="produce without adding v9")
    producer.sequence = 0
    unnamed = produce(topic, (0, producer.batch(b"x")))
    call(unnamed, 11, "transactional batch without a transactional id")
    for version in range(4):
        producer.add(topic, 0, version=version, label=f"add v{version}")
    for fields in ({"producer_epoch": 77}, {"producer_epoch": -1}, {"producer_id": 999_999}):
        for version in (1, 3):
            producer.end(True, version=version, label=f"{fields} v{version}", **fields)
    producer.end(True, transactional_id="", label="empty id")
    producer.sequence = 0
    producer.send(topic, b"good")
    call(produce(topic, (0, producer.batch(b"x", is_transactional=False))), 9, "plain in between")
    for version in range(5):
        producer.settled(
            EndTxnRequest(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                committed=True,
            ),
            version,
            f"commit v{version}",
        )
    for version in range(5):
        request = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=player.name("g"),
        )
        producer.settled(request, version, f"add offsets v{version}")
    producer.end(False)


def commit_in_transaction(
    producer: Producer, group: str, topic: str, offset: int, **fields: Any
) -> TxnOffsetCommitRequest:
    """A TxnOffsetCommit of one partition."""
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
    values = {
        "transactional_id": producer.transactional_id,
        "group_id": group,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "topics": [TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    }
    return TxnOffsetCommitRequest(**{**values, **fields})


def scenario_transactional_offsets(player: Player) -> None:
    """Pending offsets, require_stable, commit and abort, group checks."""
    producer, topic, group = ready(player), player.name("t"), player.name("g")
    create(producer.connection, topic)
    call = producer.connection.call
    member, generation = stable_member(player.connect(), group)

    def show(label: str) -> None:
        for stable in (False, True):
            request = fetch_offsets(group, (topic, [0]))
            request.require_stable = stable
            call(request, 9, f"{label}, {stable=}")

    def send(offset: int, version: int, label: str, **fields: Any) -> None:
        request = commit_in_transaction(producer, group, topic, offset, **fields)
        player.until(
            lambda: call(request, version, label),
            lambda answer: answer.topics[0].partitions[0].error_code not in TRANSIENT,
        )

    producer.init()
    for commits, offset in ((True, 5), (False, 9)):
        add = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group,
        )
        producer.settled(add, 3, "add offsets")
        for version in range(5):
            send(offset, version, f"commit offsets v{version}")
        show("while open")
        producer.end(commits)
        request = fetch_offsets(group, (topic, [0]))
        request.require_stable = True
        player.unwritten(
            lambda request=request: player.until(
                lambda: call(request, 9),
                lambda answer: answer.groups[0].topics[0].partitions[0].error_code != 88,
            )
        )
        show("after the end")
    good = {"member_id": member, "generation_id_or_member_epoch": generation}
    producer.settled(add, 3, "add offsets")
    send(20, 3, "wrong generation", **{**good, "generation_id_or_member_epoch": generation + 1})
    send(20, 3, "unknown member", **{**good, "member_id": "nobody"})
    send(20, 3, "unknown instance", **good, group_instance_id="i")
    send(20, 3, "member", **good)
    send(20, 3, "empty group id", group_id="")
    send(20, 3, "epoch too low", producer_epoch=producer.producer_epoch - 1)
    producer.end(True)
    producer.init(version=5)
    send(30, 5, "implicit add v5")
    producer.end(True, version=5)
    send(31, 4, "not added v4")
    send(31, 3, "not added v3")


def scenario_list_and_describe_transactions(player: Player) -> None:
    """Filters, unknown ids, states."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    producer.init()
    ids = [producer.transactional_id, player.name("nosuch"), ""]
    call(DescribeTransactionsRequest(transactional_ids=ids), 0, "describe empty")
    producer.add(topic, 0)
    call(DescribeTransactionsRequest(transactional_ids=ids), 0, "describe ongoing")
    mine = {"producer_id_filters": [producer.producer_id]}
    for version in range(3):
        call(ListTransactionsRequest(**mine), version, f"list v{version}")
    for states in (["Ongoing"], ["Empty"], ["Nonsense", "Ongoing"]):
        call(ListTransactionsRequest(state_filters=states, **mine), 2, f"list {states}")
    call(ListTransactionsRequest(duration_filter=3_600_000, **mine), 2, "older than an hour")
    pattern = {"transactional_id_pattern": player.name(".*")}
    call(ListTransactionsRequest(**pattern), 2, "list by pattern")
    call(ListTransactionsRequest(transactional_id_pattern="["), 2, "bad pattern")
    producer.end(False)


def scenario_write_txn_markers(player: Player) -> None:
    """An operator ends a hanging transaction; forged markers are refused."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    producer.init()
    producer.add(topic, 0)
    producer.send(topic, b"hanging")

    def marker(epoch: int, coordinator_epoch: int = 0, partition: int = 0, **fields: Any) -> WriteTxnMarkersRequest:
        topics = [WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])]
        values = {"producer_id": producer.producer_id, "transaction_result": False}
        item = WritableTxnMarker(
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            topics=topics,
            **{**values, **fields},
        )
        return WriteTxnMarkersRequest(markers=[item])

    call(marker(producer.producer_epoch, partition=9), 1, "unknown partition")
    call(marker(producer.producer_epoch - 1), 1, "lower epoch")
    call(marker(producer.producer_epoch), 1, "abort")
    call(marker(producer.producer_epoch), 1, "abort again")
    call(fetch(topic, (0, 0), isolation_level=1), 12, "aborted")
    call(marker(producer.producer_epoch, -1), 1, "lower coordinator epoch")
    call(marker(producer.producer_epoch + 1, transaction_result=True), 1, "higher epoch")
    call(fetch(topic, (0, 0)), 12, "all markers")
    call(marker(0, producer_id=999_999), 1, "a producer nobody knows")
