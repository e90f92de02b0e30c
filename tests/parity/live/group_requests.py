"""Group requests with fields that are mostly good and sometimes not: Hypothesis strategies and builders."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.parity.corpus.consumer_groups import assignment as made_assignment
from tests.parity.corpus.consumer_groups import subscription as made_subscription
from tests.parity.live.values import Made, Ref
from wire.primitives import ZERO_UUID


def mostly(good: st.SearchStrategy[Any], *odd: Any, weight: int = 7) -> st.SearchStrategy[Any]:
    """`good`, or now and then one of the odd values."""
    return st.integers(0, weight).flatmap(lambda drawn: st.sampled_from(odd) if drawn == weight else good)


def versions(lowest: int, highest: int) -> st.SearchStrategy[int]:
    """A version; the highest half of the time."""
    return st.one_of(st.just(highest), st.integers(lowest, highest))


GROUPS = mostly(st.sampled_from(["g1", "g1", "g1", "g2"]), "", "nobody", weight=15)
INSTANCES = mostly(st.sampled_from([None, None, None, "i1", "i2"]), "", "bad id", "x" * 250, weight=19)
LONG_MS = 300_000

PROTOCOL_TYPES = mostly(st.just("consumer"), "connect", "", weight=15)
PROTOCOL_NAMES = mostly(
    st.sampled_from([["range"], ["range", "sticky"], ["sticky", "range"], ["cooperative"]]), [], ["", "range"]
)
SESSION_TIMEOUTS_MS = mostly(st.just(LONG_MS), 99, 1_800_000, 1_800_001, -1, weight=15)

EPOCH_SHIFTS = mostly(st.just(0), -1, 1, 2)
EPOCHS = mostly(st.none(), 0, -1, -2, -3, weight=9)
CONSUMER_MEMBERS = mostly(st.sampled_from(["m1", "m2", "m3"]), "", "  ", weight=19)
OFFSETS = mostly(st.integers(0, 100), -1, -2, 2**63 - 1)
METADATA = mostly(st.sampled_from(["", "x"]), None, "y" * 4096, "y" * 4097)
PARTITIONS = mostly(st.integers(0, 2), -1, 99)
TOPIC_NAMES = mostly(st.sampled_from(["t1", "t2", "t3"]), "none", "", "bad name", weight=11)
TOPIC_IDS = mostly(st.sampled_from([Ref("T1"), Ref("T2"), Ref("T3")]), b"\x01" * 16, ZERO_UUID, weight=11)
STATES = ["Stable", "stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning", "nonsense"]
STATES += ["Reconciling", "", "NotReady"]
TYPES = ["classic", "Consumer", "share", "streams", "nonsense", ""]


def subscription(prefix: str, topics: list[str], version: int = 0, owned: bool = False) -> Made:
    """The consumer protocol's subscription to topics of the run."""
    names = tuple(prefix + topic for topic in topics)
    fields: dict[str, Any] = {"version": version}
    if owned and version and names:
        fields["owned"] = {names[0]: [0]}
    return Made(made_subscription, names, fields)


def assignment(prefix: str, topic: str, partitions: list[int]) -> Made:
    """The consumer protocol's assignment of one topic."""
    return Made(made_assignment, (prefix + topic, *partitions))


@st.composite
def metadata(draw: st.DrawFn, prefix: str) -> Any:
    """What a member says it wants: mostly a good subscription."""
    if draw(st.integers(0, 11)) == 11:
        return draw(st.sampled_from([b"", b"\x00", b"\x00\x01garbage", b"\xff\xff\xff\xff\xff\xff"]))
    topics = draw(st.sampled_from([["t1"], ["t2"], ["t1", "t2"], ["t2", "t3"], [], ["none"]]))
    return subscription(prefix, topics, draw(st.integers(0, 1)), draw(st.booleans()))
