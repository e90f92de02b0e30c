"""Placement: the rules that hold for every set of brokers, and what is refused (I17)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.controller.placement import place_replicas
from coordinator.metadata.image import BrokerImage
from tests.coordinator.controller.controller_world import SeededIds
from wire.errors import ErrorCode, KafkaError


def broker(broker_id: int, rack: str | None = None, *, fenced: bool = False) -> BrokerImage:
    return BrokerImage(broker_id, broker_id, bytes(16), rack=rack, fenced=fenced)


clusters = st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9).map(
    lambda kinds: [broker(index, rack, fenced=fenced) for index, (rack, fenced) in enumerate(kinds)]
)


@given(clusters, st.integers(1, 20), st.integers(1, 9), st.integers(0, 1000))
def test_replicas_are_different_brokers_and_fenced_ones_come_last(
    brokers: list[BrokerImage], partition_count: int, replication_factor: int, seed: int
) -> None:
    usable = {one.broker_id for one in brokers if not one.fenced}
    if replication_factor > len(brokers) or not usable:
        with pytest.raises(KafkaError) as raised:
            place_replicas(brokers, partition_count, replication_factor, SeededIds(seed))
        assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        return
    placed = place_replicas(brokers, partition_count, replication_factor, SeededIds(seed))
    assert len(placed) == partition_count
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == replication_factor
        assert set(replicas[: len(usable)]) <= usable
        assert replicas[0] in usable


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 8), st.integers(0, 1000))
def test_even_racks_share_replicas_and_leaders_evenly(racks: int, size: int, rounds: int, seed: int) -> None:
    brokers = [broker(rack * size + index, f"rack{rack}") for rack in range(racks) for index in range(size)]
    replication_factor = min(racks, 3)
    partition_count = racks * size * rounds
    placed = place_replicas(brokers, partition_count, replication_factor, SeededIds(seed))
    rack_of = {one.broker_id: one.rack for one in brokers}
    for replicas in placed:
        assert len({rack_of[replica] for replica in replicas}) == replication_factor
    assert set(Counter(rack_of[replicas[0]] for replicas in placed).values()) == {size * rounds}


def test_one_broker_holds_everything() -> None:
    assert place_replicas([broker(5)], 3, 1, SeededIds()) == [(5,), (5,), (5,)]


@pytest.mark.parametrize(
    ("brokers", "words"),
    [([], "no broker"), ([broker(1, fenced=True)], "fenced"), ([broker(1), broker(2)], "only 2 broker")],
)
def test_a_refusal_says_why(brokers: list[BrokerImage], words: str) -> None:
    with pytest.raises(KafkaError) as raised:
        place_replicas(brokers, 1, 3, SeededIds())
    assert words in str(raised.value)
    assert "3 time(s)" in str(raised.value)
