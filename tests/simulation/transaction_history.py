"""What the clients of a simulation did and were told, and what must then be true of the logs.

A transaction whose end nobody was told of may have gone either way, but whole. Invariants have names:

CommittedOnceInOrder  committed records are read once, a producer's in the order in which it sent them
AbortedNever          records of aborted transactions are not read
AllOrNothing          of a transaction whose end is not known, all is read or none, over all partitions
NothingInvented       nothing is read that nobody sent
StablePast            what a reader of committed data once saw is what is read there for ever
SumKept               consume-transform-produce: each input comes out once, as far as offsets were committed
NoStuckOffset         when all is quiet the last stable offset is the log's end, and no id is busy
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

Partition = tuple[str, int]


class Outcome(Enum):
    """How a transaction ended, as far as its producer knows."""

    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class Transaction:
    """Values that belong together; a value names its transaction, so it is sent once only."""

    name: str
    values: dict[Partition, list[bytes]] = field(default_factory=dict)
    outcome: Outcome = Outcome.ABORTED
    """Before anybody asked for a commit there can be none."""

    def value(self, partition: Partition, about: bytes = b"") -> bytes:
        """The next value for a partition, noted as sent: "name#index|about"."""
        sent = self.values.setdefault(partition, [])
        sent.append(f"{self.name}#{sum(map(len, self.values.values()))}|".encode() + about)
        return sent[-1]


@dataclass(slots=True)
class History:
    """Everything that was sent."""

    transactions: dict[str, Transaction] = field(default_factory=dict)
    plain: dict[bytes, bool] = field(default_factory=dict)
    """Values sent outside of transactions: whether the node said that it has them."""

    def begin(self, name: str) -> Transaction:
        """A new transaction."""
        assert name not in self.transactions
        transaction = self.transactions[name] = Transaction(name)
        return transaction

    # --- checks -------------------------------------------------------------------------------

    def check_committed(self, read: Mapping[Partition, list[bytes]]) -> None:
        """`read` is what a reader of committed data finds in each partition from the beginning."""
        where: dict[bytes, Partition] = {}
        for partition, values in read.items():
            repeated = [value for value, count in Counter(values).items() if count > 1]
            assert not repeated, f"CommittedOnceInOrder: {partition} has {repeated[:5]} more than once"
            where |= dict.fromkeys(values, partition)
        known = set(self.plain)
        for transaction in self.transactions.values():
            self._check_transaction(transaction, read, where)
            known |= {value for values in transaction.values.values() for value in values}
        invented = [value for value in where if value not in known]
        assert not invented, f"NothingInvented: {invented[:5]}"
        lost = [value for value, is_acknowledged in self.plain.items() if is_acknowledged and value not in where]
        assert not lost, f"CommittedOnceInOrder: acknowledged and not read: {lost[:5]}"

    def _check_transaction(
        self, transaction: Transaction, read: Mapping[Partition, list[bytes]], where: Mapping[bytes, Partition]
    ) -> None:
        sent = [value for values in transaction.values.values() for value in values]
        found = [value for value in sent if value in where]
        if transaction.outcome is Outcome.ABORTED:
            assert not found, f"AbortedNever: {transaction.name} was aborted, {found[:5]} are read"
        if transaction.outcome is Outcome.COMMITTED:
            missing = [value for value in sent if value not in where]
            assert not missing, f"CommittedOnceInOrder: {transaction.name} was committed, {missing[:5]} are not read"
        if not found:
            return
        for partition, values in transaction.values.items():
            there = [value for value in read.get(partition, ()) if value in set(values)]
            rule = "CommittedOnceInOrder" if transaction.outcome is Outcome.COMMITTED else "AllOrNothing"
            assert there == values, f"{rule}: {transaction.name} in {partition}: sent {values}, read {there}"


def check_order(read: Mapping[Partition, list[bytes]]) -> None:
    """Values are "producer/number#index|…": a producer's numbers only rise within a partition."""
    for partition, values in read.items():
        newest: dict[str, tuple[int, int]] = {}
        for value in values:
            name, _, index = value.decode().partition("|")[0].partition("#")
            producer, _, number = name.rpartition("/")
            place = (int(number), int(index))
            assert place > newest.get(producer, (-1, -1)), (
                f"CommittedOnceInOrder: {partition}: {value!r} comes after {newest[producer]} of {producer}"
            )
            newest[producer] = place


def check_stable_past(
    seen: Mapping[Partition, Mapping[int, bytes]],
    final: Mapping[Partition, Mapping[int, bytes]],
    until: Mapping[Partition, int],
) -> None:
    """`seen` and `final` are committed values by offset; the reader of `seen` stood at `until` at last."""
    for partition, values in seen.items():
        expected = {offset: value for offset, value in final[partition].items() if offset < until[partition]}
        assert values == expected, (
            f"StablePast: {partition} below {until[partition]}: "
            f"only seen then {sorted(set(values.items()) - set(expected.items()))[:3]}, "
            f"only there now {sorted(set(expected.items()) - set(values.items()))[:3]}"
        )


def check_sum(inputs: Iterable[bytes], outputs: Iterable[bytes], what: str) -> None:
    """`inputs` are the committed inputs below the committed offset, `outputs` the inputs that the
    committed outputs name."""
    expected, actual = Counter(inputs), Counter(outputs)
    assert expected == actual, (
        f"SumKept: {what}: not transformed {list((expected - actual).elements())[:5]}, "
        f"transformed too often or too early {list((actual - expected).elements())[:5]}"
    )
