"""Rules about transactional producers: both protocols, markers, offsets of groups, wrong epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.parity.live import data_requests as drawn
from tests.parity.live.group_requests import mostly, versions
from tests.parity.live.log_rules import LogRules
from tests.parity.live.machine import ADMIN
from tests.parity.live.twins import CLOSED
from tests.parity.live.values import Made, Ref
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.messages.describe_transactions import DescribeTransactionsRequest
from wire.messages.end_txn import EndTxnRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.list_transactions import ListTransactionsRequest
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

STATES = ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "PrepareCommit", "nonsense", ""]
SHIFTS = mostly(st.just(0), 1, -1, weight=9)


@dataclass(slots=True)
class Producer:
    """A transactional producer as it knows itself."""

    epoch: int
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)


class TransactionRules(LogRules):
    """Two transactional ids."""

    def __init__(self) -> None:
        super().__init__()
        self.producers: dict[str, Producer] = {}

    @rule(
        version=versions(0, 5),
        name=mostly(st.sampled_from(["x1", "x1", "x2"]), "", weight=15),
        timeout_ms=mostly(st.just(300_000), 0, -1, 900_001, weight=11),
        given=mostly(st.just(""), "own", "epoch", "other", weight=5),
    )
    def init_transactions(self, version: int, name: str, timeout_ms: int, given: str) -> None:
        """InitProducerId of a transactional id."""
        transactional_id = self.prefix + name if name else ""
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        known = self.producers.get(name)
        if known is not None and given and version >= 3:
            request.producer_id = 123_456 if given == "other" else Ref(name)
            request.producer_epoch = known.epoch + (given == "epoch")
        captures = {f"{name}new": lambda found: found.producer_id} if name else {}
        answer = self.settled(name, request, version, captures=captures)
        if answer not in (None, CLOSED) and not answer.error_code:
            self.twins.choose(name, Ref(f"{name}new"))
            self.producers[name] = Producer(answer.producer_epoch)

    def chosen(self, data: Any) -> tuple[str, Producer]:
        name = data.draw(st.sampled_from(sorted(self.producers)))
        return name, self.producers[name]

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), version=versions(0, 5), shift=SHIFTS, verify=st.booleans())
    def add_partitions(self, data: Any, version: int, shift: int, verify: bool) -> None:
        """AddPartitionsToTxn of both forms."""
        name, producer = self.chosen(data)
        topics = [
            AddPartitionsToTxnTopic(
                name=self.topic(topic), partitions=data.draw(st.lists(drawn.PARTITIONS, min_size=1, max_size=2))
            )
            for topic in data.draw(st.lists(drawn.NAMES, max_size=2, unique=True))
        ]
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.prefix + name,
                v3_and_below_producer_id=Ref(name),
                v3_and_below_producer_epoch=producer.epoch + shift,
                v3_and_below_topics=topics,
            )
        else:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=self.prefix + name,
                producer_id=Ref(name),
                producer_epoch=producer.epoch + shift,
                verify_only=verify,
                topics=topics,
            )
            request = AddPartitionsToTxnRequest(transactions=[transaction])
        self.settled(name, request, version)

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), version=versions(3, 13), shift=SHIFTS, named=mostly(st.just(True), False))
    def produce_in_transaction(self, data: Any, version: int, shift: int, named: bool) -> None:
        """Produce of a transactional batch; from v12 on it adds its partition by itself."""
        name, producer = self.chosen(data)
        topic, index = data.draw(st.sampled_from(["a", "a", "b"])), data.draw(st.sampled_from([0, 0, 1]))
        sequence = producer.sequences.get((topic, index), 0)
        fields = {
            "producer_id": Ref(name),
            "producer_epoch": producer.epoch + shift,
            "base_sequence": sequence + data.draw(mostly(st.just(0), 3, weight=9)),
            "is_transactional": data.draw(mostly(st.just(True), False, weight=9)),
        }
        batch: Any = Made(drawn.flawed, ("", [b"t"]), fields)
        entry = TopicProduceData(partition_data=[PartitionProduceData(index=index, records=batch)])
        if version >= 13:
            entry.topic_id = Ref(topic.upper())
        else:
            entry.name = self.topic(topic)
        request = ProduceRequest(
            transactional_id=self.prefix + name if named else None, acks=-1, timeout_ms=10_000, topic_data=[entry]
        )
        answer = self.settled(name, request, version)
        if answer not in (None, CLOSED) and not answer.responses[0].partition_responses[0].error_code:
            producer.sequences[topic, index] = sequence + 1

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), version=versions(0, 4), shift=SHIFTS, group=mostly(st.just("g"), "", weight=11))
    def add_offsets(self, data: Any, version: int, shift: int, group: str) -> None:
        """AddOffsetsToTxn."""
        name, producer = self.chosen(data)
        request = AddOffsetsToTxnRequest(
            transactional_id=self.prefix + name,
            producer_id=Ref(name),
            producer_epoch=producer.epoch + shift,
            group_id=self.prefix + group if group else "",
        )
        self.settled(name, request, version)

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), version=versions(0, 6), shift=SHIFTS, member=mostly(st.just(""), "m", weight=9))
    def commit_offsets(self, data: Any, version: int, shift: int, member: str) -> None:
        """TxnOffsetCommit; from v5 on it adds the group by itself."""
        name, producer = self.chosen(data)
        request = TxnOffsetCommitRequest(
            transactional_id=self.prefix + name,
            group_id=self.prefix + "g",
            producer_id=Ref(name),
            producer_epoch=producer.epoch + shift,
            member_id=member if version >= 3 else "",
            generation_id_or_member_epoch=1 if member and version >= 3 else -1,
        )
        for topic in data.draw(st.lists(drawn.NAMES, min_size=1, max_size=2)):
            parts = [
                TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=data.draw(drawn.OFFSETS))
                for index in data.draw(st.lists(drawn.PARTITIONS, max_size=2))
            ]
            entry = TxnOffsetCommitRequestTopic(partitions=parts)
            if version >= 6:
                entry.topic_id = data.draw(drawn.TOPIC_IDS)
            else:
                entry.name = self.topic(topic)
            request.topics.append(entry)
        self.settled(name, request, version)

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), version=versions(0, 5), shift=SHIFTS, committed=st.booleans())
    def end_transaction(self, data: Any, version: int, shift: int, committed: bool) -> None:
        """EndTxn."""
        name, producer = self.chosen(data)
        request = EndTxnRequest(
            transactional_id=self.prefix + name,
            producer_id=Ref(name),
            producer_epoch=producer.epoch + shift,
            committed=committed,
        )
        answer = self.settled(name, request, version)
        if answer not in (None, CLOSED) and not answer.error_code and version >= 5:
            self.producers[name] = Producer(answer.producer_epoch)

    @rule(names=st.lists(st.sampled_from(["x1", "x2", "nobody", ""]), max_size=3))
    def describe_transactions(self, names: list[str]) -> None:
        """DescribeTransactions."""
        ids = [self.prefix + name if name else "" for name in names]
        self.ask(ADMIN, DescribeTransactionsRequest(transactional_ids=ids), 0)

    @rule(
        version=versions(0, 2),
        states=st.lists(st.sampled_from(STATES), max_size=2),
        duration_ms=mostly(st.just(-1), 0, 10_000_000),
        pattern=mostly(st.none(), "x1", ".*x.*", "", "[", weight=2),
    )
    def list_transactions(self, version: int, states: list[str], duration_ms: int, pattern: str | None) -> None:
        """ListTransactions, of which this sequence's own are compared."""

        def own(answer: Any, prefix: str) -> Any:
            answer.transaction_states = sorted(
                (each for each in answer.transaction_states if each.transactional_id.startswith(prefix)),
                key=lambda each: str(each.transactional_id),
            )
            return answer

        request = ListTransactionsRequest(
            state_filters=states,
            duration_filter=duration_ms if version >= 1 else -1,
            transactional_id_pattern=pattern if version >= 2 else None,
        )
        self.ask(ADMIN, request, version, shorten=own)

    @rule(stable=st.booleans(), version=versions(8, 9))
    def offsets_of_the_group(self, stable: bool, version: int) -> None:
        """OffsetFetch of what transactions have committed."""
        group = OffsetFetchRequestGroup(group_id=self.prefix + "g", topics=None)
        self.ask(ADMIN, OffsetFetchRequest(groups=[group], require_stable=stable), version)
